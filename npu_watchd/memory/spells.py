"""One yes-or-no condition over time: only its changes are kept, and not knowing is no change."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field

from npu_watchd.memory.rows import StateRow, TransitionRow
from npu_watchd.model.ids import Subject

MOST_TRANSITIONS = 2_000
"""Of one condition: a port that flaps every 20 minutes for 30 days. Beyond, the oldest go."""


@dataclass(frozen=True, slots=True)
class Spell:
    """History time. began_s: when it was first seen so, which may be later than it was so."""

    began_s: float
    ended_s: float | None
    """None: it lasts, or was so when it was last seen."""


def _doubles() -> array[float]:
    return array("d")


@dataclass(slots=True)
class Timeline:
    """A condition's transitions; each is to the opposite of the one before."""

    number: int
    name: str
    subject: Subject
    current: bool | None = None
    """None: nobody knows now."""
    last: bool = False
    """The newest known value, where there is a transition."""
    at: array[float] = field(default_factory=_doubles)

    def tell(self, value: bool, now_s: float) -> bool:
        """Take the value now; True where it is another than the newest known one."""
        self.current = value
        if self.at and self.last is value:
            return False
        self.at.append(now_s)
        self.last = value
        return True

    @property
    def since_s(self) -> float | None:
        return self.at[-1] if self.at else None

    @property
    def ever(self) -> bool:
        """Whether it has held within what is kept: of two transitions one is into it."""
        return len(self.at) > 1 or (bool(self.at) and self.last)

    def spells(self, value: bool, start_s: float) -> tuple[Spell, ...]:
        """Spells of `value` that began or ended after `start_s`, oldest first."""
        size = len(self.at)
        begin = max(bisect_right(self.at, start_s) - 1, 0)
        begin += self._value(begin) is not value
        found: list[Spell] = []
        for index in range(begin, size, 2):
            ended_s = self.at[index + 1] if index + 1 < size else None
            if (ended_s if ended_s is not None else self.at[index]) > start_s:
                found.append(Spell(self.at[index], ended_s))
        return tuple(found)

    def forget(self, until_s: float) -> int:
        """Drop what was over by `until_s`; the transition into what held then stays. Returns how many went."""
        gone = max(bisect_right(self.at, until_s) - 1, len(self.at) - MOST_TRANSITIONS, 0)
        del self.at[:gone]
        return gone

    def row(self) -> StateRow:
        return StateRow(self.number, self.name, self.subject, self.current)

    def transitions(self) -> Iterator[TransitionRow]:
        for index, at_s in enumerate(self.at):
            yield TransitionRow(self.number, at_s, self._value(index))

    def _value(self, index: int) -> bool:
        return self.last if (len(self.at) - 1 - index) % 2 == 0 else not self.last
