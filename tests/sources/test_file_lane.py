"""Rounds of file reads come in their period; one that had no chip to ask about comes again soon."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from npu_watchd.model.fabric import RdmaPorts
from npu_watchd.model.ids import NODE, DeviceKey
from npu_watchd.model.reading import Reading, Tick
from npu_watchd.sources.file_lane import FileLane, Read
from npu_watchd.sources.rounds import Pace


class Ledger:
    def __init__(self) -> None:
        self.readings: list[Reading[Any]] = []

    def put(self, readings: Iterable[Reading[Any]]) -> bool:
        self.readings += readings
        return False

    def pci_addresses(self) -> Mapping[DeviceKey, str]:
        return {}


class Node:
    """A lane with a clock of its own, a probe of the node and one of its chips, of which there are `chips`."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.chips = 0
        self.ledger = Ledger()
        reads: dict[str, Read] = {
            "ibstat": lambda _: {NODE: "ports"},
            "pcie_link": lambda _: {DeviceKey(npu): "link" for npu in range(self.chips)},
        }
        self.lane = FileLane(reads, self.ledger, lambda: Tick(self.now_s, self.now_s))
        self.lane.take({"ibstat": Pace(30, 5), "pcie_link": Pace(60, 60)})

    def asked_at(self, now_s: float) -> list[str]:
        """The probes that have a round at that time."""
        self.now_s = now_s
        return list(iter(self.lane.turn, None))


def test_each_round_comes_in_its_period() -> None:
    node = Node()
    node.chips = 2
    assert node.asked_at(0) == ["ibstat", "pcie_link"]
    assert [node.asked_at(second) for second in (29, 30, 59, 60)] == [[], ["ibstat"], [], ["ibstat", "pcie_link"]]
    assert [reading.subject for reading in node.ledger.readings[:3]] == [NODE, DeviceKey(0), DeviceKey(1)]


def test_a_round_that_knew_no_chip_does_not_wait_a_whole_period() -> None:
    node = Node()
    assert node.asked_at(0) == ["ibstat", "pcie_link"]
    node.chips = 1
    assert [node.asked_at(second) for second in (4, 5, 29)] == [[], ["pcie_link"], []]
    assert node.asked_at(64) == ["ibstat"]
    assert node.asked_at(65) == ["pcie_link"]


def test_a_probe_that_is_switched_off_has_no_round() -> None:
    node = Node()
    node.lane.take({"ibstat": Pace(30, 5)})
    assert node.asked_at(0) == ["ibstat"]


def test_a_period_that_is_made_shorter_counts_at_once_and_a_longer_one_from_the_next_round_on() -> None:
    node = Node()
    node.lane.take({"ibstat": Pace(600, 5)})
    assert node.asked_at(0) == ["ibstat"]
    node.lane.take({"ibstat": Pace(10, 5)})
    assert [node.asked_at(second) for second in (1, 10, 11, 20, 21)] == [[], [], ["ibstat"], [], ["ibstat"]]
    node.lane.take({"ibstat": Pace(600, 5)})
    assert [node.asked_at(second) for second in (31, 32, 630, 631)] == [["ibstat"], [], [], ["ibstat"]]


def test_a_probe_that_is_switched_on_again_is_read_at_once() -> None:
    node = Node()
    assert node.asked_at(0) == ["ibstat", "pcie_link"]
    node.lane.take({})
    assert node.asked_at(40) == []
    node.lane.take({"ibstat": Pace(30, 5)})
    assert node.asked_at(41) == ["ibstat"]


def test_a_round_that_goes_wrong_in_our_own_code_comes_again_in_its_period_and_the_others_go_on() -> None:
    ledger = Ledger()
    clock = [0.0]

    def broken(_deadline_s: float) -> Mapping[Any, Any]:
        raise RuntimeError("a fault of ours")

    reads: dict[str, Read] = {"ibstat": broken, "pcie_link": lambda _: {DeviceKey(0): "link"}}
    lane = FileLane(reads, ledger, lambda: Tick(clock[0], clock[0]))
    lane.take({"ibstat": Pace(30, 5), "pcie_link": Pace(60, 60)})
    with pytest.raises(RuntimeError):
        lane.turn()
    assert list(iter(lane.turn, None)) == ["pcie_link"]
    clock[0] = 30.0
    with pytest.raises(RuntimeError):
        lane.turn()


def test_a_reading_is_taken_at_the_end_of_its_round_and_knows_the_deadline_and_the_unknown_keys() -> None:
    ledger = Ledger()
    clock = [100.0]
    deadlines: list[float] = []

    def slow(deadline_s: float) -> Mapping[Any, Any]:
        deadlines.append(deadline_s)
        clock[0] += 2.5
        return {NODE: RdmaPorts(unknown_keys=("Moon phase", "Tide"))}

    lane = FileLane({"ibstat": slow}, ledger, lambda: Tick(clock[0], clock[0] + 1000))
    lane.take({"ibstat": Pace(30, 4.5)})
    assert lane.turn() == "ibstat"
    (reading,) = ledger.readings
    assert (reading.taken_at, reading.duration_s, reading.unknown_keys) == (Tick(102.5, 1102.5), 2.5, 2)
    assert deadlines == [4.5]


def test_a_lane_says_how_long_no_round_is_due() -> None:
    node = Node()
    node.chips = 1
    assert node.lane.idle_s() == 0.0
    node.asked_at(0)
    node.now_s = 12.0
    assert node.lane.idle_s() == 18.0
    node.lane.take({})
    assert node.lane.idle_s() == float("inf")
