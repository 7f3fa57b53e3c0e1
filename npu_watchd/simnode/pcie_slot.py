"""State of a chip's way to the CPU over PCIe, and the counting units of the CPU beside it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from npu_watchd.simnode.sysfs_pci import GEN4_X16, Link

Errors = Mapping[str, Mapping[str, int]]
"""Severity → the kernel's name of the error → count."""


@dataclass(frozen=True, slots=True)
class PcieSlot:
    """One device below a root port of its own, as on Kunpeng boards."""

    address: str
    """Lower case, with its domain."""
    link: Link = GEN4_X16
    """Speed and width now are those of both ends."""
    errors: Errors | None = field(default_factory=dict)
    """Counted by the device itself; None: firmware owns AER."""
    port_errors: Errors | None = field(default_factory=dict)
    """Counted by the root port."""
    receive_bytes_per_second: float = 0.0
    """Host to device."""
    transmit_bytes_per_second: float = 0.0

    @property
    def bus(self) -> int:
        return int(self.address.split(":")[1], 16)

    @property
    def root_bus(self) -> int:
        """Root ports of 32 buses in a row sit on the first of them."""
        return self.bus & 0xE0

    @property
    def root_port(self) -> str:
        return f"{self.address.split(':')[0]}:{self.root_bus:02x}:{self.bus & 0x1F:02x}.0"

    @property
    def socket(self) -> int:
        """Of a host with two: the buses are shared out in halves."""
        return self.bus >> 7

    @property
    def bdf(self) -> int:
        """As `bdf=` of perf has it."""
        device, function = self.address.split(":")[2].split(".")
        return self.bus << 8 | int(device, 16) << 3 | int(function)


def unit_of(slot: PcieSlot, slots: Iterable[PcieSlot]) -> str:
    """The hisi_pcie unit that counts for this device's root port. A root bus has two; ports alternate."""
    roots = sorted({one.root_bus for one in slots})
    return f"hisi_pcie{roots.index(slot.root_bus)}_core{slot.bus & 1}"


def units(slots: Iterable[PcieSlot]) -> dict[str, int]:
    """Name of every unit → root bus that it watches."""
    roots = sorted({one.root_bus for one in slots})
    return {f"hisi_pcie{at}_core{core}": bus for at, bus in enumerate(roots) for core in (0, 1)}


def capacity_bytes_per_second(link: Link) -> float:
    """What a link carries each way: 8b/10b up to 5 GT/s, 128b/130b above."""
    encoding = 0.8 if link.speed <= 5.0 else 128 / 130
    return link.speed * 1e9 * link.lanes * encoding / 8
