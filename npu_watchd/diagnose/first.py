"""Which rank and device failed first, over the logs of several ranks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from npu_watchd.diagnose.clue import Clue, Origin
from npu_watchd.model.log_event import Role

T = TypeVar("T")

_CLOSE_S = 1.0
"""Clocks of nodes differ by less where they are kept; nearer than that, the order proves nothing. assumption."""


@dataclass(frozen=True, slots=True)
class First:
    """Who failed first, as far as the logs tell."""

    clue: Clue
    rank: int | None
    device_id: str | None
    blamed: tuple[str, ...]
    """Whom the logs point at, most often first."""
    close: Clue | None
    """Of another log, and so near in time that the order is not certain; None: clear."""


def first_failure(clues: Sequence[Clue]) -> First | None:
    """None: no log has a failure with a time. A fault goes before what only follows from one."""
    failed = [clue for clue in clues if clue.origin is Origin.LOG and clue.role is not Role.NOTE]
    timed = [clue for clue in failed if clue.at_s is not None]
    faults = [clue for clue in timed if clue.role is Role.FAULT]
    among = sorted(faults or timed, key=lambda clue: clue.at_s or 0.0)
    if not among:
        return None
    first = among[0]
    others = (
        clue for clue in among if _log(clue) != _log(first) and (clue.at_s or 0.0) - (first.at_s or 0.0) < _CLOSE_S
    )
    same = [clue for clue in clues if _log(clue) == _log(first) and clue.origin is Origin.LOG]
    counted: dict[str, int] = {}
    for clue in failed:
        if clue.blames:
            counted[clue.blames] = counted.get(clue.blames, 0) + 1
    return First(
        clue=first,
        rank=first.rank if first.rank is not None else _only([clue.rank for clue in same]),
        device_id=first.device_id or _only([clue.device_id for clue in same]),
        blamed=tuple(sorted(counted, key=lambda who: -counted[who])[:3]),
        close=next(others, None),
    )


def _log(clue: Clue) -> str:
    return clue.where.rpartition(":")[0]


def _only(values: Sequence[T | None]) -> T | None:
    """The one that all name; None: none does, or they differ."""
    found = {value for value in values if value is not None}
    return found.pop() if len(found) == 1 else None
