"""Whom the kernel killed for want of memory, in the words of its log from 4.18 to 6.12."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from npu_watchd.model.host import OomLine, OomScope
from npu_watchd.parsers.oom import oom_line

STEP = "/system.slice/slurmstepd.scope/job_4711/step_0/user/task_0"
HEAD = "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0-3,oom_memcg=/system.slice"
SUMMARY = f"{HEAD},task_memcg={STEP},task=ccec,pid=61201,uid=21007"
KILLED = "Killed process 61201 (ccec) total-vm:41943040kB, anon-rss:39845888kB, file-rss:0kB, shmem-rss:0kB"


def test_one_line_has_the_process_and_its_cgroup() -> None:
    assert oom_line(SUMMARY) == OomLine(61201, "ccec", OomScope.CGROUP, STEP, 21007)


def test_the_lines_of_a_real_kill_are_read() -> None:
    """Linux 6.18, cgroup v1: a process that took more than the 64 MiB of its cgroup."""
    path = "/slurm_n1/uid_1007/job_4711/step_0/task_0"
    head = "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0"
    line = f"{head},oom_memcg={path},task_memcg={path},task=python3,pid=30210,uid=0"
    assert oom_line(line) == OomLine(30210, "python3", OomScope.CGROUP, path, 0)
    sizes = "total-vm:82132kB, anon-rss:65280kB, file-rss:6648kB, shmem-rss:0kB, UID:0 pgtables:188kB oom_score_adj:0"
    done = f"Memory cgroup out of memory: Killed process 30210 (python3) {sizes}"
    assert oom_line(done) == OomLine(30210, "python3", OomScope.CGROUP, kills=True)
    assert oom_line("Tasks state (memory values in pages):") is None


def test_a_node_without_memory_is_another_cause_than_a_job_at_its_limit() -> None:
    whose = f"task_memcg={STEP},task=python3,pid=7,uid=0"
    line = f"oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=a,mems_allowed=0,global_oom,{whose}"
    assert oom_line(line) == OomLine(7, "python3", OomScope.NODE, STEP, 0)


@pytest.mark.parametrize(
    ("head", "scope"),
    [
        ("Memory cgroup out of memory: ", OomScope.CGROUP),
        ("Out of memory: ", OomScope.NODE),
        ("Out of memory (oom_kill_allocating_task): ", OomScope.NODE),
        ("", OomScope.UNKNOWN),
    ],
)
def test_the_line_that_says_that_it_is_done(head: str, scope: OomScope) -> None:
    assert oom_line(head + KILLED) == OomLine(61201, "ccec", scope, kills=True)


def test_a_name_may_have_brackets() -> None:
    line = "Out of memory: Killed process 15925 ((resolved)) total-vm:168424kB, anon-rss:4064kB"
    assert oom_line(line) == OomLine(15925, "(resolved)", OomScope.NODE, kills=True)
    old = "Killed process 12 (java), UID 1000, total-vm:1kB, anon-rss:0kB, file-rss:0kB"
    assert oom_line(old) == OomLine(12, "java", OomScope.UNKNOWN, kills=True)


def test_before_linux_5_0_the_cgroup_has_a_line_of_its_own() -> None:
    line = f"Task in {STEP} killed as a result of limit of /system.slice/slurmstepd.scope/job_4711"
    assert oom_line(line) == OomLine(None, None, OomScope.CGROUP, STEP)


def test_a_group_is_killed_together() -> None:
    line = f"Tasks in {STEP} are going to be killed due to memory.oom.group set"
    assert oom_line(line) == OomLine(None, None, OomScope.CGROUP, STEP, group=True)


@pytest.mark.parametrize(
    "forged",
    [
        f"{HEAD},task_memcg=/user.slice/a,task_memcg={STEP},task=x,pid=9,uid=1000",
        f"{HEAD},task_memcg={STEP},task=a,task=b,pid=9,uid=1000",
        f"{HEAD},task_memcg=,task=x,pid=9,uid=1000",
    ],
)
def test_where_two_cgroups_could_be_meant_none_is(forged: str) -> None:
    found = oom_line(forged)
    assert found is not None
    assert (found.pid, found.task_memcg, found.uid) == (9, None, 1000)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "ccec invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0",
        "Memory cgroup out of memory: Kill process 61201 (ccec) score 1000 or sacrifice child",
        "oom_reaper: reaped process 61201 (ccec), now anon-rss:0kB, file-rss:0kB, shmem-rss:0kB",
        "some driver: Killed process 61201 (ccec) total-vm:1kB",
        "oom-kill:constraint=CONSTRAINT_MEMCG",
        "Task dump for CPU 3:",
    ],
)
def test_other_lines_kill_nobody(line: str) -> None:
    assert oom_line(line) is None


@given(st.integers(0, len(SUMMARY) - 1))
def test_a_line_that_is_cut_names_no_other_process(end: int) -> None:
    found = oom_line(SUMMARY[:end])
    assert found is None or (found.pid, found.name, found.task_memcg) == (61201, "ccec", STEP)


@given(st.text())
def test_no_text_makes_it_fail(text: str) -> None:
    oom_line(text)
    oom_line(f"oom-kill:{text}")
    oom_line(f"{HEAD},task_memcg={text},task={text},pid=1,uid=1")
    oom_line(f"Killed process {text}")
