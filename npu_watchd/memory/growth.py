"""How much one counter grew, and when: points in time order, asked by bisection, bounded by merging the oldest."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field

MOST_POINTS = 2_000
"""Of one series: 33 hours in which every reading of a minute counts, and the rest of 30 days ever more coarsely."""


@dataclass(frozen=True, slots=True)
class Increase:
    """What a counter did in a window that ends now."""

    count: float
    """How much it grew, over resets; >= 0, and never more than it really grew."""
    covered_s: float
    """From the oldest to the newest sight of it within the window; blind spells between two readings count, since what
    grew meanwhile is in the second."""
    first_s: float | None
    """History time at which the oldest growth in the window was seen; None without growth."""
    last_s: float | None
    """Likewise of the newest."""
    after_s: float | None = None
    """The growth happened after this instant, which lies before the window where nobody could look for long; None
    without growth."""


def _doubles() -> array[float]:
    return array("d")


@dataclass(slots=True)
class Growth:
    """Points (after, first, last, count). After merging, a point spans first..last and holds the sum."""

    after: array[float] = field(default_factory=_doubles)
    first: array[float] = field(default_factory=_doubles)
    last: array[float] = field(default_factory=_doubles)
    total: array[float] = field(default_factory=_doubles)
    """The sum up to and including each point, on top of `base`."""
    base: float = 0.0
    """What the points that were dropped had summed up to."""

    def __len__(self) -> int:
        return len(self.first)

    def add(self, after_s: float, first_s: float, last_s: float, count: float) -> None:
        """Instants do not lie before those of the point added last."""
        total = (self.total[-1] if self.total else self.base) + count
        self.after.append(after_s)
        self.first.append(first_s)
        self.last.append(last_s)
        self.total.append(total)

    def since(self, start_s: float) -> tuple[float, float, float, float] | None:
        """What was seen after `start_s`: count, and after, first and last of it; None without growth.

        A merged point that begins before `start_s` is left out whole: nobody knows how much of it lies on which side.
        """
        at = bisect_right(self.first, start_s)
        if at == len(self.first):
            return None
        before = self.total[at - 1] if at else self.base
        return self.total[-1] - before, self.after[at], self.first[at], self.last[-1]

    def points(self) -> Iterator[tuple[float, float, float, float]]:
        """after, first, last, count, oldest first."""
        before = self.base
        for after, first, last, total in zip(self.after, self.first, self.last, self.total, strict=True):
            yield after, first, last, total - before
            before = total

    def forget(self, until_s: float) -> int:
        """Drop the points that lie whole at or before `until_s`; returns how many."""
        gone = bisect_right(self.last, until_s)
        if gone:
            self.base = self.total[gone - 1]
            for column in (self.after, self.first, self.last, self.total):
                del column[:gone]
        return gone

    def merge_oldest(self) -> None:
        """Make one point of each two adjacent ones in the older half."""
        pairs = len(self) // 4
        for column, kept in ((self.after, 0), (self.first, 0), (self.last, 1), (self.total, 1)):
            column[: 2 * pairs] = column[kept : 2 * pairs : 2]
