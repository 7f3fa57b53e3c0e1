"""One question to one tool: for whom, how often, and how it is asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from npu_watchd.model.ids import NODE, DeviceKey, Subject
from npu_watchd.model.reading import Failure, FailureKind, Output, Reading, Run, Tick

SILENT = Failure(FailureKind.EXIT, "the answer does not speak of this chip")

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
    PORT = "port"
    """hccn_tool's `-i N`: the logic id of the chip whose port it is."""


@dataclass(frozen=True, slots=True, order=True)
class Target:
    """The card or chip that a call is about; the node where `npu` is None."""

    npu: int | None = None
    chip: int | None = None
    """None: the card form of the command."""
    chips: tuple[int, ...] = ()
    """Chips that the answer must speak of."""
    logic_id: int | None = None
    """Of the one chip, where it is asked for by that."""

    def subjects(self) -> tuple[Subject, ...]:
        if self.npu is None:
            return (NODE,)
        return tuple(DeviceKey(self.npu, chip) for chip in self.chips)


@dataclass(frozen=True, slots=True)
class Probe:
    """One question to one tool."""

    name: str
    tool: str
    """Key of [tools] in the config."""
    arguments: Callable[[Target], tuple[str, ...]]
    scope: Scope
    every_s: float
    timeout_s: float
    read: Callable[[Output, Target], Understood | Failure]
    """The tool's answer → a record or a failure for each subject, or one failure for all."""
    busy: Callable[[Output], bool] = lambda _: False
    """Whether the answer says that the same question may be answered a moment later."""

    def argv(self, path: str, target: Target) -> tuple[str, ...]:
        return (path, *self.arguments(target))


Wait = Callable[[float], object]
"""Seconds to let pass before a question is asked again."""
_BUSY_WAITS_S = (0.3, 0.6, 1.2, 2.4, 4.8)


def ask(
    probe: Probe, target: Target, run: Run, path: str, timeout_s: float, clock: Callable[[], Tick], wait: Wait
) -> list[Reading[Record]]:
    """Run the probe's tool and give every subject of the target its reading, within the deadline; never raises.

    A tool that says that it is busy is asked again after growing pauses, as long as the deadline leaves room for an
    answer that takes as long as the last: ended in its middle, a busy tool would look like one that hangs.
    """
    began = asked = clock()
    argv = probe.argv(path, target)
    answer = run(argv, timeout_s)
    for pause_s in _BUSY_WAITS_S:
        now_s = clock().mono_s
        left_s = began.mono_s + timeout_s - now_s - pause_s
        if isinstance(answer, Failure) or left_s <= now_s - asked.mono_s or not probe.busy(answer):
            break
        wait(pause_s)
        asked = clock()
        answer = run(argv, left_s)
    ended = clock()
    found = answer if isinstance(answer, Failure) else probe.read(answer, target)
    unknown_keys = 0 if isinstance(found, Failure) else len(found.unknown_keys)
    return [
        Reading(
            probe.name,
            subject,
            ended,
            ended.mono_s - began.mono_s,
            found if isinstance(found, Failure) else found.results.get(subject, SILENT),
            unknown_keys if number == 0 else 0,
        )
        for number, subject in enumerate(target.subjects())
    ]
