"""PROBES: what to ask of which tool, for whom, how often, and how to read the answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from npu_watchd.model.ids import NODE, DeviceKey, Subject
from npu_watchd.model.reading import Failure, FailureKind, Output, Reading, Run, Tick
from npu_watchd.parsers import card_list, device_map, ecc, health, info_table, measures
from npu_watchd.parsers.lines import ParseError
from npu_watchd.parsers.tool_words import refusal_of

Record = Any
"""One of model/records.py; which one, the probe's reader says."""

Results = Mapping[Subject, Record | Failure]


@dataclass(frozen=True, slots=True)
class Understood:
    """What a text says of each subject."""

    results: Results
    unknown_keys: tuple[str, ...] = ()
    """Keys that no parser knows: the first sign of a new tool version."""


class Scope(Enum):
    """For whom one call of the tool answers."""

    NODE = "node"
    CARD = "card"
    """`-i N`: all chips of one NPU."""
    CHIP = "chip"
    """`-i N -c M`, or `-i N` where the layout has no chip ids."""


@dataclass(frozen=True, slots=True, order=True)
class Target:
    """The card or chip that a call is about; the node where `npu` is None."""

    npu: int | None = None
    chip: int | None = None
    """None: the card form of the command."""
    chips: tuple[int, ...] = ()
    """Chips that the answer must speak of."""

    def subjects(self) -> tuple[Subject, ...]:
        if self.npu is None:
            return (NODE,)
        return tuple(DeviceKey(self.npu, chip) for chip in self.chips)

    def options(self) -> tuple[str, ...]:
        """As npu-smi takes them: `-i` is the NPU id, never the logic id."""
        if self.npu is None:
            return ()
        card = ("-i", str(self.npu))
        return card if self.chip is None else (*card, "-c", str(self.chip))


@dataclass(frozen=True, slots=True)
class Probe:
    """One question to one tool."""

    name: str
    tool: str
    """Key of [tools] in the config."""
    arguments: tuple[str, ...]
    """Before the target's options."""
    scope: Scope
    every_s: float
    timeout_s: float
    read: Callable[[str, Target], Understood]
    """The answer's text → a record or a failure for each subject. Raises ParseError where it fails as a whole."""

    def argv(self, path: str, target: Target) -> tuple[str, ...]:
        return (path, *self.arguments, *target.options())


def ask(
    probe: Probe, target: Target, run: Run, path: str, timeout_s: float, clock: Callable[[], Tick]
) -> list[Reading[Record]]:
    """Run the probe's tool once and give every subject of the target its reading; never raises."""
    began = clock()
    answer = run(probe.argv(path, target), timeout_s)
    ended = clock()
    found = answer if isinstance(answer, Failure) else _understand(probe, target, answer)
    unknown_keys = 0 if isinstance(found, Failure) else len(found.unknown_keys)
    return [
        Reading(
            probe.name,
            subject,
            ended,
            ended.mono_s - began.mono_s,
            found if isinstance(found, Failure) else found.results.get(subject, _SILENT),
            unknown_keys if number == 0 else 0,
        )
        for number, subject in enumerate(target.subjects())
    ]


_SILENT = Failure(FailureKind.EXIT, "the answer does not speak of this chip")


def _understand(probe: Probe, target: Target, answer: Output) -> Understood | Failure:
    """The text decides, the exit code alone does not; but a tool that a signal ended has not said all."""
    killed_by = _signal_of(answer.exit_code)
    if killed_by is not None:
        return Failure(FailureKind.EXIT, f"{probe.tool} was ended by signal {killed_by} before it had said all")
    try:
        return probe.read(answer.text, target)
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
    found = next(iter(measures.board(text).values()), _SILENT)
    return Understood(dict.fromkeys(target.subjects(), found))


_INFO = ("info",)
_TYPE = ("info", "-t")

PROBES: tuple[Probe, ...] = (
    Probe("npu_map", "npu_smi", ("info", "-m"), Scope.NODE, 3600, 10, _map),
    Probe("npu_info", "npu_smi", _INFO, Scope.NODE, 15, 10, _info),
    Probe("npu_list", "npu_smi", ("info", "-l"), Scope.NODE, 3600, 10, _list),
    Probe("npu_health", "npu_smi", (*_TYPE, "health"), Scope.CHIP, 60, 10, _health),
    Probe("npu_ecc", "npu_smi", (*_TYPE, "ecc"), Scope.CARD, 60, 10, _ecc),
    Probe("npu_usages", "npu_smi", (*_TYPE, "usages"), Scope.CARD, 60, 10, _measured(measures.usages)),
    Probe("npu_common", "npu_smi", (*_TYPE, "common"), Scope.CARD, 60, 10, _measured(measures.clocks)),
    # `-t temp` repeats the table's chip temperature; the memory's own stands in `-t memory` only.
    Probe("npu_temp", "npu_smi", (*_TYPE, "memory"), Scope.CARD, 60, 10, _measured(measures.memory_temperature)),
    Probe("npu_hccs", "npu_smi", (*_TYPE, "hccs"), Scope.CHIP, 60, 10, _measured(measures.hccs)),
    Probe("npu_pcie_err", "npu_smi", (*_TYPE, "pcie-err"), Scope.CARD, 60, 10, _measured(measures.pcie_link_errors)),
    Probe("npu_board", "npu_smi", (*_TYPE, "board"), Scope.CARD, 3600, 10, _board),
)
