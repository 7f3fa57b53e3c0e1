"""/proc/PID/cgroup: literal texts of every form, and what must never be read from them."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from npu_watchd.model.jobs import Scheduler
from npu_watchd.parsers import cgroup
from npu_watchd.parsers.cgroup import CgroupIdentity
from npu_watchd.parsers.lines import ParseError
from tests.parsers.subset import excess
from tests.parsers.texts import refused

HEX = "9ec39b91f3d70e1beff50a308f77067065ea6be0d91a3378375056cd4422cf3d"
OTHER = "4f797c539e6c745de61a93ca3ff892358ecbcaccd8414d5db545c38428142970"
UID = "30556cce-0f92-11eb-b36d-02623cf324c8"
UID_ = UID.replace("-", "_")
SLURM, KUBERNETES = Scheduler.SLURM, Scheduler.KUBERNETES
POD = CgroupIdentity(scheduler=KUBERNETES, job=UID, pod=UID)

SLURM_V1 = """\
9:name=systemd:/user.slice/user-0.slice/session-4.scope
8:pids:/user.slice/user-0.slice/session-4.scope
7:blkio:/
6:freezer:/slurm_node7/uid_1000/job_4/step_batch
5:devices:/slurm_node7/uid_1000/job_4/step_batch
4:memory:/slurm_node7/uid_1000/job_4/step_batch/task_0
3:cpuset:/slurm_node7/uid_1000/job_4/step_batch
0::/
"""
ALL = {
    "slurm v1": (
        SLURM_V1,
        CgroupIdentity(scheduler=SLURM, job="4", step="batch", session="4", uid=0, job_uid=1000),
    ),
    "slurm v1, interactive": (
        "10:devices:/slurm/uid_2101171/job_280678/step_interactive/task_0\n",
        CgroupIdentity(scheduler=SLURM, job="280678", step="interactive", job_uid=2101171),
    ),
    "slurm v1, the job's own folder": (
        "4:memory:/slurm/uid_0/job_12\n",
        CgroupIdentity(scheduler=SLURM, job="12", job_uid=0),
    ),
    "slurm v2": (
        "0::/system.slice/slurmstepd.scope/job_1392969/step_0/user/task_0\n",
        CgroupIdentity(scheduler=SLURM, job="1392969", step="0"),
    ),
    "slurm v2, several slurmd": (
        "0::/system.slice/node7_slurmstepd.scope/job_42/step_extern/user\n",
        CgroupIdentity(scheduler=SLURM, job="42", step="extern"),
    ),
    "slurm's own keeper": (
        "0::/system.slice/slurmstepd.scope/system\n",
        CgroupIdentity(unit="slurmstepd.scope"),
    ),
    "docker in a slurm job": (
        f"0::/system.slice/slurmstepd.scope/job_42/step_0/user/task_0/docker/{HEX}\n",
        CgroupIdentity(scheduler=SLURM, job="42", step="0", container=HEX, runtime=Scheduler.DOCKER),
    ),
    "slurmd in a pod": (
        f"0::/kubepods.slice/kubepods-pod{UID_}.slice/cri-containerd-{HEX}.scope"
        "/system.slice/slurmstepd.scope/job_7/step_1/user/task_0\n",
        CgroupIdentity(SLURM, "7", "1", pod=UID, container=HEX, runtime=Scheduler.CONTAINERD),
    ),
    "a pod in a slurm job": (
        f"0::/system.slice/slurmstepd.scope/job_42/step_0/user/task_0/kubepods/besteffort/pod{UID}/{HEX}\n",
        CgroupIdentity(SLURM, "42", "0", pod=UID, container=HEX),
    ),
    "pod, systemd, best effort": (
        f"0::/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod{UID_}.slice/cri-containerd-{HEX}.scope\n",
        replace(POD, container=HEX, runtime=Scheduler.CONTAINERD),
    ),
    "pod, systemd, burstable, docker, v1": (
        "11:devices:/kubepods.slice/kubepods-burstable.slice/"
        f"kubepods-burstable-pod{UID_}.slice/docker-{HEX}.scope\n"
        "1:name=systemd:/kubepods.slice/kubepods-burstable.slice/"
        f"kubepods-burstable-pod{UID_}.slice/docker-{HEX}.scope\n",
        replace(POD, container=HEX, runtime=Scheduler.DOCKER),
    ),
    "pod, systemd, guaranteed": (
        f"0::/kubepods.slice/kubepods-pod{UID_}.slice/crio-{HEX}.scope\n",
        replace(POD, container=HEX, runtime=Scheduler.CRIO),
    ),
    "pod, crio's helper": (
        f"0::/kubepods.slice/kubepods-pod{UID_}.slice/crio-conmon-{HEX}.scope\n",
        POD,
    ),
    "pod, crio's inner group": (
        f"0::/kubepods.slice/kubepods-pod{UID_}.slice/crio-{HEX}.scope/container\n",
        replace(POD, container=HEX, runtime=Scheduler.CRIO),
    ),
    "pod, kind's slice": (
        f"0::/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod{UID_}.slice/cri-containerd-{HEX}.scope\n",
        replace(POD, container=HEX, runtime=Scheduler.CONTAINERD),
    ),
    "pod, cgroupfs": (
        f"4:memory:/kubepods/burstable/pod{UID}/{HEX}\n",
        replace(POD, container=HEX),
    ),
    "pod, cgroupfs, guaranteed": (f"4:memory:/kubepods/pod{UID}/{HEX}\n", replace(POD, container=HEX)),
    "pod of a file, its uid a hash": (
        "4:memory:/kubepods/besteffort/pod7fb9a1b2c3d4e5f60718293a4b5c6d7e/" + HEX + "\n",
        CgroupIdentity(
            KUBERNETES, "7fb9a1b2c3d4e5f60718293a4b5c6d7e", pod="7fb9a1b2c3d4e5f60718293a4b5c6d7e", container=HEX
        ),
    ),
    "pod, runc's own form": (
        f"9:cpuset:/kubepods-besteffort-pod{UID_}.slice:cri-containerd:{HEX}\n",
        replace(POD, container=HEX, runtime=Scheduler.CONTAINERD),
    ),
    "pod in kind, in docker": (
        f"0::/docker/{OTHER}/kubelet/kubepods/besteffort/pod{UID}/{HEX}\n",
        replace(POD, container=HEX),
    ),
    "pod that is gone": (
        f"0::/kubepods.slice/kubepods-pod{UID_}.slice/cri-containerd-{HEX}.scope (deleted)\n",
        replace(POD, container=HEX, runtime=Scheduler.CONTAINERD),
    ),
    "pod seen from a namespace": (
        f"0::/../../kubepods-pod{UID_}.slice/cri-containerd-{HEX}.scope\n",
        replace(POD, container=HEX, runtime=Scheduler.CONTAINERD),
    ),
    "docker, systemd": (
        f"10:devices:/system.slice/docker-{HEX}.scope\n9:blkio:/system.slice/docker-{HEX}.scope\n",
        CgroupIdentity(container=HEX, runtime=Scheduler.DOCKER),
    ),
    "docker, cgroupfs": (f"0::/docker/{HEX}\n", CgroupIdentity(container=HEX, runtime=Scheduler.DOCKER)),
    "docker in docker": (
        f"0::/docker/{OTHER}/docker/{HEX}\n",
        CgroupIdentity(container=HEX, runtime=Scheduler.DOCKER),
    ),
    "isulad": (f"4:memory:/isulad/{HEX}\n", CgroupIdentity(container=HEX, runtime=Scheduler.ISULAD)),
    "isulad, systemd": (
        f"0::/system.slice/isulad-{HEX}.scope\n",
        CgroupIdentity(container=HEX, runtime=Scheduler.ISULAD),
    ),
    "podman, root": (
        f"0::/machine.slice/libpod-{HEX}.scope/container\n",
        CgroupIdentity(container=HEX, runtime=Scheduler.PODMAN),
    ),
    "podman, in a service": (
        f"0::/system.slice/nginx.service/libpod-payload-{HEX}\n",
        CgroupIdentity(container=HEX, runtime=Scheduler.PODMAN, unit="nginx.service"),
    ),
    "podman of a user": (
        f"0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-{HEX}.scope/container\n",
        CgroupIdentity(
            container=HEX,
            runtime=Scheduler.PODMAN,
            unit=f"user@1000.service/libpod-{HEX}.scope",
            uid=1000,
            delegated=True,
        ),
    ),
    "a container without a runtime": (f"9:perf_event:/{OTHER}\n", CgroupIdentity(container=OTHER)),
    "lsf": (
        "4:memory:/lsf/cluster1/job.14512.25821.1553269519\n",
        CgroupIdentity(scheduler=Scheduler.LSF, job="14512"),
    ),
    "pbs, v1": (
        "4:memory:/pbs_jobs.service/jobid/2404743.opbs\n",
        CgroupIdentity(scheduler=Scheduler.PBS, job="2404743.opbs"),
    ),
    "pbs, v2, of an array": (
        "0::/pbs_jobs.service/jobs/12345[2].pbs/child\n",
        CgroupIdentity(scheduler=Scheduler.PBS, job="12345[2].pbs"),
    ),
    "session": (
        "1:name=systemd:/user.slice/user-1000.slice/session-10.scope\n0::/user.slice/user-1000.slice/session-10.scope\n",
        CgroupIdentity(session="10", uid=1000),
    ),
    "a user's service": (
        "0::/user.slice/user-1000.slice/user@1000.service/app.slice/jupyter.service\n",
        CgroupIdentity(unit="user@1000.service/jupyter.service", uid=1000, delegated=True),
    ),
    "a service": ("0::/system.slice/npu-exporter.service\n", CgroupIdentity(unit="npu-exporter.service")),
    "a service of a template": (
        "0::/system.slice/system-trainer.slice/trainer@3.service\n",
        CgroupIdentity(unit="trainer@3.service"),
    ),
    "the root": ("1:name=systemd:/\n0::/\n", CgroupIdentity()),
    "a namespace": ("0::/\n", CgroupIdentity()),
}


@pytest.mark.parametrize(("text", "expected"), ALL.values(), ids=ALL)
def test_a_real_form_is_read(text: str, expected: CgroupIdentity) -> None:
    assert cgroup.parse(text) == expected


@pytest.mark.parametrize(
    "path",
    [
        "user.slice/user-1000.slice/user@1000.service/app.slice/slurmstepd.scope/job_4711/step_0/user/task_0",
        "user.slice/user-1000.slice/user@1000.service/slurm/uid_1001/job_4711/step_0",
        f"user.slice/user-1000.slice/user@1000.service/kubepods/pod{UID}/{HEX}",
        "user.slice/user-1000.slice/user@1000.service/pbs_jobs.service/jobs/4711.pbs",
        "lxc.payload.mine/system.slice/slurmstepd.scope/job_4711/step_0",
        "system.slice/mine.service/slurmstepd.scope/job_4711/step_0",
    ],
)
def test_a_group_that_a_user_can_make_is_no_schedulers_job(path: str) -> None:
    found = cgroup.parse(f"0::/{path}\n")
    assert (found.scheduler, found.job, found.pod) == (None, None, None)


@pytest.mark.parametrize("name", ["\x1b[31mred.service", "a b.service", "x" * 200 + ".service", '";drop.scope'])
def test_a_folder_that_is_named_as_no_unit_can_be_is_none(name: str) -> None:
    manager = "user.slice/user-1000.slice/user@1000.service"
    assert cgroup.parse(f"0::/{manager}/app.slice/{name}\n").unit == "user@1000.service"


def test_a_unit_with_an_escaped_dash_keeps_its_name() -> None:
    found = cgroup.parse("0::/system.slice/system-my\\x2dtrainer.slice/my\\x2dtrainer@1.service\n")
    assert found.unit == "my\\x2dtrainer@1.service"


@pytest.mark.parametrize(
    "path",
    [
        "system.slice/slurmstepd.scope/job_4711x/step_0",
        "system.slice/slurmstepd.scope/job_",
        "system.slice/slurmstepd.scope/job_47110000000",
        "system.slice/slurmstepd.scope/job_\u0664\u0667",
        "system.slice/slurmstepd.scope.old/job_4711",
        "notslurm/uid_0/job_4711",
        "kubepods/besteffort/pod30556cce",
    ],
)
def test_what_is_nearly_a_job_is_none(path: str) -> None:
    assert cgroup.parse(f"0::/{path}\n").job is None


def test_two_jobs_in_one_file_are_no_job() -> None:
    found = cgroup.parse("6:freezer:/slurm/uid_0/job_4/step_0\n4:memory:/slurm/uid_0/job_5/step_0\n")
    assert (found.scheduler, found.job, found.conflict) == (None, None, "its cgroups name slurm 4 and slurm 5")


def test_two_steps_of_one_job_are_no_step() -> None:
    found = cgroup.parse("6:freezer:/slurm/uid_0/job_4/step_0\n4:memory:/slurm/uid_0/job_4/step_1\n")
    assert (found.job, found.step) == ("4", None)


@pytest.mark.parametrize("text", ["", "\n", "0::/system.slice/slurmstepd.scope/job_47"])
def test_a_text_without_a_whole_line_is_refused(text: str) -> None:
    assert str(refused(cgroup.parse, text)).startswith("line 1: no whole line")


@pytest.mark.parametrize("name", ALL)
def test_every_cut_is_an_error_or_a_subset(name: str) -> None:
    text, whole = ALL[name]
    for end in range(len(text)):
        with suppress(ParseError):
            cut = cgroup.parse(text[:end])
            assert excess(cut, whole) is None, text[:end]


job_numbers = st.integers(1, 2**32 - 1)


@given(job=job_numbers, step=st.integers(0, 10**6), end=st.floats(0, 1))
@settings(deadline=None, derandomize=True)
def test_a_cut_text_never_names_another_job(job: int, step: int, end: float) -> None:
    v1 = "".join(
        f"{number}:{controller}:/slurm_n/uid_1/job_{job}/step_{step}/task_0\n"
        for number, controller in ((9, "freezer"), (8, "memory"), (3, "cpuset"))
    )
    for text in (v1, f"0::/system.slice/slurmstepd.scope/job_{job}/step_{step}/user/task_0\n"):
        with suppress(ParseError):
            found = cgroup.parse(text[: int(len(text) * end)])
            assert (found.job, found.step) == (str(job), str(step))


PARTS = ["/", "slurm", "uid_1", "job_4", "step_0", "slurmstepd.scope", "kubepods", f"pod{UID}", HEX, "docker-", ":"]
PARTS += [
    "user.slice",
    "user-1000.slice",
    "user@1000.service",
    "session-1.scope",
    "..",
    " (deleted)",
    "\n",
    "0::/",
    "٤",
]


@given(parts=st.lists(st.sampled_from(PARTS), max_size=25))
@settings(deadline=None, derandomize=True, max_examples=300)
def test_their_own_words_in_any_order_raise_nothing_else(parts: list[str]) -> None:
    with suppress(ParseError):
        cgroup.parse("0::/" + "".join(parts) + "\n")


@given(raw=st.binary(max_size=300))
@settings(deadline=None, derandomize=True)
def test_bytes_raise_nothing_else(raw: bytes) -> None:
    with suppress(ParseError):
        cgroup.parse(raw.decode("utf-8", "replace"))


HOSTILE = {
    "dashes": "0::/" + "-" * 262144 + "kubepods\n",
    "scopes": "0::/" + "slurmstepd.scope/" * 16384 + "\n",
    "underscores": "0::/" + "_" * 262144 + "slurmstepd.scope\n",
    "slices": "0::" + "/a.slice" * 32768 + "/x\n",
    "digits": "0::/docker/" + "a" * 262144 + "\n",
    "upwards": "0::" + "/.." * 87381 + "x\n",
    "lines": "1:a:/slurm/uid_1/job_1\n" * 11397,
}


@pytest.mark.timeout(20)
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_quarter_of_a_mebibyte_of_malice_is_read_or_refused_in_seconds(text: str) -> None:
    with suppress(ParseError):
        cgroup.parse(text)
