"""Processes that a tool left behind, found in /proc: in its session, or by the marker in their environment."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

MARKER = "NPU_WATCHD_RUN"
"""Each run of a tool carries a value of its own here, so that a child that calls setsid() is still known as ours."""

PidfdOpen = Callable[[int], int]


@dataclass(frozen=True, slots=True)
class Process:
    """One line of /proc/PID/stat, as proc(5) describes it."""

    pid: int
    name: str
    state: str
    """One letter; D waits in the kernel and takes no signal, Z is dead and not yet reaped."""
    parent: int
    group: int
    session: int
    started_ticks: int
    """Since boot. Together with the pid it names a process for good: pids are used again."""

    @property
    def dead(self) -> bool:
        return self.state in "ZXx"


def look_at(pid: int) -> Process | None:
    """The process now, or None when there is none of that pid (or no /proc)."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            line = file.read()
    except OSError:
        return None
    # The name may hold spaces and parentheses of its own: only the last one closes it.
    head, _, tail = line.decode(errors="replace").rpartition(")")
    fields = tail.split()
    if len(fields) < 20:
        return None
    return Process(
        pid=pid,
        name=head.partition("(")[2],
        state=fields[0],
        parent=int(fields[1]),
        group=int(fields[2]),
        session=int(fields[3]),
        started_ticks=int(fields[19]),
    )


def still_alive(process: Process) -> bool:
    now = look_at(process.pid)
    return now is not None and now.started_ticks == process.started_ticks and not now.dead


def every_process() -> Iterator[Process]:
    try:
        names = [entry.name for entry in Path("/proc").iterdir()]
    except OSError:
        return
    for name in names:
        if name.isdecimal() and (process := look_at(int(name))) is not None:
            yield process


def of_run(leader: int, run_id: str, stop: Callable[[], bool]) -> tuple[Process, ...]:
    """Live processes of one run: its leader with all descendants, its session, and whoever carries its marker.

    `leader` must not have been reaped yet, else its number may be another's by now. `stop` ends the search early.
    """
    first = look_at(leader)
    if first is None:
        return ()
    young = []
    for process in every_process():
        if stop():
            break
        if not process.dead and process.started_ticks >= first.started_ticks:
            young.append(process)
    family = {leader}
    while children := {process.pid for process in young if process.parent in family} - family:
        family |= children
    return tuple(
        process
        for process in young
        if process.pid in family or leader in (process.group, process.session) or _carries(process, run_id)
    )


def _carries(process: Process, run_id: str) -> bool:
    # Reading the environment takes the target's memory lock: on one that hangs in the driver it would hang us too.
    if process.state == "D":
        return False
    try:
        with open(f"/proc/{process.pid}/environ", "rb") as file:
            return f"{MARKER}={run_id}".encode() in file.read(1 << 20).split(b"\0")
    except OSError:
        return False


def kill(process: Process, pidfd_open: PidfdOpen | None) -> None:
    """SIGKILL to exactly this process, even if its number is taken by another one meanwhile."""
    handle = open_pidfd(process.pid, pidfd_open)
    try:
        if not still_alive(process):
            return
        with suppress(ProcessLookupError, PermissionError):
            if handle is None:
                os.kill(process.pid, signal.SIGKILL)
            else:
                signal.pidfd_send_signal(handle, signal.SIGKILL)
    finally:
        if handle is not None:
            os.close(handle)


def open_pidfd(pid: int, pidfd_open: PidfdOpen | None) -> int | None:
    """A pidfd, or None where the kernel (before 5.3), a seccomp filter or the fd limit refuses it."""
    if pidfd_open is None:
        return None
    try:
        return pidfd_open(pid)
    except OSError:
        return None


def describe(processes: tuple[Process, ...]) -> str:
    """`pid 4711 (npu-smi, state D in devdrv_ioctl)` for each, for a person who will look at /proc himself."""
    return ", ".join(_describe(process) for process in processes)


def _describe(process: Process) -> str:
    now = look_at(process.pid) or process
    where = ""
    with suppress(OSError), open(f"/proc/{process.pid}/wchan", "rb") as file:
        name = file.read(200).decode(errors="replace").strip()
        where = f" in {name}" if name not in ("", "0") else ""
    return f"pid {now.pid} ({now.name}, state {now.state}{where})"


def reap_orphans(ours: Callable[[int], bool]) -> int:
    """Collect dead processes that the kernel gave to us because their parents died; returns how many.

    `ours` says which pids somebody here waits for. A child in our own session is left alone too: it may be another
    part's subprocess, whose exit code is not ours to take. Tools run in sessions of their own.
    """
    me, my_session = os.getpid(), os.getsid(0)
    reaped = 0
    for process in every_process():
        if process.state != "Z" or process.parent != me or process.session == my_session or ours(process.pid):
            continue
        with suppress(ChildProcessError):
            reaped += os.waitpid(process.pid, os.WNOHANG)[0] == process.pid
    return reaped
