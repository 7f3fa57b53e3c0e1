"""What hccn_tool of 910A, 910B and A3 prints of a port, but for its optical module: `key: value` lines."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from npu_watchd.simnode.roce_port import STAT_KEYS, RocePort

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def link(port: RocePort) -> str:
    """`-link -g`."""
    return f"link status: {'UP' if port.up else 'DOWN'}\n"


def speed(port: RocePort) -> str:
    """`-speed -g`."""
    return "Speed: Unknown!\n" if port.speed_mbps is None else f"Speed: {port.speed_mbps} Mb/s\n"


def net_health(port: RocePort) -> str:
    """`-net_health -g`."""
    return f"net health status: {port.net_health}\n"


def stat(port: RocePort) -> str:
    """`-stat -g`."""
    return "packet statistics:\n" + "".join(
        f"{key}:{port.counters[key]}\n" for key in STAT_KEYS if key in port.counters
    )


def link_stat(port: RocePort, device: int, now_s: float) -> str:
    """`-link_stat -g`: every line names the device."""
    return "".join(f"[devid {device}]{line}\n" for line in _history(port, now_s))


def _history(port: RocePort, now_s: float) -> Iterator[str]:
    yield f"current time        : {asctime(now_s)}"
    yield f"link up count       : {port.up_count}"
    if port.down_count is not None:
        yield f"link down count     : {port.down_count}"
    yield "link change records :" + ("" if port.changes else " NA")
    for change in port.changes:
        yield f"    {asctime(change.at_s)}    LINK {'UP' if change.up else 'DOWN'}"


def asctime(at_s: float, pad: int = 2) -> str:
    """`Wed Mar  4 08:30:10 2026`; the node's clock is set to UTC. `pad`: of the day of the month."""
    at = datetime.fromtimestamp(int(at_s), tz=UTC)
    return f"{DAYS[at.weekday()]} {MONTHS[at.month - 1]} {at.day:>{pad}} {at:%H:%M:%S} {at.year}"
