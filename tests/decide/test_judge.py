"""The table of DESIGN 8, cell by cell, and what people's words change in it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from npu_watchd.decide.sights import Sight
from npu_watchd.model.ids import NODE
from npu_watchd.model.reading import NOT_READ_YET
from npu_watchd.model.verdict import Order, State
from tests.decide.court import THREE, TIMEOUT, Court, bad, held, mild

HEALTHY, WATCH, QUARANTINE, PROBATION, UNKNOWN = (
    *(State.HEALTHY, State.WATCH, State.QUARANTINE),
    *(State.PROBATION, State.UNKNOWN),
)


def court_in(state: State) -> Court:
    court = Court()
    court.judge()
    if state is WATCH:
        court.finds(mild())
        court.finds()
    elif state is UNKNOWN:
        court.sees(TIMEOUT)
    elif state in (QUARANTINE, PROBATION):
        court.finds(bad())
        court.finds()
        if state is PROBATION:
            assert court.says(Order.RELEASE).accepted
            court.pass_s(5)
    assert str(court.verdict.state) == str(state)
    return court


@pytest.mark.parametrize(
    ("state", "on", "then"),
    [
        (HEALTHY, "bad", QUARANTINE),
        (HEALTHY, "mild", WATCH),
        (HEALTHY, "none", HEALTHY),
        (HEALTHY, "blind", UNKNOWN),
        (WATCH, "bad", QUARANTINE),
        (WATCH, "mild", WATCH),
        (WATCH, "none", WATCH),
        (WATCH, "blind", UNKNOWN),
        (UNKNOWN, "bad", QUARANTINE),
        (UNKNOWN, "mild", WATCH),
        (UNKNOWN, "none", HEALTHY),
        (UNKNOWN, "blind", UNKNOWN),
        (QUARANTINE, "bad", QUARANTINE),
        (QUARANTINE, "mild", QUARANTINE),
        (QUARANTINE, "none", QUARANTINE),
        (QUARANTINE, "blind", QUARANTINE),
        (PROBATION, "bad", QUARANTINE),
        (PROBATION, "mild", PROBATION),
        (PROBATION, "none", PROBATION),
        (PROBATION, "blind", PROBATION),
    ],
)
def test_every_cell_of_the_table(state: State, on: str, then: State) -> None:
    court = court_in(state)
    court.findings = {"bad": (bad(),), "mild": (mild(),)}.get(on, ())
    assert court.sees(TIMEOUT if on == "blind" else None) is then


def test_watch_is_healthy_after_ten_minutes_of_calm() -> None:
    court = court_in(WATCH)
    assert court.pass_s(590) is WATCH
    assert court.pass_s(10) is HEALTHY


def test_the_calm_is_not_over_sooner_because_nobody_could_look() -> None:
    court = court_in(WATCH)
    assert court.sees(TIMEOUT) is UNKNOWN
    assert court.sees() is WATCH
    assert court.pass_s(600) is HEALTHY


def test_quarantine_is_held_once_what_led_to_it_is_no_longer_seen() -> None:
    court = court_in(HEALTHY)
    court.finds(bad())
    assert (court.verdict.held, court.action) == (False, "reset_device")
    court.finds(held(bad()))
    assert (court.verdict.held, court.action) == (True, "reset_device")
    court.finds()
    assert (court.verdict.held, court.action) == (True, "reset_device")
    assert [reason.rule for reason in court.verdict.reasons] == ["hbm_double_bit"]


def test_blindness_as_a_finding_makes_unknown_and_not_watch() -> None:
    court = court_in(HEALTHY)
    assert court.finds(replace(mild(), rule="probe_blind")) is UNKNOWN
    assert court.verdict.blind


def test_something_mild_on_a_blind_device_is_watch_and_says_that_it_is_blind() -> None:
    court = court_in(HEALTHY)
    court.findings = (mild(),)
    assert court.sees(TIMEOUT) is WATCH
    assert court.verdict.blind


def test_probation_ends_after_a_day_without_a_fault_an_hour_of_it_at_work() -> None:
    court = court_in(PROBATION)
    assert court.lives(1, at_work=True) is PROBATION
    assert court.lives(22.9) is PROBATION
    assert court.lives(0.2) is HEALTHY


def test_an_idle_day_ends_no_probation() -> None:
    court = court_in(PROBATION)
    assert court.lives(30) is PROBATION
    assert court.lives(1, at_work=True) is HEALTHY


def test_a_fault_begins_the_probation_anew_and_a_shared_chip_does_not() -> None:
    court = court_in(PROBATION)
    court.lives(20, at_work=True)
    court.finds(mild("jobs_share_device"))
    court.finds()
    assert court.lives(4.1) is HEALTHY
    court = court_in(PROBATION)
    court.lives(20, at_work=True)
    court.finds(mild())
    court.finds()
    assert court.lives(23, at_work=True) is PROBATION
    assert court.lives(1.1, at_work=True) is HEALTHY


def test_time_in_which_nobody_watched_is_no_part_of_a_probation() -> None:
    court = court_in(PROBATION)
    court.lives(2, at_work=True)
    court.pass_s(86_400)
    assert court.lives(1) is PROBATION


def test_a_release_is_refused_while_what_quarantined_it_is_there() -> None:
    court = court_in(HEALTHY)
    court.finds(bad())
    answer = court.says(Order.RELEASE)
    assert not answer.accepted
    assert answer.text.startswith("what quarantined it is there: device 3: hbm_double_bit 2; mend it first")
    assert court.pass_s(5) is QUARANTINE


def test_what_cannot_be_seen_to_be_over_refuses_a_release_too() -> None:
    court = court_in(HEALTHY)
    court.finds(held(bad()))
    assert "cannot be seen to be over" in court.says(Order.RELEASE).text


def test_a_forced_release_says_what_it_overrides_and_only_more_of_it_quarantines_again() -> None:
    court = court_in(HEALTHY)
    court.finds(bad(2))
    answer = court.says(Order.RELEASE, force=True)
    assert (answer.accepted, answer.overridden) == (True, ("device 3: hbm_double_bit 2",))
    assert court.pass_s(5) is PROBATION
    assert court.restarts() is PROBATION
    court.sees()
    assert court.finds(bad(2)) is PROBATION
    assert court.finds(bad(3)) is QUARANTINE


def test_a_fault_that_was_over_is_no_longer_known_when_it_comes_again() -> None:
    court = court_in(HEALTHY)
    court.finds(bad(2))
    court.says(Order.RELEASE, force=True)
    court.finds()
    assert court.finds(bad(1)) is QUARANTINE


def test_another_kind_of_fault_is_not_excused_by_a_release() -> None:
    court = court_in(HEALTHY)
    court.finds(bad(2))
    court.says(Order.RELEASE, force=True)
    assert court.finds(bad(2), bad(1, "isolated_pages")) is QUARANTINE


def test_only_what_is_in_quarantine_can_be_released() -> None:
    assert court_in(HEALTHY).says(Order.RELEASE).text == "device 3 is not in quarantine, it is healthy"


def test_a_decision_on_a_state_that_has_changed_is_refused() -> None:
    court = court_in(QUARANTINE)
    court.cases[THREE] = replace(court.cases[THREE], revision=41)
    assert not court.says(Order.RELEASE, seen=40).accepted
    assert court.says(Order.RELEASE, seen=41).accepted


def test_a_person_puts_a_healthy_device_into_quarantine_and_only_a_release_ends_it() -> None:
    court = court_in(HEALTHY)
    assert court.says(Order.QUARANTINE).accepted
    assert court.pass_s(5) is QUARANTINE
    assert not court.verdict.held
    assert [reason.text for reason in court.verdict.reasons] == ["put into quarantine by alice: card reseated"]
    assert court.restarts() is QUARANTINE
    court.says(Order.RELEASE)
    assert court.pass_s(5) is PROBATION


def test_nothing_new_quarantines_in_a_maintenance_and_nothing_is_called_healthy() -> None:
    court = court_in(HEALTHY)
    court.says(Order.MAINTENANCE, for_s=3600)
    assert court.finds(bad()) is UNKNOWN
    assert court.finds() is UNKNOWN
    assert court.pass_s(3600) is HEALTHY
    court.says(Order.MAINTENANCE, for_s=3600)
    court.finds(bad())
    assert court.says(Order.MAINTENANCE_OVER).accepted
    assert court.pass_s(5) is QUARANTINE


def test_a_maintenance_of_the_node_is_one_of_its_devices() -> None:
    court = court_in(HEALTHY)
    court.says(Order.MAINTENANCE, NODE, for_s=3600)
    assert court.finds(bad()) is UNKNOWN
    assert court.pass_s(3600) is QUARANTINE


def test_a_maintenance_leaves_a_quarantine_as_it_is() -> None:
    court = court_in(QUARANTINE)
    court.says(Order.MAINTENANCE, for_s=3600)
    assert court.pass_s(5) is QUARANTINE


def test_a_fault_that_comes_back_twice_in_a_week_asks_for_another_card() -> None:
    court = court_in(QUARANTINE)
    court.says(Order.RELEASE)
    court.finds(bad())
    assert court.action == "reset_device"
    court.finds()
    court.says(Order.RELEASE)
    court.finds(bad())
    assert court.action == "replace"


def test_a_fault_that_returns_after_a_reset_counts_once_a_reset() -> None:
    court = court_in(HEALTHY)
    court.finds(bad())
    for _ in range(2):
        court.finds()
        court.resets()
        court.pass_s(60)
        court.resets()
        court.finds(bad())
        court.pass_s(86_400)
    assert court.action == "replace"


def test_a_fault_that_flickers_without_a_reset_has_not_come_back() -> None:
    court = court_in(HEALTHY)
    for _ in range(5):
        court.finds(bad())
        court.finds()
    assert court.action == "reset_device"


def test_returns_of_more_than_a_week_ago_do_not_count_and_another_chip_has_none() -> None:
    court = court_in(QUARANTINE)
    court.says(Order.RELEASE)
    court.finds(bad())
    court.pass_s(8 * 86_400)
    court.finds()
    court.says(Order.RELEASE)
    court.finds(bad())
    assert court.action == "reset_device"
    court.finds()
    court.says(Order.RELEASE)
    court.gets_a_new_chip()
    court.finds(bad())
    assert court.action == "reset_device"


def test_after_a_restart_a_device_is_unknown_until_it_is_read_and_then_what_it_was() -> None:
    court = court_in(HEALTHY)
    since_s = court.verdict.since_s
    assert court.restarts() is UNKNOWN
    assert court.sees() is HEALTHY
    assert court.verdict.since_s == since_s


def test_a_quarantine_outlives_a_restart_and_a_card_that_is_gone() -> None:
    court = court_in(QUARANTINE)
    assert court.restarts() is QUARANTINE
    court.loses(THREE)
    assert court.pass_s(3600) is QUARANTINE
    assert court.says(Order.RELEASE).text == "device 3: released"
    assert THREE not in court.cases


def test_what_stood_about_a_card_that_was_taken_out_ends_with_its_release() -> None:
    court = court_in(HEALTHY)
    court.finds(bad(0, "device_missing"))
    court.restarts()
    court.loses(THREE)
    court.pass_s(5)
    assert not court.says(Order.RELEASE).accepted
    assert court.says(Order.RELEASE, force=True).accepted
    assert court.findings == ()


def test_who_is_not_known_cannot_be_decided_about() -> None:
    court = Court()
    court.loses(THREE)
    assert court.says(Order.QUARANTINE).text == "device 3 is not known here; `npu-watchd status` lists all"


def test_a_release_of_the_node_releases_what_is_in_quarantine_on_it() -> None:
    court = court_in(QUARANTINE)
    assert court.verdicts[NODE].state is QUARANTINE
    assert court.says(Order.RELEASE, NODE).text == "device 3: released, now on probation"
    court.pass_s(5)
    assert court.verdicts[NODE].state is PROBATION


def test_an_ack_needs_a_finding_and_mends_nothing() -> None:
    court = court_in(HEALTHY)
    assert not court.says(Order.ACK).accepted
    court.finds(bad())
    assert court.says(Order.ACK, for_s=3600).accepted
    assert court.pass_s(5) is QUARANTINE


def test_a_decision_that_would_be_over_already_is_refused() -> None:
    assert "over already" in court_in(HEALTHY).says(Order.MAINTENANCE, for_s=-5).text


def test_a_device_that_was_never_read_is_unknown_and_is_healthy_without_a_word() -> None:
    court = Court()
    court.seen[THREE] = Sight(NOT_READ_YET, "3")
    assert court.judge() is UNKNOWN
    assert court.sees() is HEALTHY
