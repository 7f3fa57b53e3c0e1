"""The network devices of a simulated node's sysfs: carrier and its changes, below /sys/class/net.

Form: Documentation/ABI/testing/sysfs-class-net of Linux 6.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NetDevice:
    name: str
    mac: str
    carrier: bool = True
    ups: int = 1
    """How often the carrier came and went since the driver was loaded."""
    downs: int = 1
    speed_mbps: int = 200_000


def files(devices: Iterable[NetDevice]) -> dict[str, str]:
    """Every file below /sys/class/net by its path, with the kernel's end of line."""
    return {f"{device.name}/{name}": f"{value}\n" for device in devices for name, value in _of(device).items()}


def _of(device: NetDevice) -> dict[str, str | int]:
    return {
        "address": device.mac,
        "carrier": int(device.carrier),
        "carrier_changes": device.ups + device.downs,
        "carrier_down_count": device.downs,
        "carrier_up_count": device.ups,
        "mtu": 4200,
        "operstate": "up" if device.carrier else "down",
        "speed": device.speed_mbps if device.carrier else -1,
        "type": 1,
    }
