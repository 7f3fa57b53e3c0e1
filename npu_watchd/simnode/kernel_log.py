"""The kernel's log of a simulated node as /dev/kmsg hands it out: the boot, and whom it killed for want of memory.

Only a scenario in which somebody is killed has one: the others say nothing that the daemon reads there.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from pathlib import Path

from npu_watchd.simnode.procfs import UP_S, cgroup_of
from npu_watchd.simnode.scenario import Killed, Scenario

_FIRST = "Linux version 5.10.0-216.0.0.115.oe2203sp4.aarch64 (root@localhost)"
_ERROR, _WARNING, _INFO = 3, 4, 6
_AGENT = "/system.slice/node-agent.service"
"""Of a process that is no job's."""


def text(scenario: Scenario, t_s: float) -> str | None:
    """Everything up to that second of the scenario; None: this node has no such file."""
    if not any(event.oom for event in scenario.events):
        return None
    told = [(_INFO, 0.0, _FIRST)]
    for event in scenario.events:
        if event.t_s <= max(0.0, t_s):
            told += [(level, UP_S + event.t_s, line) for killed in event.oom for level, line in _lines(killed)]
    return "".join(
        f"{level},{number},{round(at_s * 1e6)},-;{line}\n" for number, (level, at_s, line) in enumerate(told)
    )


def bring_up_to_date(file: Path, whole: str) -> None:
    """Add what is new, so that whoever follows the file reads each line once. Raises OSError."""
    with file.open("a+b") as log:
        fcntl.flock(log, fcntl.LOCK_EX)
        log.seek(0)
        there = log.read()
        data = whole.encode()
        if not data.startswith(there):
            log.truncate(0)
            there = b""
        log.write(data[len(there) :])


def _lines(killed: Killed) -> Iterator[tuple[int, str]]:
    path, uid = cgroup_of(killed.job, killed.uid) if killed.job else _AGENT, killed.uid if killed.job else 0
    limited = f"oom_memcg={path.partition('/step_')[0]}" if killed.limit == "job" else "global_oom"
    constraint = "CONSTRAINT_MEMCG" if killed.limit == "job" else "CONSTRAINT_NONE"
    head = "Memory cgroup out of memory" if killed.limit == "job" else "Out of memory"
    yield _WARNING, f"{killed.name} invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0"
    yield (
        _INFO,
        f"oom-kill:constraint={constraint},nodemask=(null),cpuset=/,mems_allowed=0-3,{limited},task_memcg={path},"
        f"task={killed.name},pid={killed.pid},uid={uid}",
    )
    yield (
        _ERROR,
        f"{head}: Killed process {killed.pid} ({killed.name}) total-vm:41943040kB, anon-rss:39845888kB, "
        f"file-rss:4096kB, shmem-rss:0kB, UID:{uid} pgtables:78000kB oom_score_adj:0",
    )
