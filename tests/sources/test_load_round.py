"""PCIe load: the way that this node has is taken, and what that way cannot tell is said in words, device by device."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from npu_watchd.model.ids import NODE, DeviceKey, Subject
from npu_watchd.model.pcie import PcieLoad, SocketPcieLoad
from npu_watchd.model.reading import Failure, FailureKind, Output
from npu_watchd.simnode import sysfs_pci
from npu_watchd.simnode.sysfs_pci import PciDevice
from npu_watchd.sources.load_round import LoadRound
from tests.parsers.texts import CAPTURES
from tests.sources.answers import Answer

CHIPS = {DeviceKey(0): "0000:c1:00.0", DeviceKey(1): "0000:c2:00.0"}
TIMEOUT = Failure(FailureKind.TIMEOUT, "perf: no answer within 5.0 s and was ended")
PCM = (CAPTURES / "pcie" / "pcm-pcie__icelake__two_sockets.txt").read_text(encoding="utf-8")
PERF = (CAPTURES / "pcie" / "perf-stat__csv_semicolon__two_npus.txt").read_text(encoding="utf-8")
REFUSED = (
    json.dumps(
        {
            "library": "libdcmi.so",
            "root": True,
            "window_ms": 100,
            "error": None,
            "devices": [
                {"card": 0, "device": 0, "call": "dcmi_get_pcie_link_bandwidth_info", "code": -8255},
                {"card": 1, "device": 0, "call": "dcmi_get_pcie_link_bandwidth_info", "code": -8020},
            ],
        }
    )
    + "\n"
)


class Node:
    """Two NPUs behind root ports, and what else the node has to measure with."""

    def __init__(
        self,
        folder: Path,
        answer: Answer = "",
        *,
        units: tuple[str, ...] = (),
        tools: tuple[str, ...] = (),
        vendor: str | None = "GenuineIntel",
        dcmi: bool = False,
    ) -> None:
        self.folder = folder
        self.answer = answer
        self.dcmi = dcmi
        self.asked: list[tuple[tuple[str, ...], float]] = []
        self.chips: Mapping[DeviceKey, str] = CHIPS
        self._write(units, tools, vendor)
        paths = {"perf": str(folder / "perf"), "pcm_pcie": str(folder / "pcm-pcie")}
        self.round = LoadRound(
            folder / "sys",
            folder / "proc",
            self._run,
            lambda: paths,
            lambda: self.chips,
            lambda: self.dcmi,
            lambda: 0.0,
        )

    def _write(self, units: tuple[str, ...], tools: tuple[str, ...], vendor: str | None) -> None:
        roots = (
            sysfs_pci.port("0000:c0:01.0", PciDevice("0000:c1:00.0", 0xD802)),
            sysfs_pci.port("0000:c0:02.0", PciDevice("0000:c2:00.0", 0xD802)),
        )
        sysfs_pci.write(roots, self.folder / "sys")
        for unit in units:
            path = self.folder / "sys/bus/event_source/devices" / unit
            path.mkdir(parents=True)
            (path / "bus").write_text("0xc0\n")
        for tool in tools:
            (self.folder / tool).write_text("#!/bin/sh\n")
            (self.folder / tool).chmod(0o755)
        (self.folder / "proc").mkdir()
        if vendor is not None:
            (self.folder / "proc/cpuinfo").write_text(f"processor\t: 0\nvendor_id\t: {vendor}\n")

    def _run(self, argv: tuple[str, ...], timeout_s: float) -> Output | Failure:
        self.asked.append((argv, timeout_s))
        return Output(self.answer) if isinstance(self.answer, str) else self.answer

    def read(self) -> Mapping[Subject, Any]:
        return self.round.read(5.0)

    def failures(self) -> dict[Subject, tuple[FailureKind, str]]:
        found = self.read()
        assert all(isinstance(result, Failure) for result in found.values()), found
        return {subject: (result.kind, result.detail) for subject, result in found.items()}


KUNPENG = ("hisi_pcie2_core0", "hisi_pcie2_core1")


def test_a_910b_measures_itself_whatever_else_the_node_has(tmp_path: Path) -> None:
    node = Node(tmp_path, REFUSED, units=KUNPENG, tools=("perf", "pcm-pcie"), dcmi=True)
    assert {subject: kind for subject, (kind, _) in node.failures().items()} == {
        DeviceKey(0): FailureKind.UNSUPPORTED,
        DeviceKey(1): FailureKind.EXIT,
    }
    assert node.asked == [
        ((sys.executable, "-I", "-m", "npu_watchd.sources.dcmi_helper", "--window-ms", "100"), 5.0),
    ]


def test_a_kunpeng_counts_with_perf_for_all_devices_at_once(tmp_path: Path) -> None:
    node = Node(tmp_path, PERF, units=KUNPENG, tools=("perf",), vendor=None)
    found = node.read()
    assert [len(node.asked), node.asked[0][0][:2]] == [1, (str(tmp_path / "perf"), "stat")]
    first, second = found[DeviceKey(0)], found[DeviceKey(1)]
    assert isinstance(first, PcieLoad)
    assert (first.source, first.window_s) == ("perf", 0.50001234)
    # 250 million double words in half a second from the device, a thousand million to it.
    assert first.transmit_bytes_per_second == pytest.approx(2e9, rel=1e-4)
    assert first.receive_bytes_per_second == pytest.approx(8e9, rel=1e-4)
    assert (second.transmit_bytes_per_second, second.receive_bytes_per_second) == (0.0, None)


def test_a_device_that_is_not_on_the_bus_is_missing_and_the_other_one_is_counted(tmp_path: Path) -> None:
    node = Node(tmp_path, PERF, units=KUNPENG, tools=("perf",))
    node.chips = {**CHIPS, DeviceKey(2): "0000:c3:00.0"}
    found = node.read()
    assert isinstance(found[DeviceKey(0)], PcieLoad)
    assert found[DeviceKey(2)].kind is FailureKind.MISSING


@pytest.mark.parametrize("answer", [TIMEOUT, Output("", "perf: no permission", 129)])
def test_a_measurement_that_fails_is_a_failure_of_every_device_and_never_a_zero(tmp_path: Path, answer: Answer) -> None:
    failures = Node(tmp_path, answer, units=KUNPENG, tools=("perf",)).failures()
    assert set(failures) == set(CHIPS)


PER_SOCKET = Failure(
    FailureKind.UNSUPPORTED,
    "PCIe load: nothing on this node tells devices apart; pcm-pcie measures whole CPU sockets, as shown for the node",
)
SOCKETS = (
    SocketPcieLoad(0, 12_009_876_544.0, 1_501_313_472.0, 1.0),
    SocketPcieLoad(1, 26_880.0, 5_376.0, 1.0),
)


def test_an_intel_node_measures_by_socket_for_the_node_and_says_so_of_each_device(tmp_path: Path) -> None:
    node = Node(tmp_path, PCM, tools=("pcm-pcie",))
    assert node.read() == {NODE: SOCKETS, DeviceKey(0): PER_SOCKET, DeviceKey(1): PER_SOCKET}
    assert node.asked == [((str(tmp_path / "pcm-pcie"), "1", "-csv", "-B", "-i=1"), 5.0)]


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (Failure(FailureKind.TIMEOUT, "pcm-pcie: no answer within 5.0 s and was ended"), FailureKind.TIMEOUT),
        (Output("", "Can not open MSR device /dev/cpu/0/msr\n", 1), FailureKind.DENIED),
        (Output("Segmentation fault\n", "", -11), FailureKind.EXIT),
    ],
)
def test_a_pcm_that_fails_is_a_failure_of_the_node_and_not_of_every_device(
    tmp_path: Path, answer: Answer, kind: FailureKind
) -> None:
    found = Node(tmp_path, answer, tools=("pcm-pcie",)).read()
    assert found[NODE].kind is kind
    assert {key: found[key] for key in CHIPS} == dict.fromkeys(CHIPS, PER_SOCKET)


def test_a_socket_is_measured_on_while_no_chip_is_to_be_seen(tmp_path: Path) -> None:
    node = Node(tmp_path, PCM, tools=("pcm-pcie",))
    node.read()
    node.chips = {}
    assert node.read() == {NODE: SOCKETS}


def test_a_pcm_that_is_taken_away_ends_what_the_node_showed(tmp_path: Path) -> None:
    node = Node(tmp_path, PCM, tools=("pcm-pcie",))
    node.read()
    (tmp_path / "pcm-pcie").unlink()
    missing = Failure(
        FailureKind.UNSUPPORTED, "PCIe load: these NPUs do not measure it; pcm-pcie would, by socket only: install it"
    )
    assert node.read() == {NODE: missing, DeviceKey(0): missing, DeviceKey(1): missing}


def test_devices_that_are_told_apart_from_now_on_end_the_sockets(tmp_path: Path) -> None:
    node = Node(tmp_path, PCM, tools=("pcm-pcie",))
    node.read()
    node.dcmi, node.answer = True, REFUSED
    found = node.read()
    assert found[NODE] == ()
    assert set(found) == {NODE, *CHIPS}


def test_a_unit_whose_bus_cannot_be_read_is_named_to_the_devices_that_no_other_unit_counts(tmp_path: Path) -> None:
    node = Node(tmp_path, PERF, units=("hisi_pcie0_core0",), tools=("perf",))
    bus = tmp_path / "sys/bus/event_source/devices/hisi_pcie0_core0/bus"
    bus.write_text("rubbish\n")
    words = (
        "PCIe load: no hisi_pcie unit watches the root ports of the NPUs, but 1 of them could not be read, which may: "
        f"hisi_pcie0_core0: {bus}: 'rubbish' is no PCI bus"
    )
    assert node.failures() == dict.fromkeys(CHIPS, (FailureKind.UNPARSEABLE, words))
    assert node.asked == []


@pytest.mark.parametrize(
    ("units", "vendor", "words"),
    [
        (KUNPENG, None, "this Kunpeng has the counters, but no perf; install it"),
        ((), "GenuineIntel", "pcm-pcie would, by socket only: install it"),
        ((), "AuthenticAMD", "no 910B with DCMI, no hisi_pcie unit"),
    ],
)
def test_a_node_without_any_way_says_what_is_missing(
    tmp_path: Path, units: tuple[str, ...], vendor: str | None, words: str
) -> None:
    node = Node(tmp_path, units=units, vendor=vendor)
    for kind, detail in node.failures().values():
        assert (kind, words in detail) == (FailureKind.UNSUPPORTED, True)
    assert node.asked == []


def test_an_unreadable_cpuinfo_does_not_mean_that_the_cpu_is_no_intel(tmp_path: Path) -> None:
    node = Node(tmp_path, tools=("pcm-pcie",), vendor=None)
    for kind, detail in node.failures().values():
        assert (kind, "cpuinfo" in detail, "no Intel" in detail) == (FailureKind.MISSING, True, False)


def test_a_tool_that_is_installed_later_is_found(tmp_path: Path) -> None:
    node = Node(tmp_path, PERF, units=KUNPENG)
    assert set(node.failures()) == set(CHIPS)
    (tmp_path / "perf").write_text("#!/bin/sh\n")
    (tmp_path / "perf").chmod(0o755)
    assert isinstance(node.read()[DeviceKey(0)], PcieLoad)


def test_without_chips_nothing_is_run(tmp_path: Path) -> None:
    node = Node(tmp_path, REFUSED, dcmi=True)
    node.chips = {}
    assert (node.read(), node.asked) == ({}, [])
