"""PCIe texts of real machines, where NPU_WATCHD_CAPTURES names a folder of them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from npu_watchd.model.pcie import AerLine
from npu_watchd.parsers import lspci, pcie
from tests.parsers.test_cuts import cuts, excesses

PCIE = Path(os.environ.get("NPU_WATCHD_CAPTURES", ".")) / "pcie"
pytestmark = pytest.mark.skipif(
    "NPU_WATCHD_CAPTURES" not in os.environ or not PCIE.is_dir(),
    reason="NPU_WATCHD_CAPTURES names no folder with PCIe texts",
)


def found(pattern: str) -> list[Path]:
    files = sorted(PCIE.glob(pattern))
    if not files:
        pytest.skip(f"the folder has no {pattern}")
    return files


def test_every_aer_file_is_read_and_every_cut_of_it_is_refused_or_less() -> None:
    for path in found("sysfs_*aer_dev_*.txt"):
        text = path.read_text()
        report = pcie.aer(text)
        (severity,) = (name for name in ("correctable", "nonfatal", "fatal") if f"aer_dev_{name}" in path.name)
        assert getattr(report, severity).total == 0
        assert excesses(pcie.aer, text, cuts(text)) == []


def test_every_link_value_is_read() -> None:
    seen = set()
    for path in found("sysfs_link_*.txt"):
        for line in path.read_text().splitlines(keepends=True):
            name, _, value = line.partition(": ")
            seen.add((pcie.transfers_per_second if name.endswith("speed") else pcie.lanes)(value))
    assert seen == {4, 5e9, 8e9, 16e9}


def test_every_lspci_is_read_and_every_cut_of_it_is_refused_or_less() -> None:
    npus = {}
    for path in found("lspci_*.txt"):
        text = path.read_text()
        devices = lspci.parse(text).devices
        npus[path.name] = sum(device.class_name == "Processing accelerators" for device in devices)
        assert excesses(lspci.parse, text, cuts(text, step=7)) == []
    assert npus == {
        "lspci_ascend_910a_7x_d801.txt": 7,
        "lspci_ascend_910b_01_02_41_42.txt": 6,
        "lspci_kunpeng_node_d802_rootports.txt": 2,
        "lspci_nn_ascend_910b2c_domain.txt": 2,
        "lspci_vv_lnksta_downgraded_partial.txt": 0,
    }


def test_a_downgraded_link_is_seen_as_lspci_judges_it() -> None:
    (path,) = found("lspci_vv_lnksta_downgraded_partial.txt")
    (device,) = lspci.parse(path.read_text()).devices
    assert (device.transfers_per_second, device.lanes) == (5e9, 1)
    assert (device.speed_judgement, device.width_judgement) == ("downgraded", "downgraded")


def test_the_kernels_aer_lines_of_all_ages_are_known() -> None:
    lines = [line for path in found("dmesg_aer_*.txt") for line in path.read_text().splitlines()]
    errors = [error for line in lines if (error := pcie.aer_line(line)) is not None]
    assert {error.severity for error in errors} == {"correctable"}
    assert [error for error in errors if not error.announces] == [
        AerLine("0000:00:1c.5", "correctable", "Physical Layer, Receiver ID", announces=False),
        AerLine("0000:00:1d.3", "correctable", "Data Link Layer, Transmitter ID", announces=False),
        AerLine("0000:06:00.0", "correctable", "Physical Layer, Receiver ID", announces=False),
        AerLine("0000:07:00.0", "correctable", "Data Link Layer, Receiver ID", announces=False),
        AerLine("0000:00:1d.0", "correctable", "Physical Layer, Receiver ID", announces=False),
    ]
    assert [(error.address, error.port) for error in errors if error.announces] == [
        ("0000:00:1c.5", "0000:00:1c.5"),
        ("0000:00:1c.5", "0000:00:1c.5"),
        ("0000:06:00.0", "0000:00:1d.3"),
        ("0000:06:00.0", "0000:00:1d.3"),
        ("0000:07:00.0", "0000:00:1d.0"),
        ("0000:00:1d.0", "0000:00:1d.0"),
    ]
