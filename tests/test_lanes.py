"""The lanes side by side: which probes are on and how often, what a new config changes, and that none stops another."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path, PurePath

import pytest

from npu_watchd import config
from npu_watchd.lanes import Lanes, expected_ports, paces
from npu_watchd.model.fabric import PortKey
from npu_watchd.model.ids import DeviceKey
from npu_watchd.model.reading import Failure, FailureKind, Output, Run, Tick
from npu_watchd.model.snapshot import Device
from npu_watchd.simnode import scenario_file
from npu_watchd.simnode.run import simulated_run
from npu_watchd.simnode.sysfs import tree
from npu_watchd.simnode.timeline import state_at
from npu_watchd.simnode.tree_on_disk import TreeOnDisk
from npu_watchd.sources.probes import DEFAULTS
from npu_watchd.sources.rounds import Pace

PERIODS_S = {
    "npu_info": 15.0,
    "npu_map": 3600.0,
    "npu_list": 3600.0,
    "npu_board": 3600.0,
    "npu_health": 60.0,
    "npu_ecc": 60.0,
    "npu_proc_mem": 60.0,
    "npu_usages": 60.0,
    "npu_temp": 60.0,
    "npu_common": 60.0,
    "npu_pcie_err": 60.0,
    "npu_hccs": 60.0,
    "hccn_link": 60.0,
    "hccn_link_stat": 60.0,
    "hccn_stat": 60.0,
    "hccn_net_health": 60.0,
    "hccn_optical": 60.0,
    "hccn_speed": 120.0,
    "ibstat": 30.0,
    "rdma_counters": 30.0,
    "pcie_link": 60.0,
    "pcie_aer": 30.0,
    "processes": 15.0,
    "host": 15.0,
    "versions": 3600.0,
}
LIMIT_S = 20.0


def settings(folder: Path, text: str = "") -> config.Config:
    """A config of this text, whose files are below `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "config.toml"
    file.write_text(f'{text}\n[paths]\nsysfs = "{folder}/sys"\nprocfs = "{folder}/proc"\n', encoding="utf-8")
    return config.load(file, defaults=DEFAULTS)


def clock() -> Tick:
    return Tick(time.monotonic(), time.time())


def no_tool(argv: tuple[str, ...], timeout_s: float) -> Output | Failure:
    return Failure(FailureKind.MISSING, f"{argv[0]}: not found")


def lanes_of(chosen: config.Config, run: Run = no_tool, halt: threading.Event | None = None) -> Lanes:
    return Lanes(chosen, "boot", run, clock, halt or threading.Event(), jitter=lambda: 0.0)


def test_every_probe_has_its_period_and_the_load_of_pcie_has_none(tmp_path: Path) -> None:
    assert lanes_of(settings(tmp_path)).periods_s() == PERIODS_S
    assert set(DEFAULTS) - set(PERIODS_S) == {"pcie_load"}


def test_a_probe_that_is_switched_off_has_no_period_and_one_that_is_switched_on_has(tmp_path: Path) -> None:
    text = "[probes]\nhccn_stat.enabled = false\nibstat.enabled = false\npcie_load.enabled = true\n"
    found = lanes_of(settings(tmp_path, text)).periods_s()
    assert set(PERIODS_S) - set(found) == {"hccn_stat", "ibstat"}
    assert found["pcie_load"] == 30.0


def test_periods_and_deadlines_are_the_configs(tmp_path: Path) -> None:
    chosen = settings(tmp_path, '[probes]\nhccn_link = { every = "30s", timeout = "4s" }\nibstat.every = "2s"\n')
    found = paces(chosen)
    assert (found["hccn_link"], found["hccn_stat"]) == (Pace(30.0, 4.0), Pace(60.0, 10.0))
    # A deadline does not outlast a period that the config made shorter.
    assert found["ibstat"] == Pace(2.0, 2.0)


def test_expected_ports_are_the_configs(tmp_path: Path) -> None:
    chosen = settings(tmp_path, '[fabric]\nexpected_ports = ["mlx5_0/1", "mlx5_bond_0/2"]\n')
    assert expected_ports(chosen) == {PortKey("mlx5_0", 1), PortKey("mlx5_bond_0", 2)}
    assert expected_ports(settings(tmp_path)) == frozenset()


class Node:
    """The quiet 910B node in its first minute, with its sysfs tree, under lanes in threads of their own."""

    def __init__(self, folder: Path, text: str = "", broken: str | None = None) -> None:
        self.folder = folder
        self.broken = broken
        self.asked: Counter[str] = Counter()
        self.worked: Counter[str] = Counter()
        self.faults: list[Exception] = []
        self.halt = threading.Event()
        (folder / "sys").mkdir(parents=True)
        scenario = scenario_file.load("quiet")
        TreeOnDisk(folder / "sys", folder / "workshop").put(tree(state_at(scenario, 30.0)))
        self._answer = simulated_run(scenario, lambda: 30.0)
        self.lanes = lanes_of(settings(folder, text), self._run, self.halt)

    def _run(self, argv: tuple[str, ...], timeout_s: float) -> Output | Failure:
        tool = PurePath(argv[0]).name
        self.asked[argv[0]] += 1
        if tool == self.broken:
            raise RuntimeError(f"a fault of ours at {tool}")
        return self._answer(argv, timeout_s)

    def _count(self, probe: str) -> None:
        self.worked[probe] += 1

    def start(self) -> None:
        self.lanes.start(self._count, self.faults.append)

    def until(self, seen: Callable[[], bool]) -> None:
        deadline = time.monotonic() + LIMIT_S
        while not seen():
            assert time.monotonic() < deadline, (self.worked, self.faults)
            threading.Event().wait(0.02)

    def device(self) -> Device:
        return self.lanes.board.snapshot(clock(), self.lanes.periods_s().get).devices[DeviceKey(0)]

    @property
    def threads(self) -> set[str]:
        return {thread.name for thread in threading.enumerate() if thread.name.startswith("lane ")}


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., Node]]:
    made: list[Node] = []

    def node(text: str = "", broken: str | None = None) -> Node:
        made.append(Node(tmp_path / str(len(made)), text, broken))
        return made[-1]

    yield node
    for one in made:
        one.halt.set()
    deadline = time.monotonic() + LIMIT_S
    while any(one.threads for one in made):
        assert time.monotonic() < deadline


def test_everything_of_a_node_is_read_side_by_side(make: Callable[..., Node]) -> None:
    node = make()
    node.start()
    assert node.threads == {"lane npu_smi", "lane hccn_tool", "lane files"}
    node.until(lambda: {"npu_ecc", "hccn_link", "hccn_speed", "ibstat", "pcie_aer"} <= set(node.worked))
    # The round of links that came before the first table knew no chip; it comes again in a few seconds.
    node.until(lambda: node.worked["hccn_link"] >= 8 and node.device().pcie_link is not None)
    snapshot = node.lanes.board.snapshot(clock(), node.lanes.periods_s().get)
    device = node.device()
    assert device.roce is not None
    assert device.pcie_link is not None
    assert (device.roce.link_up, device.pcie_link.narrow, device.pcie_load) == (True, False, None)
    assert snapshot.ports
    assert {port.up for port in snapshot.ports.values()} == {True}
    assert node.faults == []
    # Nobody asked for the load of PCIe, so neither perf nor the helper was run.
    assert {PurePath(tool).name for tool in node.asked} == {"npu-smi", "hccn_tool", "ibstat"}


@pytest.mark.parametrize(
    ("broken", "others"),
    [
        ("hccn_tool", {"npu_info", "npu_ecc", "ibstat", "pcie_link"}),
        ("ibstat", {"npu_info", "hccn_link", "rdma_counters", "pcie_link"}),
        ("npu-smi", {"ibstat", "rdma_counters"}),
    ],
)
def test_a_fault_of_ours_in_one_lane_is_told_and_stops_no_other(
    make: Callable[..., Node], broken: str, others: set[str]
) -> None:
    node = make(broken=broken)
    node.start()
    node.until(lambda: others <= set(node.worked) and bool(node.faults))
    assert {str(fault) for fault in node.faults} == {f"a fault of ours at {broken}"}
    # The lane itself goes on as well.
    assert node.threads == {"lane npu_smi", "lane hccn_tool", "lane files"}


def test_a_new_config_is_gone_on_with_at_once(make: Callable[..., Node]) -> None:
    node = make('[probes]\nhccn_link.enabled = false\nibstat.every = "1h"\n')
    node.start()
    node.until(lambda: node.worked["hccn_speed"] >= 8 and "ibstat" in node.worked)
    assert "hccn_link" not in node.worked
    text = """
[node]
name = "other"
expected_devices = 12
[tools]
hccn_tool = "/opt/new/hccn_tool"
[fabric]
expected_ports = ["mlx5_77/1"]
[probes]
hccn_speed.enabled = false
ibstat.every = "1s"
"""
    node.lanes.take(settings(node.folder, text))
    rounds = node.worked["ibstat"]
    node.until(lambda: node.worked["hccn_link"] >= 8 and node.worked["ibstat"] >= rounds + 2)
    assert node.asked["/opt/new/hccn_tool"] >= 8
    snapshot = node.lanes.board.snapshot(clock(), node.lanes.periods_s().get)
    assert (snapshot.node, snapshot.devices_expected) == ("other", 12)
    missed = snapshot.ports[PortKey("mlx5_77", 1)]
    assert (missed.present, missed.expected, missed.up) == (False, True, False)
    assert "hccn_speed" not in node.lanes.periods_s()
    device = snapshot.devices[DeviceKey(0)]
    assert device.roce is not None
    assert (device.roce.link_up, device.roce.bits_per_second) == (True, None)
    assert "hccn_speed" not in {state.probe for state in snapshot.probes}


def test_lanes_end_with_the_daemon(make: Callable[..., Node]) -> None:
    node = make()
    node.start()
    node.until(lambda: "npu_info" in node.worked)
    node.halt.set()
    node.until(lambda: not node.threads)
