"""Who is believed when cgroup, mapping and environment disagree."""

from __future__ import annotations

import pytest

from npu_watchd.model.jobs import JobKey, ProcessKey, Scheduler, Source
from npu_watchd.parsers import cgroup, environ
from npu_watchd.sources.claims import Claim, ProcessFacts, believed

HEX = "9ec39b91f3d70e1beff50a308f77067065ea6be0d91a3378375056cd4422cf3d"
UID = "30556cce-0f92-11eb-b36d-02623cf324c8"

SLURM = "/system.slice/slurmstepd.scope/job_4711/step_0/user/task_0"
POD = f"/kubepods/burstable/pod{UID}/{HEX}"
DOCKER = f"/system.slice/docker-{HEX}.scope"
SESSION = "/user.slice/user-1000.slice/session-10.scope"
SERVICE = "/system.slice/npu-exporter.service"
SLURMD = "/system.slice/slurmd.service"
OWN = "/user.slice/user-1000.slice/user@1000.service/app.slice/jupyter.service"
PODMAN = f"/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-{HEX}.scope/container"


def claim(path: str | None, said: str = "", mapped: tuple[str, ...] = (), *, slurm_places: bool = False) -> Claim:
    return believed(
        ProcessFacts(
            ProcessKey(4242, 5000),
            cgroup=None if path is None else cgroup.parse(f"0::{path}\n"),
            environ=environ.parse("".join(entry + "\0" for entry in said.split())),
            uid=1000,
            user="alice",
        ),
        mapped,
        slurm_places,
    )


@pytest.mark.parametrize(
    ("path", "said", "mapped", "key", "source"),
    [
        (SLURM, "", (), JobKey(Scheduler.SLURM, "4711"), Source.CGROUP),
        (SLURM, "SLURM_JOB_ID=999", (), JobKey(Scheduler.SLURM, "4711"), Source.CGROUP),
        (POD, "KUBERNETES_SERVICE_HOST=1 HOSTNAME=a-b", (), JobKey(Scheduler.KUBERNETES, UID), Source.CGROUP),
        (DOCKER, "", (), JobKey(Scheduler.DOCKER, HEX), Source.CGROUP),
        (DOCKER, "SLURM_JOB_ID=999", (), JobKey(Scheduler.DOCKER, HEX), Source.CGROUP),
        (SLURMD, "SLURM_JOB_ID=12", (), JobKey(Scheduler.SLURM, "12"), Source.ENVIRON),
        ("/", "PBS_JOBID=12.srv", (), JobKey(Scheduler.PBS, "12.srv"), Source.ENVIRON),
        (None, "SLURM_JOB_ID=12", (), JobKey(Scheduler.SLURM, "12"), Source.ENVIRON),
        (SESSION, "", (), JobKey(Scheduler.SESSION, "10"), Source.SESSION),
        (SERVICE, "", (), JobKey(Scheduler.UNIT, "npu-exporter.service"), Source.UNIT),
        (OWN, "", (), JobKey(Scheduler.UNIT, "user@1000.service/jupyter.service"), Source.UNIT),
        (PODMAN, "", (), JobKey(Scheduler.UNIT, f"user@1000.service/libpod-{HEX}.scope"), Source.UNIT),
        (SLURMD, "", (), JobKey(Scheduler.USER, "alice"), Source.USER),
        ("/", "", (), JobKey(Scheduler.USER, "alice"), Source.USER),
        (None, "", (), JobKey(Scheduler.USER, "alice"), Source.USER),
        # The mapping of the site.
        ("/", "", ("4711",), JobKey(Scheduler.MAPPING, "4711"), Source.MAPPING),
        (DOCKER, "", ("4711",), JobKey(Scheduler.MAPPING, "4711"), Source.MAPPING),
        (SLURM, "", ("4711",), JobKey(Scheduler.MAPPING, "4711"), Source.MAPPING),
        (SLURM, "", ("12",), JobKey(Scheduler.SLURM, "4711"), Source.CGROUP),
        (SLURM, "", ("12", "4711"), JobKey(Scheduler.MAPPING, "4711"), Source.MAPPING),
        (SESSION, "", ("12",), JobKey(Scheduler.SESSION, "10"), Source.SESSION),
        (SESSION, "SLURM_JOB_ID=12", ("12",), JobKey(Scheduler.MAPPING, "12"), Source.MAPPING),
        (SERVICE, "", ("12",), JobKey(Scheduler.UNIT, "npu-exporter.service"), Source.UNIT),
        ("/", "", ("12", "13"), JobKey(Scheduler.USER, "alice"), Source.USER),
        ("/", "PBS_JOBID=12.srv", ("12", "13"), JobKey(Scheduler.MAPPING, "12"), Source.MAPPING),
        ("/", "PBS_JOBID=12[1].srv", ("12[1]", "12[2]"), JobKey(Scheduler.MAPPING, "12[1]"), Source.MAPPING),
        ("/", "PBS_JOBID=12[2].srv", ("12[1]",), JobKey(Scheduler.USER, "alice"), Source.USER),
        ("/", "PBS_JOBID=12.srv", ("12.one", "12.two"), JobKey(Scheduler.USER, "alice"), Source.USER),
        ("/", "SLURM_JOB_ID=99", ("12",), JobKey(Scheduler.USER, "alice"), Source.USER),
    ],
)
def test_whose_word_counts(path: str | None, said: str, mapped: tuple[str, ...], key: JobKey, source: Source) -> None:
    found = claim(path, said, mapped)
    assert found.job is not None
    assert (found.job.key, found.source) == (key, source)


@pytest.mark.parametrize(
    ("path", "said", "mapped", "note"),
    [
        (
            SLURM,
            "SLURM_JOB_ID=999",
            (),
            "its environment says slurm 999, which it can write itself; the cgroup says slurm 4711",
        ),
        (POD, "KUBERNETES_SERVICE_HOST=1 HOSTNAME=other", (), None),
        (SLURM, "SLURM_JOB_ID=4711", (), None),
        (
            POD,
            "KUBERNETES_SERVICE_HOST=1 POD_UID=00000000-0f92-11eb-b36d-02623cf324c8",
            (),
            "its environment says kubernetes 00000000-0f92-11eb-b36d-02623cf324c8, which it can write itself; "
            f"the cgroup says kubernetes {UID}",
        ),
        (
            SESSION,
            "SLURM_JOB_ID=12 SLURM_JOB_UID=1001",
            (),
            "its environment says slurm 12 of uid 1001, but it is a process of uid 1000: not believed",
        ),
        ("/", "SLURM_JOB_ID=99", ("12",), "its environment says slurm 99, the mapping says 12: neither is used"),
        (SLURM, "", ("12",), "the mapping says 12, the cgroup says slurm 4711"),
        ("/", "SLURM_JOB_ID=1 SLURM_JOB_ID=2", (), "not used, since no such value can be meant: SLURM_JOB_ID"),
    ],
)
def test_who_says_otherwise_is_noted(path: str, said: str, mapped: tuple[str, ...], note: str | None) -> None:
    assert claim(path, said, mapped).note == note


def test_a_job_of_another_user_is_not_believed() -> None:
    found = claim(SESSION, "SLURM_JOB_ID=12 SLURM_JOB_UID=1001")
    assert found.job is not None
    assert found.job.key == JobKey(Scheduler.SESSION, "10")


def test_where_slurm_makes_cgroups_a_session_that_says_it_is_a_job_is_not_believed() -> None:
    found = claim(SESSION, "SLURM_JOB_ID=12 SLURM_JOB_UID=1000", slurm_places=True)
    assert found.job is not None
    assert found.job.key == JobKey(Scheduler.SESSION, "10")
    assert "not believed" in (found.note or "")


def test_names_and_steps_come_from_an_environment_that_agrees() -> None:
    agreeing = claim(SLURM, "SLURM_JOB_ID=4711 SLURM_JOB_NAME=llama").job
    lying = claim(SLURM, "SLURM_JOB_ID=999 SLURM_JOB_NAME=llama").job
    pod = claim(POD, "KUBERNETES_SERVICE_HOST=1 HOSTNAME=llama-worker-0").job
    assert agreeing is not None
    assert lying is not None
    assert pod is not None
    assert (agreeing.name, agreeing.step) == ("llama", "0")
    assert (lying.name, lying.step) == (None, "0")
    assert (pod.name, pod.pod, pod.container) == ("llama-worker-0", UID, HEX)


def test_a_process_of_which_nothing_is_known_is_no_job() -> None:
    assert believed(ProcessFacts(ProcessKey(1, 1))) == Claim()
