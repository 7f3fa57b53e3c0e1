"""The probes that read files: ports by ibstat or by sysfs, counters, PCIe links and errors; also where a read hangs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from npu_watchd.model.fabric import PortCounters, PortKey, RdmaPorts
from npu_watchd.model.ids import NODE, DeviceKey, Subject
from npu_watchd.model.pcie import PcieErrors, PcieLink
from npu_watchd.model.reading import Failure, FailureKind, Output
from npu_watchd.simnode import sysfs_ib, sysfs_pci
from npu_watchd.simnode.sysfs_ib import DISABLED, DOWN, SimHca, SimPort
from npu_watchd.simnode.sysfs_pci import Link, PciDevice
from npu_watchd.sources.file_lane import Fabric
from tests.parsers.texts import CAPTURES
from tests.sources.answers import Answer

HERE = Path(__file__).parent
ABSENT = Failure(FailureKind.MISSING, "ibstat: not found on PATH (/bin); install it")
TIMEOUT = Failure(FailureKind.TIMEOUT, "ibstat: no answer within 5.0 s and was ended")
HCAS = [
    SimHca("mlx5_0", ports=(SimPort(rate="400 Gb/sec (4X NDR)"),)),
    SimHca("mlx5_1", ports=(SimPort(state=DOWN, physical_state=DISABLED),)),
    SimHca("mlx5_bond_0", ports=(SimPort(rate="100 Gb/sec (4X EDR)"),)),
]
CHIPS = {DeviceKey(0): "0000:c1:00.0", DeviceKey(1): "0000:c2:00.0"}


def captured(name: str) -> str:
    return (CAPTURES / "ibstat" / f"{name}.txt").read_text(encoding="utf-8")


THREE = captured("ibstat__ports_then_ibpanic").partition("ibpanic")[0]
"""What ibstat says of the three ports, without the line of the fourth."""
GAVE_UP = "ibpanic: [4711] main: stat of IB device 'mlx5_an0' failed: No such file or directory\n"


class Node:
    """The probes over a sysfs of its own, and an ibstat that gives this answer."""

    def __init__(self, sysfs: Path, ibstat: Answer = "", exclude: tuple[str, ...] = ()) -> None:
        self.sysfs = sysfs
        self.ibstat = ibstat
        self.asked: list[tuple[tuple[str, ...], float]] = []
        self.chips: Mapping[DeviceKey, str] = CHIPS
        self.fabric = Fabric(sysfs, exclude, self._run, lambda: "/opt/ibstat", lambda: self.chips, time.monotonic)

    def _run(self, argv: tuple[str, ...], timeout_s: float) -> Output | Failure:
        self.asked.append((argv, timeout_s))
        return Output(self.ibstat) if isinstance(self.ibstat, str) else self.ibstat

    def read(self, probe: str) -> Mapping[Subject, Any]:
        return self.fabric.reads()[probe](5.0)

    def ports(self) -> RdmaPorts:
        found = self.read("ibstat")
        assert list(found) == [NODE]
        ports = found[NODE]
        assert isinstance(ports, RdmaPorts), ports
        return ports

    def seen(self) -> dict[str, tuple[str | None, str | None, float | None]]:
        return {str(port.key): (port.state, port.physical_state, port.rate_gbps) for port in self.ports().ports}


@pytest.fixture
def sysfs(tmp_path: Path) -> Path:
    """Three RDMA devices and two NPUs, the second on a narrow slot; the first one's firmware owns AER."""
    root = tmp_path / "sys"
    sysfs_ib.write(root, HCAS)
    narrow = Link(16.0, 8, 16.0, 16)
    first = PciDevice("0000:c1:00.0", 0xD802, errors=None)
    second = PciDevice("0000:c2:00.0", 0xD802, link=narrow, errors={"fatal": {"DLP": 2}})
    sysfs_pci.write(
        (sysfs_pci.port("0000:c0:01.0", first), sysfs_pci.port("0000:c0:02.0", second)),
        root,
    )
    return root


PORTS = {
    "mlx5_0/1": ("Active", "LinkUp", 400.0),
    "mlx5_1/1": ("Down", "Disabled", 200.0),
    "mlx5_bond_0/1": ("Active", "LinkUp", 100.0),
}


def test_ibstat_is_asked_within_its_deadline_and_sysfs_left_alone_where_it_answers(tmp_path: Path) -> None:
    node = Node(tmp_path / "nothing", THREE)
    assert node.seen() == {**PORTS, "mlx5_1/1": ("Down", "Disabled", 40.0)}
    assert node.asked == [(("/opt/ibstat",), 5.0)]


FAILING: list[tuple[str, Answer]] = [
    ("missing", ABSENT),
    ("hangs", TIMEOUT),
    ("gives up at once", Output("", GAVE_UP, 255)),
    ("gives up after two ports", Output(THREE, GAVE_UP, 255)),
    ("rubbish", Output("<html>not here</html>\n")),
    ("killed", Output(THREE[:200], "", -9)),
]


@pytest.mark.parametrize("answer", [answer for _, answer in FAILING], ids=[name for name, _ in FAILING])
def test_where_ibstat_fails_sysfs_shows_the_same_ports(sysfs: Path, answer: Answer) -> None:
    node = Node(sysfs, answer)
    assert node.seen() == PORTS
    assert node.ports().errors == ()


def test_what_ibstat_saw_before_it_gave_up_stands_where_sysfs_shows_nothing(tmp_path: Path) -> None:
    node = Node(tmp_path / "elsewhere", Output(THREE, GAVE_UP, 255))
    assert set(node.seen()) == set(PORTS)
    assert node.ports().errors != ()


@pytest.mark.parametrize("answer", ["", ABSENT], ids=["ibstat prints nothing", "no ibstat"])
@pytest.mark.parametrize("folder", ["class", "class/infiniband"])
def test_a_node_without_rdma_devices_has_no_ports_and_nothing_failed(
    tmp_path: Path, answer: Answer, folder: str
) -> None:
    (tmp_path / folder).mkdir(parents=True)
    node = Node(tmp_path, answer)
    assert node.ports() == RdmaPorts()
    assert node.read("rdma_counters") == {NODE: ()}


def test_excluded_devices_are_shown_by_neither_source(sysfs: Path) -> None:
    by_tool = Node(sysfs, THREE, exclude=("mlx5_bond_*",))
    by_files = Node(sysfs, ABSENT, exclude=("mlx5_bond_*",))
    assert set(by_tool.seen()) == set(by_files.seen()) == {"mlx5_0/1", "mlx5_1/1"}
    assert [str(subject) for subject in by_files.read("rdma_counters")] == ["node", "mlx5_0/1", "mlx5_1/1"]


def test_counters_come_by_port_and_once_for_the_node(sysfs: Path) -> None:
    found = Node(sysfs).read("rdma_counters")
    keys = [PortKey("mlx5_0", 1), PortKey("mlx5_1", 1), PortKey("mlx5_bond_0", 1)]
    assert list(found) == [NODE, *keys]
    assert found[NODE] == tuple(found[key] for key in keys)
    assert isinstance(found[keys[0]], PortCounters)


def test_links_and_errors_come_by_chip(sysfs: Path) -> None:
    node = Node(sysfs)
    links = node.read("pcie_link")
    assert {key: (link.lanes, link.path_max_lanes, link.narrow) for key, link in links.items()} == {
        DeviceKey(0): (16, 16, False),
        DeviceKey(1): (8, 16, True),
    }
    errors = node.read("pcie_aer")
    assert isinstance(errors[DeviceKey(0)], Failure)
    assert errors[DeviceKey(0)].kind is FailureKind.UNSUPPORTED
    assert isinstance(errors[DeviceKey(1)], PcieErrors)
    assert (errors[DeviceKey(1)].fatal, errors[DeviceKey(1)].both_ends("fatal")) == (2, 2)


def test_a_chip_that_fell_off_the_bus_is_missing_and_the_other_one_is_read(sysfs: Path) -> None:
    (sysfs / "bus/pci/devices/0000:c1:00.0").unlink()
    shutil.rmtree(sysfs / "devices/pci0000:c0/0000:c0:01.0/0000:c1:00.0")
    found = Node(sysfs).read("pcie_link")
    assert (found[DeviceKey(0)].kind, "fell off the bus" in found[DeviceKey(0)].detail) == (FailureKind.MISSING, True)
    assert isinstance(found[DeviceKey(1)], PcieLink)


def test_two_chips_at_one_address_have_the_same_link(sysfs: Path) -> None:
    node = Node(sysfs)
    node.chips = {DeviceKey(4, 0): "0000:c1:00.0", DeviceKey(4, 1): "0000:c1:00.0"}
    found = node.read("pcie_link")
    assert found[DeviceKey(4, 0)] == found[DeviceKey(4, 1)]


def test_without_chips_nothing_is_read(sysfs: Path) -> None:
    node = Node(sysfs)
    node.chips = {}
    assert (node.read("pcie_link"), node.read("pcie_aer")) == ({}, {})


# A read that the kernel does not end


@pytest.fixture
def hung(tmp_path: Path) -> Iterator[tuple[Path, Callable[[], None]]]:
    """A file whose read never returns, and how to make it return with an error."""
    if os.geteuid() != 0 or not os.access("/dev/fuse", os.R_OK | os.W_OK):
        pytest.skip("needs root and /dev/fuse to make a file system that hangs")
    mountpoint = tmp_path / "mnt"
    mountpoint.mkdir()
    server = subprocess.Popen(
        [sys.executable, str(HERE / "hungfs.py"), str(mountpoint)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )

    def answer_at_last() -> None:
        server.kill()
        server.wait()

    assert server.stdout is not None
    try:
        if server.stdout.readline() != "mounted\n":
            pytest.skip(f"no FUSE mount here: {server.communicate()[1].strip()}")
        yield mountpoint / "hung", answer_at_last
    finally:
        answer_at_last()
        subprocess.run(["umount", "-l", str(mountpoint)], check=False, stderr=subprocess.DEVNULL)
        server.communicate()


def sweeps() -> set[str]:
    return {thread.name for thread in threading.enumerate()} & {"rdma_counters", "ibstat", "pcie_link", "pcie_aer"}


def test_a_read_that_hangs_costs_its_own_probe_and_comes_back_when_it_ends(
    sysfs: Path, hung: tuple[Path, Callable[[], None]]
) -> None:
    file, answer_at_last = hung
    counter = sysfs / "class/infiniband/mlx5_0/ports/1/counters/symbol_error"
    subprocess.run(["mount", "--bind", str(file), str(counter)], check=True)
    try:
        node = Node(sysfs, THREE)
        began = time.monotonic()
        (stuck,) = node.read("rdma_counters").values()
        assert time.monotonic() - began < 7
        assert stuck.kind is FailureKind.WEDGED
        assert f"the read of {counter} has not returned" in stuck.detail
        # From now on nobody waits for it, and no second thread is spent on it.
        began = time.monotonic()
        for _ in range(20):
            assert node.read("rdma_counters")[NODE].kind is FailureKind.WEDGED
        assert set(node.seen()) == set(PORTS)
        assert isinstance(node.read("pcie_link")[DeviceKey(1)], PcieLink)
        assert time.monotonic() - began < 2
        assert sweeps() == {"rdma_counters"}
        answer_at_last()
        deadline = time.monotonic() + 10
        while isinstance(node.read("rdma_counters")[NODE], Failure):
            assert time.monotonic() < deadline
        assert "counters/symbol_error" in node.read("rdma_counters")[PortKey("mlx5_0", 1)].failures
    finally:
        answer_at_last()
        subprocess.run(["umount", "-l", str(counter)], check=False)


def test_a_link_that_hangs_leaves_every_chip_blind_for_its_link_only(
    sysfs: Path, hung: tuple[Path, Callable[[], None]]
) -> None:
    file, answer_at_last = hung
    speed = sysfs / "devices/pci0000:c0/0000:c0:01.0/0000:c1:00.0/current_link_speed"
    subprocess.run(["mount", "--bind", str(file), str(speed)], check=True)
    try:
        node = Node(sysfs, THREE)
        found = node.read("pcie_link")
        assert {key: failure.kind for key, failure in found.items()} == dict.fromkeys(CHIPS, FailureKind.WEDGED)
        assert "0000:c1:00.0" in found[DeviceKey(0)].detail
        assert isinstance(node.read("pcie_aer")[DeviceKey(1)], PcieErrors)
    finally:
        answer_at_last()
        subprocess.run(["umount", "-l", str(speed)], check=False)
