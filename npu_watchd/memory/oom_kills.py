"""Whom the kernel killed for want of memory, as its log told since we read it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from npu_watchd.memory.readings import Readings
from npu_watchd.model.host import Belonging, Host, OomKill
from npu_watchd.model.ids import NODE, DeviceKey
from npu_watchd.model.jobs import DeviceJobs, JobKey
from npu_watchd.model.reading import Tick

_KEPT = 200
"""The newest; a job that dies so kills a few compile processes, not hundreds (assumption)."""


@dataclass(slots=True)
class OomKills:
    """Not for several threads at once: the board has the lock."""

    _kills: deque[tuple[OomKill, float]] = field(default_factory=lambda: deque(maxlen=_KEPT))
    """Each with the monotonic instant at which it was read."""

    def take(self, kills: Iterable[OomKill], read_s: float, jobs: Mapping[int, JobKey], *, old: bool) -> None:
        """jobs: by pid, of processes that were last seen on a chip: the log may name no cgroup."""
        for kill in kills:
            job = jobs.get(kill.pid) if kill.belongs is Belonging.UNKNOWN else None
            known = kill if job is None else replace(kill, belongs=Belonging.JOB, job=job)
            self._kills.append((replace(known, before_start=old), read_s))

    def shown(self, now_s: float, uptime_s: float | None) -> tuple[OomKill, ...]:
        """Oldest first, with their age at `now_s`. uptime_s: of the node then; None: not known."""
        return tuple(replace(kill, ago_s=_age_s(kill, read_s, now_s, uptime_s)) for kill, read_s in self._kills)


def _age_s(kill: OomKill, read_s: float, now_s: float, uptime_s: float | None) -> float | None:
    """What came while we read the log came just before; of what stood there before only its stamp tells."""
    if not kill.before_start:
        return max(0.0, now_s - read_s)
    return None if uptime_s is None else max(0.0, uptime_s - kill.since_boot_s)


def uptime_s(readings: Readings, now: Tick) -> float | None:
    """Of the node at `now`, however old the look is that told it: it only ever grows. None: nobody has told it."""
    reading = readings.newest_good("host", NODE)
    if reading is None or not isinstance(reading.result, Host) or reading.result.uptime_s is None:
        return None
    return reading.result.uptime_s + now.mono_s - reading.taken_at.mono_s


def jobs_by_pid(readings: Readings, devices: Iterable[DeviceKey]) -> dict[int, JobKey]:
    """Of the processes that were last seen on these chips, by the node's own number of them."""
    found = (readings.newest_good("processes", key) for key in devices)
    return {
        one.process.pid: one.job.key
        for reading in found
        if reading is not None and isinstance(reading.result, DeviceJobs)
        for one in reading.result.attributions
        if one.process is not None and one.job is not None
    }
