"""The simulated perf is asked as the daemon asks it, and answers as perf does."""

from __future__ import annotations

import pytest

from npu_watchd.model.ids import DeviceKey
from npu_watchd.model.pcie import PcieLoad
from npu_watchd.model.reading import Failure, FailureKind, Output
from npu_watchd.simnode.perf import answer
from npu_watchd.simnode.scenario_file import load
from npu_watchd.simnode.state import NodeState
from npu_watchd.simnode.sysfs import tree
from npu_watchd.simnode.timeline import state_at
from npu_watchd.sources.pcie_load import PcieUnit, perf_argv, perf_loads


def paths(node: NodeState) -> dict[DeviceKey, tuple[str, ...]]:
    return {
        DeviceKey(card.npu, chip.chip): (chip.slot.root_port, chip.slot.address)
        for card in node.cards
        for chip in card.chips
        if chip.slot is not None
    }


def units(node: NodeState) -> list[PcieUnit]:
    files = tree(node).files
    return [PcieUnit(name.split("/")[3], int(text, 16)) for name, text in files.items() if "event_source" in name]


def loads(name: str, t_s: float) -> dict[DeviceKey, PcieLoad | Failure]:
    node = state_at(load(name), t_s)
    argv = perf_argv("perf", paths(node), units(node))
    assert not isinstance(argv, Failure)
    said = answer(node, argv[1:])
    assert said.delay_s == 0.5
    found = perf_loads(Output(said.text, said.stderr, said.exit_code), paths(node))
    assert not isinstance(found, Failure)
    return dict(found)


def test_saturated_links_are_measured_device_by_device_in_both_directions() -> None:
    found = loads("pcie_saturated", 400.0)
    rates = [
        (round((one.receive_bytes_per_second or 0) / 1e9, 1), round((one.transmit_bytes_per_second or 0) / 1e9, 1))
        for one in found.values()
        if isinstance(one, PcieLoad)
    ]
    assert [receive for receive, _ in rates[8:12]] == [28.6] * 4
    assert rates[12] == (0.0, 26.0)
    assert all(receive < 5 for receive, _ in rates[:8])
    assert len(rates) == 16


def test_a_device_that_is_gone_is_counted_by_nobody() -> None:
    found = loads("pcie_errors", 1300.0)[DeviceKey(4, 0)]
    assert isinstance(found, Failure)
    assert found.kind is FailureKind.UNSUPPORTED


EVENT = "hisi_pcie0_core1/event=0x1005,bdf=0x9d00/"


@pytest.mark.parametrize(
    ("argv", "code", "stderr"),
    [
        (
            ("stat", "-a", "-x,", "-e", "hisi_pcie9_core0/event=0x1005,bdf=0x9d00/", "--", "sleep", "1"),
            129,
            "event syntax",
        ),
        (("stat", "-a", "-e", EVENT, "--", "sleep", "1"), 129, "\n Usage: perf stat"),
        (("record", "-a"), 129, "\n Usage: perf stat"),
        ((), 129, "\n Usage: perf stat"),
        (("stat", "-a", "-x,", "-e", EVENT), 129, "\n Usage: perf stat"),
    ],
)
def test_what_perf_refuses(argv: tuple[str, ...], code: int, stderr: str) -> None:
    said = answer(state_at(load("pcie_saturated"), 0.0), argv)
    assert (said.text, said.exit_code) == ("", code)
    assert said.stderr.startswith(stderr)


def test_counters_come_on_stderr_unless_perf_is_told_otherwise() -> None:
    argv = ("stat", "-a", "-x,", "-e", EVENT, "--", "sleep", "0.1")
    said = answer(state_at(load("pcie_saturated"), 0.0), argv)
    assert (said.text, said.exit_code, said.delay_s) == ("", 0, 0.1)
    assert said.stderr.endswith(f",,{EVENT},100012340,100.00,,\n")
