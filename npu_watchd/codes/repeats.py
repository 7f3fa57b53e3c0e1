"""How often and how long a code was there: events that are one, bursts, and the vendor's limits on both.

Pure: what happened is handed in as occurrences, and the present as `now_s`. All instants are in seconds of one clock;
what lies after `now_s` (the clock was set back) is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

SAME_EVENT_S = 5.0
"""Events of one code within it are one. From the vendor: what accompanies a memory error within 5 s belongs to it."""
BURST_GAP_S = 180.0
"""Pauses up to it lie inside one burst. The vendor's storm shield for memory errors opens again after 3 minutes."""


@dataclass(frozen=True, slots=True)
class Occurrence:
    """One stay of one code on one device."""

    appeared_s: float
    gone_s: float | None
    """None: it is still there. The same as `appeared_s` for an event without duration."""


@dataclass(frozen=True, slots=True)
class Burst:
    """Occurrences with only short pauses between them."""

    first_s: float
    """The first one's beginning."""
    last_s: float
    """The last one's beginning: a burst is as old as this."""
    gone_s: float | None
    """None: the code is still there."""
    events: int
    """Occurrences, those within SAME_EVENT_S counted once."""


@dataclass(frozen=True, slots=True)
class RepeatRule:
    """So many bursts within a window are too many."""

    times: int
    window_s: float
    release_s: float | None
    """It may go once the code has been away for so long; None: only a person lifts it."""
    quarantines: bool
    source: str


@dataclass(frozen=True, slots=True)
class LastingRule:
    """A code that stays for longer than a flicker."""

    lasting_s: float
    """It counts once it was there for longer than this."""
    recovered_s: float
    """It is over once it was away for this long; back before that, it never went."""


@dataclass(frozen=True, slots=True)
class Repeats:
    """What a repeat rule saw."""

    bursts: tuple[Burst, ...]
    """Those within the window, oldest first."""
    reached: bool

    @property
    def count(self) -> int:
        """To hold against the rule's `times`."""
        return len(self.bursts)


def distinct(occurrences: Iterable[Occurrence], *, within_s: float = SAME_EVENT_S) -> tuple[Occurrence, ...]:
    """Occurrences in order; one that begins up to `within_s` after the last kept one is part of it."""
    kept: list[Occurrence] = []
    for one in _in_order(occurrences):
        if kept and one.appeared_s - kept[-1].appeared_s <= within_s:
            kept[-1] = replace(kept[-1], gone_s=_later(kept[-1].gone_s, one.gone_s))
        else:
            kept.append(one)
    return tuple(kept)


def bursts(
    occurrences: Iterable[Occurrence], *, gap_s: float = BURST_GAP_S, within_s: float = SAME_EVENT_S
) -> tuple[Burst, ...]:
    """Bursts in order; a pause (from the end of what was to the beginning of what comes) up to `gap_s` ends none."""
    found: list[Burst] = []
    for one in distinct(occurrences, within_s=within_s):
        if found and _pause_s(found[-1].gone_s, one) <= gap_s:
            last = found[-1]
            found[-1] = Burst(last.first_s, one.appeared_s, _later(last.gone_s, one.gone_s), last.events + 1)
        else:
            found.append(Burst(one.appeared_s, one.appeared_s, one.gone_s, 1))
    return tuple(found)


def repeats(
    rule: RepeatRule,
    occurrences: Iterable[Occurrence],
    now_s: float,
    *,
    lasts: LastingRule | None = None,
    gap_s: float = BURST_GAP_S,
) -> Repeats:
    """The bursts whose last occurrence began within the rule's window, its very edge included.

    lasts: the code's own rule on duration. As with the vendor, what did not last is then not counted.
    """
    past = _until(occurrences, now_s)
    counted = past if lasts is None else lasting(lasts, past, now_s)
    recent = tuple(burst for burst in bursts(counted, gap_s=gap_s) if now_s - burst.last_s <= rule.window_s)
    return Repeats(recent, len(recent) >= rule.times)


def released(rule: RepeatRule, occurrences: Iterable[Occurrence], now_s: float) -> bool:
    """Whether the code has been away for the rule's `release_s`; never, where the rule has none."""
    if rule.release_s is None:
        return False
    return all(_pause_s(one.gone_s, now_s) >= rule.release_s for one in _settled(_until(occurrences, now_s)))


def lasting(rule: LastingRule, occurrences: Iterable[Occurrence], now_s: float) -> tuple[Occurrence, ...]:
    """The occurrences that were there for longer than `lasting_s`, each with its returns before `recovered_s`."""
    kept: list[Occurrence] = []
    for one in _settled(_until(occurrences, now_s)):
        if kept and _pause_s(kept[-1].gone_s, one) < rule.recovered_s:
            kept[-1] = replace(kept[-1], gone_s=_later(kept[-1].gone_s, one.gone_s))
        elif (now_s if one.gone_s is None else one.gone_s) - one.appeared_s > rule.lasting_s:
            kept.append(one)
    return tuple(kept)


def stands(rule: LastingRule, occurrences: Iterable[Occurrence], now_s: float) -> bool:
    """Whether the code lasts now: there for longer than `lasting_s`, and not yet away for `recovered_s`."""
    held = lasting(rule, occurrences, now_s)
    return bool(held) and (held[-1].gone_s is None or now_s - held[-1].gone_s < rule.recovered_s)


def _until(occurrences: Iterable[Occurrence], now_s: float) -> list[Occurrence]:
    """What has begun by now; an end that is still to come has not come."""
    return [
        replace(one, gone_s=None) if one.gone_s is not None and one.gone_s > now_s else one
        for one in occurrences
        if one.appeared_s <= now_s
    ]


def _in_order(occurrences: Iterable[Occurrence]) -> list[Occurrence]:
    return sorted(occurrences, key=lambda one: one.appeared_s)


def _settled(occurrences: Iterable[Occurrence]) -> Sequence[Occurrence]:
    """In order, overlapping and touching ones joined."""
    joined: list[Occurrence] = []
    for one in _in_order(occurrences):
        if joined and _pause_s(joined[-1].gone_s, one) <= 0:
            joined[-1] = replace(joined[-1], gone_s=_later(joined[-1].gone_s, one.gone_s))
        else:
            joined.append(one)
    return joined


def _pause_s(gone_s: float | None, then: Occurrence | float) -> float:
    """From the end of one to the beginning of another; no pause at all while the first is still there."""
    begins_s = then.appeared_s if isinstance(then, Occurrence) else then
    return float("-inf") if gone_s is None else begins_s - gone_s


def _later(one_s: float | None, other_s: float | None) -> float | None:
    return None if one_s is None or other_s is None else max(one_s, other_s)
