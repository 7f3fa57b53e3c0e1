"""CPU of one look at who is on the chips: 16 devices with 8 real processes each, of which nothing changed."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from npu_watchd.model.ids import DeviceKey
from npu_watchd.model.jobs import DeviceProcess
from npu_watchd.model.reading import Failure
from npu_watchd.model.records import ProcessRow
from npu_watchd.sources.jobs import JobFinder, JobSweep
from tests.bench.verdict import Row

DEVICES, EACH = 16, 8
MOST_MS = 15.0


def rows(*, quick: bool) -> Iterator[Row]:
    looks = 20 if quick else 200
    children = [subprocess.Popen(["/bin/sleep", "600"]) for _ in range(DEVICES * EACH)]
    try:
        listed = [
            DeviceProcess(DeviceKey(number // EACH), number // EACH, _row(number, child.pid))
            for number, child in enumerate(children)
        ]
        time.sleep(0.2)  # until each of them is a sleep
        jobs = JobSweep(JobFinder(Path("/proc"), None, time.monotonic), time.monotonic)
        first_ms = _cpu_ms(jobs, listed, 1)
        yield Row("CPU of the first look at 16 devices x 8 processes", first_ms, "ms")
        yield Row("CPU of a look at 16 devices x 8 processes, unchanged", _cpu_ms(jobs, listed, looks), "ms", MOST_MS)
    finally:
        for child in children:
            child.kill()
        for child in children:
            child.wait()


def _row(number: int, pid: int) -> ProcessRow:
    return ProcessRow(number // EACH, 0, pid, "sleep", 1024)


def _cpu_ms(jobs: JobSweep, listed: list[DeviceProcess], looks: int) -> float:
    began = time.process_time()
    for _ in range(looks):
        found = jobs.find(listed, 0.0)
        assert not isinstance(found, Failure)
        assert all(one.job is not None for one in found)
    return (time.process_time() - began) / looks * 1000


if __name__ == "__main__":
    for row in rows(quick=False):
        print(row)
