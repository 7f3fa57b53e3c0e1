"""The warden, turn by turn, with a real hook, a stub of Kubernetes, and a Prometheus that says what the test wants."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from math import inf
from pathlib import Path

import pytest

from npu_watchd.model.reading import Failure, FailureKind, Output
from npu_watchd.model.verdict import Order, State
from npu_watchd.sources.runner import ToolRunner
from tests.acting.desk import Desk, desk
from tests.acting.fleet import Fleet, fleet
from tests.e2e.harness import until
from tests.sinks.actuators.clusters import Cluster, stub_cluster

HOOK = """#!/bin/sh
cat > {folder}/stdin.$1
echo "$*" >> {folder}/calls
if [ -e {folder}/mood ]; then . {folder}/mood; fi
"""


@pytest.fixture
def told() -> Iterator[Fleet]:
    with fleet() as made:
        yield made


@pytest.fixture
def runner() -> Iterator[ToolRunner]:
    made = ToolRunner(clock=time.monotonic)
    yield made
    made.close()


@pytest.fixture
def watched(tmp_path: Path, told: Fleet, runner: ToolRunner) -> Iterator[Desk]:
    """Its command is HOOK."""
    hook = tmp_path / "hook"
    hook.write_text(HOOK.format(folder=tmp_path))
    hook.chmod(0o755)
    more = f'[quarantine]\nact = ["command"]\ncommand = ["{hook}"]\nprometheus = "{told.url}"\n'
    with desk(runner.run, tmp_path, more) as made:
        yield made


def calls(watched: Desk) -> list[str]:
    file = watched.folder / "calls"
    return file.read_text().splitlines() if file.exists() else []


# The hook


def test_the_hook_is_told_of_the_quarantine_and_of_its_end_once_each(watched: Desk) -> None:
    watched.pass_s()
    assert calls(watched) == []
    watched.says(Order.QUARANTINE)
    for _ in range(3):
        watched.pass_s()
    watched.restart()
    watched.pass_s()
    assert calls(watched) == ["hold"]
    document = json.loads((watched.folder / "stdin.hold").read_text())
    mark = document["mark"]
    assert mark[:18] == "q20260921T143100Z-"
    assert set(document) == {"mark", "node", "verdicts"}
    [told] = document["verdicts"]
    assert document["node"] == "node-17"
    assert (told["subject"], told["state"], told["since"], told["action"]) == (
        "node",
        "quarantine",
        1790001060.0,
        "inspect",
    )
    assert told["reasons"] == [{"text": "put into quarantine by alice: smoke", "rule": None}]
    watched.says(Order.RELEASE)
    for _ in range(3):
        watched.pass_s()
    assert calls(watched) == ["hold", "free"]
    assert json.loads((watched.folder / "stdin.free").read_text()) == {"mark": mark, "node": "node-17"}
    assert watched.journal("acted_free") == [
        "command: gave the node back after its release: the command was not told to hold the node"
    ]


def test_the_hook_hears_which_device_it_is_about(watched: Desk) -> None:
    [device] = [verdict.subject for verdict in watched.docket.verdicts if verdict.device_id == "1"]
    watched.says(Order.QUARANTINE, device)
    watched.pass_s()
    document = json.loads((watched.folder / "stdin.hold").read_text())
    node, part = document["verdicts"]
    assert (part["device_id"], part["state"]) == ("1", "quarantine")
    assert node["reasons"] == [{"text": "device 1: put into quarantine by alice: smoke", "rule": None}]


def test_a_hook_that_fails_is_told_once_and_tried_ever_more_rarely_on_what_the_verdict_is_by_then(
    watched: Desk,
) -> None:
    (watched.folder / "mood").write_text("echo 'no ticket system' >&2; exit 3")
    watched.says(Order.QUARANTINE)
    assert [watched.pass_s(400) for _ in range(8)] == [5, 10, 20, 40, 80, 160, 300, 300]
    assert watched.journal("action_blocked") == [
        f"command: cannot hold the node: {watched.folder}/hook hold: exit code 3: no ticket system; "
        "mend what it says; it is started again later, with what the verdict is then"
    ]
    assert watched.blocked("command") == "failed"
    assert watched.warden.tally()["command"].actions == {("hold", "failed"): 8}
    watched.says(Order.RELEASE)
    (watched.folder / "mood").unlink()
    watched.pass_s(400)
    assert len(calls(watched)) == 8, "what it was to do is no longer asked"
    assert watched.blocked("command") is None


def test_a_hook_that_hangs_is_ended(watched: Desk) -> None:
    (watched.folder / "mood").write_text("exec sleep 60")
    watched.configure(f'{watched.more}command_timeout = "200ms"\n')
    watched.says(Order.QUARANTINE)
    watched.pass_s()
    [line] = watched.journal("action_blocked")
    assert "no answer within 0.2 s and was ended" in line


def test_the_end_waits_for_no_hook(watched: Desk, runner: ToolRunner) -> None:
    (watched.folder / "mood").write_text("exec sleep 60")
    watched.says(Order.QUARANTINE)
    watched.warden.open()
    watched.warden.judged(watched.clock())
    until(lambda: calls(watched) == ["hold"], "its own thread has started the hook")
    watched.warden.stop()
    runner.close()
    watched.warden.join(10)
    assert "warden" not in {thread.name for thread in threading.enumerate()}


# When to look, and when not


def test_a_node_that_is_well_is_looked_at_once_after_the_start(tmp_path: Path, told: Fleet) -> None:
    asked: list[tuple[str, ...]] = []

    def run(argv: tuple[str, ...], _: float, __: bytes = b"") -> Output | Failure:
        asked.append(argv)
        return Output("State=IDLE")

    with desk(run, tmp_path, f'[quarantine]\nact = ["slurm"]\nprometheus = "{told.url}"\n') as watched:
        assert watched.pass_s() == inf
        assert watched.pass_s() == inf
        assert asked == [("scontrol", "show", "node", "node-17")]
        assert watched.holder("slurm") == "nobody"


def test_a_scheduler_that_cannot_be_asked_is_told_before_it_is_needed(tmp_path: Path) -> None:
    missing = Failure(FailureKind.MISSING, "scontrol: not found on PATH")
    with desk(lambda *_: missing, tmp_path, '[quarantine]\nact = ["slurm"]\n') as watched:
        assert watched.pass_s() == 5
        watched.pass_s()
        assert watched.journal("action_blocked") == ["slurm: scontrol: not found on PATH"]
        assert (watched.blocked("slurm"), watched.holder("slurm")) == ("unreachable", None)


def test_without_a_prometheus_it_only_recommends_and_says_so(watched: Desk, told: Fleet) -> None:
    watched.configure(watched.more.replace("prometheus = ", "# "))
    watched.says(Order.QUARANTINE)
    watched.pass_s()
    watched.pass_s()
    assert watched.journal("action_blocked") == [
        "command: nobody says how much of the fleet is out, so the node stays in use: "
        "[quarantine] prometheus is not set, so there is nobody to ask"
    ]
    watched.configure(watched.more.replace("# ", "prometheus = "))
    watched.pass_s()
    assert calls(watched) == ["hold"]


def test_a_budget_that_was_spent_is_asked_again_and_acts_on_the_verdict_of_then(watched: Desk, told: Fleet) -> None:
    told.out = 9
    watched.says(Order.QUARANTINE)
    watched.pass_s()
    assert (calls(watched), watched.blocked("command")) == ([], "budget_spent")
    watched.says(Order.RELEASE)
    told.out = 0
    watched.pass_s()
    assert (calls(watched), watched.blocked("command")) == ([], None)
    watched.says(Order.QUARANTINE)
    watched.pass_s()
    assert calls(watched) == ["hold"]


def test_what_a_person_decides_while_prometheus_answers_is_heeded(watched: Desk, told: Fleet) -> None:
    watched.says(Order.QUARANTINE)
    told.when_asked = lambda: watched.says(Order.RELEASE)
    assert watched.pass_s() == -inf
    watched.pass_s()
    assert calls(watched) == []
    assert watched.journal("action_blocked") == []


def test_another_failure_of_the_budget_is_news_and_the_same_is_none(watched: Desk, told: Fleet) -> None:
    told.here = 0
    watched.says(Order.QUARANTINE)
    watched.pass_s()
    watched.pass_s()
    told.status = 503
    watched.pass_s()
    watched.pass_s()
    assert [line.partition(f"{told.url[7:]}: ")[2][:30] for line in watched.journal("action_blocked")] == [
        "it has not seen this node's qu",
        'HTTP 503: {"status": "success"',
    ]


def test_nobody_acts_on_a_verdict_that_is_old(watched: Desk) -> None:
    watched.pass_s()
    watched.says(Order.QUARANTINE)
    watched.now_s += 601
    watched.warden.turn()
    assert (calls(watched), watched.blocked("command")) == ([], "stale")
    watched.pass_s()
    assert calls(watched) == ["hold"]


def test_a_dry_run_says_what_it_would_do_and_does_it_when_it_is_none_any_longer(watched: Desk) -> None:
    watched.configure(f"{watched.more}dry_run = true\n")
    watched.says(Order.QUARANTINE)
    watched.pass_s()
    assert watched.journal("action_blocked") == [
        "command: would take the node out of use "
        "(1 of 20 nodes are in quarantine, this one among them, and at most 2 may be)"
    ]
    assert ("acting_on", True) in [(event, facts.get("dry_run")) for event, facts in watched.logged]
    watched.configure(watched.more.replace("dry_run = true", ""))
    watched.pass_s()
    assert calls(watched) == ["hold"]


def test_a_scheduler_that_the_config_no_longer_names_is_left_as_it_is(watched: Desk) -> None:
    watched.says(Order.QUARANTINE)
    watched.pass_s()
    watched.configure(watched.more.replace('act = ["command"]', "act = []"))
    watched.says(Order.RELEASE)
    assert watched.pass_s() == inf
    assert calls(watched) == ["hold"]
    assert watched.warden.tally() == {}
    watched.configure(watched.more.replace("act = []", 'act = ["command"]'))
    watched.pass_s()
    assert calls(watched) == ["hold", "free"], "when it names it again, what was released meanwhile is given back"


def test_a_memory_that_cannot_be_read_costs_the_giving_back_alone(watched: Desk) -> None:
    watched.says(Order.QUARANTINE)
    watched.pass_s()
    watched.docket.keep("acts", '{"command": 7}')
    watched.restart()
    watched.pass_s()
    [facts] = [facts for event, facts in watched.logged if event == "acts_unreadable"]
    assert facts["costs"] == "our marks of before the start are not given back by themselves"
    assert calls(watched) == ["hold", "hold"], "a hook must bear to be told twice"


# Kubernetes, and two at once


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with stub_cluster(tmp_path_factory.mktemp("stub")) as made:
        yield made


def with_kubernetes(watched: Desk, cluster: Cluster, node: str) -> None:
    reached = f'api_url = "{cluster.url}"\nca_file = "{cluster.authority.file}"\ntoken_file = "{cluster.token_file()}"'
    act = watched.more.replace('act = ["command"]', 'act = ["command", "kubernetes"]')
    watched.configure(f'{act}[kubernetes]\nnode_name = "{node}"\n{reached}\n')


def our_taints(cluster: Cluster, node: str) -> list[str]:
    return [taint[:27] for taint in cluster.taints(node) if taint.startswith("npu-watchd/")]


def test_an_uncordoned_node_is_released_for_every_scheduler_and_what_is_left_is_cleared_away(
    watched: Desk, cluster: Cluster
) -> None:
    node = cluster.new_node()
    with_kubernetes(watched, cluster, node)
    watched.says(Order.QUARANTINE)
    watched.pass_s()
    assert cluster.cordoned(node)
    assert our_taints(cluster, node) == ["npu-watchd/quarantine=q2026"]
    cluster.edit(node, unschedulable=None)
    assert watched.pass_s() == 0, "the rest at once"
    assert watched.state is not State.QUARANTINE
    watched.pass_s()
    watched.pass_s()
    assert our_taints(cluster, node) == []
    assert not cluster.cordoned(node)
    assert calls(watched) == ["hold", "free"]
    [released] = watched.journal("decided_release")
    assert ", by kubernetes: somebody gave the node back there while our mark q20260921T" in released
    assert "somebody uncordoned it after our mark" in released
    assert len(watched.journal("acted_hold")) == 2


def test_a_cordon_of_somebody_else_outlives_ours(watched: Desk, cluster: Cluster) -> None:
    node = cluster.new_node(unschedulable=True)
    with_kubernetes(watched, cluster, node)
    watched.says(Order.QUARANTINE)
    watched.pass_s()
    assert watched.holder("kubernetes") == "other"
    assert watched.blocked("kubernetes") == "held_by_other"
    watched.says(Order.RELEASE)
    watched.pass_s()
    assert cluster.cordoned(node)
    assert calls(watched) == ["hold", "free"]
