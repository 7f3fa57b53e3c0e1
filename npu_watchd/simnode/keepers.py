"""Who keeps the jobs of a simulated node: init, a slurmstepd for each job of Slurm, a shim for each pod."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from zlib import crc32

from npu_watchd.simnode.scenario import Scenario

INIT = 1
_FIRST_PID, _PIDS = 3_000_000, 1_000_000
"""Theirs; scenarios give lower ones. The kernel's highest is 4194304."""


@dataclass(frozen=True, slots=True)
class Keeper:
    """A process that holds no chip."""

    pid: int
    name: str
    title: str
    """What its cmdline shows."""
    cgroup: str


SYSTEMD = Keeper(INIT, "systemd", "/sbin/init", "0::/init.scope\n")


def keeper_of(job: str | None, lost: frozenset[str]) -> Keeper:
    """The parent of a job's processes: init, for those that have no keeper, or have lost it.

    lost: jobs that are over although their processes are not.
    """
    scheduler, _, id_ = (job or "").partition(" ")
    if job is None or job in lost or scheduler not in ("slurm", "kubernetes"):
        return SYSTEMD
    pid = _FIRST_PID + crc32(job.encode()) % _PIDS
    if scheduler == "slurm":
        return Keeper(pid, "slurmstepd", f"slurmstepd: [{id_}.0]", "0::/system.slice/slurmd.service\n")
    title = f"/usr/bin/containerd-shim-runc-v2 -namespace k8s.io -id {id_}"
    return Keeper(pid, "containerd-shim", title, "0::/system.slice/containerd.service\n")


def lost_at(scenario: Scenario, t_s: float) -> frozenset[str]:
    """Jobs that have lost who keeps them by then."""
    return frozenset(job for event in scenario.events if event.t_s <= t_s for job in event.lost_jobs)


def files(keepers: Iterable[Keeper], ticks: int) -> Iterator[tuple[str, str]]:
    """ticks: when all of them began."""
    for keeper in sorted(set(keepers), key=lambda one: one.pid):
        pid, parent = keeper.pid, 0 if keeper.pid == INIT else INIT
        yield f"{pid}/stat", stat(pid, keeper.name, parent, ticks)
        yield f"{pid}/cmdline", keeper.title + "\0"
        yield f"{pid}/cgroup", keeper.cgroup


def stat(pid: int, name: str, parent: int, ticks: int) -> str:
    """A line of /proc/PID/stat. ticks: since boot."""
    return f"{pid} ({name}) S {parent} {pid} {pid} 0 -1 4194304 106 0 0 0 0 0 0 0 20 0 1 0 {ticks} 2629632 202\n"
