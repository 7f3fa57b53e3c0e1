"""From the kernel's lines to processes that were killed, and to their jobs."""

from __future__ import annotations

import pytest

from npu_watchd.model.host import Belonging, OomKill, OomScope
from npu_watchd.model.jobs import JobKey, Scheduler
from npu_watchd.sources.kernel_log import KernelMessage
from npu_watchd.sources.oom_kills import OomReader

JOB = "/system.slice/slurmstepd.scope/job_4711"
STEP = f"{JOB}/step_0/user/task_0"
POD = "3f1c52ce-8a11-4b0e-9d55-0c5be0a7f0d1"
DONE = "total-vm:4kB, anon-rss:3kB, file-rss:0kB, shmem-rss:0kB"


def said(*lines: str, by_kernel: bool = True, at_s: float = 90.0) -> list[KernelMessage]:
    return [KernelMessage(number, at_s + number / 1000, by_kernel, line) for number, line in enumerate(lines)]


def summary(path: str, pid: int = 61201, name: str = "ccec") -> str:
    head = "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0"
    return f"{head},oom_memcg={JOB},task_memcg={path},task={name},pid={pid},uid=21007"


def done(pid: int = 61201, name: str = "ccec", head: str = "Memory cgroup out of memory: ") -> str:
    return f"{head}Killed process {pid} ({name}) {DONE}"


def test_the_two_lines_of_a_kill_are_one_kill() -> None:
    found = OomReader().take(said("ccec invoked oom-killer: gfp_mask=0xcc0", summary(STEP), done()))
    job = JobKey(Scheduler.SLURM, "4711")
    assert found == (OomKill(61201, "ccec", OomScope.CGROUP, 90.001, STEP, 21007, Belonging.JOB, job),)


def test_they_are_one_kill_also_where_a_poll_ends_between_them() -> None:
    reader = OomReader()
    first, second = said(summary(STEP), done())
    assert [kill.pid for kill in reader.take([first])] == [61201]
    assert reader.take([second]) == ()


def test_a_pid_that_is_used_again_is_another_kill() -> None:
    reader = OomReader()
    reader.take(said(summary(STEP)))
    assert [kill.pid for kill in reader.take(said(done(), at_s=9000.0))] == [61201]


@pytest.mark.parametrize(
    ("path", "belongs", "job"),
    [
        (STEP, Belonging.JOB, "slurm 4711"),
        ("/slurm/uid_1007/job_12/step_0/task_0", Belonging.JOB, "slurm 12"),
        (
            f"/kubepods.slice/kubepods-pod{POD.replace('-', '_')}.slice/cri-containerd-{'a' * 64}.scope",
            Belonging.JOB,
            f"kubernetes {POD}",
        ),
        ("/user.slice/user-1007.slice/session-3.scope", Belonging.JOB, "session 3"),
        (
            "/user.slice/user-1007.slice/user@1007.service/app.slice/train.scope",
            Belonging.JOB,
            "unit user@1007.service/train.scope",
        ),
        ("/system.slice/node-agent.service", Belonging.OTHER, "None"),
        ("/init.scope", Belonging.OTHER, "None"),
        # A Slurm without cgroups leaves its jobs in its own service, and so may sshd.
        ("/system.slice/slurmd.service", Belonging.UNKNOWN, "None"),
        ("/", Belonging.UNKNOWN, "None"),
    ],
)
def test_whose_it_was_is_the_cgroups_word(path: str, belongs: Belonging, job: str) -> None:
    found = OomReader().take(said(summary(path)))[0]
    assert (found.belongs, str(found.job)) == (belongs, job)


def test_before_linux_5_0_the_line_before_names_the_cgroup() -> None:
    task = f"Task in {STEP} killed as a result of limit of {JOB}"
    score = "Memory cgroup out of memory: Kill process 61201 (ccec) score 900 or sacrifice child"
    found = OomReader().take(said(task, score, done(head=""), done(77, "sshd", head="")))
    assert [(kill.pid, str(kill.job), kill.scope) for kill in found] == [
        (61201, "slurm 4711", OomScope.CGROUP),
        (77, "None", OomScope.UNKNOWN),
    ]


def test_all_of_a_group_are_of_its_cgroup() -> None:
    group = f"Tasks in {STEP} are going to be killed due to memory.oom.group set"
    found = OomReader().take(said(summary(STEP), done(), group, done(61202), done(61203)))
    assert [(kill.pid, str(kill.job)) for kill in found] == [
        (61201, "slurm 4711"),
        (61202, "slurm 4711"),
        (61203, "slurm 4711"),
    ]


def test_a_group_that_was_killed_long_ago_says_nothing_of_others() -> None:
    reader = OomReader()
    reader.take(said(f"Tasks in {STEP} are going to be killed due to memory.oom.group set"))
    found = reader.take(said(done(77, "sshd", head="Out of memory: "), at_s=4000.0))
    assert [(kill.pid, kill.belongs, kill.scope) for kill in found] == [(77, Belonging.UNKNOWN, OomScope.NODE)]


def test_what_a_program_wrote_into_the_log_kills_nobody() -> None:
    assert OomReader().take(said(summary(STEP), done(), by_kernel=False)) == ()


def test_a_name_that_could_steer_a_terminal_is_shown_without() -> None:
    assert OomReader().take(said(done(name="a\x1b[2Jb")))[0].name == "a�[2Jb"
