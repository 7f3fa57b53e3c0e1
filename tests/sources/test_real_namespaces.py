"""Pids of real PID namespaces: found by their number inside where one process has it, and never taken for another."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from npu_watchd.model.jobs import JobKey, Scheduler
from npu_watchd.sources.process_tree import ProcessTree
from tests.sources.test_jobs import child, comm, key_of, only, real, row

INSIDE = 27961
"""High, because low numbers are those of every container's programs."""

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a PID namespace"),
    pytest.mark.skipif(
        not ProcessTree(Path("/proc")).sees_all(), reason="this is not the first PID namespace, which sees all others"
    ),
]


@contextmanager
def contained(number: int, job: int) -> Iterator[int]:
    """A process with this number in a namespace and a procfs of its own, and its number here."""
    script = f"""
echo {number - 1} > /proc/sys/kernel/ns_last_pid
sh -c 'echo $$; exec sleep 60' &
wait
"""
    command = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child", "sh", "-c", script]
    environ = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "SLURM_JOB_ID": str(job)}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environ)
    try:
        assert process.stdout is not None
        if process.stdout.readline() != f"{number}\n".encode():
            pytest.skip(f"no PID namespace with a process {number} here: {process.communicate()[1]!r}")
        yield from _numbered(number, process.pid)
    finally:
        process.kill()
        process.communicate()


def _numbered(number: int, ancestor: int) -> Iterator[int]:
    """Of the processes that come of `ancestor`, the one with that number inside."""
    waiting = [ancestor]
    while waiting:
        pid = waiting.pop()
        if Path(f"/proc/{pid}/status").read_text().partition("NSpid:")[2].split("\n")[0].split()[-1] == str(number):
            yield pid
            return
        waiting += map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
    raise AssertionError(f"{number} has ended")


def test_one_process_with_that_number_inside_is_it() -> None:
    with contained(INSIDE, 4294900021) as here:
        found = only(real().find([row(INSIDE, None, container_pid=INSIDE)], 0.0))
    assert (key_of(found), found.pid) == (JobKey(Scheduler.SLURM, "4294900021"), INSIDE)
    assert found.process is not None
    assert found.process.pid == here
    assert found.note == f"pid {INSIDE} is of another PID namespace; here it is {here}"


def test_the_hosts_number_with_the_one_inside_is_that_process_and_no_other_one_inside() -> None:
    with contained(INSIDE, 4294900022) as here:
        rows = [row(here, comm(here), container_pid=INSIDE), row(here, comm(here), container_pid=INSIDE + 1)]
        same, other = real().find(rows, 0.0)
    assert (key_of(same), same.note) == (JobKey(Scheduler.SLURM, "4294900022"), None)
    assert (other.job, other.process) == (None, None)
    assert other.note == f"pid {here} is {INSIDE} in its container, the listed one was {INSIDE + 1}"


def test_of_two_with_that_number_inside_it_is_neither() -> None:
    with ExitStack() as stack:
        for job in (4294900023, 4294900024):
            stack.enter_context(contained(INSIDE, job))
        found = only(real().find([row(INSIDE, None)], 0.0))
    assert (found.job, found.process) == (None, None)
    assert found.note == (
        f"pid {INSIDE} is of another PID namespace; 2 processes of this node have that number in theirs"
    )


def test_a_process_here_with_that_number_is_not_it() -> None:
    with child({"SLURM_JOB_ID": "4294900025"}) as pid:
        found = only(real().find([row(pid, None)], 0.0))
    assert (found.job, found.process) == (None, None)


def test_a_process_here_with_that_number_does_not_hide_the_one_inside() -> None:
    with child({"SLURM_JOB_ID": "4294900026"}) as pid, contained(pid, 4294900027):
        found = only(real().find([row(pid, None)], 0.0))
    assert key_of(found) == JobKey(Scheduler.SLURM, "4294900027")
