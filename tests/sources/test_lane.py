"""One tool's calls, one after another, on a node whose answers the test writes."""

from __future__ import annotations

import pytest

from npu_watchd.chips import profile_of
from npu_watchd.memory.board import Board, Watch
from npu_watchd.model.ids import DeviceKey
from npu_watchd.model.reading import Failure, FailureKind, Output
from npu_watchd.sources.agenda import Agenda
from npu_watchd.sources.lane import Lane, Orders
from npu_watchd.sources.npu_smi_probes import NPU_SMI_PROBES as PROBES
from npu_watchd.sources.rounds import Pace
from tests.sources.answers import Tool

PACES = {probe.name: Pace(float(probe.every_s), float(probe.timeout_s)) for probe in PROBES}
VITAL = {"npu_map", "npu_info", "npu_list", "npu_health", "npu_ecc"}
"""The probes of these tests; what the others learn is the affair of test_probes."""


def info_text(*npus: int, sick: dict[int, str] | None = None) -> str:
    row = (
        "| {npu:<6}910B3               | {health:<14}| 91.6        40                0    / 0             |\n"
        "| 0                         | 0000:{bus:02X}:00.0  | 13          0    / 0          3393 / 65536         |\n"
        "+===========================+===============+====================================================+\n"
    )
    rows = [row.format(npu=npu, health=(sick or {}).get(npu, "OK"), bus=0x80 + npu) for npu in npus]
    return (
        "+------------------------------------------------------------------------------------------------+\n"
        "| npu-smi 25.5.1                   Version: 25.5.1                                               |\n"
        "+---------------------------+---------------+----------------------------------------------------+\n"
        "| NPU   Name                | Health        | Power(W)    Temp(C)           Hugepages-Usage(page)|\n"
        "| Chip                      | Bus-Id        | AICore(%)   Memory-Usage(MB)  HBM-Usage(MB)        |\n"
        "+===========================+===============+====================================================+\n"
        + "".join(rows)
    )


def map_text(*npus: int) -> str:
    rows = [f"\t{npu}     0     {npu}      Ascend 910B3\n" for npu in npus]
    return "\tNPU ID     Chip ID     Chip Logic ID     Chip Name\n" + "".join(rows)


def list_text(*npus: int) -> str:
    cards = "".join(f"\n\tNPU ID : {npu}\n\tChip Count : 1\n" for npu in npus)
    return f"\tTotal Count : {len(npus)}\n{cards}"


def health_text(word: str = "OK") -> str:
    return f"\tHealth Status : {word}\n\tError Code : NA\n\tError Information : NA\n"


def ecc_text(npu: int) -> str:
    return (
        f"\tNPU ID : {npu}\n\tChip Count : 1\n\n\tHBM Single Bit Error Count : 0\n"
        "\tHBM Double Bit Error Count : 0\n\tChip ID : 0\n"
    )


def node_of(*npus: int) -> Tool:
    tool = Tool({"info": info_text(*npus), "info -m": map_text(*npus), "info -l": list_text(*npus)})
    for npu in npus:
        tool.answers[f"info -t health -i {npu} -c 0"] = health_text()
        tool.answers[f"info -t ecc -i {npu}"] = ecc_text(npu)
    return tool


def watch(name: str | None) -> Watch:
    profile = profile_of(name)
    return Watch(profile.name, profile.probes & VITAL, profile.vital, frozenset())


def orders(names: set[str] | frozenset[str] = frozenset(VITAL)) -> Orders:
    paces = {name: pace for name, pace in PACES.items() if name in names}
    return Orders("npu-smi", paces, lambda name: profile_of(name).probes)


class Node:
    """A lane on a board, and the tool that it asks."""

    def __init__(self, tool: Tool) -> None:
        self.tool = tool
        self.board = Board("node-17", None, None, watch)
        agenda = Agenda(share=0.2, burst_s=30.0, jitter=lambda: 0.0)
        self.lane = Lane(PROBES, tool.run, agenda, self.board, tool.clock, orders(), tool.wait)

    def settle(self) -> list[str]:
        """Let the lane make every call that is due; what it asked."""
        while self.lane.turn() is not None:
            assert len(self.tool.calls) < 200
        return self.tool.heard()

    def advance(self, seconds: float) -> list[str]:
        self.tool.now_s += seconds
        return self.settle()

    def health(self) -> dict[str, str]:
        now = self.board.snapshot(self.tool.clock(), self.lane.periods_s().get)
        return {device.device_id: device.health for device in now.devices.values()}


def test_a_node_is_known_after_the_first_round() -> None:
    node = Node(node_of(0, 1))
    asked = node.settle()
    assert asked[:2] == ["info -m", "info"]
    assert set(asked) == {
        "info -m",
        "info",
        "info -l",
        "info -t health -i 0 -c 0",
        "info -t health -i 1 -c 0",
        "info -t ecc -i 0",
        "info -t ecc -i 1",
    }
    assert node.health() == {"0": "ok", "1": "ok"}


def test_a_quiet_node_is_asked_for_its_table_only_between_rounds() -> None:
    node = Node(node_of(0, 1))
    node.settle()
    assert node.advance(15) == ["info"]
    assert node.advance(15) == ["info"]


def test_turn_names_the_probe_and_says_when_there_is_nothing_to_do() -> None:
    node = Node(node_of(0))
    assert node.lane.turn() == "npu_map"
    assert node.lane.turn() == "npu_info"
    node.settle()
    assert node.lane.turn() is None


def test_other_chips_than_before_bring_map_and_list_at_once() -> None:
    node = Node(node_of(0, 1))
    node.settle()
    node.tool.answers["info"] = info_text(0)
    assert node.advance(15) == ["info", "info -m", "info -l"]
    assert node.advance(15) == ["info"]
    node.tool.answers["info"] = info_text(0, 1)
    back = node.advance(15)
    assert back[:2] == ["info", "info -m"]
    # A card that is back is asked for its health and its counts before anything is said of it.
    assert {"info -l", "info -t health -i 1 -c 0", "info -t ecc -i 1"} <= set(back)


def test_a_chip_that_stops_being_ok_is_asked_for_its_health_at_once_and_once() -> None:
    node = Node(node_of(0, 1))
    node.settle()
    node.tool.answers["info"] = info_text(0, 1, sick={1: "Alarm"})
    node.tool.answers["info -t health -i 1 -c 0"] = health_text("Critical")
    assert node.advance(15) == ["info", "info -t health -i 1 -c 0"]
    assert node.health() == {"0": "ok", "1": "critical"}
    assert node.advance(15) == ["info"]
    # Well again, and sick again: that is news again.
    node.tool.answers["info"] = info_text(0, 1)
    node.advance(15)
    node.tool.answers["info"] = info_text(0, 1, sick={1: "Warning"})
    assert "info -t health -i 1 -c 0" in node.advance(5 + 15)


def processes_text(*npus: int, each: int) -> str:
    frame = "+---------------------------+---------------+----------------------------------------------------+\n"
    rows = "".join(
        f"| {npu}       0                 | {100 * npu + pid:<14}| python3                  | {'141':<24}|\n"
        for npu in npus
        for pid in range(each)
    )
    head = "| NPU     Chip              | Process id    | Process name             | Process memory(MB)      |\n"
    return f"{frame}{head}{frame.replace('-', '=')}{rows}{frame.replace('-', '=')}"


def test_a_chip_whose_part_of_the_table_is_full_is_asked_for_all_its_processes_at_once_and_every_minute() -> None:
    node = Node(node_of(0, 1))
    node.lane.take(orders({*VITAL, "npu_proc_mem"}))
    node.settle()
    node.tool.answers["info -t proc-mem -i 1"] = (
        "\tNPU ID : 1\n\tChip Count : 1\n\n\tProcess id:7 Process name:python3 Process memory(MB):141\n\tChip ID : 0\n"
    )
    node.tool.answers["info"] = info_text(0, 1) + processes_text(1, each=7)
    assert node.advance(15) == ["info"]
    node.tool.answers["info"] = info_text(0, 1) + processes_text(1, each=8)
    assert node.advance(15) == ["info", "info -t proc-mem -i 1"]
    assert node.advance(15) == ["info"]
    heard = [node.advance(15) for _ in range(3)]
    assert sum(asked.count("info -t proc-mem -i 1") for asked in heard) == 1
    node.tool.answers["info"] = info_text(0, 1) + processes_text(1, each=2)
    later = [node.advance(15) for _ in range(5)]
    assert not any("info -t proc-mem -i 1" in asked for asked in later)


def test_a_table_that_cannot_be_read_is_no_other_chips() -> None:
    node = Node(node_of(0, 1))
    node.settle()
    node.tool.answers["info"] = Failure(FailureKind.TIMEOUT, "no answer within 10.0 s")
    assert node.advance(15) == ["info"]
    node.tool.answers["info"] = info_text(0, 1)
    assert node.advance(15) == ["info"]


def test_what_failed_with_the_table_is_asked_anew_as_soon_as_there_is_a_table() -> None:
    node = Node(node_of(0, 1))
    node.settle()
    gone = Failure(FailureKind.EXIT, "dcmi module initialize failed. ret is -8005")
    well = dict(node.tool.answers)
    node.tool.answers = dict.fromkeys(well, gone)
    for _ in range(4):
        node.advance(15)
    node.tool.answers = well
    back = node.advance(15)
    assert back[0] == "info"
    assert {"info -t health -i 0 -c 0", "info -t health -i 1 -c 0", "info -t ecc -i 0", "info -t ecc -i 1"} <= set(back)
    assert node.advance(15) == ["info"]


def test_what_a_chip_does_not_support_is_asked_once() -> None:
    tool = node_of(0)
    tool.answers["info -t ecc -i 0"] = "This device does not support querying ecc.\n"
    node = Node(tool)
    assert node.settle().count("info -t ecc -i 0") == 1
    later = [call for _ in range(20) for call in node.advance(15)]
    assert "info -t ecc -i 0" not in later
    assert later.count("info -t health -i 0 -c 0") == 5
    assert node.board.unsupported("npu_ecc", DeviceKey(0)) is True
    assert node.health() == {"0": "ok"}


def test_a_card_that_vanishes_is_not_asked_any_more() -> None:
    node = Node(node_of(0, 1))
    node.settle()
    node.tool.answers["info"] = info_text(0)
    later = [call for _ in range(8) for call in node.advance(15)]
    assert not [call for call in later if "-i 1" in call]
    assert "info -t ecc -i 0" in later


def test_a_missing_tool_is_asked_once_a_period() -> None:
    tool = Tool(took_s=0.0)
    missing = Failure(FailureKind.MISSING, "npu-smi: not found on PATH")
    tool.answers = {"info": missing, "info -m": missing, "info -l": missing}
    node = Node(tool)
    assert sorted(node.settle()) == ["info", "info -l", "info -m"]
    assert node.advance(15) == ["info"]
    assert node.board.snapshot(tool.clock(), node.lane.periods_s().get).blind["npu_info"] == missing


def test_a_hanging_tool_leaves_the_periods_by_which_readings_age_alone() -> None:
    node = Node(node_of(0))
    node.settle()
    node.tool.answers = dict.fromkeys(node.tool.answers, Failure(FailureKind.TIMEOUT, "no answer within 10.0 s"))
    node.tool.took_s = 12.0
    for _ in range(20):
        node.advance(15)
    assert node.lane.periods_s()["npu_info"] == 15.0
    assert node.health() == {"0": "unknown"}


def test_a_slow_tool_stretches_the_periods() -> None:
    node = Node(node_of(0))
    node.tool.took_s = 6.0
    for _ in range(40):
        node.advance(15)
    share, stretch = node.lane.load(node.tool.clock())
    assert stretch > 2.0
    assert share is not None
    assert share <= 0.2 + 30 / 120
    assert node.lane.periods_s()["npu_info"] == pytest.approx(15.0 * stretch)
    # Slow is not blind.
    assert node.health() == {"0": "ok"}


def test_a_probe_that_is_switched_off_has_no_period_and_is_not_asked() -> None:
    node = Node(node_of(0))
    node.lane.take(orders(VITAL - {"npu_ecc"}))
    assert "npu_ecc" not in node.lane.periods_s()
    assert not [call for call in node.settle() if "ecc" in call]


def test_new_orders_hold_from_the_next_turn() -> None:
    node = Node(node_of(0))
    node.settle()
    node.lane.take(Orders("npu-smi", {"npu_info": Pace(5.0, 2.0)}, lambda name: profile_of(name).probes))
    assert node.settle() == []
    assert node.advance(5) == ["info"]
    assert node.tool.deadlines_s[-1] == 2.0


def test_a_call_that_goes_wrong_in_our_own_code_is_booked_like_any_other() -> None:
    """Unbooked it would be due again at once, and the tool would be started without end."""
    started: list[str] = []

    def broken(argv: tuple[str, ...], _timeout_s: float) -> Output | Failure:
        started.append(argv[-1])
        raise RuntimeError("a fault of ours")

    tool = Tool()
    agenda = Agenda(share=0.2, burst_s=30.0, jitter=lambda: 0.0)
    lane = Lane(PROBES, broken, agenda, Board("node-17", None, None, watch), tool.clock, orders(), tool.wait)
    for _ in range(3):
        with pytest.raises(RuntimeError):
            lane.turn()
    assert lane.turn() is None
    assert started == ["-m", "info", "-l"]
