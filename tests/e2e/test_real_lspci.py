"""Debian's own lspci on a made sysfs tree, in a mount namespace of its own: it sees that bus, and we see the same."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from npu_watchd.model.pcie import PcieLink
from npu_watchd.model.pcie_tools import LspciDevice
from npu_watchd.parsers import lspci
from npu_watchd.simnode.sysfs_pci import Link, PciDevice, port, write
from npu_watchd.sources.pci import PciTree

PORT, NPU, FINE = "0000:c0:01.0", "0000:c1:00.0", "0000:08:00.0"
_IN_NAMESPACE = """
mount --make-rprivate / && mount --bind "$0/bus/pci" /sys/bus/pci && mount --bind "$0/devices" /sys/devices && exec "$@"
"""

Lspci = Callable[..., str]


@pytest.fixture
def run_lspci(tmp_path: Path) -> Lspci:
    """lspci with these arguments on a tree below tmp_path/sys."""
    program = shutil.which("lspci", path="/usr/sbin:/usr/bin:/sbin:/bin")
    if program is None:
        pytest.skip("needs lspci (Debian's pciutils)")
    if os.geteuid() != 0:
        pytest.skip("needs root to mount a made sysfs over the real one")
    narrow = PciDevice(NPU, 0xD802, link=Link(8.0, 8, 32.0, 16))
    down = PciDevice("0000:c2:00.0", 0xD802, link=Link(0, 0, 16.0, 16))
    ports = (
        port(PORT, narrow, link=Link(8.0, 8, 16.0, 16)),
        port("0000:c0:02.0", down),
        port("0000:07:00.0", PciDevice(FINE, 0xD802)),
    )
    write(ports, tmp_path / "sys")

    def run(*arguments: str) -> str:
        done = subprocess.run(
            ["unshare", "-m", "sh", "-c", _IN_NAMESPACE, str(tmp_path / "sys"), program, *arguments],
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
            env={"LC_ALL": "C", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
        )
        if "unshare failed" in done.stderr or "mount:" in done.stderr:
            pytest.skip(f"no mount namespace here: {done.stderr.strip()}")
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def test_every_verbosity_of_real_lspci_is_read(run_lspci: Lspci) -> None:
    addresses = ["0000:07:00.0", FINE, PORT, "0000:c0:02.0", NPU, "0000:c2:00.0"]
    for arguments in ((), ("-D",), ("-Dnn",), ("-v",), ("-vv",), ("-vvv", "-nn")):
        devices = lspci.parse(run_lspci(*arguments)).devices
        assert [device.address for device in devices] == addresses


def test_real_lspci_and_sysfs_tell_the_same_link(run_lspci: Lspci, tmp_path: Path) -> None:
    by_address = {device.address: device for device in lspci.parse(run_lspci("-vv")).devices}
    links = PciTree(tmp_path / "sys").links([NPU, FINE, "0000:c2:00.0"])
    for address, link in links.items():
        assert isinstance(link, PcieLink)
        seen = by_address[address]
        assert (seen.transfers_per_second, seen.max_transfers_per_second, seen.lanes, seen.max_lanes) == (
            link.transfers_per_second,
            link.max_transfers_per_second,
            link.lanes,
            link.max_lanes,
        )


def test_real_lspci_judges_a_link_by_its_device_and_we_by_its_path(run_lspci: Lspci, tmp_path: Path) -> None:
    by_address = {device.address: device for device in lspci.parse(run_lspci("-vvnn")).devices}
    seen = by_address[NPU]
    assert seen == LspciDevice(
        address=NPU,
        class_name="Processing accelerators",
        name=seen.name,
        vendor_id="19e5",
        device_id="d802",
        answers=True,
        transfers_per_second=8e9,
        max_transfers_per_second=32e9,
        lanes=8,
        max_lanes=16,
        speed_judgement="downgraded",
        width_judgement="downgraded",
    )
    link = PciTree(tmp_path / "sys").links([NPU])[NPU]
    assert isinstance(link, PcieLink)
    assert (link.path_max_transfers_per_second, link.path_max_lanes) == (16e9, 16)
    assert link.degraded(busy=False) is True
