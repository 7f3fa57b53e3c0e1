"""Histories of levels: what the counters of links and traffic are made from."""

from __future__ import annotations

from npu_watchd.simnode.scenario import Event, Started
from npu_watchd.simnode.spans import Span, busy_spans, last_reset_s, level_spans, seconds

JOB = Event(10.0, start=(Started(1, "python3", 100),))
DOWN = Event(20.0, lasts_s=5.0, levels={"port.link": "down"})


def test_a_level_that_nobody_mentions_never_changes() -> None:
    assert level_spans([JOB], "port.link", "up", 100.0) == (Span(0.0, "up"),)


def test_a_level_is_taken_back_after_its_time() -> None:
    spans = level_spans([JOB, DOWN], "port.link", "up", 100.0)
    assert spans == (Span(0.0, "up"), Span(20.0, "down"), Span(25.0, "up"))
    assert level_spans([JOB, DOWN], "port.link", "up", 22.0) == spans[:2]


def test_what_comes_at_the_start_has_always_been_so() -> None:
    assert level_spans([Event(0.0, levels={"port.link": "down"})], "port.link", "up", 9.0) == (Span(0.0, "down"),)


def test_one_down_within_another_is_one() -> None:
    longer = Event(18.0, lasts_s=20.0, levels={"port.link": "down"})
    assert level_spans([longer, DOWN], "port.link", "up", 100.0) == (
        Span(0.0, "up"),
        Span(18.0, "down"),
        Span(38.0, "up"),
    )


def test_a_reset_takes_a_level_back() -> None:
    events = [Event(5.0, levels={"port.link": "down"}), Event(9.0, reset=True)]
    assert level_spans(events, "port.link", "up", 20.0) == (Span(0.0, "up"), Span(5.0, "down"), Span(9.0, "up"))
    assert (last_reset_s(events, 8.9), last_reset_s(events, 9.0)) == (None, 9.0)


def test_busy_is_from_the_first_process_to_the_last() -> None:
    events = [JOB, Event(12.0, start=(Started(2, "ray", 1),)), Event(15.0, stop=(1,)), Event(30.0, stop=())]
    assert busy_spans(events, 99.0) == (Span(0.0, False), Span(10.0, True), Span(30.0, False))


def test_seconds_are_those_in_which_everything_holds() -> None:
    up = (Span(0.0, True), Span(20.0, False), Span(25.0, True))
    busy = (Span(0.0, False), Span(10.0, True), Span(30.0, False))
    assert seconds(40.0, 0.0, up) == 35.0
    assert seconds(40.0, 0.0, up, busy) == 15.0
    assert seconds(24.0, 22.0, up) == 0.0
    assert seconds(0.0, 0.0, up) == 0.0
