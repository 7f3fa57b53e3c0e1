"""From rows of npu-smi to jobs: on a procfs of files, and on the real one."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from npu_watchd.model.ids import DeviceKey
from npu_watchd.model.jobs import Attribution, DeviceProcess, JobKey, ProcessKey, Scheduler, Source
from npu_watchd.model.reading import Failure, FailureKind
from npu_watchd.model.records import ProcessRow
from npu_watchd.parsers import cgroup
from npu_watchd.sources.job_sweep import JobSweep
from npu_watchd.sources.jobs import JobFinder
from npu_watchd.sources.process_tree import ProcessTree
from tests.sources.proc_tree import BOOT_WALL_S, ProcTree
from tests.sources.test_sweep import back_within

HERE = Path(__file__).parent
SLURM = "0::/system.slice/slurmstepd.scope/job_4711/step_0/user/task_0\n"
NOBODY = 65534
SESSION = "0::/user.slice/user-1000.slice/session-10.scope\n"
DEVICE = DeviceKey(3)
AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can start processes of another user")


def row(pid: int, name: str | None = "python", container_pid: int | None = None, device_id: int = 6) -> DeviceProcess:
    return DeviceProcess(DEVICE, device_id, ProcessRow(3, 0, pid, name, 1024, container_pid))


def finder(tree: ProcTree, mapping_dir: Path | None = None) -> JobFinder:
    return JobFinder(tree.root, mapping_dir, lambda: 0.0, {1000: "alice", 0: "root"}.get, ticks_per_second=100)


@pytest.fixture
def tree(tmp_path: Path) -> ProcTree:
    return ProcTree(tmp_path / "proc")


def only(found: tuple[Attribution, ...]) -> Attribution:
    assert len(found) == 1
    return found[0]


def key_of(found: Attribution) -> JobKey | None:
    return found.job.key if found.job else None


def test_a_process_of_a_slurm_job(tree: ProcTree) -> None:
    tree.put(4242, cgroup=SLURM, environ="SLURM_JOB_ID=4711 SLURM_JOB_NAME=llama RANK_ID=3 HOME=/secret")
    found = only(finder(tree).find([row(4242)], 10.0))
    assert found.job is not None
    assert found == Attribution(
        DEVICE,
        4242,
        "python",
        1024,
        process=ProcessKey(4242, 5000),
        started_wall_s=BOOT_WALL_S + 50.0,
        user="alice",
        job=found.job,
        source=Source.CGROUP,
        variables={"SLURM_JOB_ID": "4711", "SLURM_JOB_NAME": "llama", "RANK_ID": "3"},
    )
    assert (found.job.key, found.job.user, found.job.name) == (JobKey(Scheduler.SLURM, "4711"), "alice", "llama")


def test_the_answers_stand_in_the_order_of_the_rows(tree: ProcTree) -> None:
    tree.put(1, cgroup=SLURM)
    tree.put(2, cgroup=SESSION)
    found = finder(tree).find([row(2), row(1), row(9), row(2)])
    assert [key_of(one) and str(key_of(one)) for one in found] == ["session 10", "slurm 4711", None, "session 10"]


def test_in_a_pid_namespace_of_our_own_a_number_of_the_hosts_is_nobodys(tmp_path: Path) -> None:
    tree = ProcTree(tmp_path, first_namespace=False)
    tree.put(4242, cgroup=SLURM, namespace_pids=(4242, 87))
    for found in finder(tree).find([row(4242), row(87, None)]):
        assert (found.process, found.job) == (None, None)
        assert found.note is not None
        assert found.note.endswith("`hostPID: true` in the pod mends that")


def test_a_pid_that_is_gone_is_unknown(tree: ProcTree) -> None:
    found = only(finder(tree).find([row(4242)]))
    assert (found.process, found.job, found.note) == (None, None, "pid 4242 has ended since it was listed")


def test_a_pid_that_is_used_again_is_another_process(tree: ProcTree) -> None:
    jobs = finder(tree)
    tree.put(4242, cgroup=SLURM, started_ticks=5000)
    assert key_of(only(jobs.find([row(4242)], 10.0))) == JobKey(Scheduler.SLURM, "4711")
    tree.put(4242, cgroup=SESSION, started_ticks=98000)
    assert key_of(only(jobs.find([row(4242)], 10.0))) == JobKey(Scheduler.SESSION, "10")


def test_a_process_that_is_younger_than_the_list_is_not_the_listed_one(tree: ProcTree) -> None:
    tree.put(4242, cgroup=SESSION, started_ticks=99500)
    found = only(finder(tree).find([row(4242)], 10.0))
    assert (found.job, found.note) == (None, "pid 4242 is now another process than the one that was listed")


def test_a_process_that_only_the_older_list_has_is_older_than_that_list(tree: ProcTree) -> None:
    tree.put(4242, cgroup=SLURM, started_ticks=99000)
    earlier = replace(row(4242), earlier_s=10.0)
    in_table, before = finder(tree).find([row(4242), earlier], 5.0)
    assert key_of(in_table) == JobKey(Scheduler.SLURM, "4711")
    assert (before.job, before.note) == (None, "pid 4242 is now another process than the one that was listed")


def test_a_process_that_is_older_than_the_list_may_call_itself_what_it_likes(tree: ProcTree) -> None:
    tree.put(4242, cgroup=SLURM, name="innocent")
    found = only(finder(tree).find([row(4242)], 10.0))
    assert (key_of(found), found.note) == (JobKey(Scheduler.SLURM, "4711"), "it calls itself 'innocent' now")


def test_where_the_age_of_the_list_is_not_known_another_name_is_another_process(tree: ProcTree) -> None:
    tree.put(4242, cgroup=SLURM, name="innocent")
    assert only(finder(tree).find([row(4242)])).job is None


@pytest.mark.parametrize(
    ("comm", "listed"),
    [("a:b:c", "abc"), ("x) R 1", "x) R 1"), ("a|b", "a|b"), (" pad ", "pad"), ("::", None), ("", None)],
)
def test_a_hostile_name_hides_nobody(tree: ProcTree, comm: str, listed: str | None) -> None:
    tree.put(4242, cgroup=SLURM, name=comm)
    assert key_of(only(finder(tree).find([row(4242, listed)]))) == JobKey(Scheduler.SLURM, "4711")


def test_nothing_is_read_again_while_the_process_lives(tree: ProcTree) -> None:
    jobs = finder(tree)
    tree.put(4242, cgroup=SLURM, environ="SLURM_JOB_ID=4711")
    first = jobs.find([row(4242)])
    for name in ("cgroup", "environ", "status"):
        (tree.root / "4242" / name).unlink()
    assert jobs.find([row(4242)]) == first


def test_a_process_that_left_the_chip_is_forgotten(tree: ProcTree) -> None:
    jobs = finder(tree)
    tree.put(4242, cgroup=SLURM)
    jobs.find([row(4242)])
    jobs.find([])
    (tree.root / "4242" / "cgroup").write_text(SESSION)
    assert key_of(only(jobs.find([row(4242)]))) == JobKey(Scheduler.SESSION, "10")


def test_what_could_not_be_read_is_tried_again(tree: ProcTree) -> None:
    jobs = finder(tree)
    tree.put(4242, cgroup="rubbish\n")
    found = only(jobs.find([row(4242)]))
    assert (key_of(found), "no line of a cgroup file" in (found.note or "")) == (JobKey(Scheduler.USER, "alice"), True)
    (tree.root / "4242" / "cgroup").write_text(SLURM)
    assert key_of(only(jobs.find([row(4242)]))) == JobKey(Scheduler.SLURM, "4711")


def test_a_forged_environment_is_noted_and_not_believed(tree: ProcTree) -> None:
    tree.put(4242, cgroup=SLURM, environ="SLURM_JOB_ID=999")
    found = only(finder(tree).find([row(4242)]))
    assert key_of(found) == JobKey(Scheduler.SLURM, "4711")
    assert found.note == "its environment says slurm 999, which it can write itself; the cgroup says slurm 4711"


def test_one_job_in_a_cgroup_shows_that_the_others_must_be_in_one_too(tree: ProcTree) -> None:
    tree.put(1, cgroup=SESSION, environ="SLURM_JOB_ID=4711")
    jobs = finder(tree)
    assert key_of(jobs.find([row(1)])[0]) == JobKey(Scheduler.SLURM, "4711")
    tree.put(2, cgroup=SLURM)
    assert key_of(jobs.find([row(1), row(2)])[0]) == JobKey(Scheduler.SESSION, "10")
    assert key_of(jobs.find([row(1)])[0]) == JobKey(Scheduler.SESSION, "10")


# PID namespaces


def test_a_containers_own_pid_is_found_by_its_namespace(tree: ProcTree) -> None:
    tree.put(7001, cgroup=SLURM, namespace_pids=(7001, 87))
    found = only(finder(tree).find([row(87, None)], 10.0))
    assert (found.pid, found.process) == (87, ProcessKey(7001, 5000))
    assert (key_of(found), found.note) == (
        JobKey(Scheduler.SLURM, "4711"),
        "pid 87 is of another PID namespace; here it is 7001",
    )


def test_two_containers_with_that_pid_are_unknown(tree: ProcTree) -> None:
    tree.put(7001, cgroup=SLURM, namespace_pids=(7001, 87))
    tree.put(7002, cgroup=SESSION, namespace_pids=(7002, 87))
    found = only(finder(tree).find([row(87, None)], 10.0))
    assert (found.process, found.job) == (None, None)
    assert found.note == "pid 87 is of another PID namespace; 2 processes of this node have that number in theirs"


def test_a_second_container_with_that_pid_makes_the_first_unknown_too(tree: ProcTree) -> None:
    jobs = finder(tree)
    tree.put(7001, cgroup=SLURM, namespace_pids=(7001, 87))
    assert only(jobs.find([row(87, None)])).job is not None
    tree.put(7002, cgroup=SESSION, namespace_pids=(7002, 87))
    assert only(jobs.find([row(87, None)])).job is None


def test_a_kernel_thread_of_that_number_is_never_the_process(tree: ProcTree) -> None:
    tree.put(87, name="kworker/0:1", uid=0, flags=2129984)
    assert only(finder(tree).find([row(87, "kworker/01")], 10.0)).job is None
    tree.put(7001, cgroup=SLURM, namespace_pids=(7001, 87))
    assert key_of(only(finder(tree).find([row(87, "kworker/01")], 10.0))) == JobKey(Scheduler.SLURM, "4711")


def test_a_process_here_that_the_tool_could_not_name_is_not_taken(tree: ProcTree) -> None:
    tree.put(87, cgroup=SESSION, name="bash")
    found = only(finder(tree).find([row(87, None)], 10.0))
    assert (found.process, found.job) == (None, None)


def test_the_containers_pid_must_fit_where_the_tool_prints_it(tree: ProcTree) -> None:
    tree.put(7001, cgroup=SLURM, namespace_pids=(7001, 87))
    assert only(finder(tree).find([row(7001, container_pid=87)])).job is not None
    found = only(finder(tree).find([row(7001, container_pid=88)]))
    assert (found.process, found.note) == (None, "pid 7001 is 87 in its container, the listed one was 88")


# The mapping folder


def test_the_site_says_whose_the_chip_is(tree: ProcTree, tmp_path: Path) -> None:
    (tmp_path / "map").mkdir()
    (tmp_path / "map" / "6").write_text("  4711\n\n")
    tree.put(1, cgroup="0::/\n")
    tree.put(2, cgroup=SLURM)
    jobs = finder(tree, tmp_path / "map")
    found = jobs.find([row(1), row(2), row(1, device_id=7)])
    assert [str(key_of(one)) for one in found] == ["mapping 4711", "mapping 4711", "user alice"]
    (tmp_path / "map" / "6").write_text("12\n")
    assert [str(key_of(one)) for one in jobs.find([row(1), row(2)])] == ["mapping 12", "slurm 4711"]


@pytest.mark.parametrize("text", ["two words\n", "x" * 300, "a\x00b\n", "\n".join(map(str, range(100)))])
def test_a_mapping_file_that_is_none_is_named_and_not_used(tree: ProcTree, tmp_path: Path, text: str) -> None:
    (tmp_path / "map").mkdir()
    (tmp_path / "map" / "6").write_text(text)
    tree.put(1)
    found = only(finder(tree, tmp_path / "map").find([row(1)]))
    assert key_of(found) == JobKey(Scheduler.USER, "alice")
    assert (found.note or "").startswith(f"{tmp_path}/map/6: not a mapping file: one job id a line")


def test_a_mapping_folder_that_is_not_there_is_said(tree: ProcTree, tmp_path: Path) -> None:
    tree.put(1)
    assert only(finder(tree, tmp_path / "map").find([row(1)])).note == f"{tmp_path}/map/6: No such file or directory"


# Hangs


def test_a_directory_server_that_hangs_costs_the_name_only(tree: ProcTree) -> None:
    held = threading.Event()

    def name_of(uid: int) -> str | None:
        held.wait(20)
        return None

    tree.put(1, cgroup=SLURM)
    jobs = JobFinder(tree.root, None, lambda: 0.0, name_of, ticks_per_second=100)
    with back_within(5.0):
        found = only(jobs.find([row(1)]))
    held.set()
    assert (key_of(found), found.user) == (JobKey(Scheduler.SLURM, "4711"), "1000")


@contextmanager
def hung_file(tree: ProcTree) -> Iterator[str]:
    """Where a link to a file that never answers a read must lead, from the folder of a process."""
    mountpoint = tree.root / "hung"
    mountpoint.mkdir()
    command = [sys.executable, str(HERE / "hungfs.py"), str(mountpoint)]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        assert server.stdout is not None
        if server.stdout.readline() != b"mounted\n":
            pytest.skip(f"no FUSE mount here: {server.communicate()[1]!r}")
        yield "../hung/hung"
    finally:
        server.kill()
        server.communicate()
        subprocess.run(["umount", "-l", str(mountpoint)], check=False, stderr=subprocess.DEVNULL)


def put_link(tree: ProcTree, name: str, target: str) -> None:
    (tree.root / name).unlink()
    (tree.root / name).symlink_to(target)


@AS_ROOT
def test_a_wedged_environ_costs_itself_only(tree: ProcTree) -> None:
    tree.put(1, cgroup=SLURM)
    tree.put(2, cgroup=SESSION)
    jobs = JobSweep(finder(tree), lambda: 0.0)
    with hung_file(tree) as target, back_within(5.0):
        put_link(tree, "1/environ", target)
        found = jobs.find([row(1), row(2)])
    assert not isinstance(found, Failure)
    assert [str(key_of(one)) for one in found] == ["slurm 4711", "session 10"]
    assert (found[0].variables, "/1/environ has not returned" in (found[0].note or "")) == (None, True)


@AS_ROOT
def test_a_wedged_procfs_is_a_failure_and_not_a_hang(tree: ProcTree) -> None:
    tree.put(1, cgroup=SLURM)
    jobs = JobSweep(finder(tree), lambda: 0.0, deadline_s=0.1)
    with hung_file(tree) as target, back_within(5.0):
        put_link(tree, "1/cgroup", target)
        found = [jobs.find([row(1)]), jobs.find([row(1)])]
    assert [one.kind for one in found if isinstance(one, Failure)] == [FailureKind.WEDGED, FailureKind.WEDGED]


# Real processes


@contextmanager
def child(environ: dict[str, str], user: int | None = None) -> Iterator[int]:
    process = subprocess.Popen(["/bin/sleep", "60"], env=environ, user=user, group=user)
    try:
        yield process.pid
    finally:
        process.kill()
        process.wait()


def comm(pid: int) -> str:
    return Path(f"/proc/{pid}/comm").read_text().strip()


def real() -> JobFinder:
    return JobFinder(Path("/proc"), None, time.monotonic)


def test_a_real_child_is_found_with_what_it_was_started_with() -> None:
    with child({"RANK_ID": "3", "HCCL_EXEC_TIMEOUT": "600", "TOKEN": "hush"}) as pid:
        found = only(real().find([row(pid, comm(pid))], 0.0))
    assert found.process is not None
    assert found.process.pid == pid
    assert found.variables == {"RANK_ID": "3", "HCCL_EXEC_TIMEOUT": "600"}
    assert found.started_wall_s == pytest.approx(time.time(), abs=60)


def test_a_real_child_says_its_slurm_job_where_no_cgroup_does() -> None:
    own = cgroup.parse(Path("/proc/self/cgroup").read_text())
    if own.job is not None or own.container is not None:
        pytest.skip("these tests run in a job or a container, which is what the cgroup says of their children too")
    with child({"SLURM_JOB_ID": "4711", "SLURM_JOB_UID": str(os.getuid())}) as pid:
        found = only(real().find([row(pid, comm(pid))], 0.0))
    assert key_of(found) == JobKey(Scheduler.SLURM, "4711")
    assert found.source is Source.ENVIRON


def test_a_real_child_that_ended_is_unknown() -> None:
    with child({}) as pid:
        name = comm(pid)
    assert only(real().find([row(pid, name)])).job is None


@AS_ROOT
def test_a_real_process_of_another_user_is_that_users() -> None:
    with child({}, user=NOBODY) as pid:
        found = only(real().find([row(pid, comm(pid))], 0.0))
    assert (found.user, found.job and found.job.user) == ("nobody", "nobody")


@contextmanager
def real_cgroup(path: str) -> Iterator[Path]:
    """Made below the pids controller of cgroup v1, or below the one hierarchy of v2."""
    top = Path("/sys/fs/cgroup/pids") if Path("/sys/fs/cgroup/pids").is_dir() else Path("/sys/fs/cgroup")
    folders = [top.joinpath(*Path(path).parts[:depth]) for depth in range(1, len(Path(path).parts) + 1)]
    made = [folder for folder in folders if not folder.exists()]
    try:
        for folder in made:
            folder.mkdir()
    except OSError as error:
        pytest.skip(f"no cgroup can be made here: {error}")
    try:
        yield folders[-1]
    finally:
        for folder in reversed(made):
            folder.rmdir()


@AS_ROOT
@pytest.mark.parametrize(
    ("path", "key"),
    [
        ("slurm_test/uid_65534/job_4294900001/step_batch", JobKey(Scheduler.SLURM, "4294900001")),
        (
            "kubepods/burstable/podfeed0000-0f92-11eb-b36d-02623cf324c8/" + "ab" * 32,
            JobKey(Scheduler.KUBERNETES, "feed0000-0f92-11eb-b36d-02623cf324c8"),
        ),
    ],
)
def test_a_real_cgroup_wins_over_what_its_process_says(path: str, key: JobKey) -> None:
    with real_cgroup(path) as folder, child({"SLURM_JOB_ID": "999"}, user=NOBODY) as pid:
        (folder / "cgroup.procs").write_text(f"{pid}\n")
        found = only(real().find([row(pid, comm(pid))], 0.0))
        (folder.parents[len(Path(path).parts) - 1] / "cgroup.procs").write_text(f"{pid}\n")
    assert (key_of(found), found.source) == (key, Source.CGROUP)
    assert found.note == f"its environment says slurm 999, which it can write itself; the cgroup says {key}"


@AS_ROOT
def test_a_real_pid_of_another_namespace_is_found_by_its_number_there() -> None:
    if not ProcessTree(Path("/proc")).sees_all():
        pytest.skip("this is not the first PID namespace")
    inside = 29173
    shell = f"echo {inside - 1} > /proc/sys/kernel/ns_last_pid; /bin/sleep 60 & echo started; wait"
    command = ["unshare", "--pid", "--fork", "--kill-child", "sh", "-c", shell]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={"RANK_ID": "5"})
    try:
        assert process.stdout is not None
        if process.stdout.readline() != b"started\n":
            pytest.skip(f"no PID namespace here: {process.communicate()[1]!r}")
        found = until_known(inside)
    finally:
        process.kill()
        process.communicate()
    assert found.variables == {"RANK_ID": "5"}
    assert found.process is not None
    assert found.note == f"pid {inside} is of another PID namespace; here it is {found.process.pid}"


def until_known(pid: int) -> Attribution:
    end = time.monotonic() + 5.0
    while True:
        found = only(real().find([row(pid, None)]))
        if found.process is not None or time.monotonic() > end:
            return found


@AS_ROOT
def test_another_users_environ_is_denied_to_us_and_the_rest_is_known() -> None:
    code = """
import os, sys
from tests.sources.test_jobs import NOBODY, comm, only, real, row
os.setgroups([]), os.setgid(NOBODY), os.setuid(NOBODY)
found = only(real().find([row(int(sys.argv[1]), "sleep")], 0.0))
print(found.user, found.variables, found.note)
"""
    with child({"SLURM_JOB_ID": "4711"}) as pid:
        command = [sys.executable, "-c", code, str(pid)]
        answer = subprocess.run(command, capture_output=True, text=True, check=True, cwd=HERE.parents[1])
    assert answer.stdout == f"root None /proc/{pid}/environ: Permission denied\n"
