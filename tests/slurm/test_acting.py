"""Drains of ours in a real Slurm: made, seen, given back, and never in anybody's way."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from npu_watchd.model.verdict import Order, State
from npu_watchd.sources.runner import ToolRunner
from tests.acting.desk import Desk, desk
from tests.acting.fleet import Fleet, fleet
from tests.e2e.fake_tool import fake_tool
from tests.e2e.harness import Daemon, command, launch, running, until
from tests.e2e.small_node import HURRIED, with_errors
from tests.slurm import cluster
from tests.slurm.cluster import Slurm


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    """No job runs on it: who follows its processes is all one."""
    reason = cluster.unavailable("linuxproc")
    if reason is not None:
        pytest.skip(reason)
    with cluster.running(tmp_path_factory.mktemp("slurm"), "linuxproc") as running:
        yield running


@pytest.fixture
def idle(slurm: Slurm) -> Slurm:
    """Whatever the test before has left."""
    slurm.scontrol("update", f"nodename={slurm.node}", "state=resume")
    slurm.until(lambda: slurm.node_state() == {"IDLE"}, "the node is idle")
    return slurm


@contextmanager
def node(slurm: Slurm, folder: Path, told: Fleet, *, dry_run: bool = False) -> Iterator[Desk]:
    more = (
        f'[tools]\nscontrol = "{slurm.put_client("scontrol", folder)}"\n[slurm]\nnode_name = "{slurm.node}"\n'
        f'[quarantine]\nact = ["slurm"]\nprometheus = "{told.url}"\ndry_run = {str(dry_run).lower()}\n'
    )
    runner = ToolRunner(clock=time.monotonic)
    try:
        with desk(runner.run, folder, more) as made:
            yield made
    finally:
        runner.close()


def drain(slurm: Slurm, reason: str) -> None:
    """As a person does it."""
    assert slurm.scontrol("update", f"nodename={slurm.node}", "state=drain", f"reason={reason}").code == 0


def test_a_quarantined_node_is_drained_with_its_reason_and_given_back_after_the_release(
    idle: Slurm, tmp_path: Path
) -> None:
    with fleet() as told, node(idle, tmp_path, told) as watched:
        watched.pass_s()
        assert idle.node_state() == {"IDLE"}
        assert told.asked == []
        watched.says(Order.QUARANTINE)
        watched.pass_s()
        assert idle.node_state() == {"IDLE", "DRAIN"}
        reason = idle.call("sinfo", "-R", "--noheader", "--format", "%E|%u|%N").out
        assert reason.startswith("npu-watchd: put into quarantine by alice: smoke [q20260921T")
        assert reason.endswith(f"]|root|{idle.node}\n")
        [line] = watched.journal("acted_hold")
        assert line.startswith("slurm: took the node out of use: IDLE+DRAIN, npu-watchd: put into quarantine by alice")
        assert line.endswith("(1 of 20 nodes are in quarantine, this one among them, and at most 2 may be)")
        before = idle.reason()
        watched.restart()
        watched.pass_s()
        assert idle.reason() == before, "after a restart nothing is done twice"
        assert watched.says(Order.RELEASE).accepted
        watched.pass_s()
        assert "DRAIN" not in idle.node_state()
        assert idle.reason() is None
        assert len(watched.journal("acted_hold", "acted_free", "action_blocked")) == 2
        assert watched.warden.tally()["slurm"].actions == {("free", "done"): 1}


def test_a_drain_of_somebody_else_survives_quarantine_and_release(idle: Slurm, tmp_path: Path) -> None:
    with fleet() as told, node(idle, tmp_path, told) as watched:
        drain(idle, "bad DIMM, alice")
        before = idle.reason()
        watched.says(Order.QUARANTINE)
        watched.pass_s()
        assert (watched.blocked("slurm"), watched.holder("slurm")) == ("held_by_other", "other")
        watched.pass_s()
        [line] = watched.journal("action_blocked")
        assert line.startswith("slurm: somebody else holds the node already, it is theirs: IDLE+DRAIN, bad DIMM, alice")
        watched.says(Order.RELEASE)
        watched.pass_s()
        watched.pass_s()
        assert idle.reason() == before
        assert told.asked == []


@pytest.mark.parametrize("edit", ["bad DIMM, alice", None])
def test_our_drain_that_somebody_made_theirs_survives_the_release(
    idle: Slurm, tmp_path: Path, edit: str | None
) -> None:
    with fleet() as told, node(idle, tmp_path, told) as watched:
        watched.says(Order.QUARANTINE)
        watched.pass_s()
        ours = str(idle.reason()).rpartition(" [")[0]
        drain(idle, edit or f"{ours}; alice: keep it")
        theirs = idle.reason()
        watched.pass_s()
        assert watched.blocked("slurm") == "held_by_other"
        watched.says(Order.RELEASE)
        watched.pass_s()
        assert "DRAIN" in idle.node_state()
        assert idle.reason() == theirs
        [line] = watched.journal("left_alone")
        assert line.startswith("slurm: the node was released, but somebody else holds it: IDLE+DRAIN")


def test_a_person_who_resumes_the_node_has_released_it(idle: Slurm, tmp_path: Path) -> None:
    with fleet() as told, node(idle, tmp_path, told) as watched:
        watched.says(Order.QUARANTINE)
        watched.pass_s()
        assert idle.scontrol("update", f"nodename={idle.node}", "state=resume").code == 0
        watched.pass_s()
        assert watched.state is not State.QUARANTINE
        [given_back] = watched.journal("given_back")
        assert "slurm: somebody gave the node back there while our mark q20260921T" in given_back
        [release] = watched.journal("decided_release")
        assert release.startswith("node: released, now on probation, by slurm: somebody gave the node back there")
        for _ in range(3):
            watched.pass_s()
        watched.restart()
        watched.pass_s()
        assert "DRAIN" not in idle.node_state()
        assert watched.blocked("slurm") is None
        assert len(watched.journal("acted_hold")) == 1
        watched.says(Order.QUARANTINE)
        watched.pass_s()
        assert "DRAIN" in idle.node_state(), "a new quarantine is a new reason"


def test_a_node_that_slurm_has_set_down_meanwhile_stays_down(idle: Slurm, tmp_path: Path) -> None:
    with fleet() as told, node(idle, tmp_path, told) as watched:
        watched.says(Order.QUARANTINE)
        watched.pass_s()
        assert idle.scontrol("update", f"nodename={idle.node}", "state=down", f"reason={idle.reason()}").code == 0
        watched.says(Order.RELEASE)
        watched.pass_s()
        assert "DOWN" in idle.node_state()


def test_a_dry_run_a_spent_budget_and_a_silent_one_drain_nothing(idle: Slurm, tmp_path: Path) -> None:
    with fleet() as told, node(idle, tmp_path, told, dry_run=True) as watched:
        watched.says(Order.QUARANTINE)
        watched.pass_s()
        assert watched.blocked("slurm") == "dry_run"
        told.out = 3
        watched.pass_s()
        assert watched.blocked("slurm") == "budget_spent"
        told.nodes = None
        watched.pass_s()
        assert watched.blocked("slurm") == "budget_unknown"
        watched.pass_s()
        assert idle.node_state() == {"IDLE"}
        assert [line.partition(" (")[0] for line in watched.journal("action_blocked")] == [
            "slurm: would take the node out of use",
            "slurm: the node stays in use: 3 of 20 nodes are in quarantine, this one among them, and at most 2 may be",
            f"slurm: nobody says how much of the fleet is out, so the node stays in use: {told.url[7:]}: "
            "it knows of no node; is the job npu-watchd scraped there, for the whole fleet?",
        ]
        assert watched.journal("acted_hold") == []


def test_a_name_that_slurm_does_not_know_is_told_with_the_cure(slurm: Slurm, tmp_path: Path) -> None:
    with fleet() as told, node(slurm, tmp_path, told) as watched:
        watched.configure(watched.more.replace(slurm.node, "node17"))
        watched.says(Order.QUARANTINE)
        watched.pass_s()
        assert watched.journal("action_blocked") == [
            "slurm: scontrol show, exit code 1: Node node17 not found; "
            "set [slurm] node_name to this node's name as `sinfo -N` has it"
        ]
        assert watched.blocked("slurm") == "unreachable"


def test_without_a_controller_it_waits_and_then_acts_on_what_the_verdict_is_by_then(
    idle: Slurm, tmp_path: Path
) -> None:
    with fleet() as told, node(idle, tmp_path, told) as watched:
        watched.says(Order.QUARANTINE)
        idle.order("stop", "slurmctld")
        idle.until(lambda: "DOWN" in idle.call("scontrol", "ping").out, "the controller is down")
        # By itself scontrol gives up after nine seconds.
        watched.configure(watched.more.replace("[slurm]\n", '[slurm]\ntimeout = "1s"\n'))
        watched.pass_s()
        assert watched.blocked("slurm") == "unreachable"
        idle.order("start", "slurmctld")
        idle.until(lambda: "is UP" in idle.call("scontrol", "ping").out, "the controller is up")
        watched.says(Order.RELEASE)
        watched.pass_s()
        assert "DRAIN" not in idle.node_state()
        assert watched.journal("acted_hold") == []


def decide(order: str, config: Path) -> int:
    return command(order, "node", "--reason", "a drill", "--config", config).code


KILLS = """#!/bin/sh
case "$*" in update*) if [ -e {folder}/kill-before ]; then kill -9 $PPID; exit 1; fi ;; esac
{real} "$@"
code=$?
case "$*" in update*) echo "$*" >> {folder}/done; if [ -e {folder}/kill-after ]; then kill -9 $PPID; fi ;; esac
exit $code
"""
"""An scontrol that ends the daemon just before it acts, or just after."""


def test_a_daemon_that_is_killed_around_its_action_converges_and_takes_a_resume_for_a_release(
    idle: Slurm, tmp_path: Path
) -> None:
    tool = fake_tool(tmp_path)
    tool.shows(with_errors(double_bit=2))
    script = tmp_path / "scontrol"
    script.write_text(KILLS.format(folder=tmp_path, real=idle.put_client("scontrol", tmp_path, "real")))
    script.chmod(0o755)
    with fleet() as told:
        more = f'[slurm]\nnode_name = "{idle.node}"\n[quarantine]\nact = ["slurm"]\nprometheus = "{told.url}"\n'
        tool.write_config(f'{HURRIED}\n{more}every = "1s"\n')
        text = tool.config.read_text().replace("[tools]\n", f'[tools]\nscontrol = "{script}"\n')
        tool.config.write_text(text)
        for mood in ("kill-before", "kill-after"):
            (tmp_path / mood).touch()
            with Daemon(launch("run", "--config", tool.config)) as daemon:
                assert daemon.wait(25) == -9
            (tmp_path / mood).unlink()
            assert ("DRAIN" in idle.node_state()) is (mood == "kill-after")
        ours = idle.reason()
        assert ours is not None
        assert ours.startswith("npu-watchd: device 1: ")
        with running(tool.config) as daemon:
            hold = {"actuator": "slurm", "holder": "ours"}
            daemon.shows(lambda page: page.value("npu_watchd_actuator_hold", **hold) == 1, "it knows its own drain")
            assert idle.reason() == ours
            done = (tmp_path / "done").read_text().splitlines()
            assert [line.partition(" reason=")[0] for line in done] == [f"update nodename={idle.node} state=drain"]
            assert daemon.page().value("npu_watchd_node_verdict", state="quarantine") == 1
            idle.scontrol("update", f"nodename={idle.node}", "state=resume")
            released = until(lambda: daemon.journal("decided_release"), "the resume is a release")
            assert released[0]["text"].startswith("device 1: released, now on probation, by slurm: somebody gave")
            hold["holder"] = "nobody"
            daemon.shows(lambda page: page.value("npu_watchd_actuator_hold", **hold) == 1, "nobody holds it")
            assert daemon.page().value("npu_watchd_device_verdict", device_id="1", state="probation") == 1
            assert len((tmp_path / "done").read_text().splitlines()) == 1
            assert "DRAIN" not in idle.node_state()
            assert decide("quarantine", tool.config) == 0
            idle.until(lambda: "DRAIN" in idle.node_state(), "a person's word drains it too")
            assert decide("release", tool.config) == 0
            idle.until(lambda: "DRAIN" not in idle.node_state(), "and gives it back")
