"""What stands after a cycle: a condition that has lasted is a finding, held while blind, over when seen to be gone."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from npu_watchd.decide.standing import Moment, Said, Standing, stand
from npu_watchd.model.finding import Action, Event, Evidence, Finding, Severity
from npu_watchd.model.ids import NODE, DeviceKey
from npu_watchd.model.reading import Failure, FailureKind
from npu_watchd.model.snapshot import ProbeState, Snapshot
from npu_watchd.rules.rule import Judgement, Polls, Rule, Unseen, Verified
from tests.sinks.build import device, outcome

DEVICE = DeviceKey(3)
OTHER = DeviceKey(5)
TIMEOUT = Failure(FailureKind.TIMEOUT, "npu-smi info -t ecc -i 3: no answer within 10 s")
EVIDENCE = (Evidence("npu_device_memory_errors_total", 2, 1, "", None, "npu-smi info -t ecc -i 3"),)
RULE = Rule(
    "hbm_double_bit",
    "NpuMemoryUncorrectableErrors",
    Severity.CRITICAL,
    True,
    Action.RESET_DEVICE,
    ("npu_ecc",),
    (),
    "text",
    lambda _: (),
)
NOON_S = 1_790_000_000.0


def bad(**changes: Any) -> Verified:
    return replace(Verified(DEVICE, "2 uncorrectable errors", EVIDENCE), **changes)


def seen(*probes: ProbeState) -> Snapshot:
    return replace(outcome([device(3), device(5)]).snapshot, probes=probes)


class Story:
    """Cycle after cycle of one rule."""

    def __init__(self, rule: Rule = RULE) -> None:
        self.rule = rule
        self.standing = Standing()
        self.events: list[Event] = []

    def at(self, second: float, *judgements: Judgement, snapshot: Snapshot | None = None) -> dict[str, Finding]:
        """What stands then, by subject."""
        self.standing, events = stand(
            self.standing, [Said(self.rule, judgements)], snapshot or seen(), Moment(second, NOON_S + second)
        )
        self.events += events
        return {str(finding.subject): finding for finding in self.standing.findings.values()}

    @property
    def told(self) -> list[str]:
        return [event.kind for event in self.events]


def test_a_condition_without_a_span_is_a_finding_at_once() -> None:
    story = Story()
    assert story.at(10, bad()) == {
        "npu 3 chip 0": Finding(
            rule="hbm_double_bit",
            alert="NpuMemoryUncorrectableErrors",
            subject=DEVICE,
            device_id="3",
            severity=Severity.CRITICAL,
            quarantines=True,
            action=Action.RESET_DEVICE,
            since_s=NOON_S + 10,
            summary="2 uncorrectable errors",
            evidence=EVIDENCE,
        )
    }
    assert story.told == ["finding_opened"]


def test_a_finding_keeps_its_beginning_and_takes_the_newest_evidence() -> None:
    story = Story()
    story.at(10, bad())
    newer = (replace(EVIDENCE[0], observed=5),)
    found = story.at(15, bad(summary="5 uncorrectable errors", evidence=newer))["npu 3 chip 0"]
    assert (found.since_s, found.summary, found.evidence) == (NOON_S + 10, "5 uncorrectable errors", newer)
    assert story.told == ["finding_opened"]


def test_a_condition_must_last_as_long_as_its_rule_says() -> None:
    story = Story()
    assert [bool(story.at(second, bad(for_s=60.0))) for second in (0, 30, 59, 60)] == [False, False, False, True]


def test_a_condition_that_goes_away_begins_to_wait_anew() -> None:
    story = Story()
    story.at(0, bad(for_s=60.0))
    story.at(30)
    assert not story.at(61, bad(for_s=60.0))
    assert story.at(121, bad(for_s=60.0))


def test_a_condition_must_hold_over_as_many_polls_and_failed_ones_do_not_count() -> None:
    story = Story()
    three = bad(for_polls=Polls("npu_info", 3))

    def poll(second: float, successes: int, failures: int = 0) -> bool:
        state = ProbeState("npu_info", None, up=True, failure=None, successes=successes, failures=failures)
        return bool(story.at(second, three, snapshot=seen(state)))

    assert not poll(0, 7)
    assert not poll(5, 7)
    assert not poll(15, 8)
    assert not poll(30, 8, failures=1)
    assert poll(45, 9, failures=1)


def test_polls_of_a_device_are_counted_by_device() -> None:
    story = Story()
    two = bad(for_polls=Polls("hccn_optical", 2))

    def states(own: int, others: int) -> Snapshot:
        return seen(
            ProbeState("hccn_optical", "3", up=True, failure=None, successes=own),
            ProbeState("hccn_optical", "5", up=True, failure=None, successes=others),
        )

    assert not story.at(0, two, snapshot=states(1, 1))
    assert not story.at(60, two, snapshot=states(1, 2))
    assert story.at(120, two, snapshot=states(2, 3))


def test_a_blind_device_keeps_its_findings() -> None:
    story = Story()
    story.at(0, bad())
    found = story.at(5, Unseen(DEVICE, TIMEOUT))["npu 3 chip 0"]
    assert (found.held, found.held_because) == (True, "npu-smi info -t ecc -i 3: no answer within 10 s")
    assert story.at(10, Unseen(DEVICE, TIMEOUT))["npu 3 chip 0"].held
    assert not story.at(15, bad())["npu 3 chip 0"].held
    assert not story.at(20)
    assert story.told == ["finding_opened", "finding_held", "finding_seen_again", "finding_resolved"]


def test_what_cannot_be_seen_is_never_found() -> None:
    story = Story()
    story.at(0, bad(for_s=60.0))
    assert not story.at(60, Unseen(DEVICE, TIMEOUT))
    assert story.at(65, bad(for_s=60.0)), "the time in which nobody could tell does not start it anew"


def test_a_device_that_the_snapshot_does_not_show_was_not_looked_at() -> None:
    story = Story()
    story.at(0, bad())
    empty = replace(seen(), devices={})
    assert story.at(5, snapshot=empty)["npu 3 chip 0"].held_because == "not seen since the daemon started"
    assert not story.at(10)


def test_a_finding_with_a_calm_ends_only_after_it() -> None:
    story = Story(replace(RULE, calm_s=60.0))
    story.at(0, bad())
    assert story.at(10)
    assert story.at(69)
    assert not story.at(70)


def test_a_condition_that_is_back_within_the_calm_never_went() -> None:
    story = Story(replace(RULE, calm_s=60.0))
    story.at(0, bad())
    story.at(10)
    story.at(40, bad())
    assert story.at(95)
    assert story.told == ["finding_opened"]


def test_a_finding_that_turns_worse_is_the_same_finding() -> None:
    story = Story()
    story.at(0, bad(severity=Severity.WARNING, quarantines=False))
    found = story.at(5, bad())["npu 3 chip 0"]
    assert (found.severity, found.quarantines, found.since_s) == (Severity.CRITICAL, True, NOON_S)
    assert [event.text for event in story.events][-1] == "warning is now critical: 2 uncorrectable errors"


def test_two_devices_and_the_node_have_findings_of_their_own() -> None:
    story = Story()
    found = story.at(0, bad(), bad(subject=OTHER), bad(subject=NODE))
    assert {name: finding.device_id for name, finding in found.items()} == {
        "node": None,
        "npu 3 chip 0": "3",
        "npu 5 chip 0": "5",
    }
    assert list(story.at(5, bad())) == ["npu 3 chip 0"]


def test_a_rule_that_is_switched_off_leaves_no_finding_behind() -> None:
    story = Story()
    story.at(0, bad())
    standing, events = stand(story.standing, [], seen(), Moment(5, NOON_S + 5))
    assert not standing.findings
    assert [event.kind for event in events] == ["finding_resolved"]


@pytest.mark.parametrize("judgements", [(), (bad(),), (Unseen(DEVICE, TIMEOUT),), (bad(for_s=9.0),)])
def test_judging_twice_at_one_moment_changes_nothing(judgements: Iterable[Judgement]) -> None:
    story = Story()
    story.at(0, bad())
    story.at(5, *judgements)
    once = story.standing
    told = list(story.events)
    story.at(5, *judgements)
    assert story.standing == once
    assert story.events == told
