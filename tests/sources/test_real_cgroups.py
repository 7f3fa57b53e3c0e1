"""Jobs from the kernel's own cgroup files: folders as schedulers make them, in cgroup v1, each with a child in it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from npu_watchd.model.jobs import Attribution, JobKey, Scheduler, Source
from npu_watchd.parsers import cgroup
from npu_watchd.parsers.cgroup import CgroupIdentity
from tests.sources.test_jobs import NOBODY, child, comm, key_of, only, real, row

TOP = Path("/sys/fs/cgroup")
CONTAINER = "c0ffee" + "ab" * 29
POD = "feed0001-0f92-11eb-b36d-02623cf324c8"
PODS = "kubepods.slice/kubepods-burstable.slice"

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make cgroups")


@contextmanager
def folder(hierarchy: str, path: str) -> Iterator[Path]:
    """Made below that controller's hierarchy, or the one with that name; gone afterwards, who is in it at the top."""
    top = TOP / hierarchy
    if not (top / "tasks").exists():
        pytest.skip(f"no cgroup v1 hierarchy {hierarchy} here")
    parts = Path(path).parts
    made = [one for depth in range(len(parts)) if not (one := top.joinpath(*parts[: depth + 1])).exists()]
    try:
        for one in made:
            one.mkdir()
    except OSError as error:
        pytest.skip(f"no cgroup can be made here: {error}")
    try:
        yield top / path
    finally:
        for pid in (top / path / "cgroup.procs").read_text().split():
            (top / "cgroup.procs").write_text(pid)
        for one in reversed(made):
            one.rmdir()


@contextmanager
def child_in(paths: Mapping[str, str], environ: dict[str, str] | None = None) -> Iterator[int]:
    """A process of `nobody` in these folders. paths: hierarchy → folder."""
    with ExitStack() as stack:
        folders = [stack.enter_context(folder(*item)) for item in paths.items()]
        pid = stack.enter_context(child(environ or {}, user=NOBODY))
        for one in folders:
            (one / "cgroup.procs").write_text(f"{pid}\n")
        yield pid
        for hierarchy in paths:
            (TOP / hierarchy / "cgroup.procs").write_text(f"{pid}\n")


def found(pid: int) -> Attribution:
    return only(real().find([row(pid, comm(pid))], 0.0))


def test_our_own_cgroup_file_is_understood() -> None:
    text = Path("/proc/self/cgroup").read_text()
    assert isinstance(cgroup.parse(text), CgroupIdentity)


@as_root
@pytest.mark.parametrize(
    ("paths", "key", "source"),
    [
        (
            {
                "freezer": "slurm_test/uid_65534/job_4294900011/step_batch",
                "memory": "slurm_test/uid_65534/job_4294900011/step_batch/task_0",
            },
            JobKey(Scheduler.SLURM, "4294900011"),
            Source.CGROUP,
        ),
        (
            {"systemd": f"{PODS}/kubepods-burstable-pod{POD.replace('-', '_')}.slice/cri-containerd-{CONTAINER}.scope"},
            JobKey(Scheduler.KUBERNETES, POD),
            Source.CGROUP,
        ),
        ({"freezer": f"docker/{CONTAINER}"}, JobKey(Scheduler.DOCKER, CONTAINER), Source.CGROUP),
        ({"systemd": f"system.slice/docker-{CONTAINER}.scope"}, JobKey(Scheduler.DOCKER, CONTAINER), Source.CGROUP),
        (
            {"systemd": "user.slice/user-65534.slice/session-4294900.scope"},
            JobKey(Scheduler.SESSION, "4294900"),
            Source.SESSION,
        ),
        ({"systemd": "system.slice/trainer.service"}, JobKey(Scheduler.UNIT, "trainer.service"), Source.UNIT),
    ],
    ids=["slurm", "kubepods", "docker", "docker by systemd", "session", "unit"],
)
def test_a_real_process_is_of_the_job_whose_folder_it_is_in(
    paths: Mapping[str, str], key: JobKey, source: Source
) -> None:
    with child_in(paths) as pid:
        one = found(pid)
    assert (key_of(one), one.source, one.user, one.note) == (key, source, "nobody", None)


@as_root
def test_a_process_in_the_folders_of_two_jobs_is_of_neither() -> None:
    paths = {"freezer": "slurm_test/uid_65534/job_4294900012", "memory": "slurm_test/uid_65534/job_4294900013"}
    with child_in(paths, {"SLURM_JOB_ID": "4294900012"}) as pid:
        one = found(pid)
    assert key_of(one) == JobKey(Scheduler.USER, "nobody")
    assert one.note == "its cgroups name slurm 4294900012 and slurm 4294900013"


@as_root
def test_from_a_cgroup_namespace_a_neighbours_job_is_not_guessed() -> None:
    ours, theirs = "slurm_test/uid_0/job_4294900014", "slurm_test/uid_0/job_4294900015"
    with folder("freezer", ours) as own, child_in({"freezer": theirs}) as pid:
        script = f"echo $$ > {own}/cgroup.procs; exec unshare --cgroup cat /proc/self/cgroup /proc/{pid}/cgroup"
        done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"no cgroup namespace here: {done.stderr.strip()}")
    lines = [line for line in done.stdout.splitlines() if ":freezer:" in line]
    assert [line.partition(":freezer:")[2] for line in lines] == ["/", "/../job_4294900015"]
    assert all(cgroup.parse(f"{line}\n").job is None for line in lines)
