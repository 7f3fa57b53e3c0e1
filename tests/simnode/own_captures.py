"""Writes tests/captures/npu-smi: the simulator's answers in states that hold another number in every cell.

Run `python -m tests.simnode.own_captures` after a change of a renderer; test_own_captures.py says when that is due.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from npu_watchd.simnode.npu_smi import answer
from npu_watchd.simnode.silicon import SILICON, new_cards
from npu_watchd.simnode.state import (
    CardState,
    ChipState,
    ErrorCode,
    ErrorCounts,
    Hccs,
    HccsLink,
    Load,
    Mcu,
    NodeState,
    PcieErrors,
    Process,
)

FOLDER = Path(__file__).parent.parent / "captures" / "npu-smi"

CODES = (
    ErrorCode("80E01801", "node type=HBM, sensor type=memory, event state=multi-bit ECC error"),
    ErrorCode("80c98008", "node type=AIC, sensor type=RAS, event state=multi-bit ECC error: block 7"),
    ErrorCode("8C084E00", "node type=ADDA, sensor type=heartbeat, event state=heartbeat error"),
)
NAMES = ("python3", "VLLM::Worker_TP", "ray::IDLE", "pt main thread", None, "torchrun", "a b  c", "npu_burn", "ninth")


@dataclass(frozen=True)
class OwnCapture:
    file: str
    command: str
    made: str
    text: str
    exit_code: int


Change = Callable[[ChipState], ChipState]


def node(generation: str, version: str, *, cards: int = 0, driver_version: str = "") -> NodeState:
    """A node on which every chip differs from every other in every value."""
    silicon = SILICON[generation]
    fresh = new_cards(silicon, cards or silicon.cards)
    return NodeState(
        silicon.family,
        version,
        driver_version or version,
        tuple(replace(card, chips=tuple(varied(chip) for chip in card.chips)) for card in fresh),
    )


def varied(chip: ChipState) -> ChipState:
    """Another number in every cell, a function of the logic id alone."""
    n = chip.logic_id
    ddr = replace(chip.ddr, used_mb=chip.ddr.used_mb + 37 * n) if chip.ddr.total_mb else chip.ddr
    hbm = replace(chip.hbm, used_mb=chip.hbm.used_mb + 3911 * n % 61000) if chip.hbm.total_mb else chip.hbm
    watts = None if chip.power_watts is None else round(chip.power_watts + 7.3 * n + 0.4, 1)
    load = [(n * factor + factor) % 101 for factor in (13, 17, 19, 23, 29, 31, 37, 41)]
    return replace(
        chip,
        power_watts=watts,
        temperature_c=chip.temperature_c + n,
        hbm_temperature_c=chip.hbm_temperature_c + 20 + n,
        ddr=ddr,
        hbm=hbm,
        load=Load(*load),
        hugepages_used=max(0, chip.hugepages_used - n) if chip.hugepages_total else 0,
        ddr_errors=counts(100 + n),
        hbm_errors=counts(200 + n),
        clock_mhz=chip.clock_mhz + 25 * n,
        hccs=chip.hccs and Hccs(tuple(link(n, at) for at in range(len(chip.hccs.links)))),
        pcie=chip.pcie and PcieErrors(1 + n, 20 + n, 300 + n, 4000 + n, 50000 + n),
    )


def counts(seed: int) -> ErrorCounts:
    """Eight counts, none like another."""
    return ErrorCounts(seed, seed + 11, seed + 5000, seed + 7000, 3 + seed % 7, 13 + seed % 7, 0, 1 + seed % 5)


def link(n: int, at: int) -> HccsLink:
    """One HCCS link; the third of each chip has errors."""
    return HccsLink(1993002168 + 7001 * at + n, 760745014 + 9001 * at + n, 10 * n + at, n + 1 if at == 2 else 0)


def processes(count: int, first_pid: int = 40001) -> tuple[Process, ...]:
    """That many, with blank, colon and 15-character names; every other one in a container."""
    return tuple(
        Process(first_pid + 7 * at, NAMES[at % len(NAMES)], 141 + 997 * at, 21 + at if at % 2 else None)
        for at in range(count)
    )


def change(base: NodeState, at: Iterable[int], how: Change) -> NodeState:
    """The same node with some chips (by logic id) changed."""
    wanted = set(at)

    def card(one: CardState) -> CardState:
        return replace(one, chips=tuple(how(chip) if chip.logic_id in wanted else chip for chip in one.chips))

    return replace(base, cards=tuple(card(one) for one in base.cards))


def each(base: NodeState, field: str, values: Iterable[object]) -> NodeState:
    """Chip 0 gets the first value, chip 1 the second, and so on."""
    for at, value in enumerate(values):
        base = change(base, [at], lambda chip, value=value: replace(chip, **{field: value}))  # type: ignore[misc]
    return base


def failing(base: NodeState, at: int, *queries: str) -> NodeState:
    return change(base, [at], lambda chip: replace(chip, fails=frozenset(queries)))


def mcu(base: NodeState, how: Callable[[Mcu], Mcu]) -> NodeState:
    return replace(base, cards=tuple(replace(one, mcu=one.mcu and how(one.mcu)) for one in base.cards))


def everything() -> tuple[OwnCapture, ...]:
    """All captures in the order of the manifest."""
    return (*_tables(), *_lists(), *_blocks(), *_refusals())


def _own(kind: str, generation: str, state: str, base: NodeState, command: str, made: str) -> OwnCapture:
    said = answer(base, tuple(command.split()))
    slug = generation.replace(" ", "")
    file = f"{kind}__{slug}__{base.tool_version}__{state}.txt"
    return OwnCapture(file, f"npu-smi {command}", made, said.text, said.exit_code)


TABLES = (
    ("310", "20.2.2"),
    ("910A", "21.0.3.2"),
    ("310P3", "22.0.0"),
    ("310P3", "22.0.4"),
    ("310P Duo", "23.0.0"),
    ("310B4", "23.0.rc3"),
    ("910ProB", "24.1.rc2"),
    ("910B4-1", "25.2.0"),
    ("910B3", "26.0.rc1"),
    ("A3", "25.5.1"),
    ("A3", "26.0.rc2"),
    ("A3", "26.1.0.b061"),
    ("950PR", "25.7.rc1"),
    ("950DT", "25.6.rc1.b169"),
    ("950PR", "26.1.0.b061"),
)
FAILING = ("health", "pci", "name", "temp", "power", "util", "hbm", "phyid", "proc", "all")


def _tables() -> Iterable[OwnCapture]:
    for generation, version in TABLES:
        base = node(generation, version)
        yield _own("info", generation, "idle", base, "info", "every chip another value, no process")
        busy = each(base, "processes", [processes(at, 40001 + 100 * at) for at in (1, 0, 3, 8, 9, 2, 5)])
        busy = each(busy, "health", ["OK", "Warning", "Alarm", "Critical", "UNKNOWN"])
        made = "1, 0, 3, 8, 9, 2, 5 processes on chip 0 to 6; health OK, Warning, Alarm, Critical, UNKNOWN"
        yield _own("info", generation, "busy_mixed_health", busy, "info", made)
    for generation, version in (
        ("910B3", "25.5.1"),
        ("A3", "26.1.0.b061"),
        ("310P Duo", "25.2.0"),
        ("950PR", "26.1.0"),
    ):
        base = each(node(generation, version), "processes", [processes(2, 900 + 10 * at) for at in range(4)])
        for query in FAILING:
            made = f"the {query} query of chip 3 fails"
            yield _own("info", generation, f"fail_{query}", failing(base, 3, query), "info", made)
        lost = change(base, [3], lambda chip: replace(chip, lost=True))
        yield _own("info", generation, "lost_chip3", lost, "info", "chip 3 fell off the bus")
        value = change(base, [3], lambda chip: replace(chip, health=None))
        yield _own("info", generation, "health_out_of_range", value, "info", "chip 3 has a health value without a word")
    half = replace(node("910B4", "24.1.0.1", cards=2, driver_version="23.0.rc2.3"), install_incomplete=True)
    yield _own("info", "910B4", "install_incomplete", half, "info", "driver installed half; tool newer than the driver")
    barred = change(
        node("910B3", "25.5.1"), [1], lambda chip: replace(chip, processes=(Process(9, "a | b", 7), *processes(2)))
    )
    yield _own("info", "910B3", "bar_in_name", barred, "info", "a process on chip 1 has a bar in its name")
    blank = change(
        node("950DT", "26.0.rc2"), range(8), lambda chip: replace(chip, processes=(Process(7, None, 48208),))
    )
    yield _own("info", "950DT", "blank_names", blank, "info", "one process a chip, its pid not visible")


def _lists() -> Iterable[OwnCapture]:
    for generation in ("310", "310B4", "310P Duo", "910A", "910B3", "A3", "950PR"):
        base = node(generation, "25.5.1")
        lost = change(base, [1], lambda chip: replace(chip, lost=True))
        for kind, option in (("list", "-l"), ("map", "-m")):
            yield _own(kind, generation, "whole", base, f"info {option}", "all cards there")
            yield _own(kind, generation, "lost_chip1", lost, f"info {option}", "chip 1 fell off the bus")


def _blocks() -> Iterable[OwnCapture]:
    kinds = ("ecc", "health", "usages", "common", "temp", "power", "volt", "memory", "board", "pcie-err", "proc-mem")
    for generation, npu, chip in (("310B4", 0, 0), ("310P Duo", 8, 1), ("910A", 3, 0), ("910B3", 3, 0), ("A3", 2, 1)):
        base = node(generation, "25.5.1")
        busy = replace(base, cards=tuple(_loaded(card, npu, chip) for card in base.cards))
        for kind in (*kinds, "hccs"):
            if kind != "hccs":
                yield _own(kind, generation, "card", busy, f"info -t {kind} -i {npu}", "three codes, nine processes")
            if kind != "common":
                command = f"info -t {kind} -i {npu} -c {chip}"
                yield _own(kind, generation, "chip", busy, command, "three codes, nine processes, chip form")
        sick = replace(base, cards=tuple(_dumb(card, npu, chip) for card in base.cards))
        for kind in ("ecc", "health", "usages", "temp", "proc-mem"):
            yield _own(kind, generation, "fails", sick, f"info -t {kind} -i {npu}", "every query of the chip fails")
    base = node("950PR", "26.1.0.b061")
    busy = replace(base, cards=tuple(_loaded(card, 5, 0) for card in base.cards))
    sick = failing(base, 5, "all")
    for kind in kinds:
        yield _own(kind, "950PR", "card", busy, f"info -t {kind} -i 5", "three codes, nine processes")
        if kind in ("ecc", "health", "usages", "temp", "power", "memory", "proc-mem"):
            yield _own(kind, "950PR", "fails", sick, f"info -t {kind} -i 5", "every query of the chip fails")
    yield from _odd_blocks()


def _odd_blocks() -> Iterable[OwnCapture]:
    b3 = node("910B3", "25.5.1")
    deaf = change(b3, [2], lambda chip: replace(chip, health="Alarm", codes=(ErrorCode("80AAAAAA", None), CODES[0])))
    yield _own("health", "910B3", "text_fails", deaf, "info -t health -i 2 -c 0", "the first code's text cannot be had")
    empty = change(b3, [2], lambda chip: replace(chip, health="Critical"))
    yield _own("health", "910B3", "critical_no_code", empty, "info -t health -i 2 -c 0", "Critical without a code")
    yield _own("health", "910B3", "critical_card", empty, "info -t health -i 2", "Critical without a code, card form")
    refused = failing(b3, 2, "ecc_record")
    yield _own("ecc", "910B3", "record_refused", refused, "info -t ecc -i 2", "error records only for root on the host")
    odd = replace(counts(9), double_bit_next_isolated_pages=-4)
    under = change(b3, [2], lambda chip: replace(chip, hbm_errors=odd))
    yield _own(
        "ecc", "910B3", "underflow", under, "info -t ecc -i 2", "fewer records than isolated pages: runs below zero"
    )
    dead = mcu(b3, lambda one: replace(one, dead=True))
    yield _own("health", "910B3", "mcu_dead", dead, "info -t health -i 2", "the MCU does not answer")
    yield _own("temp", "910B3", "mcu_dead", dead, "info -t temp -i 2", "the MCU does not answer")
    alarm = mcu(b3, lambda one: replace(one, health="Alarm"))
    yield _own("health", "910B3", "mcu_alarm", alarm, "info -t health -i 2", "the MCU is in Alarm, the chip is not")
    bad_links = change(
        b3, [2], lambda chip: replace(chip, hccs=chip.hccs and replace(chip.hccs, healthy=False, first_error_lane=3))
    )
    yield _own("hccs", "910B3", "errors", bad_links, "info -t hccs -i 2 -c 0", "links not healthy, lane 3 first")


def _loaded(card: CardState, npu: int, chip: int) -> CardState:
    if card.npu != npu:
        return card
    chips = tuple(
        replace(one, health="Alarm", codes=CODES, processes=processes(9)) if one.chip == chip else one
        for one in card.chips
    )
    return replace(card, chips=chips)


def _dumb(card: CardState, npu: int, chip: int) -> CardState:
    if card.npu != npu:
        return card
    fails = frozenset({"all"})
    return replace(card, chips=tuple(replace(one, fails=fails) if one.chip == chip else one for one in card.chips))


def _refusals() -> Iterable[OwnCapture]:
    b3 = node("910B3", "25.5.1")
    yield _own("refusal", "910B3", "driver_gone", replace(b3, driver="gone"), "info", "driver not loaded")
    yield _own("refusal", "910B3", "occupied", replace(b3, driver="occupied"), "info", "another container holds it")
    yield _own("refusal", "910B3", "no_board", replace(b3, driver="no_board"), "info", "board type fails")
    yield _own("refusal", "910B3", "no_version", replace(b3, driver="no_version"), "info", "driver version fails")
    yield _own("refusal", "910B3", "no_such_card", b3, "info -t ecc -i 9", "no such card")
    yield _own("refusal", "910B3", "no_such_chip", b3, "info -t ecc -i 1 -c 5", "no such chip")
    yield _own("refusal", "910B3", "no_such_type", b3, "info -t nosuch -i 1", "no such type")
    yield _own("refusal", "910B3", "no_card", b3, "info -t health", "-i is missing")
    yield _own("refusal", "910B3", "no_such_command", b3, "nosuch", "no such command")
    yield _own("refusal", "910B3", "hccs_without_chip", b3, "info -t hccs -i 1", "-c is missing")
    yield _own("version", "910B3", "whole", b3, "-v", "the tool's version")


def manifest(captures: Iterable[OwnCapture]) -> str:
    """MANIFEST.tsv: file, command, exit code, how constructed."""
    head = "file\tcommand\texit\tmade\n"
    return head + "".join(f"{one.file}\t{one.command}\t{one.exit_code}\t{one.made}\n" for one in captures)


def main() -> None:
    """Write all files anew and drop those that are no longer made."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    captures = everything()
    for stale in set(FOLDER.glob("*.txt")) - {FOLDER / one.file for one in captures}:
        stale.unlink()
    for one in captures:
        (FOLDER / one.file).write_text(one.text, encoding="utf-8")
    (FOLDER / "MANIFEST.tsv").write_text(manifest(captures), encoding="utf-8")


if __name__ == "__main__":
    main()
