"""The host's files, each on its own: what one cannot say costs one value."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from npu_watchd.model.host import Host, MemoryUse, Pressure, Stall, TaskLoad
from npu_watchd.model.ids import NODE
from npu_watchd.model.reading import Failure, FailureKind
from npu_watchd.sources.host import HostRound, HostTree

SOME = "some avg10=2.00 avg60=1.00 avg300=0.50 total=1\n"
FULL = "full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"
FILES = {
    "pressure/cpu": SOME,
    "pressure/memory": SOME + FULL,
    "pressure/io": SOME + FULL,
    "meminfo": "MemTotal: 2048 kB\nMemAvailable: 1024 kB\n",
    "vmstat": "oom_kill 3\n",
    "loadavg": "1.00 1.00 1.00 2/300 4711\n",
    "sys/kernel/pid_max": "4194304\n",
    "uptime": "86400.00 86400.00\n",
}


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        file = tmp_path / "proc" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    (tmp_path / "dev/shm").mkdir(parents=True)
    return tmp_path / "proc"


def look(proc: Path, dev: Path | None = None) -> Host:
    found = HostTree(proc, dev or proc.parent / "dev").look()
    assert isinstance(found, Host)
    return found


def test_everything_is_read(proc: Path) -> None:
    found = look(proc)
    stall = Stall(0.02, 0.01)
    assert found.pressure == {
        "cpu": Pressure(stall, None),
        "memory": Pressure(stall, Stall(0.0, 0.0)),
        "io": Pressure(stall, Stall(0.0, 0.0)),
    }
    assert found.memory == MemoryUse(2_097_152, 1_048_576)
    assert (found.oom_kills, found.load, found.tasks_max) == (3, TaskLoad(2, 300), 4_194_304)
    assert (found.uptime_s, found.failures) == (86_400.0, {})


@pytest.mark.parametrize(
    ("name", "lost"),
    [
        ("meminfo", lambda host: host.memory),
        ("vmstat", lambda host: host.oom_kills),
        ("loadavg", lambda host: host.load),
        ("sys/kernel/pid_max", lambda host: host.tasks_max),
        ("uptime", lambda host: host.uptime_s),
        ("pressure/memory", lambda host: host.pressure.get("memory")),
    ],
)
def test_a_file_of_rubbish_costs_its_own_value(proc: Path, name: str, lost: Callable[[Host], object]) -> None:
    (proc / name).write_text("")
    found = look(proc)
    assert lost(found) is None
    assert found.failures.keys() == {name}
    assert found.failures[name].kind is FailureKind.UNPARSEABLE
    assert str(proc / name) in found.failures[name].detail


def test_a_kernel_that_does_not_measure_pressure_has_no_fault(proc: Path) -> None:
    for name in ("cpu", "memory", "io"):
        (proc / "pressure" / name).unlink()
    found = look(proc)
    assert (found.pressure, found.failures) == ({}, {})
    assert "psi=1" in found.unsupported["pressure/cpu"]
    assert found.memory is not None


def test_a_kernel_that_does_not_count_kills_has_no_fault(proc: Path) -> None:
    (proc / "vmstat").write_text("nr_free_pages 1\n")
    found = look(proc)
    assert (found.oom_kills, found.failures) == (None, {})
    assert "vmstat" in found.unsupported


def test_an_ordinary_folder_is_no_shared_memory(proc: Path) -> None:
    found = look(proc)
    assert found.shared_memory is None
    assert "ordinary folder" in found.unsupported["shm"]


@pytest.mark.skipif(not os.path.ismount("/dev/shm"), reason="this machine has no /dev/shm")
def test_shared_memory_has_a_size(proc: Path) -> None:
    room = look(proc, Path("/dev")).shared_memory
    assert room is not None
    assert 0 <= room.used_bytes <= room.total_bytes


def test_without_shared_memory_one_value_is_missing(proc: Path) -> None:
    (proc.parent / "dev/shm").rmdir()
    found = look(proc)
    assert (found.shared_memory, found.failures["shm"].kind) == (None, FailureKind.MISSING)


def test_where_nothing_can_be_read_the_probe_has_failed(tmp_path: Path) -> None:
    found = HostRound(tmp_path / "proc", tmp_path / "dev", time.monotonic).read(1.0)[NODE]
    assert isinstance(found, Failure)
    assert found.kind is FailureKind.MISSING


def test_this_machines_own_files_can_be_read() -> None:
    found = look(Path("/proc"), Path("/dev"))
    assert found.memory is not None
    assert (found.memory.total_bytes or 0) > (found.memory.available_bytes or 0) > 0
    assert found.load is not None
    assert found.load.tasks > 0
