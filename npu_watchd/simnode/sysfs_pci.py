"""The PCI part of a sysfs tree: devices below their ports, with links, AER counters and configuration space.

Made so that real `lspci` takes it for a bus (tests/e2e/test_real_lspci.py) and so that `sources/pci.py` reads it like
the kernel's. Layout: Documentation/ABI/testing/sysfs-bus-pci of Linux 6; configuration space: PCI Local Bus 3.0, 6.1,
and PCI Express Base 5.0, 7.5.3.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

ACCELERATOR, BRIDGE = 0x120000, 0x060400
HUAWEI = 0x19E5

# Speed codes of the link registers.
_CODES = {2.5: 1, 5.0: 2, 8.0: 3, 16.0: 4, 32.0: 5, 64.0: 6}
CORRECTABLE = ("RxErr", "BadTLP", "BadDLLP", "Rollover", "Timeout", "NonFatalErr", "CorrIntErr", "HeaderOF")
UNCORRECTABLE = (
    *("Undefined", "DLP", "SDES", "TLP", "FCP", "CmpltTO", "CmpltAbrt", "UnxCmplt", "RxOF", "MalfTLP", "ECRC"),
    *("UnsupReq", "ACSViol", "UncorrIntErr", "BlockedTLP", "AtomicOpBlocked", "TLPBlockedErr", "PoisonTLPBlocked"),
)
_AER_FILES = {
    "correctable": ("TOTAL_ERR_COR", CORRECTABLE),
    "nonfatal": ("TOTAL_ERR_NONFATAL", UNCORRECTABLE),
    "fatal": ("TOTAL_ERR_FATAL", UNCORRECTABLE),
}


@dataclass(frozen=True, slots=True)
class Link:
    """Speeds in GT/s, widths in lanes. 0: the link is down, as the kernel and lspci show it."""

    speed: float = 16.0
    lanes: int = 16
    max_speed: float = 16.0
    max_lanes: int = 16


GEN4_X16 = Link()


@dataclass(frozen=True, slots=True)
class PciDevice:
    """One function, and what is plugged in below it."""

    address: str
    """`0000:c1:00.0`: lower case, with its domain."""
    device_id: int
    vendor_id: int = HUAWEI
    class_code: int = ACCELERATOR
    revision: int = 0x20
    link: Link = Link()
    errors: Mapping[str, Mapping[str, int]] | None = field(default_factory=dict)
    """Severity → name of the error → count; what is left out is 0. None: no files, as where firmware owns AER."""
    numa_node: int = -1
    below: tuple[PciDevice, ...] = ()
    """Of a port; () where its slot is empty."""

    @property
    def bus(self) -> int:
        return int(self.address.split(":")[1], 16)


def port(address: str, *below: PciDevice, link: Link = Link(), device_id: int = 0xA120) -> PciDevice:
    """A root port or switch port with devices below it."""
    return PciDevice(address, device_id, class_code=BRIDGE, revision=0x30, link=link, below=below)


def files(roots: tuple[PciDevice, ...]) -> Mapping[str, bytes]:
    """Path below the sysfs root → content; `roots` are the root ports (or devices of the root complex itself)."""
    return {f"{folder}/{name}": data for folder, device in _placed(roots) for name, data in _attributes(device)}


def links(roots: tuple[PciDevice, ...]) -> Mapping[str, str]:
    """Path below the sysfs root → target of the symbolic link there."""
    return {f"bus/pci/devices/{device.address}": f"../../../{folder}" for folder, device in _placed(roots)}


def write(roots: tuple[PciDevice, ...], sysfs: Path) -> None:
    """The tree below `sysfs`. What is there already is written over, file by file, each in one step."""
    for name, data in files(roots).items():
        path = sysfs / name
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_name(f".{path.name}.new")
        fresh.write_bytes(data)
        fresh.replace(path)
    for name, target in links(roots).items():
        path = sysfs / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.is_symlink():
            path.symlink_to(target)


def _placed(roots: tuple[PciDevice, ...]) -> Iterator[tuple[str, PciDevice]]:
    """Every device with its directory, a port before what is below it."""
    waiting = [(f"devices/pci{root.address[: root.address.rindex(':')]}", root) for root in reversed(roots)]
    while waiting:
        folder, device = waiting.pop()
        own = f"{folder}/{device.address}"
        yield own, device
        waiting.extend((own, child) for child in reversed(device.below))


def _attributes(device: PciDevice) -> Iterator[tuple[str, bytes]]:
    link = device.link
    texts = {
        "vendor": f"{device.vendor_id:#06x}",
        "device": f"{device.device_id:#06x}",
        "subsystem_vendor": f"{device.vendor_id:#06x}",
        "subsystem_device": "0x0000",
        "class": f"{device.class_code:#08x}",
        "revision": f"{device.revision:#04x}",
        "irq": "0",
        "enable": "1",
        "numa_node": str(device.numa_node),
        "current_link_speed": _speed(link.speed),
        "max_link_speed": _speed(link.max_speed),
        "current_link_width": str(link.lanes),
        "max_link_width": str(link.max_lanes),
        "resource": "\n".join(["0x0000000000000000 0x0000000000000000 0x0000000000000000"] * 13),
    }
    for name, text in texts.items():
        yield name, f"{text}\n".encode()
    yield "config", _configuration(device)
    if device.errors is not None:
        for severity in _AER_FILES:
            yield f"aer_dev_{severity}", _aer(severity, device.errors.get(severity, {})).encode()


def _speed(giga: float) -> str:
    return f"{giga:.1f} GT/s PCIe" if giga else "Unknown"


def _aer(severity: str, counts: Mapping[str, int]) -> str:
    total, names = _AER_FILES[severity]
    unknown = counts.keys() - set(names)
    if unknown:
        raise ValueError(f"the kernel knows no {severity} error {sorted(unknown)}")
    lines = [f"{name} {counts.get(name, 0)}" for name in names]
    return "\n".join([*lines, f"{total} {sum(counts.values())}"]) + "\n"


def _configuration(device: PciDevice) -> bytes:
    """256 bytes: the header, and one capability, PCI Express with its link registers."""
    space = bytearray(256)
    struct.pack_into("<HHHH", space, 0x00, device.vendor_id, device.device_id, 0x0006, 0x0010)
    struct.pack_into("<I", space, 0x08, device.class_code << 8 | device.revision)
    is_port = device.class_code == BRIDGE
    space[0x0E] = 1 if is_port else 0
    space[0x34] = 0x40
    if device.below:
        buses = sorted({child.bus for _, child in _placed(device.below)})
        space[0x18:0x1B] = bytes((device.bus, buses[0], buses[-1]))
    _capability(space, device.link, port_type=4 if is_port else 0)
    return bytes(space)


def _capability(space: bytearray, link: Link, port_type: int) -> None:
    offset = 0x40
    struct.pack_into("<BBH", space, offset, 0x10, 0, port_type << 4 | 2)
    struct.pack_into("<I", space, offset + 0x0C, link.max_lanes << 4 | _CODES.get(link.max_speed, 0))
    struct.pack_into("<H", space, offset + 0x12, link.lanes << 4 | _CODES.get(link.speed, 0))
