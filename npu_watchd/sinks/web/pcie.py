"""The page's table of the devices' PCIe links: width and speed of the most that the path can, errors, load."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter

from markupsafe import Markup

from npu_watchd.model.pcie import SEVERITIES, PcieLink, SocketPcieLoad
from npu_watchd.model.snapshot import Device, Snapshot
from npu_watchd.sinks.plaintext import clean
from npu_watchd.sinks.web.table import UNKNOWN, Cell, Column, badge, counts_cell, note, table_section

_GIGA = 1e9


def pcie_section(snapshot: Snapshot) -> Markup:
    """The table, a row a device that is on PCIe; nothing where no link was read. Load only where it is measured."""
    devices = [snapshot.devices[key] for key in sorted(snapshot.devices)]
    if not any(device.pcie_link or device.pcie_errors or device.pcie_load for device in devices):
        return Markup()
    rows = [device for device in devices if device.identity.pci_address]
    columns = _COLUMNS + (_LOAD if any(device.pcie_load for device in rows) else ())
    return table_section("pcie", "PCIe", columns, rows)


def pcie_sockets_section(snapshot: Snapshot) -> Markup:
    """The load by CPU socket, a row a socket; nothing where it is not measured so."""
    if not snapshot.pcie_sockets:
        return Markup()
    title = "PCIe load by CPU socket, all its devices together"
    return table_section("pcie-sockets", title, _SOCKET, snapshot.pcie_sockets)


def _socket_rate(read: Callable[[SocketPcieLoad], float | None]) -> Callable[[SocketPcieLoad], Cell]:
    def cell(load: SocketPcieLoad) -> Cell:
        rate = read(load)
        return UNKNOWN if rate is None else f"{rate / _GIGA:.1f} GB/s"

    return cell


_SOCKET: tuple[Column[SocketPcieLoad], ...] = (
    Column("Socket", "id", lambda load: str(load.socket)),
    Column("Memory to devices", "number", _socket_rate(attrgetter("receive_bytes_per_second"))),
    Column("Devices to memory", "number", _socket_rate(attrgetter("transmit_bytes_per_second"))),
)


def _address(device: Device) -> Cell:
    return clean(device.identity.pci_address, 40) if device.identity.pci_address else UNKNOWN


def _link(read: Callable[[Device, PcieLink], Cell]) -> Callable[[Device], Cell]:
    return lambda device: UNKNOWN if device.pcie_link is None else read(device, device.pcie_link)


def _width(_device: Device, link: PcieLink) -> Cell:
    now = link.lanes if link.path_lanes is None else link.path_lanes
    if now is None and link.path_max_lanes is None:
        return UNKNOWN
    shown = f"{_lanes(now)} of {_lanes(link.path_max_lanes)}"
    if not link.narrow:
        return shown
    above = link.lanes is not None and now is not None and now < link.lanes
    cell = Markup("{} {}").format(shown, badge("warning", "narrow"))
    return cell + note("at a port above it") if above else cell


def _lanes(count: int | None) -> str:
    return UNKNOWN if count is None else f"x{count}"


def _speed(device: Device, link: PcieLink) -> Cell:
    """Power management slows an idle link: only under load is that a fault."""
    now = link.transfers_per_second if link.path_transfers_per_second is None else link.path_transfers_per_second
    if now is None and link.path_max_transfers_per_second is None:
        return UNKNOWN
    shown = f"{_giga(now)} of {_giga(link.path_max_transfers_per_second)} GT/s"
    if not link.slow:
        return shown
    ratio = device.utilization_ratio.get("aicore", device.utilization_ratio.get("npu"))
    if ratio:
        return Markup("{} {}").format(shown, badge("warning", "slow under load"))
    return Markup("{}{}").format(shown, note("no fault while idle"))


def _giga(transfers_per_second: float | None) -> str:
    return UNKNOWN if transfers_per_second is None else f"{transfers_per_second / _GIGA:g}"


def _errors(device: Device) -> Cell:
    errors = device.pcie_errors
    return UNKNOWN if errors is None else counts_cell({severity: errors.both_ends(severity) for severity in SEVERITIES})


def _load(direction: str) -> Callable[[Device], Cell]:
    def cell(device: Device) -> Cell:
        if device.pcie_load is None:
            return UNKNOWN
        rate = getattr(device.pcie_load, f"{direction}_bytes_per_second")
        ratio = getattr(device.pcie_load, f"{direction}_ratio")
        parts = [
            f"{ratio * 100:.0f} %" if ratio is not None else "",
            f"{rate / _GIGA:.1f} GB/s" if rate is not None else "",
        ]
        return ", ".join(part for part in parts if part) or UNKNOWN

    return cell


_COLUMNS: tuple[Column[Device], ...] = (
    Column("Device", "id", attrgetter("device_id")),
    Column("Address", "name", _address),
    Column("Width", "", _link(_width)),
    Column("Speed", "", _link(_speed)),
    Column("AER errors, both ends", "tally", _errors),
)
_LOAD: tuple[Column[Device], ...] = (
    Column("Load, host to device", "number", _load("receive")),
    Column("Load, device to host", "number", _load("transmit")),
)
