"""Links and AER counters from a sysfs tree: whole, damaged file by file, and vanishing under the reader."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from npu_watchd.model.pcie import PcieErrors, PcieLink
from npu_watchd.model.reading import Failure, FailureKind
from npu_watchd.simnode.sysfs_pci import Link, PciDevice, port, write
from npu_watchd.sources.attributes import Attributes
from npu_watchd.sources.pci import PciTree

NPU, OTHER, THIRD = "0000:c4:00.0", "0000:c5:00.0", "0000:08:00.0"
ROOT_PORT, UP, DOWN = "0000:c0:01.0", "0000:c1:00.0", "0000:c2:00.0"
FOLDER = f"devices/pci0000:c0/{ROOT_PORT}/{UP}/{DOWN}/{NPU}"


WELL = Link()


def npu(address: str, link: Link = WELL, **more: object) -> PciDevice:
    return PciDevice(address, 0xD802, link=link, **more)  # type: ignore[arg-type]


@pytest.fixture
def sysfs(tmp_path: Path) -> Path:
    """Two NPUs behind a switch of 32 GT/s x8 upwards, and one whose firmware owns AER on a root port of its own."""
    gen5 = Link(32.0, 8, 32.0, 8)
    device = npu(NPU, errors={"correctable": {"BadTLP": 3, "Timeout": 1}, "fatal": {"DLP": 2}}, numa_node=1)
    switch = port(
        UP, port(DOWN, device), port("0000:c2:01.0", npu(OTHER, Link(16.0, 8, 16.0, 16))), link=gen5, device_id=0x1000
    )
    own = PciDevice("0000:07:00.0", 0xA120, class_code=0x060400, below=(npu(THIRD, errors=None),), errors=None)
    write((port(ROOT_PORT, switch, link=gen5), own), tmp_path / "sys")
    return tmp_path / "sys"


def link_of(sysfs: Path, address: str = NPU) -> PcieLink:
    found = PciTree(sysfs).links([address])[address]
    assert isinstance(found, PcieLink)
    return found


def errors_of(sysfs: Path, address: str = NPU) -> PcieErrors:
    found = PciTree(sysfs).errors([address])[address]
    assert isinstance(found, PcieErrors)
    return found


def why(found: object) -> Failure:
    assert isinstance(found, Failure)
    return found


def test_a_link_is_read_from_the_device_up_to_its_root_port(sysfs: Path) -> None:
    assert link_of(sysfs) == PcieLink(
        address=NPU,
        path=(ROOT_PORT, UP, DOWN, NPU),
        transfers_per_second=16e9,
        max_transfers_per_second=16e9,
        lanes=16,
        max_lanes=16,
        path_transfers_per_second=16e9,
        path_max_transfers_per_second=16e9,
        path_lanes=8,
        path_max_lanes=8,
        numa_node=1,
    )
    assert link_of(sysfs).degraded(busy=True) is False


def test_a_device_that_lost_lanes_is_narrow_only_below_what_the_path_allows(sysfs: Path) -> None:
    assert (link_of(sysfs, OTHER).lanes, link_of(sysfs, OTHER).max_lanes) == (8, 16)
    assert link_of(sysfs, OTHER).degraded(busy=None) is False
    (sysfs / FOLDER / "current_link_width").write_text("4\n")
    assert link_of(sysfs).degraded(busy=None) is True


def test_errors_are_the_devices_own_and_those_of_each_port_above(sysfs: Path) -> None:
    found = errors_of(sysfs)
    assert (found.correctable, found.nonfatal, found.fatal) == (4, 0, 2)
    assert found.counts == {"correctable": {"BadTLP": 3, "Timeout": 1}, "nonfatal": {}, "fatal": {"DLP": 2}}
    assert [(above.address, above.correctable) for above in found.ports] == [(ROOT_PORT, 0), (UP, 0), (DOWN, 0)]
    assert found.failures == {}


def test_where_firmware_owns_aer_the_probe_is_unsupported_and_the_link_is_there(sysfs: Path) -> None:
    assert why(PciTree(sysfs).errors([THIRD])[THIRD]) == Failure(
        FailureKind.UNSUPPORTED,
        "the kernel keeps no AER counters of this device: the firmware owns AER, or it has none",
    )
    assert link_of(sysfs, THIRD).lanes == 16


def test_the_far_end_of_a_link_counts_its_errors_too_and_ports_above_it_do_not(sysfs: Path) -> None:
    for address, total in ((ROOT_PORT, 100), (DOWN, 7)):
        file = next((sysfs / "devices/pci0000:c0").rglob(f"{address}/aer_dev_correctable"))
        file.write_text(file.read_text().replace("TOTAL_ERR_COR 0", f"TOTAL_ERR_COR {total}"))
    found = errors_of(sysfs)
    assert found.far_end == DOWN
    assert (found.both_ends("correctable"), found.both_ends("nonfatal"), found.both_ends("fatal")) == (11, 0, 2)


def test_a_far_end_without_aer_counts_nothing_and_no_other_port_stands_in_for_it(sysfs: Path) -> None:
    for severity in ("correctable", "nonfatal", "fatal"):
        next((sysfs / "devices/pci0000:c0").rglob(f"{DOWN}/aer_dev_{severity}")).unlink()
    file = next((sysfs / "devices/pci0000:c0").rglob(f"{UP}/aer_dev_correctable"))
    file.write_text(file.read_text().replace("TOTAL_ERR_COR 0", "TOTAL_ERR_COR 100"))
    assert [above.address for above in errors_of(sysfs).ports] == [ROOT_PORT, UP]
    assert errors_of(sysfs).both_ends("correctable") == 4


def test_an_end_that_could_not_be_read_leaves_the_sum_unknown_and_not_smaller(sysfs: Path) -> None:
    far_end = next((sysfs / "devices/pci0000:c0").rglob(f"{DOWN}/aer_dev_correctable"))
    far_end.write_text("rubbish\n")
    assert errors_of(sysfs).both_ends("correctable") is None
    assert errors_of(sysfs).both_ends("fatal") == 2
    for severity in ("nonfatal", "fatal"):
        far_end.with_name(f"aer_dev_{severity}").write_text("rubbish\n")
    assert errors_of(sysfs).failures[DOWN].kind is FailureKind.UNPARSEABLE
    assert errors_of(sysfs).both_ends("fatal") is None


def test_ports_without_aer_are_left_out_and_cost_nothing_else(sysfs: Path) -> None:
    for severity in ("correctable", "nonfatal", "fatal"):
        (sysfs / f"devices/pci0000:c0/{ROOT_PORT}/aer_dev_{severity}").unlink()
    assert [above.address for above in errors_of(sysfs).ports] == [UP, DOWN]


def folder_at(file: Path) -> None:
    file.unlink()
    file.mkdir()


def fifo_at(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def link_at(file: Path) -> None:
    file.unlink()
    file.symlink_to("/etc/passwd")


DAMAGE: dict[str, tuple[Callable[[Path], object], FailureKind, str]] = {
    "gone": (Path.unlink, FailureKind.MISSING, "No such file or directory"),
    "empty": (lambda file: file.write_text(""), FailureKind.UNPARSEABLE, "line 1: empty"),
    "10 MB": (lambda file: file.write_bytes(b"1" * 10_000_000), FailureKind.UNPARSEABLE, "larger than 65536 bytes"),
    "rubbish": (lambda file: file.write_bytes(b"\xff\xfe\n"), FailureKind.UNPARSEABLE, "no "),
    "a folder": (folder_at, FailureKind.DENIED, "not a regular file"),
    "a FIFO": (fifo_at, FailureKind.DENIED, "not a regular file"),
    "a link": (link_at, FailureKind.DENIED, "is a link"),
}


@pytest.mark.parametrize("how", DAMAGE)
def test_a_damaged_link_file_costs_one_value_and_the_rest_is_kept(sysfs: Path, how: str) -> None:
    damage, kind, words = DAMAGE[how]
    damage(sysfs / FOLDER / "current_link_width")
    found = link_of(sysfs)
    assert (found.transfers_per_second, found.max_lanes, found.lanes) == (16e9, 16, None)
    assert list(found.failures) == [f"{NPU}/current_link_width"]
    failure = found.failures[f"{NPU}/current_link_width"]
    assert failure.kind is kind
    assert words in failure.detail


@pytest.mark.parametrize("how", DAMAGE)
def test_a_damaged_aer_file_costs_one_severity_and_the_rest_is_kept(sysfs: Path, how: str) -> None:
    damage, kind, _ = DAMAGE[how]
    damage(sysfs / FOLDER / "aer_dev_nonfatal")
    found = errors_of(sysfs)
    assert (found.correctable, found.nonfatal, found.fatal) == (4, None, 2)
    assert [(file, failure.kind) for file, failure in found.failures.items()] == [("aer_dev_nonfatal", kind)]


def test_counters_of_another_severity_in_a_file_are_not_taken(sysfs: Path) -> None:
    shutil.copy(sysfs / FOLDER / "aer_dev_fatal", sysfs / FOLDER / "aer_dev_nonfatal")
    assert errors_of(sysfs).nonfatal is None
    assert errors_of(sysfs).failures["aer_dev_nonfatal"].kind is FailureKind.UNPARSEABLE


@pytest.mark.parametrize(
    ("errno", "kind"),
    [(5, FailureKind.EXIT), (22, FailureKind.EXIT), (13, FailureKind.DENIED), (19, FailureKind.EXIT)],
)
def test_an_error_of_the_kernel_costs_one_value_and_is_quoted(sysfs: Path, errno: int, kind: FailureKind) -> None:
    class Refusing(Attributes):
        def _read(self, name: str) -> bytes:
            if name == "max_link_speed":
                raise OSError(errno, os.strerror(errno))
            return super()._read(name)

    found = PciTree(sysfs, Refusing).links([NPU])[NPU]
    assert isinstance(found, PcieLink)
    assert (found.max_transfers_per_second, found.path_max_transfers_per_second) == (None, None)
    assert (found.transfers_per_second, found.lanes, found.path_max_lanes) == (16e9, 16, 8)
    assert {failure.kind for failure in found.failures.values()} == {kind}
    assert all(os.strerror(errno) in failure.detail for failure in found.failures.values())


def test_an_unknown_maximum_of_one_hop_makes_the_paths_unknown_and_not_larger(sysfs: Path) -> None:
    (sysfs / f"devices/pci0000:c0/{ROOT_PORT}/max_link_width").write_text("255\n")
    assert link_of(sysfs).path_max_lanes is None
    assert link_of(sysfs).degraded(busy=None) is None


def test_a_port_that_cannot_be_opened_makes_the_path_unknown_and_the_device_is_read(sysfs: Path) -> None:
    class Closed(Attributes):
        def __init__(self, path: str) -> None:
            if path.endswith(DOWN):
                raise PermissionError(13, os.strerror(13), path)
            super().__init__(path)

    found = PciTree(sysfs, Closed).links([NPU])[NPU]
    assert isinstance(found, PcieLink)
    assert (found.lanes, found.path_lanes, found.path_max_lanes, found.degraded(busy=None)) == (16, None, None, None)
    assert {name: failure.kind for name, failure in found.failures.items()} == {DOWN: FailureKind.DENIED}


def test_a_bridge_that_is_not_pcie_has_no_part_in_the_path(sysfs: Path) -> None:
    for name in ("current_link_speed", "current_link_width", "max_link_speed", "max_link_width"):
        (sysfs / f"devices/pci0000:c0/{ROOT_PORT}" / name).unlink()
    assert link_of(sysfs).path == (ROOT_PORT, UP, DOWN, NPU)
    assert (link_of(sysfs).path_max_lanes, link_of(sysfs).failures) == (8, {})


def test_a_device_without_any_link_file_is_unsupported(sysfs: Path) -> None:
    for name in ("current_link_speed", "current_link_width", "max_link_speed", "max_link_width"):
        (sysfs / FOLDER / name).unlink()
    assert why(PciTree(sysfs).links([NPU])[NPU]).kind is FailureKind.UNSUPPORTED


def test_a_device_that_is_gone_is_missing_and_the_others_are_read(sysfs: Path) -> None:
    (sysfs / "bus/pci/devices" / NPU).unlink()
    shutil.rmtree(sysfs / FOLDER)
    tree = PciTree(sysfs)
    for found in (tree.links([NPU, OTHER]), tree.errors([NPU, OTHER])):
        assert why(found[NPU]) == Failure(
            FailureKind.MISSING,
            f"{sysfs}/bus/pci/devices/{NPU}: No such file or directory "
            "(it fell off the bus, or its driver was removed; compare `lspci -d 19e5:`)",
        )
        assert not isinstance(found[OTHER], Failure)


@pytest.mark.parametrize("after", ["current_link_speed", "max_link_speed", "max_link_width"])
def test_a_device_that_vanishes_in_mid_read_is_missing_and_not_unsupported(sysfs: Path, after: str) -> None:
    class Unplugged(Attributes):
        def read(self, name: str) -> str | Failure:
            answer = super().read(name)
            if name == after and self.path.endswith(NPU):
                shutil.rmtree(self.path)
            return answer

    found = PciTree(sysfs, Unplugged).links([NPU, OTHER])
    assert why(found[NPU]).kind is FailureKind.MISSING
    assert "vanished while it was read" in why(found[NPU]).detail
    assert isinstance(found[OTHER], PcieLink)


def test_another_device_that_took_the_name_is_not_mixed_with_the_old_one(sysfs: Path) -> None:
    class Replaced(Attributes):
        def read(self, name: str) -> str | Failure:
            if name == "aer_dev_nonfatal" and self.path.endswith(NPU):
                Path(self.path).rename(f"{self.path}.old")
                shutil.copytree(f"{self.path}.old", self.path)
            return super().read(name)

    assert why(PciTree(sysfs, Replaced).errors([NPU])[NPU]).kind is FailureKind.MISSING


@pytest.mark.parametrize("address", ["", "c4:00.0", "0000:C4:00.0", "../..", "0000:c4:00.0/..", "0000:c4:20.0", "\0"])
def test_what_is_no_pci_address_is_not_looked_up(sysfs: Path, address: str) -> None:
    assert why(PciTree(sysfs).links([address])[address]).kind is FailureKind.UNPARSEABLE


def test_no_link_leads_out_of_the_root(sysfs: Path, tmp_path: Path) -> None:
    (sysfs / "devices").rename(tmp_path / "devices")
    (sysfs / "devices").symlink_to("../devices")
    assert why(PciTree(sysfs).links([NPU])[NPU]).kind is FailureKind.DENIED


def test_a_root_that_is_not_there_is_missing(tmp_path: Path) -> None:
    assert why(PciTree(tmp_path / "none").links([NPU])[NPU]).kind is FailureKind.MISSING


def test_no_file_descriptor_is_left_open(sysfs: Path) -> None:
    tree = PciTree(sysfs)
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        tree.links([NPU, OTHER, THIRD])
        tree.errors([NPU, OTHER, THIRD])
    assert len(os.listdir("/proc/self/fd")) == before


def test_sixteen_npus_with_their_switches_are_read_in_less_than_ten_milliseconds_of_cpu(tmp_path: Path) -> None:
    roots = tuple(
        port(
            f"0000:{first:02x}:00.0",
            *(port(f"0000:{first + 1:02x}:{n:02x}.0", npu(f"0000:{first + 2 + n:02x}:00.0")) for n in range(4)),
        )
        for first in (0x00, 0x40, 0x80, 0xC0)
    )
    write(roots, tmp_path)
    addresses = [f"0000:{first + 2 + n:02x}:00.0" for first in (0x00, 0x40, 0x80, 0xC0) for n in range(4)]
    tree = PciTree(tmp_path)
    used = []
    for _ in range(5):
        began = time.thread_time()
        assert all(isinstance(found, PcieLink) for found in tree.links(addresses).values())
        assert all(isinstance(found, PcieErrors) for found in tree.errors(addresses).values())
        used.append(time.thread_time() - began)
    assert min(used) < 0.010
