"""What the host has left, and whom its kernel killed: for the API and for the page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from markupsafe import Markup

from npu_watchd.model.host import Belonging, Host, MemoryUse, OomKill, Pressure, Stall
from npu_watchd.model.reading import Failure
from npu_watchd.model.snapshot import Snapshot
from npu_watchd.sinks.plaintext import clean
from npu_watchd.sinks.web.table import UNKNOWN, Cell, Column, table_section

_GIB = 1 << 30
_NAME_MAX, _PATH_MAX = 40, 200
_SHOWN_KILLS = 5

Document = dict[str, Any]


def host_document(host: Host) -> Document:
    """As docs/api.md has it; null is what nobody knows."""
    memory, room, load = host.memory, host.shared_memory, host.load
    return {
        "pressure": {resource: _pressure(found) for resource, found in host.pressure.items()},
        "memory_total_bytes": memory.total_bytes if memory else None,
        "memory_available_bytes": memory.available_bytes if memory else None,
        "shm_used_bytes": room.used_bytes if room else None,
        "shm_total_bytes": room.total_bytes if room else None,
        "oom_kills": host.oom_kills,
        "tasks": load.tasks if load else None,
        "tasks_runnable": load.runnable if load else None,
        "tasks_max": host.tasks_max,
        "uptime_seconds": host.uptime_s,
        "failures": {name: _failure(failure) for name, failure in host.failures.items()},
        "unsupported": dict(host.unsupported),
    }


def oom_kill_document(kill: OomKill, at_wall_s: float) -> Document:
    """at_wall_s: of the snapshot, from which its age counts."""
    return {
        "at": None if kill.ago_s is None else at_wall_s - kill.ago_s,
        "pid": kill.pid,
        "name": kill.name,
        "uid": kill.uid,
        "scope": kill.scope.value,
        "task_memcg": kill.task_memcg,
        "belongs": kill.belongs.value,
        "scheduler": kill.job.scheduler.value if kill.job else None,
        "job": kill.job.id if kill.job else None,
        "before_start": kill.before_start,
    }


def _pressure(found: Pressure) -> Document:
    return {"some": _stall(found.some), "full": None if found.full is None else _stall(found.full)}


def _stall(stall: Stall) -> Document:
    return {"avg10_ratio": stall.avg10_ratio, "avg60_ratio": stall.avg60_ratio}


def _failure(failure: Failure) -> Document:
    return {"kind": failure.kind.value, "detail": failure.detail}


def host_section(snapshot: Snapshot) -> Markup:
    """A row a resource; nothing where the host was not read and nobody was killed."""
    if snapshot.host is None and not snapshot.oom_kills:
        return Markup()
    rows = [*(_resources(snapshot.host) if snapshot.host else ()), *_kills(snapshot)]
    return table_section("host", "Host", _COLUMNS, rows)


_Row = tuple[str, Cell, Cell]

_COLUMNS: tuple[Column[_Row], ...] = (
    Column("What", "name", lambda row: row[0]),
    Column("In use", "", lambda row: row[1]),
    Column("Work that waits for it, last 60 s", "", lambda row: row[2]),
)


def _resources(host: Host) -> Iterator[_Row]:
    load, room = host.load, host.shared_memory
    yield "CPU", f"{load.runnable} tasks run or want to" if load else UNKNOWN, _waiting(host, "cpu")
    yield "Memory", _memory(host.memory) if host.memory else UNKNOWN, _waiting(host, "memory")
    yield "I/O", UNKNOWN, _waiting(host, "io")
    yield (
        "Shared memory (/dev/shm)",
        _room(room.used_bytes if room else None, room.total_bytes if room else None),
        UNKNOWN,
    )
    tasks = str(load.tasks) if load else UNKNOWN
    yield "Tasks", f"{tasks} of {UNKNOWN if host.tasks_max is None else host.tasks_max}", UNKNOWN
    yield "Killed for want of memory", UNKNOWN if host.oom_kills is None else f"{host.oom_kills} since boot", UNKNOWN


def _memory(memory: MemoryUse) -> str:
    known = memory.total_bytes is not None and memory.available_bytes is not None
    return _room((memory.total_bytes or 0) - (memory.available_bytes or 0) if known else None, memory.total_bytes)


def _room(used: int | None, total: int | None) -> str:
    if total is None:
        return UNKNOWN
    return f"{UNKNOWN if used is None else f'{used / _GIB:.1f}'} of {total / _GIB:.1f} GiB"


def _waiting(host: Host, resource: str) -> str:
    found = host.pressure.get(resource)
    if found is None:
        return "not measured by this kernel" if f"pressure/{resource}" in host.unsupported else UNKNOWN
    some = f"{found.some.avg60_ratio:.0%} of the time some"
    return some if found.full is None else f"{some}, {found.full.avg60_ratio:.0%} all"


def _kills(snapshot: Snapshot) -> Iterator[_Row]:
    for kill in reversed(snapshot.oom_kills[-_SHOWN_KILLS:]):
        whose = {Belonging.OTHER: "no job's", Belonging.UNKNOWN: "unknown job"}.get(kill.belongs, str(kill.job))
        when = UNKNOWN if kill.ago_s is None else f"{kill.ago_s / 60:.0f} min before"
        who = f"{clean(kill.name, _NAME_MAX)} (pid {kill.pid}), {clean(whose, _PATH_MAX)}"
        yield "… killed", who, when
