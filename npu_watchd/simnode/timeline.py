"""Scenario and time → the node's state. A pure function: the same second gives the same numbers, whoever asks."""

from __future__ import annotations

from dataclasses import fields, replace

from npu_watchd.simnode import host_port, pcie_story
from npu_watchd.simnode.chip_story import ChipStory
from npu_watchd.simnode.roce_story import roce_port
from npu_watchd.simnode.scenario import Event, Scenario
from npu_watchd.simnode.silicon import SILICON, Silicon, new_cards
from npu_watchd.simnode.spans import busy_spans, seconds
from npu_watchd.simnode.state import (
    START_S,
    CardState,
    ChipState,
    DriverMood,
    ErrorCode,
    ErrorCounts,
    HccnMood,
    Hccs,
    HccsLink,
    Load,
    Memory,
    NodeState,
    PcieErrors,
    Process,
    Tool,
)
from npu_watchd.simnode.sysfs_ib import SimHca
from npu_watchd.simnode.sysfs_net import NetDevice
from npu_watchd.simnode.wander import trait, wander

PACKETS_PER_SECOND = 41_000
"""Of a busy HCCS link; an idle one has a hundredth of it."""


def state_at(scenario: Scenario, t_s: float, start_s: float = START_S) -> NodeState:
    """The node `t_s` seconds into the scenario; before its start it is as at its start.

    start_s: the Unix second at which the scenario began, for what the node says of its clock.
    """
    t_s = max(0.0, t_s)
    silicon = SILICON[scenario.generation]
    cards = new_cards(silicon, scenario.cards, scenario.chip_name)
    adapters = _adapters(scenario, t_s)
    return NodeState(
        silicon.family,
        scenario.tool_version,
        scenario.driver_version,
        tuple(_card(scenario, silicon, card, t_s, start_s) for card in cards),
        driver=_driver(scenario, t_s),
        install_incomplete=scenario.install_incomplete,
        tool=_tool(scenario, t_s),
        hccn=_hccn(scenario, t_s),
        now_s=start_s + t_s,
        hcas=tuple(adapter for adapter, _ in adapters) if scenario.hcas else None,
        netdevs=tuple(netdev for _, netdev in adapters),
        host_cpu=scenario.host_cpu,
    )


def _tool(scenario: Scenario, t_s: float) -> Tool:
    tool = Tool()
    for event in scenario.events:
        if event.tool is not None and event.in_force(t_s):
            tool = Tool(event.tool, event.tool_delay_s, event.ignores_sigterm)
    return tool


def _driver(scenario: Scenario, t_s: float) -> DriverMood:
    moods: list[DriverMood] = [event.driver for event in scenario.events if event.driver and event.in_force(t_s)]
    return moods[-1] if moods else "ok"


def _hccn(scenario: Scenario, t_s: float) -> HccnMood:
    moods: list[HccnMood] = [event.hccn for event in scenario.events if event.hccn and event.in_force(t_s)]
    return moods[-1] if moods else "ok"


def _adapters(scenario: Scenario, t_s: float) -> list[tuple[SimHca, NetDevice]]:
    names = host_port.hca_names(scenario.hcas)
    told = ([event for event in scenario.events if name in event.hcas] for name in names)
    found = (host_port.hca(at, events, t_s) for at, events in enumerate(told))
    return [adapter for adapter in found if adapter is not None]


def _card(scenario: Scenario, silicon: Silicon, card: CardState, t_s: float, start_s: float) -> CardState:
    told = [[event for event in scenario.events if chip.logic_id in event.devices] for chip in card.chips]
    stories = [ChipStory().tell(events, t_s) for events in told]
    chips = tuple(
        _wired(scenario, _chip(silicon, chip, events, story, t_s), events, story, t_s, start_s)
        for chip, events, story in zip(card.chips, told, stories, strict=True)
    )
    dead = any(story.levels.get("mcu_dead", False) for story in stories)
    return replace(card, chips=chips, mcu=card.mcu and replace(card.mcu, dead=dead))


def _wired(
    scenario: Scenario, chip: ChipState, events: list[Event], story: ChipStory, t_s: float, start_s: float
) -> ChipState:
    """The chip with its own port and its way to the CPU."""
    family = SILICON[scenario.generation].family
    return replace(
        chip,
        roce=chip.roce and roce_port(chip, chip.roce, family, events, story, t_s, start_s),
        slot=chip.slot and pcie_story.slot(chip.slot, story, scenario.firmware_owns_aer, t_s),
    )


def _chip(silicon: Silicon, chip: ChipState, events: list[Event], story: ChipStory, t_s: float) -> ChipState:
    levels = story.levels
    load = _load(chip, story, t_s)
    temperature = levels.get("temperature", _temperature(silicon, chip, load, t_s))
    codes = tuple(ErrorCode(code, text) for code, text in levels.get("codes", ()))
    return replace(
        chip,
        health=levels.get("health", "OK"),
        codes=codes,
        power_watts=levels.get("power", _power(silicon, chip, load, t_s)),
        temperature_c=temperature,
        hbm_temperature_c=levels.get("hbm_temperature", temperature + 5),
        load=load,
        ddr=_memory("ddr", chip.ddr, story, own=silicon.hbm.total_mb == 0),
        hbm=_memory("hbm", chip.hbm, story, own=True),
        ddr_errors=_errors("ddr", story),
        hbm_errors=_errors("hbm", story),
        processes=tuple(
            Process(one.pid, one.shown_name, one.memory_mb, one.container_pid) for one in story.processes.values()
        ),
        clock_mhz=levels.get("clock", chip.clock_max_mhz if story.processes else chip.clock_mhz),
        hccs=chip.hccs and _hccs(chip.hccs, events, story, t_s),
        pcie=chip.pcie and PcieErrors(*(story.count(f"pcie.{one.name}") for one in fields(PcieErrors))),
        fails=frozenset(levels.get("fails", ())),
        lost=levels.get("lost", False),
    )


def _load(chip: ChipState, story: ChipStory, t_s: float) -> Load:
    """What the processes make of it, each unit overruled by its own level."""
    who = f"chip{chip.logic_id}"
    busy = 0 if not story.processes else round(84 + 12 * wander(f"{who} load", t_s))
    busy = story.levels.get("load.aicore", busy)
    units = {
        "aicore": busy,
        "aivector": busy * 2 // 5,
        "aicube": busy * 9 // 10,
        "aicpu": busy // 30,
        "ctrlcpu": round(5 + 2 * wander(f"{who} ctrlcpu", t_s)),
        "npu": busy,
        "hbm_bandwidth": busy * 3 // 5,
        "ddr_bandwidth": 0,
    }
    return Load(**{unit: story.levels.get(f"load.{unit}", value) for unit, value in units.items()})


def _power(silicon: Silicon, chip: ChipState, load: Load, t_s: float) -> float | None:
    if silicon.idle_watts is None:
        return None
    if silicon.idle_watts == silicon.busy_watts:
        return silicon.idle_watts
    share = (silicon.busy_watts - silicon.idle_watts) * load.aicore / 100
    who = f"chip{chip.logic_id} power"
    return round(silicon.idle_watts + share + 2.5 * trait(who) + 1.2 * wander(who, t_s), 1)


def _temperature(silicon: Silicon, chip: ChipState, load: Load, t_s: float) -> int:
    share = (silicon.busy_c - silicon.idle_c) * load.aicore / 100
    who = f"chip{chip.logic_id} temperature"
    return round(silicon.idle_c + share + 3 * trait(who) + wander(who, t_s))


def _memory(which: str, idle: Memory, story: ChipStory, own: bool) -> Memory:
    """`own`: the memory in which processes live. What the device itself uses is not a process."""
    total = story.levels.get(f"{which}.total", idle.total_mb)
    held = sum(one.memory_mb for one in story.processes.values()) if own and total else 0
    return Memory(min(story.levels.get(f"{which}.used", idle.used_mb + held), total), total)


def _errors(which: str, story: ChipStory) -> ErrorCounts:
    return ErrorCounts(**{one.name: story.count(f"{which}.{one.name}") for one in fields(ErrorCounts)})


def _hccs(idle: Hccs, events: list[Event], story: ChipStory, t_s: float) -> Hccs:
    busy_s = seconds(t_s, 0.0, busy_spans(events, t_s))
    packets = int(PACKETS_PER_SECOND * (busy_s + 0.01 * (t_s - busy_s)))
    links = tuple(
        HccsLink(packets + at, packets + 7 * at, story.count(f"hccs.{at}.retries"), story.count(f"hccs.{at}.errors"))
        for at in range(len(idle.links))
    )
    return Hccs(links, story.levels.get("hccs.healthy", True), story.levels.get("hccs.first_error_lane"))
