"""A case's labels against what was found: what is right, what is false, what was missed, and why."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tests.scenarios.episodes import Episode
from tests.scenarios.label import Expected


@dataclass(frozen=True, slots=True)
class Score:
    """One case, or several together."""

    right: tuple[Expected, ...] = ()
    missed: tuple[Expected, ...] = ()
    false: tuple[Episode, ...] = ()
    complaints: tuple[str, ...] = ()
    """In words, for each that is missed or false."""

    def __add__(self, other: Score) -> Score:
        return Score(
            (*self.right, *other.right),
            (*self.missed, *other.missed),
            (*self.false, *other.false),
            (*self.complaints, *other.complaints),
        )

    @property
    def precision(self) -> float:
        """Of what was found, how much was right; 1 where nothing was found."""
        found = len(self.right) + len(self.false)
        return len(self.right) / found if found else 1.0

    @property
    def recall(self) -> float:
        """Of what should be found, how much was; 1 where nothing should."""
        wanted = len(self.right) + len(self.missed)
        return len(self.right) / wanted if wanted else 1.0


def score(expected: Sequence[Expected], episodes: Iterable[Episode], speed: int) -> Score:
    """Each label takes the first episode of its rule and subject; what is left of either is wrong.

    An episode of the right rule about the right subject with the wrong weight, or at the wrong time, is both: missed
    as it should be, and false as it is.
    """
    left = list(episodes)
    total = Score()
    for label in expected:
        mine = next((one for one in left if (one.rule, one.subject) == (label.rule, label.subject)), None)
        if mine is None:
            total += Score(missed=(label,), complaints=(f"missed: {label.rule} of {label.subject}",))
            continue
        left.remove(mine)
        wrong = tuple(_wrong(label, mine, speed))
        total += Score((), (label,), (mine,), wrong) if wrong else Score(right=(label,))
    for one in left:
        text = f"false: {one.rule} of {one.subject} at {one.opened_s:g} s until {one.over_s} s: {one.summary}"
        total += Score(false=(one,), complaints=(text,))
    return total


def _wrong(label: Expected, found: Episode, speed: int) -> Iterable[str]:
    who = f"{label.rule} of {label.subject}"
    earliest_s, latest_s = label.opens(speed)
    if not earliest_s <= found.opened_s <= latest_s:
        yield f"{who}: opened at {found.opened_s:g} s, not between {earliest_s:g} and {latest_s:g} s"
    if tuple(found.weights) != label.weights:
        yield f"{who}: weighs {found.weights}, not {label.weights}: {found.summary}"
    if label.over is None and found.over_s is not None:
        yield f"{who}: was over at {found.over_s:g} s, and should stand"
    elif label.over is not None and (found.over_s is None or not label.over[0] <= found.over_s <= label.over[1]):
        yield f"{who}: was over at {found.over_s} s, not between {label.over[0]:g} and {label.over[1]:g} s"
    for second in label.held:
        if found.was_held(second) is not True:
            yield f"{who}: is not held at {second:g} s"
    for second in label.live:
        if found.was_held(second) is not False:
            yield f"{who}: is not live at {second:g} s"
