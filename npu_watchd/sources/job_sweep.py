"""A look at whose the processes on the chips are, within a deadline."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from npu_watchd.model.jobs import Attribution, DeviceProcess
from npu_watchd.model.reading import Failure
from npu_watchd.sources.jobs import JobFinder
from npu_watchd.sources.sweep import Sweep

_SWEEP_S = 5.0
"""A look at 128 processes takes milliseconds; one that takes seconds has met something that hangs."""


class JobSweep:
    """A finder within a deadline: a hang in procfs costs one thread and a Failure, never the lane that asks."""

    def __init__(self, finder: JobFinder, monotonic: Callable[[], float], deadline_s: float = _SWEEP_S) -> None:
        self._finder = finder
        self._asked: tuple[tuple[DeviceProcess, ...], float | None] = ((), None)
        self._sweep = Sweep("jobs", self._find, monotonic, deadline_s, lambda: finder.reading)

    def find(
        self, listed: Iterable[DeviceProcess], listed_ago_s: float | None = None
    ) -> tuple[Attribution, ...] | Failure:
        """As JobFinder.find, or WEDGED; back within the deadline."""
        self._asked = (tuple(listed), listed_ago_s)
        return self._sweep()

    def _find(self) -> tuple[Attribution, ...]:
        return self._finder.find(*self._asked)
