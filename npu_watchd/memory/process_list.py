"""The processes of the newest table, as those who ask to which jobs they belong need them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from npu_watchd.memory.assembly import processes_of
from npu_watchd.memory.roster import Roster
from npu_watchd.model.ids import DeviceKey
from npu_watchd.model.jobs import DeviceProcess
from npu_watchd.model.reading import Reading
from npu_watchd.model.records import InfoTable


@dataclass(frozen=True, slots=True)
class ProcessList:
    """Who was on which chip when the table was asked for."""

    asked_at_s: float
    """Monotonic seconds at which npu-smi was started: a process that is younger is not one of these."""
    devices: tuple[DeviceKey, ...]
    """Chips of which the table tells the processes, idle ones included."""
    processes: tuple[DeviceProcess, ...]


def process_list(newest: Reading[Any] | None, roster: Roster) -> ProcessList | None:
    """None where the newest reading is no table."""
    if newest is None or not isinstance(newest.result, InfoTable):
        return None
    rows = {key: processes_of(key, newest.result) for key in roster.rows}
    told = tuple(key for key, some in rows.items() if some is not None)
    processes = tuple(
        DeviceProcess(key, roster.identities[key].logic_id, row) for key in told for row in rows[key] or ()
    )
    return ProcessList(newest.taken_at.mono_s - newest.duration_s, told, processes)
