"""CPU of one look at who is on the chips: 16 devices with 8 real processes each, of which nothing changed."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from npu_watchd.model.ids import DeviceKey
from npu_watchd.model.jobs import Attribution, DeviceProcess
from npu_watchd.model.reading import Failure
from npu_watchd.model.records import ProcessRow
from npu_watchd.sources.jobs import JobFinder, JobSweep
from npu_watchd.sources.process_places import LOOK_EVERY_S, PlaceFinder, PlaceSweep
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
        found = jobs.find(listed, 0.0)
        assert not isinstance(found, Failure)
        instants = count(step=LOOK_EVERY_S)
        places = PlaceSweep(PlaceFinder(Path("/proc")), lambda: next(instants))
        yield Row("CPU of the first look at where they listen", _places_ms(places, found, 1), "ms")
        worst_ms = _places_ms(places, found, looks)
        yield Row("CPU of a look at where they listen, unchanged (every second look at who is there)", worst_ms, "ms")
        both_ms = _cpu_ms(jobs, listed, looks) + worst_ms
        yield Row("CPU of both, unchanged", both_ms, "ms", MOST_MS)
    finally:
        for child in children:
            child.kill()
        for child in children:
            child.wait()


def _places_ms(places: PlaceSweep, found: tuple[Attribution, ...], looks: int) -> float:
    began = time.process_time()
    for _ in range(looks):
        assert all(one.place is not None and one.place.listening is not None for one in places.placed(found))
    return (time.process_time() - began) / looks * 1000


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
