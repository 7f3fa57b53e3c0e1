"""The page's table of the NPUs' own RoCE ports: link, speed, reachability and light."""

from __future__ import annotations

from collections.abc import Callable

from markupsafe import Markup

from npu_watchd.model.fabric import Limits, OpticalLane, OpticalModule
from npu_watchd.model.snapshot import Device, NpuPort, Snapshot
from npu_watchd.sinks.web.table import UNKNOWN, Cell, Column, badge, counts_cell, table_section

_MILLI = 1000
_GIGA = 1e9
_NO_TROUBLE = ("success", "init", "detect_ip_set", "unknown")
"""Words of net_health that say nothing bad: it succeeded, or has not been tried."""


def npu_ports_section(snapshot: Snapshot) -> Markup:
    """The table, a row a device with a port that was read, or should have been; nothing where no port was read."""
    devices = [snapshot.devices[key] for key in sorted(snapshot.devices)]
    if all(device.roce is None for device in devices):
        return Markup()
    rows = [device for device in devices if device.roce or any(probe.startswith("hccn_") for probe in device.blind)]
    return table_section("npu-ports", "The NPUs’ own ports", _COLUMNS, rows)


def _port(read: Callable[[NpuPort], Cell]) -> Callable[[Device], Cell]:
    return lambda device: UNKNOWN if device.roce is None else read(device.roce)


def _module(read: Callable[[OpticalModule], Cell]) -> Callable[[Device], Cell]:
    return _port(lambda port: UNKNOWN if port.optical is None else read(port.optical))


def _link(port: NpuPort) -> Cell:
    if port.link_up is None:
        return UNKNOWN
    return badge("ok", "up") if port.link_up else badge("alarm", "down")


def _speed(port: NpuPort) -> Cell:
    return UNKNOWN if port.bits_per_second is None else f"{port.bits_per_second / _GIGA:g} Gb/s"


def _reachability(port: NpuPort) -> Cell:
    if port.reachability is None:
        return UNKNOWN
    words = port.reachability.replace("_", " ")
    return words if port.reachability in _NO_TROUBLE else badge("warning", words)


def _errors(port: NpuPort) -> Cell:
    if port.statistics is None:
        return UNKNOWN
    retries = {} if port.statistics.retries is None else {"retries": port.statistics.retries}
    return counts_cell({**port.statistics.errors, **retries})


def _light(
    power: Callable[[OpticalLane], float | None],
    lost: Callable[[OpticalLane], bool | None],
    limits: Callable[[OpticalModule], Limits],
) -> Callable[[OpticalModule], Cell]:
    """Power of each lane in order; a lane that lost its signal, or is outside what the module allows, stands out."""

    def cell(module: OpticalModule) -> Cell:
        if module.present is False:
            return "no module"
        if all(power(lane) is None and not lost(lane) for lane in module.lanes):
            return UNKNOWN
        return Markup(" · ").join(
            _lane(power(lane), limits(module), lost=lost(lane) is True)
            for lane in sorted(module.lanes, key=lambda one: one.lane)
        ) + Markup(" mW")

    return cell


def _lane(watts: float | None, limits: Limits, *, lost: bool) -> Cell:
    shown = UNKNOWN if watts is None else f"{watts * _MILLI:.2f}"
    if lost:
        return Markup("<strong>{} LOS</strong>").format(shown)
    return Markup("<strong>{}</strong>").format(shown) if _outside(watts, limits) else shown


def _outside(value: float | None, limits: Limits) -> bool:
    if value is None:
        return False
    high = limits.high_warning if limits.high_warning is not None else limits.high_alarm
    low = limits.low_warning if limits.low_warning is not None else limits.low_alarm
    return (high is not None and value > high) or (low is not None and value < low)


def _temperature(module: OpticalModule) -> Cell:
    if module.temperature_celsius is None:
        return UNKNOWN
    shown = f"{module.temperature_celsius:.0f} °C"
    return (
        Markup("<strong>{}</strong>").format(shown)
        if _outside(module.temperature_celsius, module.temperature_limits)
        else shown
    )


_COLUMNS: tuple[Column[Device], ...] = (
    Column("Device", "id", lambda device: device.device_id),
    Column("Link", "health", _port(_link)),
    Column("Link downs", "number", _port(lambda port: UNKNOWN if port.link_downs is None else str(port.link_downs))),
    Column("Speed", "number", _port(_speed)),
    Column("Reaches its peer", "health", _port(_reachability)),
    Column("Module", "number", _module(_temperature)),
    Column(
        "Light in, by lane",
        "lanes",
        _module(_light(lambda lane: lane.receive_watts, lambda lane: lane.receive_los, lambda one: one.receive_limits)),
    ),
    Column(
        "Light out, by lane",
        "lanes",
        _module(
            _light(lambda lane: lane.transmit_watts, lambda lane: lane.transmit_los, lambda one: one.transmit_limits)
        ),
    ),
    Column("Errors", "tally", _port(_errors)),
)
