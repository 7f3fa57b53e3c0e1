"""The daemon against the labels: every fault found once, in time, as bad as it is; of healthy nodes not a word."""

from __future__ import annotations

from pathlib import Path

import pytest

from npu_watchd.rules import RULES
from npu_watchd.rules.quarantine import QUARANTINE
from tests.scenarios import day
from tests.scenarios.campaign import CASES, FAULT_CASES, HEALTHY_CASES, played
from tests.scenarios.episodes import Episode
from tests.scenarios.label import QUARANTINES, WARNING, Case, Expected, Text, npu
from tests.scenarios.report import lines
from tests.scenarios.score import Score, score

MISSING = Expected("device_missing", npu(3), (QUARANTINES,), at_s=60, every_s=15, lasts_s=30)


def _text(cases: tuple[Case, ...]) -> list[Case]:
    return [case for case in cases if isinstance(case.how, Text)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_case_brings_what_its_labels_say_and_nothing_else(case: Case) -> None:
    found = played(case)
    assert found.complaints == ()
    assert (found.precision, found.recall) == (1.0, 1.0)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("scenario", ["quiet", "busy_node"])
def test_a_day_on_a_healthy_node_brings_nothing(scenario: str, tmp_path: Path) -> None:
    coarse, fine = day.played(scenario, tmp_path)
    assert fine.steps > 1420
    assert coarse.episodes == []
    assert fine.watch.episodes == []


def test_the_campaign_is_as_large_as_it_says() -> None:
    assert len(FAULT_CASES) >= 40
    assert len(HEALTHY_CASES) >= 20
    assert len(_text(FAULT_CASES)) >= 25
    assert len(_text(HEALTHY_CASES)) >= 8
    assert len({case.name for case in CASES}) == len(CASES)
    assert all(case.expected for case in FAULT_CASES)
    assert not any(case.expected for case in HEALTHY_CASES)


@pytest.mark.parametrize("rule", [rule.id for rule in RULES if rule is not QUARANTINE])
def test_every_rule_has_two_faults_on_two_kinds_of_chip(rule: str) -> None:
    cases = [case for case in FAULT_CASES if any(label.rule == rule for label in case.expected)]
    assert len(cases) >= 2
    assert len({case.how.generation for case in cases}) >= 2


def test_every_generation_has_faults() -> None:
    assert {"910B3", "A3", "310P3", "310P Duo", "910A", "950PR"} <= {case.how.generation for case in FAULT_CASES}


def _found(opened_s: float, weight: tuple[str, bool] = QUARANTINES, rule: str = "device_missing") -> Episode:
    return Episode(rule, npu(3), opened_s, "a summary", [weight], live=[opened_s])


@pytest.mark.parametrize(
    ("episodes", "precision", "recall"),
    [
        ([_found(100)], 1.0, 1.0),
        ([], 1.0, 0.0),
        ([_found(100), _found(400, WARNING, "roce_slow")], 0.5, 1.0),
        ([_found(100), _found(400)], 0.5, 1.0),
        ([_found(114)], 0.0, 0.0),
        ([_found(80)], 0.0, 0.0),
        ([_found(100, WARNING)], 0.0, 0.0),
    ],
    ids=["right", "missed", "false", "twice", "late", "early", "wrong weight"],
)
def test_the_score_counts_what_is_wrong(episodes: list[Episode], precision: float, recall: float) -> None:
    found = score((MISSING,), episodes, speed=1)
    assert (found.precision, found.recall) == (precision, recall)
    assert bool(found.complaints) == ((precision, recall) != (1.0, 1.0))


def test_a_healthy_node_about_which_nothing_is_said_is_perfect() -> None:
    assert (Score().precision, Score().recall) == (1.0, 1.0)


def test_a_finding_that_ended_too_soon_or_was_not_held_is_wrong() -> None:
    episode = _found(100)
    episode.over_s = 200.0
    assert score((MISSING,), [episode], 1).complaints == (
        "device_missing of npu 3 chip 0: was over at 200 s, and should stand",
    )
    held = Expected("device_missing", npu(3), (QUARANTINES,), 60, 15, 30, held=(150,))
    assert score((held,), [_found(100)], 1).complaints == ("device_missing of npu 3 chip 0: is not held at 150 s",)


def test_the_table_names_each_case_and_what_is_wrong_with_it() -> None:
    case = CASES[0]
    told = list(lines([(case, score(case.expected, [], 1))]))
    assert told[1].startswith(f"BAD {case.name}")
    assert told[2].strip() == "missed: device_missing of npu 1 chip 0"
    assert told[-1] == ("1 faulty cases and 0 healthy ones, 1 findings expected: precision 1.000, recall 0.000")
