"""One look at the processes of the newest table: to which jobs they belong."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from npu_watchd.model.ids import DeviceKey, Subject
from npu_watchd.model.jobs import Attribution, DeviceJobs, DeviceProcess
from npu_watchd.model.reading import Failure
from npu_watchd.sources.job_sweep import JobSweep
from npu_watchd.sources.process_places import PlaceSweep


class Listed(Protocol):
    """The processes of one table."""

    @property
    def asked_at_s(self) -> float: ...

    @property
    def devices(self) -> tuple[DeviceKey, ...]: ...

    @property
    def processes(self) -> tuple[DeviceProcess, ...]: ...


class ProcessRound:
    """For the lane of files."""

    def __init__(
        self,
        sweep: JobSweep,
        listed: Callable[[], Listed | None],
        monotonic: Callable[[], float],
        places: PlaceSweep | None = None,
    ) -> None:
        """places: None where nobody asks where the processes listen."""
        self._sweep = sweep
        self._places = places
        self._listed = listed
        self._monotonic = monotonic

    def read(self, _timeout_s: float) -> Mapping[Subject, Any]:
        """Device → its DeviceJobs, for each of which the table tells the processes; or why nobody can tell."""
        listed = self._listed()
        if listed is None or not listed.devices:
            return {}
        found: tuple[Attribution, ...] | Failure = ()
        if listed.processes:
            found = self._sweep.find(listed.processes, self._monotonic() - listed.asked_at_s)
        if isinstance(found, Failure):
            return dict.fromkeys(listed.devices, found)
        if self._places is not None:
            found = self._places.placed(found)
        return {key: DeviceJobs(tuple(one for one in found if one.device == key)) for key in listed.devices}
