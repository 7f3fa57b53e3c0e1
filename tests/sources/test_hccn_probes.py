"""The NPUs' own ports: who is asked how, what a busy, sick or missing hccn_tool means, and what it never means."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from npu_watchd.chips import profile_of
from npu_watchd.memory.board import Board, Watch
from npu_watchd.model.fabric import NetHealth, NpuLink, NpuLinkHistory, NpuLinkSpeed
from npu_watchd.model.ids import NODE, DeviceKey
from npu_watchd.model.reading import Failure, FailureKind, Output, Reading
from npu_watchd.model.records import DeviceMap
from npu_watchd.model.snapshot import Device, ProbeState
from npu_watchd.sources.agenda import Agenda
from npu_watchd.sources.hccn_probes import HCCN_PROBES
from npu_watchd.sources.lane import Lane, Orders
from npu_watchd.sources.probe import Target, ask
from npu_watchd.sources.rounds import Pace
from tests.memory.build import info, map_row, reading, row, table
from tests.parsers.texts import CAPTURES
from tests.sources.answers import Answer, Tool

BY_NAME = {probe.name: probe for probe in HCCN_PROBES}
NAMES = ("hccn_link", "hccn_link_stat", "hccn_net_health", "hccn_optical", "hccn_speed", "hccn_stat")
TARGET = Target(3, 0, (0,), logic_id=5)
BUSY = Output("hccn_tool is busy, please try again.\n", "", 11)
I2C_BUSY = Output("", "I2c is busy. Please try again.\n", 12)
TIMEOUT = Failure(FailureKind.TIMEOUT, "hccn_tool -i 0 -link -g: no answer within 10.0 s and was ended")
ABSENT = Failure(FailureKind.MISSING, "hccn_tool: not found on PATH (/bin)")
ANSWERS = {
    "link": "hccn-link__up",
    "link_stat": "hccn-link-stat__no_change",
    "net_health": "hccn-net-health__receive_timeout",
    "optical": "hccn-optical__receive_loss_on_lane_1",
    "speed": "hccn-speed__200g",
    "stat": "hccn-stat__every_counter",
}


def captured(name: str) -> str:
    return (CAPTURES / "hccn_tool" / f"{name}.txt").read_text(encoding="utf-8")


class Hccn(Tool):
    """hccn_tool whose answers to the question of `turns` change from call to call; the last one stays."""

    def __init__(self, *turns: Answer, took_s: float = 0.1) -> None:
        super().__init__(took_s=took_s)
        self.turns = list(turns)
        self.asked_at_s: list[float] = []

    def run(self, argv: tuple[str, ...], timeout_s: float) -> Output | Failure:
        self.asked_at_s.append(round(self.now_s, 3))
        self.answers[" ".join(argv[1:])] = self.turns.pop(0) if len(self.turns) > 1 else self.turns[0]
        return super().run(argv, timeout_s)


def asked(tool: Tool, probe: str = "hccn_link", timeout_s: float = 10.0) -> Reading[Any]:
    (found,) = ask(BY_NAME[probe], TARGET, tool.run, "hccn_tool", timeout_s, tool.clock, tool.wait)
    return found


def test_the_logic_id_is_asked_for_and_not_the_npu_id() -> None:
    assert BY_NAME["hccn_link"].argv("hccn_tool", TARGET) == ("hccn_tool", "-i", "5", "-link", "-g")
    questions = {name: probe.argv("/x/hccn_tool", TARGET)[3] for name, probe in BY_NAME.items()}
    assert questions == {
        "hccn_link": "-link",
        "hccn_link_stat": "-link_stat",
        "hccn_stat": "-stat",
        "hccn_net_health": "-net_health",
        "hccn_optical": "-optical",
        "hccn_speed": "-speed",
    }


@pytest.mark.parametrize(
    ("probe", "capture", "record"),
    [
        ("hccn_link", "hccn-link__up", NpuLink(up=True)),
        ("hccn_link", "hccn-link__down", NpuLink(up=False)),
        ("hccn_speed", "hccn-speed__200g", NpuLinkSpeed(200_000_000_000)),
        ("hccn_speed", "hccn-speed__unknown", NpuLinkSpeed(None)),
        ("hccn_net_health", "hccn-net-health__receive_timeout", NetHealth("Receive timeout")),
    ],
)
def test_an_answer_is_about_the_chip_whose_port_it_is(probe: str, capture: str, record: object) -> None:
    found = asked(Hccn(captured(capture)), probe)
    assert (found.probe, found.subject, found.result) == (probe, DeviceKey(3, 0), record)


def test_counts_of_the_link_keep_their_direction() -> None:
    found = asked(Hccn(captured("hccn-link-stat__down_since_four_minutes")), "hccn_link_stat").result
    assert isinstance(found, NpuLinkHistory)
    assert (found.up_count, found.down_count, found.up) == (23, 24, False)


@pytest.mark.parametrize("busy", [BUSY, I2C_BUSY], ids=["busy", "i2c busy"])
def test_a_busy_tool_is_asked_again_with_growing_pauses(busy: Output) -> None:
    tool = Hccn(busy, busy, busy, "link status: DOWN\n")
    found = asked(tool)
    assert found.result == NpuLink(up=False)
    assert tool.asked_at_s == [0.0, 0.4, 1.1, 2.4]
    assert [round(seconds, 3) for seconds in (found.taken_at.mono_s, found.duration_s)] == [2.5, 2.5]


@pytest.mark.parametrize("busy", [BUSY, I2C_BUSY], ids=["busy", "i2c busy"])
@pytest.mark.parametrize("timeout_s", [0.5, 1.0, 3.0, 10.0])
def test_a_tool_that_stays_busy_is_given_up_within_the_deadline_and_is_no_state(busy: Output, timeout_s: float) -> None:
    tool = Hccn(busy)
    found = asked(tool, timeout_s=timeout_s)
    assert isinstance(found.result, Failure)
    assert found.result.kind is FailureKind.EXIT
    assert "busy" in found.result.detail
    assert tool.now_s <= timeout_s
    assert all(began + left <= timeout_s + 1e-6 for began, left in zip(tool.asked_at_s, tool.deadlines_s, strict=True))


def test_a_busy_tool_is_not_asked_again_where_its_answer_would_be_cut_off() -> None:
    tool = Hccn(BUSY, took_s=1.0)
    found = asked(tool, timeout_s=2.2)
    assert isinstance(found.result, Failure)
    assert (found.result.kind, tool.asked_at_s) == (FailureKind.EXIT, [0.0])


def test_no_other_failure_is_asked_about_twice() -> None:
    for answer in (TIMEOUT, ABSENT, Output("", "Get device health status failed!\n", 3), Output("rubbish\n")):
        tool = Hccn(answer)
        assert isinstance(asked(tool).result, Failure)
        assert len(tool.calls) == 1


FAILURES = [
    (Output("", "Execute failed: Link status is down.\n", 22), FailureKind.EXIT, "Link status is down"),
    (Output("", "Command execute failed!\n", 0), FailureKind.EXIT, "the driver refused"),
    (Output("link status: UP\n", "", -9), FailureKind.EXIT, "hccn_tool was ended by signal 9"),
    (Output("", "", 0), FailureKind.EXIT, "printed nothing"),
    (Output("link status: SIDEWAYS\n"), FailureKind.UNPARSEABLE, "SIDEWAYS"),
    (
        Output("", "hccn_tool: error while loading shared libraries: libx.so: cannot open shared object file\n", 127),
        FailureKind.EXIT,
        "LD_LIBRARY_PATH",
    ),
    (TIMEOUT, FailureKind.TIMEOUT, "no answer"),
]


@pytest.mark.parametrize("probe", NAMES)
@pytest.mark.parametrize(("answer", "kind", "words"), FAILURES, ids=[words for _, _, words in FAILURES])
def test_a_failed_query_is_a_failure_and_never_a_link_down_or_a_zero(
    probe: str, answer: Answer, kind: FailureKind, words: str
) -> None:
    found = asked(Hccn(answer), probe).result
    assert isinstance(found, Failure)
    if probe == "hccn_link" or "SIDEWAYS" not in words:
        assert (found.kind, words in found.detail) == (kind, True)


def test_keys_of_a_newer_module_are_counted() -> None:
    text = captured("hccn-optical__receive_loss_on_lane_1").replace("Physical Code ", "Moon Phase    ")
    assert asked(Hccn(text), "hccn_optical").unknown_keys == 1


# The lane of a node with ports


def answers(*logic_ids: int) -> dict[str, Answer]:
    return {f"-i {number} -{word} -g": captured(name) for number in logic_ids for word, name in ANSWERS.items()}


class Node:
    """A lane that asks hccn_tool, on a board that knows these chips: NPU id → logic id, None where nobody does."""

    def __init__(
        self, chips: dict[int, int | None], names: tuple[str, ...] = NAMES, chip: str = "910B3", share: float = 0.5
    ) -> None:
        self.tool = Tool(answers(*(number for number in chips.values() if number is not None)), took_s=0.05)
        self.names = names
        self.board = Board("node-17", None, None, self._watch)
        self.board.put([info(table(*(row(npu, name=chip) for npu in chips)))])
        self.map(chips)
        self.asked_at_s: dict[str, list[float]] = {}
        agenda = Agenda(share=share, burst_s=30.0, jitter=lambda: 0.0)
        self.lane = Lane(HCCN_PROBES, self._run, agenda, self.board, self.tool.clock, self.orders(), self.tool.wait)

    def map(self, chips: dict[int, int | None]) -> None:
        rows = tuple(map_row(npu, 0, number) for npu, number in chips.items() if number is not None)
        self.board.put([reading("npu_map", NODE, DeviceMap(rows))])

    def orders(self, every_s: float = 60.0) -> Orders:
        paces = {name: Pace(every_s, 10.0) for name in self.names}
        return Orders("hccn_tool", paces, lambda name: profile_of(name).probes)

    def _watch(self, name: str | None) -> Watch:
        profile = profile_of(name)
        return Watch(profile.name, profile.probes & frozenset(self.names), frozenset({"npu_info"}), frozenset())

    def _run(self, argv: tuple[str, ...], timeout_s: float) -> Output | Failure:
        self.asked_at_s.setdefault(argv[2], []).append(self.tool.now_s)
        found = self.tool.run(argv, timeout_s)
        if isinstance(found, Failure) and found.kind is FailureKind.TIMEOUT:
            self.tool.now_s += timeout_s
        return found

    def live(self, until_s: float) -> None:
        while self.tool.now_s < until_s:
            if self.lane.turn() is None:
                self.tool.now_s += 1.0

    def silence(self, logic_id: int) -> None:
        for question in ANSWERS:
            self.tool.answers[f"-i {logic_id} -{question} -g"] = TIMEOUT

    def device(self, npu: int) -> Device:
        # The table is not of this lane; it is read again so that it is fresh.
        self.board.put([info(table(*(row(key.npu) for key in sorted(self.keys()))), self.tool.now_s)])
        return self.shown(npu)

    def keys(self) -> list[DeviceKey]:
        return [DeviceKey(npu) for npu, *_ in self.board.cards()]

    def shown(self, npu: int) -> Device:
        return self.board.snapshot(self.tool.clock(), self._period).devices[DeviceKey(npu)]

    def states(self) -> tuple[ProbeState, ...]:
        return self.board.snapshot(self.tool.clock(), self._period).probes

    def _period(self, probe: str) -> float | None:
        return {"npu_info": 15.0, "npu_map": 3600.0}.get(probe) or self.lane.periods_s().get(probe)


def test_every_port_is_asked_every_question_in_its_period() -> None:
    node = Node({2: 0, 6: 1})
    node.live(59.0)
    assert sorted(node.tool.heard()) == sorted(answers(0, 1))
    node.live(120.0)
    assert sorted(node.tool.heard()) == sorted(answers(0, 1))


def test_without_a_logic_id_nobody_is_asked_until_the_map_gives_one() -> None:
    node = Node({2: None})
    node.live(120.0)
    assert node.tool.heard() == []
    assert (node.device(2).roce, node.device(2).blind) == (None, {})
    node.map({2: 7})
    node.tool.answers = answers(7)
    node.live(180.0)
    assert set(node.tool.heard()) == set(answers(7))


@pytest.mark.parametrize("chip", ["310P3", "950PR"])
def test_a_chip_without_such_a_port_is_not_asked(chip: str) -> None:
    node = Node({0: 0}, chip=chip)
    node.live(120.0)
    assert node.tool.heard() == []


def test_a_port_over_which_the_tool_hangs_rests_longer_each_time_and_the_others_keep_their_period() -> None:
    node = Node({0: 0, 1: 1, 2: 2}, names=("hccn_link",))
    node.silence(1)
    node.live(3600.0)
    rests = [later - now - 10.05 for now, later in pairwise(node.asked_at_s["1"])]
    assert [round(rest / 10) * 10 for rest in rests] == [60, 120, 240, 480, 600, 600, 600, 600]
    for port in ("0", "2"):
        waits = [later - now for now, later in pairwise(node.asked_at_s[port])]
        assert min(waits) >= 55
        assert max(waits) <= 75
    assert "hccn_link" not in node.device(0).blind
    assert node.device(1).blind["hccn_link"] == TIMEOUT
    assert node.device(1).roce is None


def test_all_questions_of_a_hung_port_rest_together() -> None:
    node = Node({0: 0, 1: 1})
    node.silence(1)
    node.live(59.0)
    assert len(node.asked_at_s["1"]) == 1
    assert len(node.asked_at_s["0"]) == 6


def test_a_success_ends_the_rest() -> None:
    node = Node({0: 0}, names=("hccn_link",))
    node.silence(0)
    node.live(300.0)
    before = len(node.asked_at_s["0"])
    node.tool.answers = answers(0)
    node.live(900.0)
    again = node.asked_at_s["0"][before:]
    assert all(55 <= later - now <= 75 for now, later in pairwise(again))
    assert len(again) >= 8


def test_a_rest_outlasts_a_new_plan_and_new_orders() -> None:
    node = Node({0: 0, 1: 1}, names=("hccn_link",))
    node.silence(1)
    node.live(80.0)  # the second hang, so that a rest of 120 s has begun
    asked_before = len(node.asked_at_s["1"])
    node.map({0: 0, 1: 1})
    node.lane.take(node.orders(every_s=20.0))
    node.names = ("hccn_link", "hccn_stat")
    node.lane.take(node.orders(every_s=20.0))
    node.live(180.0)
    assert len(node.asked_at_s["1"]) == asked_before == 2
    assert len(node.asked_at_s["0"]) > 8
    node.live(215.0)
    assert len(node.asked_at_s["1"]) == 3


def test_a_chip_that_was_gone_meanwhile_begins_anew() -> None:
    node = Node({0: 0, 1: 1}, names=("hccn_link",))
    node.silence(1)
    node.live(80.0)
    node.board.put([info(table(row(0)), node.tool.now_s)])
    node.lane.turn()
    node.board.put([info(table(row(0), row(1)), node.tool.now_s)])
    node.tool.answers = answers(0, 1)
    node.live(90.0)
    assert len(node.asked_at_s["1"]) == 3


def test_a_port_that_stays_busy_does_not_make_the_others_old() -> None:
    node = Node({number: number for number in range(16)}, share=0.2)
    for question in ANSWERS:
        node.tool.answers[f"-i 4 -{question} -g"] = BUSY
    node.live(1200.0)
    blind = {npu: set(node.device(npu).blind) for npu in range(16)}
    assert {npu for npu, probes in blind.items() if probes} == {4}
    # Each of the others had its six questions a minute, or five where that of the speed was not due.
    assert min(len(times) for port, times in node.asked_at_s.items() if port != "4") >= 5 * 20
    failure = node.device(4).blind["hccn_link"]
    assert (failure.kind, failure.detail) == (FailureKind.EXIT, "hccn_tool is busy, please try again.")
    assert node.device(4).roce is None


def test_never_two_calls_at_once_and_a_sick_port_takes_a_small_share() -> None:
    node = Node({number: number for number in range(16)})
    node.silence(3)
    node.live(3600.0)
    assert 10 * len(node.asked_at_s["3"]) < 0.05 * 3600
    assert min(len(times) for port, times in node.asked_at_s.items() if port != "3") >= 6 * 50


def test_where_hccn_tool_never_was_nothing_is_blind_and_nothing_is_exported() -> None:
    node = Node({0: 0})
    node.tool.answers = dict.fromkeys(answers(0), ABSENT)
    node.live(100.0)
    shown = node.device(0)
    assert (shown.roce, shown.blind, shown.vital_blind) == (None, {}, False)
    assert shown.unsupported == dict.fromkeys(NAMES, ABSENT.detail)
    assert [state.probe for state in node.states()] == ["npu_info", "npu_map"]
    tallies = node.board.snapshot(node.tool.clock(), node.lane.periods_s().get).tallies
    assert {tally.probe: tally.failures for tally in tallies if tally.probe in NAMES} == {name: {} for name in NAMES}


def test_a_hccn_tool_that_comes_later_is_found() -> None:
    node = Node({0: 0})
    node.tool.answers = dict.fromkeys(answers(0), ABSENT)
    node.live(100.0)
    node.tool.answers = answers(0)
    node.live(200.0)
    port = node.device(0).roce
    assert port is not None
    assert (port.link_up, port.bits_per_second, port.reachability) == (True, 200_000_000_000, "receive_timeout")


def test_a_hccn_tool_that_was_there_and_is_gone_leaves_the_device_blind() -> None:
    node = Node({0: 0})
    node.live(60.0)
    node.tool.answers = dict.fromkeys(answers(0), ABSENT)
    node.live(400.0)
    shown = node.device(0)
    assert shown.roce is None
    assert shown.blind == dict.fromkeys(NAMES, ABSENT)


@pytest.mark.parametrize(
    "answer",
    [
        Output("", "Command execute failed!\n", 1),
        Output("", "hccn_tool: error while loading shared libraries: libascend_hal.so: cannot open\n", 127),
        Output("", "permission denied: pls check this cmd run permission.\n", 12),
    ],
    ids=["refused", "libraries", "denied"],
)
def test_a_hccn_tool_that_is_there_and_fails_leaves_the_device_blind_but_not_in_what_is_vital(answer: Output) -> None:
    node = Node({0: 0})
    node.tool.answers = dict.fromkeys(answers(0), answer)
    node.live(100.0)
    shown = node.device(0)
    assert set(shown.blind) == set(NAMES)
    assert (shown.roce, shown.vital_blind, shown.present) == (None, False, True)
    assert {state.up for state in node.states() if state.probe in NAMES} == {False}


def test_what_the_tool_says_it_cannot_tell_is_asked_once() -> None:
    node = Node({0: 0})
    refusal = "This device does not support this command.\n"
    node.tool.answers["-i 0 -net_health -g"] = Output("", refusal, 1)
    node.live(300.0)
    assert node.tool.heard().count("-i 0 -net_health -g") == 1
    assert "hccn_net_health" not in node.device(0).blind
    port = node.device(0).roce
    assert port is not None
    assert (port.reachability, port.link_up) == (None, True)


def test_a_link_down_is_a_state_and_each_failed_query_costs_its_own_value() -> None:
    node = Node({0: 0})
    node.tool.answers["-i 0 -link -g"] = "link status: DOWN\n"
    node.tool.answers["-i 0 -speed -g"] = Output("", "Execute failed: Link status is down.\n", 22)
    node.tool.answers["-i 0 -stat -g"] = I2C_BUSY
    node.live(100.0)
    shown = node.device(0)
    port = shown.roce
    assert port is not None
    assert (port.link_up, port.bits_per_second, port.statistics) == (False, None, None)
    assert set(shown.blind) == {"hccn_speed", "hccn_stat"}
