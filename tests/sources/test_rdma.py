"""Ports and counters of /sys/class/infiniband: whole, damaged file by file, and vanishing under the reader."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from npu_watchd.model.fabric import PortCounters, PortKey, RdmaPort, RdmaPorts
from npu_watchd.model.reading import Failure, FailureKind
from npu_watchd.simnode.sysfs_ib import DISABLED, DOWN, SimHca, SimPort, write
from npu_watchd.sources.rdma import ERROR_COUNTERS, RdmaTree

A, B = PortKey("mlx5_0", 1), PortKey("mlx5_1", 1)
FIRST = "class/infiniband/mlx5_0/ports/1"
ERRORS = {
    "symbol_error": 1,
    "link_error_recovery": 2,
    "port_rcv_errors": 3,
    "port_xmit_discards": 4,
    "local_link_integrity_errors": 5,
    "excessive_buffer_overrun_errors": 6,
}
HARDWARE = {
    "out_of_sequence": 7,
    "packet_seq_err": 8,
    "local_ack_timeout_err": 9,
    "rx_icrc_encapsulated": 10,
}
COUNTED = SimPort(
    netdev="ens21np0",
    counters={**ERRORS, "port_rcv_data": 1000, "port_xmit_data": 2**62, "link_downed": 11},
    hw_counters={**HARDWARE, "np_cnp_sent": 99},
)


@pytest.fixture
def sysfs(tmp_path: Path) -> Path:
    """A port that counts everything, and a second device whose port has nothing plugged in."""
    idle = SimPort(state=DOWN, physical_state=DISABLED, rate="40 Gb/sec (4X QDR)")
    write(tmp_path / "sys", [SimHca(ports=(COUNTED,)), SimHca("mlx5_1", ports=(idle,))])
    return tmp_path / "sys"


def counted(tree: RdmaTree) -> dict[PortKey, PortCounters]:
    found = tree.counters()
    assert isinstance(found, tuple)
    return {one.key: one for one in found}


def ports(tree: RdmaTree) -> RdmaPorts:
    found = tree.ports()
    assert isinstance(found, RdmaPorts)
    return found


def test_ports_have_the_facts_of_ibstat_in_its_words(tmp_path: Path) -> None:
    port = SimPort(rate="400 Gb/sec (4X NDR)", lid=65535, guid=0x9E63C0FFFEAA0010, netdev="ens21np0")
    write(tmp_path, [SimHca(node_guid=0x9C63C00300AA0010, system_image_guid=0x9C63C00300AA0010, ports=(port,))])
    assert ports(RdmaTree(tmp_path)) == RdmaPorts(
        (
            RdmaPort(
                ca="mlx5_0",
                port=1,
                ca_type="MT4123",
                firmware="20.31.1014",
                hardware_version="0",
                node_guid="0x9c63c00300aa0010",
                system_image_guid="0x9c63c00300aa0010",
                state="Active",
                physical_state="LinkUp",
                rate_gbps=400.0,
                base_lid=65535,
                lmc=0,
                sm_lid=0,
                capability_mask=0x00010000,
                port_guid="0x9e63c0fffeaa0010",
                link_layer="Ethernet",
                netdev="ens21np0",
            ),
        )
    )


def test_counters_are_a_bounded_choice_and_data_is_counted_in_words_of_four_octets(sysfs: Path) -> None:
    assert counted(RdmaTree(sysfs))[A] == PortCounters(
        key=A,
        errors={**ERRORS, **HARDWARE},
        bytes={"receive": 4000, "transmit": 2**64},
        link_downs=11,
        netdev="ens21np0",
        failures={},
    )
    assert len(ERROR_COUNTERS) == 10


def test_a_driver_without_hardware_counters_fails_at_nothing(sysfs: Path) -> None:
    idle = counted(RdmaTree(sysfs))[B]
    assert (idle.errors, idle.link_downs, idle.netdev, idle.failures) == (dict.fromkeys(ERRORS, 0), 0, None, {})


@pytest.mark.parametrize("folder", ["class", "class/infiniband"])
def test_a_node_without_rdma_devices_has_no_port_and_no_failure(tmp_path: Path, folder: str) -> None:
    (tmp_path / folder).mkdir(parents=True)
    assert RdmaTree(tmp_path).ports() == RdmaPorts()
    assert RdmaTree(tmp_path).counters() == ()


def too_large(file: Path) -> None:
    file.write_bytes(b"1" * 10_000_000)


def replaced_by_a_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def replaced_by_a_link(file: Path) -> None:
    file.unlink()
    file.symlink_to("/etc/hostname")


def replaced_by_a_pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


DAMAGES: list[tuple[str, Callable[[Path], object], str | None]] = [
    ("gone", Path.unlink, None),
    ("no PMA", lambda file: file.write_text("N/A (no PMA)\n"), "the driver says N/A"),
    ("a folder", replaced_by_a_folder, "not a regular file"),
    ("a link", replaced_by_a_link, "is a link"),
    ("a pipe", replaced_by_a_pipe, "not a regular file"),
    ("10 MB", too_large, "larger than 65536 bytes"),
    ("empty", lambda file: file.write_text(""), "no whole number"),
    ("negative", lambda file: file.write_text("-1\n"), "no whole number"),
    ("words", lambda file: file.write_text("lots\n"), "no whole number"),
]


@pytest.mark.parametrize("name", ["counters/symbol_error", "hw_counters/out_of_sequence"])
@pytest.mark.parametrize(("damage", "words"), [rest for _, *rest in DAMAGES], ids=[name for name, *_ in DAMAGES])
def test_a_file_that_cannot_be_read_costs_its_own_value(
    sysfs: Path, damage: Callable[[Path], object], words: str | None, name: str
) -> None:
    damage(sysfs / FIRST / name)
    found = counted(RdmaTree(sysfs))
    lost = Path(name).name
    assert found[A].errors == {key: value for key, value in {**ERRORS, **HARDWARE}.items() if key != lost}
    assert (found[A].bytes["receive"], found[A].link_downs, B in found) == (4000, 11, True)
    assert list(found[A].failures) == ([] if words is None else [name])
    if words is not None and words != "no whole number":
        assert words in found[A].failures[name]


def test_a_file_that_may_not_be_read_costs_its_own_value(sysfs: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may read every file; the kinds of damage above stand for this one")
    (sysfs / FIRST / "counters/symbol_error").chmod(0)
    found = counted(RdmaTree(sysfs))[A]
    assert "Permission denied" in found.failures["counters/symbol_error"]
    assert found.errors["port_rcv_errors"] == 3


class Kernel:
    """`os.read` as the kernel has it, but for files of these names; and what was opened."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.refused: dict[str, OSError] = {}
        self.opened: list[str] = []
        self._open = os.open
        monkeypatch.setattr(os, "open", self._watched)

    def _watched(self, path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        self.opened.append(str(path))
        if path in self.refused:
            raise self.refused[path]
        return self._open(path, flags, mode, dir_fd=dir_fd)


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> Kernel:
    return Kernel(monkeypatch)


@pytest.mark.parametrize("number", [22, 5, 110], ids=["EINVAL", "EIO", "ETIMEDOUT"])
def test_a_file_at_which_the_driver_fails_is_remembered_and_not_read_again(
    sysfs: Path, kernel: Kernel, number: int
) -> None:
    kernel.refused["symbol_error"] = OSError(number, os.strerror(number))
    tree = RdmaTree(sysfs)
    first = counted(tree)[A]
    assert os.strerror(number) in first.failures["counters/symbol_error"]
    kernel.opened.clear()
    assert counted(tree)[A] == first
    # The other port's own file failed too and is left alone as well.
    assert "symbol_error" not in kernel.opened
    assert kernel.opened.count("port_rcv_errors") == 2


def test_a_file_that_is_not_there_is_looked_for_again(sysfs: Path) -> None:
    late = sysfs / FIRST / "counters/symbol_error"
    late.unlink()
    tree = RdmaTree(sysfs)
    assert "symbol_error" not in counted(tree)[A].errors
    late.write_text("4\n")
    assert counted(tree)[A].errors["symbol_error"] == 4


def damaged(sysfs: Path) -> RdmaTree:
    (sysfs / FIRST / "counters/symbol_error").write_text("N/A (no PMA)\n")
    tree = RdmaTree(sysfs)
    assert "symbol_error" not in counted(tree)[A].errors
    (sysfs / FIRST / "counters/symbol_error").write_text("5\n")
    assert "symbol_error" not in counted(tree)[A].errors
    return tree


def test_a_bad_file_is_read_again_after_its_port_was_gone(sysfs: Path) -> None:
    tree = damaged(sysfs)
    aside = sysfs.parent / "aside"
    (sysfs / "class/infiniband/mlx5_0").rename(aside)
    assert set(counted(tree)) == {B}
    aside.rename(sysfs / "class/infiniband/mlx5_0")
    assert counted(tree)[A].errors["symbol_error"] == 5


def test_a_bad_file_is_read_again_after_its_port_was_replaced_between_two_rounds(sysfs: Path) -> None:
    tree = damaged(sysfs)
    # The new one is made before the old one goes, so that it is another directory for sure.
    shutil.copytree(sysfs / FIRST, sysfs.parent / "new")
    shutil.rmtree(sysfs / FIRST)
    (sysfs.parent / "new").rename(sysfs / FIRST)
    assert counted(tree)[A].errors["symbol_error"] == 5


def test_excluded_devices_are_not_even_opened(tmp_path: Path, kernel: Kernel) -> None:
    write(tmp_path, [SimHca("mlx5_0", ports=(COUNTED,)), SimHca("mlx5_bond_0", ports=(COUNTED,))])
    tree = RdmaTree(tmp_path, ("mlx5_bond_*",))
    assert set(counted(tree)) == {A}
    assert [port.ca for port in ports(tree).ports] == ["mlx5_0"]
    assert kernel.opened
    assert not [name for name in kernel.opened if "bond" in name]


def test_only_one_of_two_ports_can_be_excluded_by_its_device(sysfs: Path) -> None:
    assert set(counted(RdmaTree(sysfs, ("mlx5_1",)))) == {A}
    assert set(counted(RdmaTree(sysfs, ("mlx5",)))) == {A, B}


class Vanishing(RdmaTree):
    """Whose first device is unplugged at the moment at which this file is to be read."""

    def __init__(self, sysfs: Path, at: str) -> None:
        self._at, self._root = at, sysfs
        super().__init__(sysfs)

    @property
    def reading(self) -> str:
        return self._reading

    @reading.setter
    def reading(self, file: str) -> None:
        self._reading = file
        if file.endswith(self._at):
            shutil.rmtree(self._root / "class/infiniband/mlx5_0", ignore_errors=True)


@pytest.mark.parametrize("at", ["mlx5_0/ports", "1/counters", "counters/port_rcv_errors", "1/hw_counters"])
def test_a_device_that_vanishes_while_it_is_read_costs_its_own_values(sysfs: Path, at: str) -> None:
    found = counted(Vanishing(sysfs, at))
    assert found[B].errors == dict.fromkeys(ERRORS, 0)
    if A in found:
        assert found[A].errors.items() <= {**ERRORS, **HARDWARE}.items()
        assert found[A].failures == {}
        assert "out_of_sequence" not in found[A].errors


@pytest.mark.parametrize("at", ["mlx5_0/ports", "mlx5_0/hca_type", "1/state", "1/rate"])
def test_a_device_that_vanishes_leaves_the_other_ports(sysfs: Path, at: str) -> None:
    found = ports(Vanishing(sysfs, at))
    assert "mlx5_1" in [port.ca for port in found.ports]
    for port in found.ports:
        assert port.state is not None or port.physical_state is not None


def test_a_port_whose_state_cannot_be_read_is_an_error_and_not_a_port_that_is_down(sysfs: Path) -> None:
    for name in ("state", "phys_state"):
        (sysfs / FIRST / name).write_text("\x00\x7f\n")
    found = ports(RdmaTree(sysfs))
    assert [port.ca for port in found.ports] == ["mlx5_1"]
    assert "mlx5_0/1: neither state nor phys_state can be read" in found.errors


def test_a_device_whose_ports_cannot_be_listed_is_an_error_and_not_gone(
    sysfs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listdir = os.listdir

    def refusing(folder: str) -> list[str]:
        if folder.endswith("mlx5_0/ports"):
            raise PermissionError(13, "Permission denied")
        return listdir(folder)

    monkeypatch.setattr(os, "listdir", refusing)
    found = ports(RdmaTree(sysfs))
    assert [port.ca for port in found.ports] == ["mlx5_1"]
    assert found.errors == (f"mlx5_0: {sysfs}/class/infiniband/mlx5_0/ports: Permission denied",)
    assert set(counted(RdmaTree(sysfs))) == {B}


def test_a_class_that_cannot_be_listed_is_a_failure_and_not_a_node_without_ports(
    sysfs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refusing(folder: str) -> list[str]:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "listdir", refusing)
    for found in (RdmaTree(sysfs).ports(), RdmaTree(sysfs).counters()):
        assert isinstance(found, Failure)
        assert (found.kind, found.detail) == (FailureKind.DENIED, f"{sysfs}/class/infiniband: Permission denied")


def test_links_lead_to_the_devices_as_in_the_kernels_tree_and_never_out_of_it(sysfs: Path) -> None:
    devices = sysfs / "devices/pci0000:00"
    devices.mkdir(parents=True)
    (sysfs / "class/infiniband/mlx5_0").rename(devices / "mlx5_0")
    (sysfs / "class/infiniband/mlx5_0").symlink_to("../../devices/pci0000:00/mlx5_0")
    (sysfs / "class/infiniband/mlx5_1").rename(sysfs.parent / "outside")
    (sysfs / "class/infiniband/mlx5_1").symlink_to(sysfs.parent / "outside")
    assert set(counted(RdmaTree(sysfs))) == {A}
    assert ports(RdmaTree(sysfs)).errors == (f"mlx5_1: {sysfs}/class/infiniband/mlx5_1: leads out of {sysfs}",)


def test_a_netdev_that_names_another_place_is_not_followed(tmp_path: Path) -> None:
    write(tmp_path / "sys", [SimHca(ports=(SimPort(netdev="../../../out", counters={"link_downed": "N/A"}),))])
    (tmp_path / "out").mkdir()
    (tmp_path / "out/carrier_down_count").write_text("7\n")
    (tmp_path / "sys/class/net").mkdir()
    assert counted(RdmaTree(tmp_path / "sys"))[A].link_downs is None
