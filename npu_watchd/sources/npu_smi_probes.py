"""What is asked of npu-smi, and what its answers mean for whom."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from npu_watchd.model.ids import NODE, DeviceKey, Subject
from npu_watchd.model.reading import Failure, FailureKind, Output
from npu_watchd.model.records import ProcessMemoryChip
from npu_watchd.parsers import card_list, device_map, ecc, health, info_table, measures, process_memory
from npu_watchd.parsers.lines import ParseError
from npu_watchd.parsers.tool_words import refusal_of
from npu_watchd.sources.probe import SILENT, Probe, Record, Results, Scope, Target, Understood


def _said(read: Callable[[str, Target], Understood], answer: Output, target: Target) -> Understood | Failure:
    """The text decides, the exit code alone does not; but a tool that a signal ended has not said all."""
    killed_by = _signal_of(answer.exit_code)
    if killed_by is not None:
        return Failure(FailureKind.EXIT, f"npu-smi was ended by signal {killed_by} before it had said all")
    try:
        return read(answer.text, target)
    except ParseError as error:
        if error.kind is not FailureKind.UNPARSEABLE:
            return error.failure()
        refused = refusal_of(answer)
        if refused is not None:
            return refused
        if answer.exit_code != 0:
            return Failure(FailureKind.EXIT, f"exit code {answer.exit_code}{_words(answer, error)}")
        return error.failure()


_FATAL_SIGNALS = (4, 6, 7, 8, 9, 11, 15)


def _signal_of(exit_code: int) -> int | None:
    """The signal that ended the tool; a shell script around it reports 128 and the signal's number."""
    if exit_code < 0:
        return -exit_code
    return exit_code - 128 if exit_code - 128 in _FATAL_SIGNALS else None


def _words(answer: Output, error: ParseError) -> str:
    """What a failed call had to say: stderr's first line, else what is wrong with its text."""
    complaint = answer.stderr.strip().splitlines()
    if complaint:
        return f": {complaint[0][:200]}"
    return f": {error}" if answer.text.strip() else ", saying nothing"


def _info(text: str, _target: Target) -> Understood:
    table = info_table.parse(text)
    # A device that the cut took away must not become a device that is gone.
    if not table.complete or not text.endswith("\n"):
        raise ParseError(text.count("\n") + 1, "the table is cut off; " + "; ".join(table.warnings)[:300])
    return Understood({NODE: table})


def _map(text: str, _target: Target) -> Understood:
    return Understood({NODE: device_map.parse(text)})


def _list(text: str, _target: Target) -> Understood:
    return Understood({NODE: card_list.parse(text)})


def _ecc(text: str, target: Target) -> Understood:
    report = ecc.parse(text)
    return Understood(_chips(target, ((chip.chip, chip, chip.failure) for chip in report.chips)), report.unknown_keys)


def _health(text: str, target: Target) -> Understood:
    report = health.parse(text)
    return Understood(_chips(target, ((chip.chip, chip, chip.failure) for chip in report.chips)), report.unknown_keys)


def _process_memory(text: str, target: Target) -> Understood:
    found = process_memory.parse(text).chips
    return Understood(_chips(target, ((chip.chip, chip, chip.failure or _unsaid(chip)) for chip in found)))


def _unsaid(chip: ProcessMemoryChip) -> str | None:
    return SILENT.detail if chip.processes is None else None


def _chips(target: Target, found: Iterable[tuple[int | None, Record, str | None]]) -> Results:
    """By subject. An answer without chip ids is about the one chip that was asked for."""
    assert target.npu is not None
    only = target.chips[0] if len(target.chips) == 1 else None
    results: dict[Subject, Record | Failure] = {}
    for chip, record, failure in found:
        number = target.chip if target.chip is not None else chip if chip is not None else only
        if number is not None:
            results[DeviceKey(target.npu, number)] = Failure(FailureKind.EXIT, failure) if failure else record
    return results


def _measured(parse: Callable[[str], measures.ByChip[Any]]) -> Callable[[str, Target], Understood]:
    def read(text: str, target: Target) -> Understood:
        found = parse(text).items()
        return Understood(
            _chips(target, ((chip, said, said.detail if isinstance(said, Failure) else None) for chip, said in found))
        )

    return read


def _board(text: str, target: Target) -> Understood:
    """The card's answer holds for all its chips."""
    found = next(iter(measures.board(text).values()), SILENT)
    return Understood(dict.fromkeys(target.subjects(), found))


def _probe(
    name: str, arguments: tuple[str, ...], scope: Scope, every_s: float, read: Callable[[str, Target], Understood]
) -> Probe:
    """A command of npu-smi. `-i` is the NPU id, never the logic id."""

    def whole(target: Target) -> tuple[str, ...]:
        if target.npu is None:
            return arguments
        card = (*arguments, "-i", str(target.npu))
        return card if target.chip is None else (*card, "-c", str(target.chip))

    return Probe(name, "npu_smi", whole, scope, every_s, _DEADLINE_S, partial(_said, read))


_DEADLINE_S = 10.0
_TYPE = ("info", "-t")

NPU_SMI_PROBES: tuple[Probe, ...] = (
    _probe("npu_map", ("info", "-m"), Scope.NODE, 3600, _map),
    _probe("npu_info", ("info",), Scope.NODE, 15, _info),
    _probe("npu_list", ("info", "-l"), Scope.NODE, 3600, _list),
    _probe("npu_health", (*_TYPE, "health"), Scope.CHIP, 60, _health),
    _probe("npu_ecc", (*_TYPE, "ecc"), Scope.CARD, 60, _ecc),
    # Asked only of a chip whose part of the table is full (sources/rounds.py).
    _probe("npu_proc_mem", (*_TYPE, "proc-mem"), Scope.CARD, 60, _process_memory),
    _probe("npu_usages", (*_TYPE, "usages"), Scope.CARD, 60, _measured(measures.usages)),
    _probe("npu_common", (*_TYPE, "common"), Scope.CARD, 60, _measured(measures.clocks)),
    # `-t temp` repeats the table's chip temperature; the memory's own stands in `-t memory` only.
    _probe("npu_temp", (*_TYPE, "memory"), Scope.CARD, 60, _measured(measures.memory_temperature)),
    _probe("npu_hccs", (*_TYPE, "hccs"), Scope.CHIP, 60, _measured(measures.hccs)),
    _probe("npu_pcie_err", (*_TYPE, "pcie-err"), Scope.CARD, 60, _measured(measures.pcie_link_errors)),
    _probe("npu_board", (*_TYPE, "board"), Scope.CARD, 3600, _board),
)
