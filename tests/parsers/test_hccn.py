"""Link, history, speed and reachability of the NPU's own port: literal records, both generations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from npu_watchd.model.fabric import NET_HEALTH_LABELS, LinkChange, NetHealth, NpuLink, NpuLinkHistory, NpuLinkSpeed
from npu_watchd.model.reading import FailureKind
from npu_watchd.parsers import hccn
from tests.parsers.fabric_texts import written
from tests.parsers.texts import said


def test_the_link_is_up_or_down_when_the_tool_says_so() -> None:
    assert hccn.link(written("hccn-link__up")) == NpuLink(up=True)
    assert hccn.link(written("hccn-link__down")) == NpuLink(up=False)
    assert hccn.link("link status: UP") == NpuLink(up=True)


@pytest.mark.parametrize(
    "text", ["link status: U\n", "link status:\n", "vnic link status: UP\n", "UP\n", "link status: UP\n" * 2]
)
def test_anything_else_is_no_link_state(text: str) -> None:
    assert said(hccn.link, text)[0] is FailureKind.UNPARSEABLE


@pytest.mark.parametrize("word", NET_HEALTH_LABELS)
def test_the_ten_words_of_reachability(word: str) -> None:
    assert hccn.net_health(f"net health status: {word}\n") == NetHealth(word)


def test_an_eleventh_word_is_refused() -> None:
    assert said(hccn.net_health, "net health status: Splendid\n") == (
        FailureKind.UNPARSEABLE,
        "line 1: unknown state 'Splendid': 'net health status: Splendid'",
    )


def test_the_history_of_a_port_that_is_down() -> None:
    assert hccn.link_history(written("hccn-link-stat__down_since_four_minutes")) == NpuLinkHistory(
        device_id=5,
        current_time="2026-03-04T08:30:10",
        up_count=23,
        down_count=24,
        up=False,
        changes=(
            LinkChange("2026-03-04T08:26:10", up=False, seconds_ago=240),
            LinkChange("2026-02-28T23:59:59", up=True, seconds_ago=289811),
            LinkChange("2026-02-28T23:59:31", up=False, seconds_ago=289839),
        ),
    )


def test_a_driver_of_2023_does_not_count_downs() -> None:
    assert hccn.link_history(written("hccn-link-stat__2023_without_down_count")) == NpuLinkHistory(
        device_id=2,
        current_time="2026-01-01T00:00:40",
        up_count=12,
        down_count=None,
        up=True,
        changes=(
            LinkChange("2025-12-31T23:59:59", up=True, seconds_ago=41),
            LinkChange("2025-12-31T23:59:50", up=False, seconds_ago=50),
        ),
    )


def test_no_change_is_an_empty_list_and_no_word_of_changes_is_unknown() -> None:
    text = written("hccn-link-stat__no_change")
    found = hccn.link_history(text)
    assert (found.up_count, found.down_count, found.changes, found.up) == (1, 0, (), None)
    without = hccn.link_history(text.replace(" NA", ""))
    assert (without.changes, without.up) == (None, None)


def test_the_box_of_ascend_950() -> None:
    assert hccn.link_history(written("hccn-link-stat__950_box")) == NpuLinkHistory(
        device_id=None,
        current_time=None,
        up_count=31,
        down_count=32,
        up=False,
        changes=(
            LinkChange("2026-06-09T11:22:33", up=False, seconds_ago=None),
            LinkChange("2026-06-09T11:22:03", up=True, seconds_ago=None),
        ),
        udie=1,
        port=6,
    )


def test_a_clock_that_was_set_back_gives_no_age() -> None:
    text = written("hccn-link-stat__2023_without_down_count").replace("2026\n", "2024\n", 1)
    changes = hccn.link_history(text).changes
    assert changes is not None
    assert [change.seconds_ago for change in changes] == [None, None]


@pytest.mark.parametrize(
    ("good", "bad", "problem"),
    [
        ("[devid 5]link down", "[devid 6]link down", "lines of several devices"),
        (": 23", ": many", "'many' is no count"),
        ("Feb 28 23:59:59", "Feb 30 23:59:59", "is no time"),
        ("Feb 28 23:59:59", "Foo 28 23:59:59", "is no time"),
        ("LINK UP", "LINK AWAY", "no line of a link history"),
        ("link down count", "link up count  ", "the same key twice"),
    ],
)
def test_a_history_with_a_line_that_cannot_be_trusted_is_refused(good: str, bad: str, problem: str) -> None:
    text = written("hccn-link-stat__down_since_four_minutes")
    assert good in text
    assert problem in said(hccn.link_history, text.replace(good, bad, 1))[1]


def test_boxes_with_rows_of_several_ports_or_of_another_shape_are_refused() -> None:
    text = written("hccn-link-stat__950_box")
    assert "rows of several ports" in said(hccn.link_history, text.replace("|  6   |  LINK_UP", "|  7   |  LINK_UP"))[1]
    assert (
        "4 cells where the header has 5" in said(hccn.link_history, text.replace("|  6   |  LINK_UP", "|  LINK_UP"))[1]
    )


def test_speed_in_bits_per_second() -> None:
    assert hccn.speed(written("hccn-speed__200g")) == NpuLinkSpeed(200_000_000_000)
    assert hccn.speed(written("hccn-speed__950_box")) == NpuLinkSpeed(
        200_000_000_000, lanes=2, max_lanes=4, status="degraded", udie=1, port=6
    )


@pytest.mark.parametrize("text", ["Speed: Unknown!\n", "Speed: 0 Mb/s\n", "Speed: -1 Mb/s\n"])
def test_a_speed_that_the_tool_does_not_know_is_unknown(text: str) -> None:
    assert hccn.speed(text) == NpuLinkSpeed(None)


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (hccn.speed, "Speed: 200000 Mb/"),
        (hccn.speed, "Speed: 200000\n"),
        (hccn.speed, "Speed: 1 Mb/s\nSpeed: 2 Mb/s\n"),
        (hccn.speed, "| NPU | Speed |\n| 0 | fast |\n"),
        (hccn.link_history, "link status: UP\n"),
        (hccn.link_history, "+---+\n| a |\n+---+\n"),
    ],
)
def test_what_is_no_answer_is_refused(parse: Callable[[str], Any], text: str) -> None:
    assert said(parse, text)[0] is FailureKind.UNPARSEABLE
