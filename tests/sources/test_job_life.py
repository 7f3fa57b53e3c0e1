"""Whether the job of a process still runs: said only where it can be known from outside."""

from __future__ import annotations

from pathlib import Path

import pytest

from npu_watchd.model.jobs import Attribution, EndedJob, JobKey, Scheduler
from npu_watchd.sources.jobs import JobFinder
from tests.sources.proc_tree import ProcTree
from tests.sources.test_jobs import SESSION, SLURM, only, row

ID = "a1" * 32
SCOPE = f"0::/system.slice/docker-{ID}.scope\n"
POD = f"0::/kubepods.slice/kubepods-pod3f1c52ce_8a11_4b0e_9d55_0c5be0a7f0d1.slice/cri-containerd-{ID}.scope\n"
V1 = "4:devices:/slurm/uid_1000/job_4711/step_batch/task_0\n1:name=systemd:/system.slice/slurmd.service\n"
OF_SLURMD = "0::/system.slice/slurmd.service\n"
OF_JOB = "SLURM_JOB_ID=4711 SLURM_JOB_UID=1000"
GONE = EndedJob(
    JobKey(Scheduler.SLURM, "4711"),
    "no slurmstepd of it is left",
    r"pgrep -af 'slurmstepd: \[4711[].]' (prints nothing); squeue -j 4711",
)


class Node:
    """A procfs with init, the finder that looks at it, and a clock."""

    def __init__(self, root: Path, *, first_namespace: bool = True, mapping_dir: Path | None = None) -> None:
        self.tree = ProcTree(root, first_namespace=first_namespace)
        self.tree.put(1, name="systemd", parent=0, uid=0, cgroup="0::/init.scope\n")
        self.now_s = 0.0
        self._finder = JobFinder(root, mapping_dir, lambda: self.now_s, {1000: "alice"}.get, ticks_per_second=100)

    def step(self, pid: int, title: str = "slurmstepd: [4711.batch]", parent: int = 1) -> None:
        self.tree.put(pid, name="slurmstepd", cmdline=title, uid=0, parent=parent, cgroup=OF_SLURMD)

    def look(self, after_s: float = 0.0) -> Attribution:
        """Of pid 100."""
        self.now_s += after_s
        return only(self._finder.find([row(100)], 1.0))


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path / "proc")


@pytest.mark.parametrize("placed", [SLURM, V1])
@pytest.mark.parametrize(
    "title",
    ["slurmstepd: [4711.batch]", "slurmstepd: [4711.0]\0\0", "slurmstepd: [4711]", "slurmstepd: [4711.interactive]"],
)
def test_a_job_with_a_slurmstepd_runs(node: Node, placed: str, title: str) -> None:
    node.step(50, title)
    node.tree.put(100, cgroup=placed, parent=50)
    assert (node.look().job_alive, node.look().ended) == (True, None)


@pytest.mark.parametrize("placed", [SLURM, V1])
def test_a_job_whose_last_slurmstepd_is_gone_is_over(node: Node, placed: str) -> None:
    node.step(50)
    node.step(51, "slurmstepd: [4711.0]")
    node.step(60, "slurmstepd: [12.batch]")
    node.tree.put(100, cgroup=placed, parent=50)
    assert node.look().job_alive is True
    node.tree.end(51)
    node.tree.end(50)
    node.tree.put(100, cgroup=placed, parent=1)
    # Only a search of all processes tells, and it comes once a minute.
    assert node.look(45).job_alive is None
    found = node.look(15)
    assert (found.job_alive, found.ended) == (False, GONE)
    assert node.look(15).job_alive is False


def test_a_job_is_over_from_the_first_look_on_where_the_daemon_began_after_its_end(node: Node) -> None:
    node.tree.put(100, cgroup=SLURM)
    assert node.look().ended == GONE


def test_another_step_of_the_job_goes_on(node: Node) -> None:
    node.step(50)
    node.tree.put(100, cgroup=SLURM, parent=50)
    assert node.look().job_alive is True
    node.tree.end(50)
    node.step(70, "slurmstepd: [4711.1]")
    assert node.look(60).job_alive is True


def test_a_search_from_before_the_job_began_says_nothing_of_it(node: Node) -> None:
    node.tree.put(100, cgroup=SLURM.replace("4711", "12"))
    assert node.look().job_alive is False
    node.step(50)
    node.tree.put(100, cgroup=SLURM, parent=50, started_ticks=6000)
    assert node.look(10).job_alive is None
    assert node.look(50).job_alive is True


def test_a_pid_that_is_used_again_keeps_nobodys_job(node: Node) -> None:
    node.step(50)
    node.tree.put(100, cgroup=SLURM, parent=50)
    node.look()
    node.tree.put(50, name="slurmstepd", cmdline="slurmstepd: [12.0]", started_ticks=9000)
    assert node.look(60).job_alive is False


@pytest.mark.parametrize("title", ["/usr/sbin/slurmstepd", "", "slurmstepd: [4711+1.0]", "slurmstepd: [x]"])
def test_while_one_slurmstepd_does_not_say_whose_it_is_nobodys_job_is_over(node: Node, title: str) -> None:
    node.step(50, title)
    node.tree.put(100, cgroup=SLURM)
    assert node.look().job_alive is None


def test_the_slurmstepd_that_keeps_the_scope_keeps_no_job(node: Node) -> None:
    node.step(50, "/usr/sbin/slurmstepd\0infinity\0")
    node.tree.put(100, cgroup=SLURM)
    assert node.look().job_alive is False


def test_where_processes_are_hidden_nothing_is_over(tmp_path: Path) -> None:
    inside = Node(tmp_path / "inside", first_namespace=False)
    inside.tree.put(100, cgroup=SLURM)
    assert inside.look().job_alive is None
    hidepid = Node(tmp_path / "hidepid")
    hidepid.tree.end(1)
    hidepid.tree.put(100, cgroup=SLURM)
    assert hidepid.look().job_alive is None


# Slurm without cgroups of its own (proctrack/linuxproc): only the environment names the job


def test_an_orphan_of_slurmd_without_a_slurmstepd_is_left_over(node: Node) -> None:
    node.tree.put(100, cgroup=OF_SLURMD, environ=OF_JOB)
    assert node.look().ended == GONE


def test_what_was_seen_below_its_slurmstepd_is_left_over_without_it(node: Node) -> None:
    node.step(50)
    node.tree.put(100, cgroup="0::/\n", environ=OF_JOB, parent=50)
    assert node.look().job_alive is True
    node.tree.end(50)
    node.tree.put(100, cgroup="0::/\n", environ=OF_JOB, parent=1)
    assert node.look(60).ended == GONE


def test_what_another_jobs_slurmstepd_started_says_nothing(node: Node) -> None:
    node.step(50, "slurmstepd: [12.batch]")
    node.tree.put(100, cgroup="0::/\n", environ=OF_JOB, parent=50)
    assert node.look().job_alive is None


def test_what_a_prolog_started_is_no_leftover(node: Node) -> None:
    node.tree.put(40, name="slurmd", uid=0, cgroup=OF_SLURMD)
    node.tree.put(41, name="prolog.sh", parent=40, cgroup=OF_SLURMD)
    node.tree.put(100, cgroup=OF_SLURMD, environ=OF_JOB, parent=41)
    assert node.look().job_alive is None


@pytest.mark.parametrize("placed", ["0::/system.slice/sshd.service\n", "0::/\n", SESSION])
def test_what_mpirun_started_over_ssh_is_no_leftover(node: Node, placed: str) -> None:
    node.tree.put(100, cgroup=placed, environ=OF_JOB)
    assert node.look().job_alive is None


# What has no keeper


@pytest.mark.parametrize(
    "placed",
    [
        SESSION,
        "0::/system.slice/inference.service\n",
        "0::/user.slice/user-1000.slice/user@1000.service/tmux.scope\n",
        "0::/\n",
    ],
)
def test_a_child_of_init_may_be_a_service_or_what_somebody_started_with_nohup(node: Node, placed: str) -> None:
    node.tree.put(100, cgroup=placed, parent=1)
    assert (node.look().job_alive, node.look(30).ended) == (None, None)


# Containers


@pytest.mark.parametrize("placed", [SCOPE, POD])
def test_a_container_with_a_shim_runs(node: Node, placed: str) -> None:
    node.tree.put(30, name="containerd-shim", uid=0, cgroup="0::/system.slice/containerd.service\n")
    node.tree.put(31, name="bash", parent=30, cgroup=placed)
    node.tree.put(100, parent=31, cgroup=placed)
    assert (node.look().job_alive, node.look(15).job_alive) == (True, True)


@pytest.mark.parametrize("placed", [SCOPE, POD])
def test_a_container_whose_shim_is_gone_is_over(node: Node, placed: str) -> None:
    node.tree.put(30, name="containerd-shim", uid=0, cgroup="0::/system.slice/containerd.service\n")
    node.tree.put(31, name="bash", parent=30, cgroup=placed)
    node.tree.put(100, parent=31, cgroup=placed)
    node.look()
    node.tree.end(30)
    assert node.look(15).job_alive is None
    node.tree.put(31, name="bash", parent=1, cgroup=placed)
    found = node.look(15)
    assert found.job is not None
    assert found.ended == EndedJob(
        found.job.key,
        "its container a1a1a1a1a1a1 has lost its shim: pid 31, its first process, is a child of init",
        "ps -o pid,ppid,lstart,args -p 31; cat /proc/31/cgroup",
    )


def test_in_a_namespace_of_our_own_no_container_has_lost_its_shim(tmp_path: Path) -> None:
    node = Node(tmp_path / "proc", first_namespace=False)
    node.tree.put(100, cgroup=SCOPE)
    assert node.look().job_alive is None


# The mapping folder


@pytest.fixture
def mapped(tmp_path: Path) -> Node:
    (tmp_path / "map").mkdir()
    return Node(tmp_path / "proc", mapping_dir=tmp_path / "map")


def test_a_job_that_the_site_takes_out_of_its_folder_is_over(mapped: Node, tmp_path: Path) -> None:
    file = tmp_path / "map" / "6"
    file.write_text("12\n")
    mapped.tree.put(100, environ="PBS_JOBID=12.server")
    assert (str(mapped.look().job and mapped.look().job.key), mapped.look().job_alive) == ("mapping 12", None)  # type: ignore[union-attr]
    file.unlink()
    found = mapped.look(15)
    assert (found.job_alive, found.ended) == (
        False,
        EndedJob(JobKey(Scheduler.MAPPING, "12"), f"{file} named it while it ran, and no longer does", f"cat {file}"),
    )
    file.write_text("12\n")
    assert mapped.look(15).job_alive is None


def test_what_the_folder_never_named_is_not_over(mapped: Node) -> None:
    mapped.tree.put(100, environ="PBS_JOBID=12.server")
    assert mapped.look().job_alive is None


def test_who_was_on_the_chip_by_the_folders_word_alone_may_be_anybody(mapped: Node, tmp_path: Path) -> None:
    (tmp_path / "map" / "6").write_text("12\n")
    mapped.tree.put(100, cgroup="0::/\n")
    mapped.look()
    (tmp_path / "map" / "6").unlink()
    assert mapped.look(15).job_alive is None


def test_a_folder_that_cannot_be_read_ends_no_job(mapped: Node, tmp_path: Path) -> None:
    (tmp_path / "map" / "6").write_text("12\n")
    mapped.tree.put(100, environ="PBS_JOBID=12.server")
    mapped.look()
    (tmp_path / "map" / "6").write_text("two words\n")
    assert mapped.look(15).job_alive is None
