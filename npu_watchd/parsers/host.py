"""What the host has left: /proc/pressure, /proc/meminfo, /proc/vmstat, /proc/loadavg and /proc/sys/kernel/pid_max.

Source: Documentation/accounting/psi.rst of Linux and proc(5). A file that is cut is refused, or leaves the value out.
"""

from __future__ import annotations

import re

from npu_watchd.model.host import MemoryUse, Pressure, Stall, TaskLoad
from npu_watchd.parsers.lines import ParseError, lines_of

_STALL = re.compile(
    r"(?P<kind>some|full) avg10=(?P<avg10>\d{1,3}\.\d\d) avg60=(?P<avg60>\d{1,3}\.\d\d) "
    r"avg300=\d{1,3}\.\d\d total=\d{1,20}",
    re.ASCII,
)
_MEMORY = re.compile(r"(?P<key>[A-Za-z]\S*): +(?P<kib>\d{1,15}) kB", re.ASCII)
_LOAD = re.compile(
    r"\d{1,9}\.\d\d \d{1,9}\.\d\d \d{1,9}\.\d\d (?P<runnable>\d{1,10})/(?P<tasks>\d{1,10}) \d{1,10}\n", re.ASCII
)
_COUNT = re.compile(r"oom_kill (?P<count>\d{1,20})", re.ASCII)
_NUMBER = re.compile(r"(?P<number>\d{1,10})\n", re.ASCII)


def pressure(text: str) -> Pressure:
    """One file of /proc/pressure; the kernel's percent become ratios 0..1. Raises ParseError."""
    found: dict[str, Stall] = {}
    for line in lines_of(text):
        match = _STALL.fullmatch(line.text)
        if match is None or not line.ended or match["kind"] in found:
            raise line.refuse("no line of a pressure file")
        stall = Stall(_ratio(match["avg10"]), _ratio(match["avg60"]))
        if max(stall.avg10_ratio, stall.avg60_ratio) > 1:
            raise line.refuse("more than 100 % of the time")
        found[match["kind"]] = stall
    if "some" not in found:
        raise ParseError(1, "no line `some`, which every pressure file has")
    return Pressure(found["some"], found.get("full"))


def _ratio(percent: str) -> float:
    """Two decimals in, so four out."""
    return round(float(percent) / 100, 4)


def memory(text: str) -> MemoryUse:
    """/proc/meminfo; its kB are KiB. A line that is not there costs its own value. Raises ParseError without any."""
    found: dict[str, int] = {}
    for line in lines_of(text):
        match = _MEMORY.fullmatch(line.text)
        if match is not None and line.ended:
            found.setdefault(match["key"], int(match["kib"]) * 1024)
    if not found:
        raise ParseError(1, "no /proc/meminfo")
    return MemoryUse(found.get("MemTotal"), found.get("MemAvailable"))


def oom_kills(text: str) -> int | None:
    """`oom_kill` of /proc/vmstat; None where the kernel does not count it (before 4.13). Raises ParseError."""
    lines = [line for line in lines_of(text) if line.ended]
    if not lines:
        raise ParseError(1, "no /proc/vmstat")
    for line in lines:
        match = _COUNT.fullmatch(line.text)
        if match is not None:
            return int(match["count"])
    return None


def load(text: str) -> TaskLoad:
    """/proc/loadavg: how many tasks run or want to, and how many there are. Raises ParseError."""
    match = _LOAD.fullmatch(text)
    if match is None:
        raise ParseError(1, "no /proc/loadavg")
    return TaskLoad(int(match["runnable"]), int(match["tasks"]))


def number(text: str) -> int:
    """A file that holds one number, as pid_max does. Raises ParseError."""
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise ParseError(1, "not one whole number")
    return int(match["number"])
