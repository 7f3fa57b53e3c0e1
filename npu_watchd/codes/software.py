"""One code on two devices of one job at nearly the same time is the job's doing, not that of two pieces of silicon."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

from npu_watchd.codes.repeats import Occurrence

D = TypeVar("D", bound=Hashable)
Who = Callable[[D, Occurrence], Collection[str] | None]

TOGETHER_S = 30.0
"""The vendor's cluster software does not count such faults of one job inside 30 s."""


def software(
    occurrences: Mapping[D, Sequence[Occurrence]],
    jobs: Who[D],
    *,
    within_s: float = TOGETHER_S,
) -> dict[D, tuple[Occurrence, ...]]:
    """Of one code: the occurrences, by device, that began within `within_s` of one on another device of the same job.

    occurrences: by device.
    jobs: who used the device then; None or nobody: unknown, and such an occurrence is nobody's partner.
    Devices without such an occurrence are not in the answer.
    """
    shared: dict[D, set[Occurrence]] = {}
    by_job: dict[str, list[tuple[Occurrence, D]]] = {}
    for device, some in occurrences.items():
        for one in some:
            for job in jobs(device, one) or ():
                by_job.setdefault(job, []).append((one, device))
    for events in by_job.values():
        events.sort(key=lambda event: event[0].appeared_s)
        for ordered in (events, reversed(events)):
            for device, one in _close_to_another(ordered, within_s):
                shared.setdefault(device, set()).add(one)
    return {
        device: tuple(one for one in some if one in shared[device])
        for device, some in occurrences.items()
        if device in shared
    }


def hardware(
    occurrences: Mapping[D, Sequence[Occurrence]],
    jobs: Who[D],
    *,
    within_s: float = TOGETHER_S,
) -> dict[D, tuple[Occurrence, ...]]:
    """Of one code: the occurrences, by device, that are left without those of `software`; every device is in it."""
    taken = {device: set(some) for device, some in software(occurrences, jobs, within_s=within_s).items()}
    return {
        device: tuple(one for one in some if one not in taken.get(device, ())) for device, some in occurrences.items()
    }


def _close_to_another(events: Iterable[tuple[Occurrence, D]], within_s: float) -> Iterable[tuple[D, Occurrence]]:
    """Those that have a neighbour on another device among the events walked over so far."""
    latest_s: dict[D, float] = {}
    for one, device in events:
        if any(other != device and abs(one.appeared_s - at_s) <= within_s for other, at_s in latest_s.items()):
            yield device, one
        latest_s[device] = one.appeared_s
