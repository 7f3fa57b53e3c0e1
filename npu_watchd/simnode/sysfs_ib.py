"""The RDMA part of a simulated node's sysfs: what the kernel shows below /sys/class/infiniband, as files and texts.

Form: drivers/infiniband/core/sysfs.c of Linux; real ibstat and ibstatus read this tree (tests/e2e/test_real_ibstat.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_STATES = ("NOP", "DOWN", "INIT", "ARMED", "ACTIVE", "ACTIVE_DEFER")
_PHYSICAL_STATES = (
    "<unknown>",
    "Sleep",
    "Polling",
    "Disabled",
    "PortConfigurationTraining",
    "LinkUp",
    "LinkErrorRecovery",
    "Phy Test",
)
ACTIVE, DOWN, INITIALIZING = 4, 1, 2
LINK_UP, DISABLED, POLLING = 5, 3, 2

COUNTERS = (
    "VL15_dropped",
    "excessive_buffer_overrun_errors",
    "link_downed",
    "link_error_recovery",
    "local_link_integrity_errors",
    "port_rcv_constraint_errors",
    "port_rcv_data",
    "port_rcv_errors",
    "port_rcv_packets",
    "port_rcv_remote_physical_errors",
    "port_rcv_switch_relay_errors",
    "port_xmit_constraint_errors",
    "port_xmit_data",
    "port_xmit_discards",
    "port_xmit_packets",
    "port_xmit_wait",
    "symbol_error",
)
"""What every port of mlx5 counts; port_rcv_data and port_xmit_data in words of four bytes."""


@dataclass(frozen=True, slots=True)
class SimPort:
    """One port; numbers as the InfiniBand specification has them."""

    number: int = 1
    state: int = ACTIVE
    physical_state: int = LINK_UP
    rate: str | None = "200 Gb/sec (4X HDR)"
    """None: there is no such file, at which ibstat gives up."""
    lid: int = 0
    sm_lid: int = 0
    lid_mask_count: int = 0
    capability_mask: int = 0x00010000
    link_layer: str = "Ethernet"
    guid: int = 0
    """The interface part of GID 0."""
    netdev: str | None = None
    counters: Mapping[str, int | str] = field(default_factory=dict)
    """Those that are not 0; text as the kernel would put it, e.g. `N/A (no PMA)`."""
    hw_counters: Mapping[str, int | str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SimHca:
    """One RDMA device with its ports."""

    name: str = "mlx5_0"
    hca_type: str | None = "MT4123"
    """None: the driver has no such file (rxe)."""
    firmware: str | None = "20.31.1014"
    hardware_revision: str | None = "0"
    node_type: str = "1: CA"
    node_guid: int = 0
    system_image_guid: int = 0
    ports: tuple[SimPort, ...] = (SimPort(),)


def files(hcas: Iterable[SimHca]) -> dict[str, str]:
    """Every file below /sys/class by its path, with the kernel's end of line."""
    found = {"infiniband_mad/abi_version": "5\n"}
    number = 0
    for hca in hcas:
        for name, text in _of_hca(hca).items():
            found[f"infiniband/{hca.name}/{name}"] = text
        for port in hca.ports:
            for name, text in _of_port(port).items():
                found[f"infiniband/{hca.name}/ports/{port.number}/{name}"] = text
            found[f"infiniband_mad/umad{number}/ibdev"] = f"{hca.name}\n"
            found[f"infiniband_mad/umad{number}/port"] = f"{port.number}\n"
            number += 1
    return found


def write(sysfs: Path, hcas: Iterable[SimHca]) -> None:
    """The tree below `sysfs`/class. Files of ports that are gone are not removed."""
    (sysfs / "class" / "infiniband").mkdir(parents=True, exist_ok=True)
    for name, text in files(hcas).items():
        path = sysfs / "class" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="ascii")


def _of_hca(hca: SimHca) -> dict[str, str]:
    values = {
        "node_type": hca.node_type,
        "fw_ver": hca.firmware,
        "hw_rev": hca.hardware_revision,
        "hca_type": hca.hca_type,
        "node_guid": _groups(hca.node_guid),
        "sys_image_guid": _groups(hca.system_image_guid),
        "node_desc": hca.name,
    }
    return {name: f"{value}\n" for name, value in values.items() if value is not None}


def _of_port(port: SimPort) -> dict[str, str]:
    values: dict[str, str | int | None] = {
        "state": f"{port.state}: {_STATES[port.state]}",
        "phys_state": f"{port.physical_state}: {_PHYSICAL_STATES[port.physical_state]}",
        "rate": port.rate,
        "lid": f"0x{port.lid:x}",
        "lid_mask_count": port.lid_mask_count,
        "sm_lid": f"0x{port.sm_lid:x}",
        "sm_sl": 0,
        "cap_mask": f"0x{port.capability_mask:08x}",
        "link_layer": port.link_layer,
        "gids/0": f"fe80:0000:0000:0000:{_groups(port.guid)}",
        "pkeys/0": "0xffff",
    }
    if port.netdev is not None:
        values["gid_attrs/ndevs/0"] = port.netdev
    counters = dict.fromkeys(COUNTERS, 0) | dict(port.counters)
    values |= {f"counters/{name}": value for name, value in counters.items()}
    values |= {f"hw_counters/{name}": value for name, value in port.hw_counters.items()}
    return {name: f"{value}\n" for name, value in values.items() if value is not None}


def _groups(guid: int) -> str:
    digits = f"{guid:016x}"
    return ":".join(digits[start : start + 4] for start in range(0, 16, 4))
