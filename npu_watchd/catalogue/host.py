"""The metrics of the host that the jobs' own processes live on."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from npu_watchd.catalogue.family import Kind, NodeFamily, Sample, one
from npu_watchd.model.host import Host
from npu_watchd.model.snapshot import Outcome

_G, _C = Kind.GAUGE, Kind.COUNTER


def _of_host(read: Callable[[Host], float | None]) -> Callable[[Outcome], Iterable[Sample]]:
    def samples(outcome: Outcome) -> Iterable[Sample]:
        host = outcome.snapshot.host
        return one(None if host is None else read(host))

    return samples


def _pressure(outcome: Outcome) -> Iterable[Sample]:
    host = outcome.snapshot.host
    for resource, found in sorted(host.pressure.items()) if host else ():
        yield {"resource": resource, "kind": "some"}, found.some.avg60_ratio
        if found.full is not None:
            yield {"resource": resource, "kind": "full"}, found.full.avg60_ratio


HOST_FAMILIES: tuple[NodeFamily, ...] = (
    NodeFamily(
        "npu_node_pressure_ratio",
        _G,
        "Share of the last 60 s in which some of the work, or all of it, waited for the resource "
        "(/proc/pressure: avg60); absent: this kernel does not measure it.",
        ("resource", "kind"),
        _pressure,
    ),
    NodeFamily(
        "npu_node_memory_total_bytes",
        _G,
        "Memory of the host (/proc/meminfo: MemTotal).",
        (),
        _of_host(lambda host: host.memory.total_bytes if host.memory else None),
    ),
    NodeFamily(
        "npu_node_memory_available_bytes",
        _G,
        "Memory that can be had without swapping (/proc/meminfo: MemAvailable).",
        (),
        _of_host(lambda host: host.memory.available_bytes if host.memory else None),
    ),
    NodeFamily(
        "npu_node_oom_kills_total",
        _C,
        "Processes that the kernel killed for want of memory since boot, in cgroups too (/proc/vmstat: oom_kill).",
        (),
        _of_host(lambda host: host.oom_kills),
    ),
    NodeFamily(
        "npu_node_shm_used_bytes",
        _G,
        "In use of /dev/shm (statvfs); absent: it is no file system of its own.",
        (),
        _of_host(lambda host: host.shared_memory.used_bytes if host.shared_memory else None),
    ),
    NodeFamily(
        "npu_node_shm_total_bytes",
        _G,
        "Size of /dev/shm (statvfs).",
        (),
        _of_host(lambda host: host.shared_memory.total_bytes if host.shared_memory else None),
    ),
    NodeFamily(
        "npu_node_tasks",
        _G,
        "Processes and threads (/proc/loadavg: after the stroke).",
        (),
        _of_host(lambda host: host.load.tasks if host.load else None),
    ),
    NodeFamily(
        "npu_node_tasks_max",
        _G,
        "So many tasks have no number left for another one (/proc/sys/kernel/pid_max).",
        (),
        _of_host(lambda host: host.tasks_max),
    ),
)
