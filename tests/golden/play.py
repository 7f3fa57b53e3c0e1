"""The daemon's parts over a scenario that passes in seconds: every call, every cycle, on a clock that never varies."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path, PurePath

from npu_watchd import config
from npu_watchd.catalogue import CATALOGUE, Family
from npu_watchd.decide.cycle import Judged, Judging
from npu_watchd.lanes import Lanes
from npu_watchd.memory.history import History
from npu_watchd.model.reading import Failure, FailureKind, Output, Tick
from npu_watchd.model.snapshot import Engine, Outcome
from npu_watchd.parsers.tool_log import failures_in
from npu_watchd.rules import RULES
from npu_watchd.simnode import error_log, node, scenario_file
from npu_watchd.simnode.scenario import Scenario
from npu_watchd.simnode.state import NodeState
from npu_watchd.simnode.timeline import state_at
from npu_watchd.simnode.tools import answer, installed_on
from npu_watchd.sinks.metrics import Exposition, Format
from npu_watchd.sources.kernel_log import KernelLog
from npu_watchd.sources.oom_kills import OomReader
from npu_watchd.sources.probes import DEFAULTS
from npu_watchd.sources.tool_log import ToolLog
from tests.golden.stage import NOON_S, Stage

CYCLE_S = 5
FIRST_CYCLE_S = 1
CALL_S = 1 / 16
"""What a call takes that the scenario does not delay."""
KERNEL_S = 10.0
"""How often sysfs and procfs are brought up to date; a process is there for longer before its chip shows it."""
LEFT_OUT = {
    "npu_watchd_abandoned_processes": "of tools in D state, which no scenario has; test_catalogue.py",
    "npu_watchd_build_info": "its label changes with each release; test_catalogue.py",
    "npu_watchd_actions_total": "the play acts on no scheduler; tests/acting",
    "npu_watchd_action_blocked": "likewise",
    "npu_watchd_actuator_hold": "likewise",
    "npu_watchd_notifications_total": "the play pushes to nobody; test_catalogue.py",
    "npu_watchd_notification_failures_total": "likewise",
    "npu_watchd_notification_drops_total": "likewise",
    "npu_watchd_notification_last_success_timestamp_seconds": "likewise",
    "npu_watchd_cycle_duration_seconds": "real time; test_catalogue.py",
    "npu_watchd_cycle_timestamp_seconds": "the time of day; test_catalogue.py",
    "npu_node_shm_used_bytes": "of a file system of its own; tests/sources/test_host.py",
    "npu_node_shm_total_bytes": "likewise",
    "npu_watchd_probe_last_success_timestamp_seconds": "the time of day; test_catalogue.py",
}
"""Families that are on no golden page, and why."""


@dataclass
class Played:
    """What was to be seen."""

    pages: dict[int, str] = field(default_factory=dict)
    """Second → /metrics."""
    outcomes: dict[int, Outcome] = field(default_factory=dict)
    """Second → what the sinks were handed."""
    events: list[str] = field(default_factory=list)
    """The log's lines."""


class _SimulatedNode:
    """The scenario's node on this stage: its tools take their time, its sysfs tree is below `directory`."""

    def __init__(self, scenario: Scenario, speed: int, directory: Path, stage: Stage) -> None:
        self._scenario = scenario
        self._directory = directory
        self._stage = stage
        self._speed = speed
        # Nothing in a scenario happens between two seconds, and a second's state serves some twenty calls.
        self._state_at = lru_cache(2)(lambda second: state_at(scenario, second))

    def state(self) -> NodeState:
        return self._state_at(float(int(self._stage.clock().mono_s * self._speed)))

    def run(self, argv: tuple[str, ...], timeout_s: float) -> Output | Failure:
        """As simulated_run, but it takes as long as the node's executables would."""
        tool, state = PurePath(argv[0]).name, self.state()
        mood = {"npu-smi": state.tool.mood, "hccn_tool": state.hccn}.get(tool)
        if tool not in installed_on(state) or mood == "missing":
            return Failure(FailureKind.MISSING, f"{argv[0]}: not found")
        said = answer(tool, state, argv[1:])
        takes_s = timeout_s if said.hangs else CALL_S + said.delay_s
        self._stage.wait(min(takes_s, timeout_s))
        if takes_s >= timeout_s:
            return Failure(FailureKind.TIMEOUT, f"`{tool} {' '.join(argv[1:])}` did not answer within {timeout_s:g} s")
        if tool == "npu-smi":
            error_log.append(str(self._directory), state, argv[1:])
        return Output(said.text, said.stderr, said.exit_code)

    def keep_tree(self) -> None:
        """As the kernel does; for a thread of its own."""
        on_disk = node.KernelFiles(self._directory)
        while not self._stage.is_set():
            second = float(int(self._stage.clock().mono_s * self._speed))
            on_disk.put(self._scenario, self.state(), second, NOON_S)
            self._stage.wait(KERNEL_S)


_TOLD = frozenset({"counters_reset", "verdict_changed", "node_verdict_changed"})


def play(
    name: str, seconds: Iterable[int], directory: Path, speed: int = 1, families: Sequence[Family] = CATALOGUE
) -> Played:
    """The scenario from its start to the last of these seconds, each of which gives a page.

    speed: scenario seconds a second of the daemon; all that is written down is in scenario seconds.
    families: what the pages hold.
    """
    telling = sorted(seconds)
    settings = config.load(node.install(name, directory, speed=0), defaults=DEFAULTS)
    stage = Stage()
    simulated = _SimulatedNode(scenario_file.load(name), speed, directory, stage)
    lanes = Lanes(settings, "boot", simulated.run, stage.clock, stage, jitter=lambda: 0.5)
    logs = Logs(settings)
    faults: list[Exception] = []
    played, judging = Played(), Judging(History(), RULES, config.limits_of(settings))
    kernel = threading.Thread(target=simulated.keep_tree, name="kernel", daemon=True)
    kernel.start()
    lanes.start(lambda _: None, faults.append)
    stage.gather(4)
    try:
        for second in (FIRST_CYCLE_S * speed, *range(CYCLE_S * speed, telling[-1] + 1, CYCLE_S * speed)):
            stage.pass_until(second / speed)
            assert not faults, faults
            logs.read(lanes, stage.clock())
            judged, outcome = _judged(lanes, stage, judging, speed)
            played.events += _lines(second, judged)
            if second in telling:
                played.pages[second] = _page(outcome, families)
                played.outcomes[second] = outcome
    finally:
        stage.end()
        kernel.join()
        logs.close()
    return played


class Logs:
    """What the node's logs say, as the daemon reads them; a node without a kernel log says nothing there."""

    def __init__(self, settings: config.Config) -> None:
        self._tool_log = ToolLog(settings.paths.npu_tool_log)
        self._kernel_log = KernelLog(settings.paths.dev / "kmsg")
        self._oom_reader = OomReader()

    def read(self, lanes: Lanes, now: Tick) -> None:
        said = self._kernel_log.poll()
        if not isinstance(said, Failure):
            lanes.board.take_kernel_log((), now, lanes.periods_s().get, old=said.old, lost=said.lost)
            lanes.board.take_oom_kills(self._oom_reader.take(said.messages), now, old=said.old)
        found = self._tool_log.poll()
        assert not isinstance(found, Failure), found
        events = (failures_in(line) for line in found.lines)
        lanes.board.take_log([(event.function, event.code) for event in events if event is not None], now)

    def close(self) -> None:
        self._kernel_log.close()


def _judged(lanes: Lanes, stage: Stage, judging: Judging, speed: int) -> tuple[Judged, Outcome]:
    """The history passes as fast as the scenario does, so that spans mean what the rules say."""
    now = stage.clock()
    share, stretch = lanes.load(now)
    snapshot = lanes.board.snapshot(now, lanes.periods_s().get)
    judged = judging.step(snapshot, NOON_S + now.mono_s * speed, {})
    assert not judged.faults, judged.faults
    engine = Engine("golden", None, True, NOON_S, share, stretch)
    return judged, Outcome(snapshot, engine, judged.findings, judging.journal, judged.verdicts)


def _page(outcome: Outcome, families: Sequence[Family]) -> str:
    exposition = Exposition(outcome, [family for family in families if family.name not in LEFT_OUT])
    assert exposition.problems == ()
    return exposition.body(Format.TEXT).decode()


def _lines(second: int, judged: Judged) -> Iterator[str]:
    for event in judged.events:
        if event.rule is not None or event.kind in _TOLD:
            yield f"{second:>5} {'journal':7} {event.kind} {event.rule or ''}: {event.text}"
    for change in judged.changes:
        yield f"{second:>5} {'info' if change.good else 'warning':7} {change.event} {_facts(change.facts)}"


def _facts(facts: Mapping[str, str | int]) -> str:
    return " ".join(f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in facts.items())
