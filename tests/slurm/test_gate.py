"""The scripts of deploy/slurm: what they exit with, and what a real Slurm makes of it."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.fake_tool import fake_tool
from tests.e2e.harness import command, running
from tests.e2e.small_node import HURRIED, with_errors
from tests.slurm import cluster
from tests.slurm.cluster import Slurm
from tests.slurm.gates import SHIPPED, Gate, gate

SCRIPTS = ("prolog.sh", "epilog.sh", "healthcheck.sh")
DRAINED = frozenset({"IDLE", "DRAIN"})


def run(script: Path, env: dict[str, str] | None = None) -> int:
    """Its exit code."""
    done = subprocess.run(
        [script], env={"PATH": os.environ["PATH"], **(env or {})}, timeout=20, check=False, capture_output=True
    )
    assert done.stdout == done.stderr == b"", "slurmd would put it before users"
    return done.returncode


@pytest.mark.parametrize(
    ("name", "settings", "codes"),
    [
        ("prolog.sh", {}, {0: 0, 2: 1, 3: 0, 1: 0, 127: 0}),
        ("prolog.sh", {"UNKNOWN": "stop"}, {0: 0, 2: 1, 3: 1, 1: 1, 127: 1}),
        ("epilog.sh", {}, {0: 0, 2: 1, 3: 0, 1: 0, 127: 0}),
    ],
)
def test_each_answer_of_the_gate_has_its_exit_code(
    tmp_path: Path, name: str, settings: dict[str, str], codes: dict[int, int]
) -> None:
    made = gate(tmp_path)
    script = made.script(name, **settings)
    found = {}
    for code in codes:
        made.says(code)
        found[code] = run(script)
    assert found == codes


def test_a_gate_that_is_not_there_stops_no_job(tmp_path: Path) -> None:
    for name in ("prolog.sh", "epilog.sh"):
        assert run(gate(tmp_path).script(name, PROGRAM="/nowhere/npu-watchd")) == 0


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_shell_of_debian_reads_it_and_it_can_be_executed(name: str) -> None:
    assert subprocess.run(["sh", "-n", SHIPPED / name], check=False).returncode == 0
    assert os.access(SHIPPED / name, os.X_OK)


@pytest.mark.parametrize("name", ["prolog.sh", "epilog.sh"])
def test_no_command_of_slurm_is_run_where_slurm_forbids_it(name: str) -> None:
    lines = [line for line in (SHIPPED / name).read_text().splitlines() if not line.startswith("#")]
    assert not [line for line in lines for word in ("scontrol", "squeue", "sinfo", "sacct") if word in line]


# With Slurm


@pytest.fixture(scope="module")
def gated() -> Iterator[tuple[Slurm, Gate]]:
    """Its Prolog is the gate."""
    reason = cluster.unavailable("linuxproc")
    if reason is not None:
        pytest.skip(reason)
    with tempfile.TemporaryDirectory(prefix="npu-watchd-gate-") as name:
        top = Path(name)
        top.chmod(0o755)
        made = gate(top / "gate")
        (top / "slurm").mkdir()
        prolog = str(made.script("prolog.sh"))
        with cluster.running(top / "slurm", "linuxproc", Prolog=prolog, PrologFlags="Alloc") as slurm:
            yield slurm, made


@pytest.fixture
def site(gated: tuple[Slurm, Gate]) -> tuple[Slurm, Gate]:
    """Whatever the test before has left."""
    slurm, made = gated
    gate(made.folder)
    slurm.scontrol("update", f"nodename={slurm.node}", "state=resume")
    slurm.await_idle()
    return slurm, made


def test_a_job_starts_on_a_node_of_which_nothing_is_known(site: tuple[Slurm, Gate]) -> None:
    slurm, made = site
    made.says(3, "unknown: no daemon")
    slurm.wait(slurm.submit("true", user="nobody"), "COMPLETED")
    assert slurm.node_state() == {"IDLE"}


def test_the_health_check_drains_once_and_touches_no_drain_of_somebody_else(site: tuple[Slurm, Gate]) -> None:
    slurm, made = site
    script = made.script("healthcheck.sh", SCONTROL=str(slurm.put_client("scontrol", made.folder)))
    env = {"SLURMD_NODENAME": slurm.node}
    made.says(3)
    assert run(script, env) == 0
    assert slurm.node_state() == {"IDLE"}
    made.says(2)
    assert run(script, env) == 0
    assert slurm.node_state() == DRAINED
    ours = str(slurm.reason())
    assert ours.startswith("npu-watchd check: device 3: 2 uncorrectable errors [root@")
    made.says(2, "device 4: another")
    assert run(script, env) == 0
    assert slurm.reason() == ours
    made.says(0, "healthy")
    assert run(script, env) == 0
    assert slurm.node_state() == DRAINED, "a person resumes it"


def test_the_daemons_own_verdict_stops_a_real_job_until_a_person_releases_the_device(
    site: tuple[Slurm, Gate], tmp_path: Path
) -> None:
    slurm, made = site
    tool = fake_tool(tmp_path)
    tool.write_config(HURRIED)
    tool.shows(with_errors(double_bit=2))
    program = f"env PYTHONPATH={Path(__file__).parents[2]} {sys.executable} -m npu_watchd"
    started = slurm.folder / "jobs" / "real"
    with running(tool.config) as daemon:
        daemon.shows(lambda page: page.value("npu_watchd_node_verdict", state="quarantine") == 1, "a quarantine")
        made.becomes(program, "--config", str(tool.config))
        job = slurm.submit(f"touch {started}", user="nobody")
        slurm.until(lambda: "DRAIN" in slurm.node_state(), "Slurm drains the node")
        assert str(slurm.reason()).startswith("Prolog error [")
        held = "launch_failed_requeued_held"
        slurm.until(lambda: held in slurm.scontrol("show", "job", str(job)).out, "the job is held")
        assert slurm.state(job) == "PENDING"
        assert not started.exists()
        released = command("release", "device", "1", "--force", "--reason", "reset", "--config", tool.config)
        assert released.code == 0, released
        daemon.shows(lambda page: page.value("npu_watchd_node_verdict", state="quarantine") == 0, "it is over")
        slurm.until(lambda: slurm.node_state() == DRAINED, "nothing runs there any more")
        assert slurm.scontrol("update", f"nodename={slurm.node}", "state=resume").code == 0
        assert slurm.scontrol("release", str(job)).code == 0
        # By itself it waits two minutes more.
        assert slurm.scontrol("update", f"jobid={job}", "starttime=now").code == 0
        slurm.wait(job, "COMPLETED")
        assert started.exists()


def test_an_epilog_drains_the_node_behind_the_job_that_met_the_fault(site: tuple[Slurm, Gate]) -> None:
    slurm, made = site
    slurm.configure(Epilog=str(made.script("epilog.sh")))
    job = slurm.submit("exec sleep 60", user="nobody")
    slurm.wait(job, "RUNNING")
    made.says(2)
    slurm.cancel(job)
    slurm.until(lambda: "DRAIN" in slurm.node_state(), "Slurm drains the node")
    assert str(slurm.reason()).startswith("Epilog error [")
