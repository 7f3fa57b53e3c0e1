"""The made PCI tree: pure, in the kernel's shapes, and rewritten in place."""

from __future__ import annotations

from pathlib import Path

import pytest

from npu_watchd.model.pcie import PcieErrors, PcieLink
from npu_watchd.simnode.sysfs_pci import Link, PciDevice, files, links, port, write
from npu_watchd.sources.pci import PciTree

NPU = "0000:c1:00.0"
FOLDER = f"devices/pci0000:c0/0000:c0:01.0/{NPU}"


def one(**more: object) -> tuple[PciDevice, ...]:
    return (port("0000:c0:01.0", PciDevice(NPU, 0xD802, **more)),)  # type: ignore[arg-type]


def test_devices_lie_below_their_ports_and_are_listed_by_links() -> None:
    assert links(one()) == {
        "bus/pci/devices/0000:c0:01.0": "../../../devices/pci0000:c0/0000:c0:01.0",
        f"bus/pci/devices/{NPU}": f"../../../{FOLDER}",
    }


def test_files_are_as_the_kernel_writes_them() -> None:
    made = files(one(link=Link(8.0, 8, 32.0, 16), errors={"correctable": {"RxErr": 2, "Timeout": 1}}))
    assert {name: made[f"{FOLDER}/{name}"] for name in ("vendor", "device", "class", "revision", "numa_node")} == {
        "vendor": b"0x19e5\n",
        "device": b"0xd802\n",
        "class": b"0x120000\n",
        "revision": b"0x20\n",
        "numa_node": b"-1\n",
    }
    assert made[f"{FOLDER}/current_link_speed"] == b"8.0 GT/s PCIe\n"
    assert made[f"{FOLDER}/max_link_speed"] == b"32.0 GT/s PCIe\n"
    assert made[f"{FOLDER}/current_link_width"] == b"8\n"
    assert made[f"{FOLDER}/aer_dev_correctable"] == (
        b"RxErr 2\nBadTLP 0\nBadDLLP 0\nRollover 0\nTimeout 1\nNonFatalErr 0\nCorrIntErr 0\nHeaderOF 0\n"
        b"TOTAL_ERR_COR 3\n"
    )
    assert made[f"{FOLDER}/aer_dev_fatal"].endswith(b"\nTOTAL_ERR_FATAL 0\n")


def test_where_firmware_owns_aer_there_are_no_files_of_it() -> None:
    assert not [name for name in files(one(errors=None)) if name.startswith(f"{FOLDER}/aer")]


def test_an_error_that_the_kernel_does_not_know_is_a_mistake_of_the_scenario() -> None:
    with pytest.raises(ValueError, match="no correctable error"):
        files(one(errors={"correctable": {"DLP": 1}}))


def test_what_is_made_is_what_is_read(tmp_path: Path) -> None:
    write(one(link=Link(16.0, 8, 16.0, 16), errors={"fatal": {"DLP": 1}}, numa_node=3), tmp_path)
    link, errors = PciTree(tmp_path).links([NPU])[NPU], PciTree(tmp_path).errors([NPU])[NPU]
    assert isinstance(link, PcieLink)
    assert isinstance(errors, PcieErrors)
    assert (link.lanes, link.path_max_lanes, link.numa_node, link.failures) == (8, 16, 3, {})
    assert (errors.correctable, errors.nonfatal, errors.fatal, errors.failures) == (0, 0, 1, {})


def test_a_tree_is_rewritten_in_place_while_it_is_read(tmp_path: Path) -> None:
    write(one(), tmp_path)
    write(one(link=Link(lanes=4)), tmp_path)
    assert (tmp_path / "bus/pci/devices" / NPU / "current_link_width").read_text() == "4\n"
    assert not list(tmp_path.rglob(".*.new"))


def test_a_link_that_is_down_is_unknown(tmp_path: Path) -> None:
    write(one(link=Link(speed=0, lanes=0)), tmp_path)
    link = PciTree(tmp_path).links([NPU])[NPU]
    assert isinstance(link, PcieLink)
    assert (link.transfers_per_second, link.lanes, link.max_lanes, link.failures) == (None, None, 16, {})
