"""The newest reading and the newest good one: what is fresh, what a chip cannot say, and what counts as a failure."""

from __future__ import annotations

import pytest

from npu_watchd.memory.readings import Readings
from npu_watchd.model.fabric import NpuLink, PortCounters, PortKey, RdmaPorts
from npu_watchd.model.ids import NODE, DeviceKey, Subject
from npu_watchd.model.reading import NOT_READ_YET, Failure, FailureKind
from tests.memory.build import TIMEOUT, UNSUPPORTED, at, reading

PERIODS = {"hccn_link": 60.0, "rdma_counters": 30.0, "ibstat": 30.0, "npu_health": 60.0}
CHIP = DeviceKey(0)
PORT, OTHER = PortKey("mlx5_0", 1), PortKey("mlx5_1", 1)
UP = NpuLink(up=True)
ABSENT = Failure(FailureKind.MISSING, "hccn_tool: not found on PATH (/bin)")


def held(*results: object, probe: str = "hccn_link", subject: Subject = CHIP) -> Readings:
    """One reading a second, from second 0 on."""
    readings = Readings()
    for second, result in enumerate(results):
        readings.put(reading(probe, subject, result, float(second)))
    return readings


def fresh(readings: Readings, now_s: float, probe: str = "hccn_link", subject: Subject = CHIP) -> object:
    return readings.fresh(probe, subject, at(now_s), PERIODS.get)


def failures(readings: Readings, probe: str = "hccn_link") -> dict[str, int]:
    return dict(readings.tallies[probe].frozen(probe).failures)


def test_a_record_is_fresh_for_three_periods_and_then_stale() -> None:
    readings = held(UP)
    assert fresh(readings, 180) == UP
    assert fresh(readings, 181) == Failure(FailureKind.STALE, "last read 181 s ago, at a period of 60 s")


def test_a_failure_does_not_take_a_record_away_before_its_time() -> None:
    readings = held(UP, TIMEOUT)
    assert fresh(readings, 180) == UP
    assert fresh(readings, 181) == TIMEOUT


@pytest.mark.parametrize(
    ("results", "news"),
    [((UP,), 0), ((UP, NpuLink(up=True)), 0), ((UP, NpuLink(up=False)), 1), ((UP, TIMEOUT, UP), 0), ((TIMEOUT, UP), 0)],
)
def test_news_is_a_record_that_says_something_else_than_the_one_before(results: tuple[object, ...], news: int) -> None:
    assert held(*results).news == news


def test_a_probe_whose_answers_always_differ_brings_no_news() -> None:
    first, second = PortCounters(PORT, link_downs=1), PortCounters(PORT, link_downs=2)
    assert held(first, second, probe="rdma_counters", subject=PORT).news == 0


def test_nothing_is_fresh_of_a_probe_that_is_switched_off_or_was_never_read() -> None:
    assert fresh(held(UP, probe="hccn_stat"), 1, "hccn_stat") is NOT_READ_YET
    assert fresh(Readings(), 1) is NOT_READ_YET


def test_all_fresh_records_of_a_probe_come_by_subject() -> None:
    readings = held(PortCounters(PORT), probe="rdma_counters", subject=PORT)
    readings.put(reading("rdma_counters", OTHER, PortCounters(OTHER), 100.0))
    readings.put(reading("ibstat", NODE, RdmaPorts(), 100.0))
    assert set(readings.fresh_of("rdma_counters", at(90), PERIODS.get)) == {PORT, OTHER}
    assert set(readings.fresh_of("rdma_counters", at(91), PERIODS.get)) == {OTHER}


def test_what_a_chip_cannot_say_is_no_failure_and_settled() -> None:
    readings = held(UNSUPPORTED, probe="npu_health")
    assert readings.unsupported("npu_health", CHIP) == UNSUPPORTED.detail
    assert readings.settled("npu_health", CHIP) is True
    assert failures(readings, "npu_health") == {}


def test_a_tool_for_ports_that_never_was_there_is_no_failure_but_looked_for_again() -> None:
    readings = held(ABSENT)
    assert readings.unsupported("hccn_link", CHIP) == ABSENT.detail
    assert readings.settled("hccn_link", CHIP) is False
    assert failures(readings) == {}
    readings.put(reading("hccn_link", CHIP, UP, 60.0))
    assert readings.unsupported("hccn_link", CHIP) is None
    assert readings.refusals == 2


def test_a_tool_that_was_there_and_is_gone_is_a_failure() -> None:
    readings = held(UP, ABSENT)
    assert readings.unsupported("hccn_link", CHIP) is None
    assert fresh(readings, 200) == ABSENT
    assert failures(readings) == {"missing": 1}


@pytest.mark.parametrize(("probe", "subject"), [("npu_health", CHIP), ("pcie_link", CHIP), ("ibstat", NODE)])
def test_any_other_thing_that_is_missing_is_a_failure(probe: str, subject: Subject) -> None:
    readings = held(ABSENT, probe=probe, subject=subject)
    assert readings.unsupported(probe, subject) is None
    assert failures(readings, probe) == {"missing": 1}


@pytest.mark.parametrize("kind", [kind for kind in FailureKind if kind.value not in ("missing", "unsupported")])
def test_a_tool_that_is_there_and_fails_is_a_failure(kind: FailureKind) -> None:
    readings = held(Failure(kind, "why"))
    assert (readings.unsupported("hccn_link", CHIP), readings.settled("hccn_link", CHIP)) == (None, False)
    assert failures(readings) == {kind.value: 1}


def test_that_the_node_as_a_whole_cannot_say_is_a_failure() -> None:
    readings = held(UNSUPPORTED, probe="ibstat", subject=NODE)
    assert readings.unsupported("ibstat", NODE) is None
    assert failures(readings, "ibstat") == {"unsupported": 1}


def test_what_was_read_of_a_chip_before_it_vanished_is_forgotten_and_what_it_cannot_say_is_not() -> None:
    readings = held(UP)
    readings.put(reading("npu_health", CHIP, UNSUPPORTED))
    readings.forget({CHIP})
    assert fresh(readings, 1) is NOT_READ_YET
    assert readings.settled("npu_health", CHIP) is True
