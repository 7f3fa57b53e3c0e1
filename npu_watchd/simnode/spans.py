"""What a level was, from when on: the history behind counters that only grow while something is the case."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Generic, TypeVar

from npu_watchd.simnode.chip_story import ChipStory
from npu_watchd.simnode.scenario import Event

V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Span(Generic[V]):
    from_s: float
    value: V
    """Until the next span begins."""


def level_spans(events: Iterable[Event], key: str, first: V, t_s: float) -> tuple[Span[V], ...]:
    """The values of a level up to `t_s`, none like the one before; `first` where no event says another."""
    told = [event for event in events if key in event.levels or event.reset]

    def value_at(instant_s: float) -> V:
        value = first
        for event in told:
            if event.t_s <= instant_s and event.reset:
                value = first
            if key in event.levels and event.in_force(instant_s):
                value = event.levels[key]
        return value

    return _spans(told, t_s, value_at)


def busy_spans(events: Iterable[Event], t_s: float) -> tuple[Span[bool], ...]:
    """When a chip had processes, up to `t_s`."""
    told = [event for event in events if event.start or event.stop is not None or event.reset]
    return _spans(told, t_s, lambda instant_s: bool(ChipStory().tell(told, instant_s).processes))


def last_reset_s(events: Iterable[Event], t_s: float) -> float | None:
    """When the device was reset the last time; None: not in this scenario."""
    return max((event.t_s for event in events if event.reset and event.t_s <= t_s), default=None)


def seconds(t_s: float, since_s: float, *held: tuple[Span[bool], ...]) -> float:
    """How long, from `since_s` to `t_s`, all of these were true at once."""
    edges = sorted({since_s, t_s, *(span.from_s for spans in held for span in spans if since_s < span.from_s < t_s)})
    return sum(
        (end - start for start, end in pairwise(edges) if all(_at(spans, start) for spans in held)),
        0.0,
    )


def _at(spans: tuple[Span[V], ...], instant_s: float) -> V:
    return [span.value for span in spans if span.from_s <= instant_s][-1]


def _spans(told: list[Event], t_s: float, value_at: Callable[[float], V]) -> tuple[Span[V], ...]:
    ends = (event.t_s + event.lasts_s for event in told if event.lasts_s is not None)
    instants = sorted({0.0, *(one for one in (*(event.t_s for event in told), *ends) if 0.0 < one <= t_s)})
    spans: list[Span[V]] = []
    for instant_s in instants:
        value = value_at(instant_s)
        if not spans or spans[-1].value != value:
            spans.append(Span(instant_s, value))
    return tuple(spans)
