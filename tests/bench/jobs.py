"""CPU of one look at who is on the chips: 16 devices with 8 real processes each, of which nothing changed."""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from npu_watchd.model.ids import DeviceKey
from npu_watchd.model.jobs import Attribution, DeviceProcess
from npu_watchd.model.reading import Failure
from npu_watchd.model.records import ProcessRow
from npu_watchd.sources.job_sweep import JobSweep
from npu_watchd.sources.jobs import JobFinder
from npu_watchd.sources.process_places import LOOK_EVERY_S, PlaceFinder, PlaceSweep
from tests.bench.verdict import Row
from tests.sources.proc_tree import ProcTree

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
        with tempfile.TemporaryDirectory() as folder:
            yield from _of_slurm(Path(folder) / "proc", looks)
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


def _of_slurm(procfs: Path, looks: int) -> Iterator[Row]:
    """The same of files, as sixteen jobs of Slurm on a node of 2000 processes; then all of the jobs are over."""
    tree = ProcTree(procfs)
    tree.put(1, name="systemd", parent=0)
    for number in range(DEVICES):
        tree.put(100 + number, name="slurmstepd", cmdline=f"slurmstepd: [{number}.0]")
    for number in range(DEVICES * EACH):
        placed = f"0::/system.slice/slurmstepd.scope/job_{number // EACH}/step_0/user/task_0\n"
        tree.put(1000 + number, name="sleep", parent=100 + number // EACH, cgroup=placed)
    for number in range(2000 - DEVICES * (EACH + 1)):
        tree.put(10_000 + number, name="bash")
    listed = [
        DeviceProcess(DeviceKey(number // EACH), number // EACH, _row(number, 1000 + number))
        for number in range(DEVICES * EACH)
    ]
    now_s = [0.0]
    jobs = JobSweep(JobFinder(procfs, None, lambda: now_s[0]), time.monotonic)
    _cpu_ms(jobs, listed, 1)
    yield Row("CPU of such a look at 16 running jobs of Slurm", _cpu_ms(jobs, listed, looks), "ms", MOST_MS)
    for number in range(DEVICES):
        tree.end(100 + number)
    now_s[0] += 60
    yield Row("CPU of the search for a slurmstepd that is gone, 2000 processes", _cpu_ms(jobs, listed, 1), "ms")


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
