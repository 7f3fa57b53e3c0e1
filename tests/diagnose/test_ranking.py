"""What the ranking promises, whatever the clues."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from npu_watchd.diagnose import weights
from npu_watchd.diagnose.cause import ADVICE, Cause
from npu_watchd.diagnose.clue import Clue, Origin, of_journal
from npu_watchd.diagnose.first import first_failure
from npu_watchd.diagnose.incident import incident_of
from npu_watchd.diagnose.ranking import ranking
from npu_watchd.model.finding import Event
from npu_watchd.model.log_event import Role
from npu_watchd.parsers.ascend_log import SIGNS
from npu_watchd.rules import RULES
from tests.diagnose.cases import CORE, EMPTY, ENDED_S, WAITS, device, document, finding, log

QUIET = settings(max_examples=200, deadline=None, derandomize=True)
KINDS = sorted(weights.LOG)
CLUES = st.builds(
    Clue,
    origin=st.just(Origin.LOG),
    kind=st.sampled_from(KINDS),
    text=st.text(max_size=3),
    where=st.sampled_from(["a:1", "a:2", "b:1"]),
    at_s=st.none() | st.floats(ENDED_S - 100, ENDED_S),
    role=st.sampled_from(list(Role)),
    device_id=st.none() | st.sampled_from(["0", "3"]),
)
FINDINGS = st.builds(
    finding,
    st.sampled_from(sorted(weights.FINDING)),
    st.none() | st.sampled_from(["0", "3", "7"]),
    critical=st.booleans(),
)


def test_every_weight_is_of_a_kind_or_a_rule_that_exists() -> None:
    kinds = {sign.kind for sign in SIGNS} | {"versions_warned", "oom_kill_of_other"}
    assert set(weights.LOG) <= kinds
    ours = {rule.id for rule in RULES} | {"version_mismatch"}
    assert set(weights.FINDING) | set(weights.CRITICAL) <= ours


def test_every_fault_weighs_something_or_is_known_to_say_nothing() -> None:
    silent = {"filesystem_error", "host_memory_hardware"}
    faults = {sign.kind for sign in SIGNS if sign.role is Role.FAULT}
    assert faults - set(weights.LOG) == silent


def test_every_cause_says_what_to_do_and_how_to_see_it() -> None:
    assert set(ADVICE) == set(Cause)
    assert all(advice.do and advice.verify for advice in ADVICE.values())


@given(clues=st.lists(CLUES, max_size=8), findings=st.lists(FINDINGS, max_size=4), seed=st.integers(0, 9))
@QUIET
def test_the_order_in_which_clues_come_changes_nothing(clues: list[Clue], findings: list[Clue], seed: int) -> None:
    mixed, others = list(clues), list(findings)
    random.Random(seed).shuffle(mixed)
    random.Random(seed).shuffle(others)
    one, other = (ranking(incident_of(*some, None, ENDED_S)) for some in ((clues, findings), (mixed, others)))
    assert [(ranked.cause, ranked.score) for ranked in one] == [(ranked.cause, ranked.score) for ranked in other]


@given(clues=st.lists(CLUES, max_size=8), findings=st.lists(FINDINGS, max_size=4))
@QUIET
def test_scores_are_shares_and_hardware_leads_only_with_a_proof(clues: list[Clue], findings: list[Clue]) -> None:
    found = ranking(incident_of(clues, findings, None, ENDED_S))
    assert all(0.0 <= ranked.score <= 1.0 for ranked in found)
    best = found[0]
    if best.cause is Cause.HARDWARE:
        assert any(point.strength >= weights.PROOF for point in best.points)
    if best.cause is Cause.NOT_ENOUGH_EVIDENCE:
        assert all(ranked.score < weights.ENOUGH for ranked in found)
    else:
        assert best.score >= weights.ENOUGH


@given(clues=st.lists(CLUES, max_size=6))
@QUIET
def test_a_fault_of_a_device_that_the_job_had_not_never_leads(clues: list[Clue]) -> None:
    own = [clue for clue in clues if weights.LOG[clue.kind].strengths.get(Cause.HARDWARE, 0.0) < weights.PROOF]
    mine = Clue(Origin.LOG, "task_failed", "x", "a:9", ENDED_S, Role.CONSEQUENCE, "3")
    found = ranking(incident_of([*own, mine], [finding("hbm_double_bit", "7")], None, ENDED_S))
    assert found[0].cause is not Cause.HARDWARE


def test_what_was_seen_to_be_well_speaks_against() -> None:
    found = ranking(incident_of(log(CORE), (), document(device("2")), ENDED_S))
    hardware = next(ranked for ranked in found if ranked.cause is Cause.HARDWARE)
    assert "npu-watchd saw the job's devices well, without an error that climbed" in [p.text for p in hardware.against]


def test_a_blind_device_is_not_well() -> None:
    blind = {**device("2"), "blind": {"npu_ecc": {"detail": "timeout"}}}
    assert "devices_well" not in incident_of(log(CORE), (), document(blind), ENDED_S).well


def test_a_daemon_that_started_after_the_end_saw_nothing() -> None:
    late = {**document(device("2")), "engine": {"started_at": ENDED_S + 1.0}}
    incident = incident_of(log(CORE), (), late, ENDED_S)
    assert (incident.watched, incident.well) == (False, frozenset())


def test_the_pids_of_the_log_say_which_devices_the_job_had() -> None:
    shown = document(device("5", pid=500), device("6", pid=77))
    incident = incident_of(log(WAITS), (), shown, ENDED_S)
    assert (incident.devices, incident.devices_by_pid) == (frozenset({"5"}), True)


def test_the_first_rank_to_fail_is_named_over_several_logs() -> None:
    early = CORE.replace("{at}", "2026-11-30-05:20:10.000.000")
    late = WAITS.replace("{at}", "2026-11-30-05:50:10.000.000")
    placed = (
        "[INFO] HCCL(1,p):2026-11-30-05:00:00.000.000 [t.cc:2][1]SetupAgent rankNum[4], rank[2], logicDevId[2], x\n"
    )
    first = first_failure(incident_of([*log(late, "r0"), *log(placed + early, "r2")], (), None, None).clues)
    assert first is not None
    assert (first.rank, first.device_id, first.clue.where, first.close) == (2, "2", "r2:2", None)


def test_two_failures_within_a_second_are_no_order() -> None:
    one, other = (
        CORE.replace("{at}", "2026-11-30-05:20:10.000.000"),
        CORE.replace("{at}", "2026-11-30-05:20:10.400.000"),
    )
    first = first_failure(incident_of([*log(one, "r0"), *log(other, "r2")], (), None, None).clues)
    assert first is not None
    assert first.close is not None


def test_the_journal_tells_from_when_to_when_a_finding_stood() -> None:
    facts = {"severity": "critical", "subject": "NPU 3"}
    events = [
        Event(1, 100.0, "finding_opened", "down", "3", "roce_down", facts),
        Event(2, 150.0, "counters_reset", "reset", "3"),
        Event(3, 200.0, "finding_resolved", "over: down", "3", "roce_down", facts),
        Event(4, 300.0, "finding_opened", "hot", "4", "overheating", {"severity": "warning", "subject": "NPU 4"}),
    ]
    found = {clue.kind: clue for clue in of_journal(events)}
    assert (found["roce_down"].at_s, found["roce_down"].until_s, found["roce_down"].critical) == (100.0, 200.0, True)
    assert (found["overheating"].until_s, found["overheating"].critical) == (None, False)
    assert found["counters_reset"].origin is Origin.JOURNAL


def test_response_is_empty_alone_is_not_enough() -> None:
    best, second, *_ = ranking(incident_of(log(EMPTY), (), None, ENDED_S))
    assert (best.cause, second.cause) == (Cause.NOT_ENOUGH_EVIDENCE, Cause.HOST_MEMORY)
