"""Numbers that wander a little, the same every time: a function of what and when, with no state and no dice."""

from __future__ import annotations

from zlib import crc32

STEP_S = 20.0
"""A value moves in a straight line from one knot to the next, this far apart."""


def wander(what: str, t_s: float) -> float:
    """A value between -1 and 1 that moves slowly with time."""
    knot, way = divmod(t_s / STEP_S, 1.0)
    here, there = _knot(what, int(knot)), _knot(what, int(knot) + 1)
    return here + (there - here) * way


def trait(what: str) -> float:
    """A value between -1 and 1 that never changes: what makes one chip differ from the next."""
    return _knot(what, -1)


def _knot(what: str, at: int) -> float:
    return crc32(f"{what}|{at}".encode()) / 0xFFFFFFFF * 2 - 1
