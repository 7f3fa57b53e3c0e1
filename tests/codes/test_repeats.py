"""How often and how long: events, bursts and the vendor's limits, at their very edges."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from npu_watchd.codes.repeats import (
    Burst,
    LastingRule,
    Occurrence,
    RepeatRule,
    bursts,
    distinct,
    lasting,
    released,
    repeats,
    stands,
)

DAY_S = 86400.0
TWICE = RepeatRule(2, DAY_S, None, True, "a test")
FIVE_TIMES = RepeatRule(5, DAY_S, 172800.0, True, "a test")
PORT = LastingRule(20.0, 60.0)


def at(*instants_s: float) -> list[Occurrence]:
    """Events without duration."""
    return [Occurrence(instant_s, instant_s) for instant_s in instants_s]


def there(appeared_s: float, gone_s: float | None) -> Occurrence:
    return Occurrence(appeared_s, gone_s)


def test_the_same_event_within_five_seconds_counts_once() -> None:
    assert distinct(at(0, 5)) == (there(0, 5),)
    assert len(distinct(at(0, 5.001))) == 2


def test_a_stream_of_events_does_not_hide_in_its_first() -> None:
    assert [one.appeared_s for one in distinct(at(0, 4, 8, 12, 16))] == [0, 8, 16]


def test_what_is_still_there_stays_there_when_events_are_joined() -> None:
    assert distinct([there(0, None), there(3, 4)]) == (there(0, None),)
    assert distinct([there(3, None), there(0, 1)]) == (there(0, None),)


def test_a_pause_of_three_minutes_is_inside_a_burst() -> None:
    assert bursts(at(0, 180)) == (Burst(0, 180, 180, 2),)
    assert bursts(at(0, 180.001)) == (Burst(0, 0, 0, 1), Burst(180.001, 180.001, 180.001, 1))


def test_a_pause_begins_when_the_code_goes() -> None:
    assert bursts([there(0, 7200), there(7380, 7381)]) == (Burst(0, 7380, 7381, 2),)
    assert len(bursts([there(0, 7200), there(7380.001, 7381)])) == 2


def test_one_code_that_stays_is_one_burst_whatever_is_told_meanwhile() -> None:
    assert bursts([there(0, None), there(5000, 5001), there(9000, 9001)]) == (Burst(0, 9000, None, 3),)


def test_an_hour_of_flicker_is_one_burst() -> None:
    assert repeats(TWICE, at(*range(0, 3600, 60)), 3600.0).count == 1


def test_two_bursts_at_the_very_edge_of_the_day_are_too_many() -> None:
    assert repeats(TWICE, at(0, DAY_S), DAY_S).reached
    assert not repeats(TWICE, at(0, DAY_S), DAY_S + 0.001).reached
    assert not repeats(TWICE, at(0, DAY_S + 0.001), DAY_S + 0.001).reached


def test_a_burst_is_as_old_as_its_last_event() -> None:
    flicker = at(*range(0, 7201, 100))
    assert repeats(TWICE, [*flicker, *at(DAY_S)], DAY_S + 7200).count == 2
    assert repeats(TWICE, [*flicker, *at(DAY_S)], DAY_S + 7200.001).count == 1


def test_what_lies_in_the_future_is_not_counted() -> None:
    assert repeats(TWICE, at(0, 1000), 999.999).count == 1
    assert repeats(TWICE, at(0, 1000), 1000).count == 2
    assert repeats(TWICE, [there(0, 5000)], 100).bursts == (Burst(0, 0, None, 1),)


def test_nothing_never_repeats() -> None:
    assert repeats(TWICE, [], 0.0).reached is False


def test_a_port_down_for_twenty_seconds_is_a_flicker() -> None:
    assert lasting(PORT, [there(0, 20)], 100) == ()
    assert lasting(PORT, [there(0, 20.001)], 100) == (there(0, 20.001),)
    assert not stands(PORT, [there(0, None)], 20)
    assert stands(PORT, [there(0, None)], 20.001)


def test_a_port_is_well_again_after_a_minute() -> None:
    assert stands(PORT, [there(0, 30)], 89.999)
    assert not stands(PORT, [there(0, 30)], 90)


def test_a_port_that_falls_again_within_the_minute_never_came_back() -> None:
    assert lasting(PORT, [there(0, 30), there(89.999, 91)], 1000) == (there(0, 91),)
    assert lasting(PORT, [there(0, 30), there(90, 91)], 1000) == (there(0, 30),)
    assert stands(PORT, [there(0, 30), there(80, 81)], 140)


def test_many_flickers_do_not_add_up_to_a_fault() -> None:
    assert lasting(PORT, [there(start_s, start_s + 10) for start_s in range(0, 300, 30)], 1000) == ()


def test_occurrences_that_overlap_are_one() -> None:
    assert lasting(PORT, [there(0, 15), there(15, 25)], 100) == (there(0, 25),)
    assert lasting(PORT, [there(0, None), there(5, 6)], 21) == (there(0, None),)


def test_only_what_lasted_is_counted_where_a_code_has_both_rules() -> None:
    long = [there(hour * 3600.0, hour * 3600.0 + 21) for hour in range(5)]
    short = [there(hour * 3600.0, hour * 3600.0 + 19) for hour in range(5, 10)]
    assert repeats(FIVE_TIMES, long, 40000, lasts=PORT).reached
    assert not repeats(FIVE_TIMES, [*long[:4], *short], 40000, lasts=PORT).reached
    assert repeats(FIVE_TIMES, [*long[:4], *short], 40000).reached


def test_it_is_released_after_two_days_away_and_not_before() -> None:
    assert released(FIVE_TIMES, [there(0, 100)], 172900)
    assert not released(FIVE_TIMES, [there(0, 100)], 172899.999)
    assert not released(FIVE_TIMES, [there(0, None)], 1e9)


def test_without_a_release_only_a_person_lifts_it() -> None:
    assert not released(TWICE, at(0), 1e9)


stays = st.builds(
    lambda start, length: Occurrence(start / 4, None if length is None else (start + length) / 4),
    st.integers(0, 40_000),
    st.none() | st.integers(0, 4_000),
)
histories = st.lists(stays, max_size=30)


@given(histories)
def test_the_order_in_which_it_is_told_changes_nothing(history: list[Occurrence]) -> None:
    assert bursts(reversed(history)) == bursts(history)


@given(histories)
def test_bursts_lie_in_order_with_long_pauses_between_them(history: list[Occurrence]) -> None:
    found = bursts(history)
    assert bool(found) == bool(history)
    for before, after in pairwise(found):
        assert before.gone_s is not None
        assert after.first_s - before.gone_s > 180.0
    assert sum(burst.events for burst in found) <= len(history)
    if history:
        assert found[0].first_s == min(one.appeared_s for one in history)


@given(histories)
def test_joining_events_never_changes_the_number_of_bursts(history: list[Occurrence]) -> None:
    assert [burst.first_s for burst in bursts(distinct(history))] == [burst.first_s for burst in bursts(history)]


@given(histories, st.integers(0, 200_000))
def test_a_rule_never_counts_more_than_there_were_and_asking_twice_changes_nothing(
    history: list[Occurrence], now_s: int
) -> None:
    seen = repeats(TWICE, history, now_s)
    assert seen.count <= sum(one.appeared_s <= now_s for one in history)
    assert repeats(TWICE, history, now_s) == seen
    assert repeats(TWICE, history, now_s, lasts=PORT).count <= sum(one.appeared_s <= now_s for one in history)


@given(histories, st.integers(0, 20_000))
def test_what_lasts_is_longer_than_a_flicker(history: list[Occurrence], now_s: int) -> None:
    for one in lasting(PORT, history, now_s):
        assert (now_s if one.gone_s is None else one.gone_s) - one.appeared_s > 20.0
