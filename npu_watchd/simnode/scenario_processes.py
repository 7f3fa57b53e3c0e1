"""Processes as a scenario file writes them: those that start on a chip, and those that the kernel kills."""

from __future__ import annotations

from npu_watchd.simnode.scenario_strict import Strict
from npu_watchd.simnode.state import OomLimit


class NewProcess(Strict):
    """A process; memory in MB."""

    pid: int
    memory: int
    name: str | None = None
    """Left out: the pid is not visible to the tool."""
    container_pid: int | None = None
    job: str | None = None
    """`slurm 4711`, `session 12`, or `kubernetes` and a pod's uid; left out: a session, the same for all."""
    user: str | int | None = None
    """A name, or a uid; left out: the same for all."""
    environ: tuple[str, ...] = ()
    """`NAME=value`, beside what its job brings."""
    listens: tuple[str, ...] = ()
    """`10.0.0.1:60000`: TCP sockets that listen, in its own network namespace where the job is a pod."""
    host_pid: int | None = None
    """The host's number for it; the tool then prints `pid`, which is its container's own, and no name."""


class KilledProcess(Strict):
    """One that the kernel kills for want of memory; `limit` is what was full: the job's share, or the node."""

    pid: int
    name: str
    job: str | None = None
    """As of a process that starts; left out: it is no job's."""
    user: str | int | None = None
    limit: OomLimit = "job"
