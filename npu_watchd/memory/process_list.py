"""The processes of the newest table, as those who ask to which jobs they belong need them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from npu_watchd.memory.occupants import beyond, crowded, processes_of
from npu_watchd.memory.roster import Roster
from npu_watchd.model.ids import DeviceKey
from npu_watchd.model.jobs import DeviceProcess
from npu_watchd.model.reading import Reading
from npu_watchd.model.records import InfoTable, ProcessMemoryChip, ProcessRow


@dataclass(frozen=True, slots=True)
class ProcessList:
    """Who was on which chip when the table was asked for."""

    asked_at_s: float
    """Monotonic seconds at which the table was asked for: a process that is younger is not one of these."""
    devices: tuple[DeviceKey, ...]
    """Chips of which the table tells the processes, idle ones included."""
    processes: tuple[DeviceProcess, ...]


class Fuller(Protocol):
    """The newest good reading of `npu_proc_mem` about a chip, or None."""

    def __call__(self, key: DeviceKey, /) -> Reading[Any] | None: ...


def process_list(newest: Reading[Any] | None, roster: Roster, fuller: Fuller) -> ProcessList | None:
    """None where the newest reading is no table."""
    if newest is None or not isinstance(newest.result, InfoTable):
        return None
    rows = {key: processes_of(key, newest.result) for key in roster.rows}
    told = {key: some for key, some in rows.items() if some is not None}
    asked_at_s = _asked_at_s(newest)
    processes = [
        process
        for key, some in told.items()
        for process in (
            *(DeviceProcess(key, roster.identities[key].logic_id, row) for row in some),
            *_others(key, roster.identities[key].logic_id, some, fuller(key), asked_at_s),
        )
    ]
    return ProcessList(asked_at_s, tuple(told), tuple(processes))


def _others(
    key: DeviceKey, device_id: int | None, rows: tuple[ProcessRow, ...], found: Reading[Any] | None, table_s: float
) -> Iterable[DeviceProcess]:
    """Those that the table left out, who were listed at another instant than its own."""
    if found is None or not crowded(rows) or not isinstance(found.result, ProcessMemoryChip):
        return
    earlier_s = table_s - _asked_at_s(found)
    for row in beyond(rows, found.result) or ():
        yield DeviceProcess(key, device_id, row, earlier_s)


def _asked_at_s(reading: Reading[Any]) -> float:
    return reading.taken_at.mono_s - reading.duration_s
