"""What the host has left, on /metrics, in the API, on the page and in `status`: a dash where nobody knows."""

from __future__ import annotations

import io
from typing import Any

from rich.console import Console

from npu_watchd.catalogue import CATALOGUE
from npu_watchd.model.host import (
    Belonging,
    Host,
    MemoryUse,
    OomKill,
    OomScope,
    Pressure,
    SharedMemory,
    Stall,
    TaskLoad,
)
from npu_watchd.model.jobs import JobKey, Scheduler
from npu_watchd.model.reading import Failure, FailureKind
from npu_watchd.model.snapshot import Outcome
from npu_watchd.sinks.metrics import Exposition, Format
from npu_watchd.sinks.terminal import rendered
from npu_watchd.sinks.web.api import snapshot_document
from tests.sinks.build import AT, device, outcome
from tests.sinks.test_page import HOSTILE, Page
from tests.sinks.test_page_fabric import table

GIB = 1 << 30
WHOLE = Host(
    pressure={
        "cpu": Pressure(Stall(0.72, 0.71), None),
        "memory": Pressure(Stall(0.0, 0.01), Stall(0.0, 0.0)),
        "io": Pressure(Stall(0.0, 0.0), Stall(0.0, 0.0)),
    },
    memory=MemoryUse(512 * GIB, 128 * GIB),
    oom_kills=4,
    shared_memory=SharedMemory(3 * GIB, 256 * GIB),
    load=TaskLoad(9, 3120),
    tasks_max=4_194_304,
    uptime_s=86_400.0,
)
SLURM = JobKey(Scheduler.SLURM, "4711")
KILL = OomKill(61201, "ccec", OomScope.CGROUP, 90.0, "/job_4711", 1007, Belonging.JOB, SLURM, ago_s=120.0)
ROWS = {
    "CPU": ["9 tasks run or want to", "71% of the time some"],
    "Memory": ["384.0 of 512.0 GiB", "1% of the time some, 0% all"],
    "I/O": ["–", "0% of the time some, 0% all"],
    "Shared memory (/dev/shm)": ["3.0 of 256.0 GiB", "–"],
    "Tasks": ["3120 of 4194304", "–"],
    "Killed for want of memory": ["4 since boot", "–"],
    "… killed": ["ccec (pid 61201), slurm 4711", "2 min before"],
}


def of(host: Host | None, *kills: OomKill) -> Outcome:
    return outcome([device(0)], host=host, oom_kills=kills)


def rows(shown: Outcome) -> dict[str, list[str]]:
    return {row[0]: row[1:] for row in table(Page(shown), "In use")}


def metrics(shown: Outcome) -> list[str]:
    body = Exposition(shown, CATALOGUE).body(Format.TEXT).decode()
    names = ("npu_node_pressure", "npu_node_memory", "npu_node_oom", "npu_node_shm", "npu_node_tasks")
    return [line for line in body.splitlines() if line.startswith(names)]


def screen(shown: Outcome) -> list[str]:
    stream = io.StringIO()
    Console(file=stream, width=80, force_terminal=False).print(rendered(snapshot_document(shown), 1.0))
    return [line.rstrip() for line in stream.getvalue().splitlines()]


def test_the_host_has_its_series() -> None:
    assert metrics(of(WHOLE)) == [
        'npu_node_pressure_ratio{kind="some",resource="cpu"} 0.71',
        'npu_node_pressure_ratio{kind="some",resource="io"} 0.0',
        'npu_node_pressure_ratio{kind="full",resource="io"} 0.0',
        'npu_node_pressure_ratio{kind="some",resource="memory"} 0.01',
        'npu_node_pressure_ratio{kind="full",resource="memory"} 0.0',
        f"npu_node_memory_total_bytes {512 * GIB / 1e11}e+11",
        f"npu_node_memory_available_bytes {128 * GIB / 1e11}e+11",
        "npu_node_oom_kills_total 4.0",
        f"npu_node_shm_used_bytes {3 * GIB / 1e9}e+09",
        f"npu_node_shm_total_bytes {256 * GIB / 1e11}e+11",
        "npu_node_tasks 3120.0",
        "npu_node_tasks_max 4.194304e+06",
    ]


def test_what_was_not_read_has_no_series_and_is_null() -> None:
    assert metrics(of(None)) == metrics(of(Host())) == []
    assert snapshot_document(of(None))["host"] is None
    found: dict[str, Any] = snapshot_document(of(Host()))["host"]
    values = {key: value for key, value in found.items() if key not in ("pressure", "failures", "unsupported")}
    assert set(values.values()) == {None}


def test_a_process_that_was_killed_is_told_with_its_job() -> None:
    assert snapshot_document(of(WHOLE, KILL))["oom_kills"] == [
        {
            "at": AT.wall_s - 120.0,
            "pid": 61201,
            "name": "ccec",
            "uid": 1007,
            "scope": "cgroup",
            "task_memcg": "/job_4711",
            "belongs": "job",
            "scheduler": "slurm",
            "job": "4711",
            "before_start": False,
        }
    ]


def test_the_page_has_a_row_for_each_resource_and_each_kill() -> None:
    assert rows(of(WHOLE, KILL)) == ROWS


def test_what_nobody_knows_is_a_dash_and_what_the_kernel_lacks_is_said() -> None:
    found = rows(of(Host(unsupported={"pressure/cpu": "psi=1"}, failures={"vmstat": Failure(FailureKind.DENIED, "")})))
    assert found["CPU"] == ["–", "not measured by this kernel"]
    assert found["Memory"] == ["–", "–"]
    assert found["Killed for want of memory"] == ["–", "–"]


def test_no_host_no_table() -> None:
    assert "Shared memory" not in str(Page(of(None)).rows)


def test_a_name_of_markup_stays_text() -> None:
    page = Page(of(WHOLE, OomKill(5, HOSTILE, OomScope.UNKNOWN, 9.0)))
    assert any("unknown job" in cell for row in page.rows for cell in row)


def test_status_has_two_lines_of_it() -> None:
    lines = screen(of(WHOLE))
    assert lines[lines.index("Host") + 1 :] == [
        "  128.0 of 512.0 GiB memory available  shared memory 3.0/256.0 GiB",
        "  waits: cpu 71% memory 1% io 0%  4 OOM kills since boot",
    ]
    assert screen(of(Host()))[-2:] == ["  – of – GiB memory available  shared memory –/– GiB", "  waits: –  –"]
    assert "Host" not in screen(of(None))
