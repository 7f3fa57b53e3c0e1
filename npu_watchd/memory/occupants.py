"""Who is on a chip now: the table's processes, those that it cut off, and the jobs of these and of no others."""

from __future__ import annotations

from npu_watchd.model.ids import DeviceKey
from npu_watchd.model.jobs import Attribution, DeviceJobs
from npu_watchd.model.records import InfoTable, ProcessMemoryChip, ProcessRow

Rows = tuple[ProcessRow, ...]

LISTED_AT_MOST = 8
"""Rows of one chip in the table of `npu-smi info` (MAX_CHIP_PROCESS_NUM in its source): the ninth process is left out
without a word."""
_NEW = "listed for the first time in the newest table: not looked up yet"


def processes_of(key: DeviceKey, table: InfoTable | None) -> Rows | None:
    """The chip's processes; () where the tool says that its NPU has none, None where it says nothing of it."""
    if table is None or table.processes is None:
        return None
    rows = tuple(row for row in table.processes if row.npu == key.npu and (row.chip or 0) == key.chip)
    if rows:
        return rows
    spoken_of = key.npu in table.idle_npus or any(row.npu == key.npu for row in table.processes)
    return () if spoken_of else None


def crowded(rows: Rows | None) -> bool:
    """Whether the table may have left processes out: it lists as many as it ever lists."""
    return rows is not None and len(rows) == LISTED_AT_MOST


def beyond(rows: Rows, told: ProcessMemoryChip | None) -> Rows | None:
    """Of a crowded chip, the processes that `-t proc-mem` tells besides the table's; None where it does not tell.

    The same process by its pid: its name is cut, and its memory moves. One that has ended since stays among them until
    `-t proc-mem` is asked again, or until procfs says so (sources/jobs.py).
    """
    if told is None or told.processes is None:
        return None
    listed = {row.pid for row in rows}
    return tuple(row for row in told.processes if row.pid not in listed)


def all_of(rows: Rows | None, told: ProcessMemoryChip | None) -> tuple[Rows | None, bool]:
    """The chip's processes as far as they can be told, and whether some may be missing."""
    if rows is None or not crowded(rows):
        return rows, False
    others = beyond(rows, told)
    return (rows, True) if others is None else (rows + others, False)


def jobs_of(key: DeviceKey, rows: Rows | None, found: DeviceJobs | None) -> DeviceJobs | None:
    """Whose the processes of `rows` are; None where these are not known, or nobody has looked.

    What was looked up was an older table: who has left the chip since is left out, and of who came nothing is known.
    """
    if rows is None or found is None:
        return None
    listed = {row.pid: row for row in rows}
    looked_up = {one.pid for one in found.attributions}
    if looked_up == listed.keys():
        return found
    here = [one for one in found.attributions if one.pid in listed]
    new = [
        Attribution(key, row.pid, row.name, row.memory_bytes, note=_NEW)
        for row in listed.values()
        if row.pid not in looked_up
    ]
    return DeviceJobs((*here, *new))
