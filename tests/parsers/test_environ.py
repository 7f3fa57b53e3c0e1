"""/proc/PID/environ: which variables are kept, and which job they say."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from npu_watchd.model.jobs import JobKey, Scheduler
from npu_watchd.parsers import environ
from npu_watchd.parsers.environ import KNOWN, Environ

UID = "30556cce-0f92-11eb-b36d-02623cf324c8"


def of(*entries: str) -> Environ:
    return environ.parse("".join(entry + "\0" for entry in entries))


def test_only_what_we_know_is_kept() -> None:
    found = of("PATH=/bin", "AWS_SECRET_ACCESS_KEY=hush", "SLURM_JOB_ID=4711", "RANK_ID=3", "HCCL_CONNECT_TIMEOUT=600")
    assert found == Environ({"SLURM_JOB_ID": "4711", "RANK_ID": "3", "HCCL_CONNECT_TIMEOUT": "600"})


@pytest.mark.parametrize(
    ("entries", "claim"),
    [
        (["SLURM_JOB_ID=4711", "SLURM_JOBID=4711"], JobKey(Scheduler.SLURM, "4711")),
        (["SLURM_JOBID=4711"], JobKey(Scheduler.SLURM, "4711")),
        (["LSB_JOBID=12", "LSB_JOBINDEX=0"], JobKey(Scheduler.LSF, "12")),
        (["LSB_JOBID=12", "LSB_JOBINDEX=3"], JobKey(Scheduler.LSF, "12[3]")),
        (["PBS_JOBID=2404743.opbs"], JobKey(Scheduler.PBS, "2404743.opbs")),
        (["PBS_JOBID=12345[2].pbs"], JobKey(Scheduler.PBS, "12345[2].pbs")),
        (
            ["KUBERNETES_SERVICE_HOST=10.96.0.1", "HOSTNAME=train-7d9-x2x", f"POD_UID={UID}"],
            JobKey(Scheduler.KUBERNETES, UID),
        ),
        (
            ["KUBERNETES_SERVICE_HOST=10.96.0.1", "HOSTNAME=train-7d9-x2x"],
            JobKey(Scheduler.KUBERNETES, "train-7d9-x2x"),
        ),
        (
            [
                "KUBERNETES_SERVICE_HOST=10.96.0.1",
                "HOSTNAME=llama-worker-0",
                "VC_TASK_INDEX=0",
                "VC_WORKER_HOSTS=llama-worker-0.llama,llama-worker-1.llama",
                "VC_MASTER_HOSTS=llama-master-0.llama",
            ],
            JobKey(Scheduler.VOLCANO, "llama"),
        ),
        (["VC_A_HOSTS=a-0.one", "VC_B_HOSTS=b-0.two"], None),
        (["HOSTNAME=laptop"], None),
        (["SLURM_JOB_ID=4711; rm -rf /"], None),
        (["SLURM_JOB_ID="], None),
        (["SLURM_JOB_ID=\u0664\u0667"], None),
        (["PBS_JOBID=../../etc"], None),
        (["KUBERNETES_SERVICE_HOST=1", "HOSTNAME=no such name"], None),
    ],
)
def test_the_job_that_it_says(entries: list[str], claim: JobKey | None) -> None:
    assert of(*entries).claim == claim


def test_a_variable_that_is_set_twice_is_neither() -> None:
    found = of("SLURM_JOB_ID=1", "SLURM_JOB_ID=2")
    assert (found.variables, found.odd, found.claim) == ({}, ("SLURM_JOB_ID",), None)
    assert of("SLURM_JOB_ID=1", "SLURM_JOB_ID=1").variables == {"SLURM_JOB_ID": "1"}


@pytest.mark.parametrize("value", ["x" * 201, "a\nb", "a\x1b[31m", "a\ufffd"])
def test_a_value_that_nobody_should_see_is_left_out_and_not_cut(value: str) -> None:
    found = of(f"SLURM_JOB_NAME={value}")
    assert (found.variables, found.odd) == ({}, ("SLURM_JOB_NAME",))


def test_an_entry_without_its_end_is_left_out() -> None:
    assert environ.parse("RANK_ID=3\0SLURM_JOB_ID=47").variables == {"RANK_ID": "3"}


@given(
    values=st.dictionaries(st.sampled_from(sorted(KNOWN)), st.from_regex(r"[0-9]{1,10}", fullmatch=True), min_size=1),
    end=st.floats(0, 1),
)
@settings(deadline=None, derandomize=True)
def test_a_cut_environment_says_less_and_never_something_else(values: dict[str, str], end: float) -> None:
    text = "".join(f"{name}={value}\0" for name, value in values.items())
    cut = environ.parse(text[: int(len(text) * end)])
    assert cut.variables.items() <= values.items()


@given(raw=st.binary(max_size=300))
@settings(deadline=None, derandomize=True)
def test_bytes_never_raise(raw: bytes) -> None:
    found = environ.parse(raw.decode("utf-8", "replace"))
    assert set(found.variables) <= KNOWN
    assert found.claim is None or found.claim.id.isprintable()


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "text",
    ["SLURM_JOB_ID=1\0" * 140000, "=" * 2**21, "\0" * 2**21, "VC_" + "A_" * 2**20 + "HOSTS=x\0", "x" * 2**21],
    ids=["the same", "equals", "nuls", "volcano", "one word"],
)
def test_the_most_that_an_environment_can_be_is_read_in_seconds(text: str) -> None:
    environ.parse(text)
