"""When a line was written, by whom, and about which device, stream, task and rank.

A number or time that stands at the end of a text without its end of line may have been cut, so it is not read: each
pattern wants one more character behind it. All repetitions are bounded, and the caller bounds the line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_HEAD_CHARS = 600
"""No form of log has its time, level and pid further right."""

_TIME = re.compile(
    r"(?<![\d.])(?P<day>\d{4}[-/]\d\d[-/]\d\d)[-T ](?P<clock>\d\d:\d\d:\d\d)(?P<part>(?:[.,]\d{1,6}){0,2})"
    r"(?P<zone>Z|[+-]\d\d:?\d\d)?(?=[^\d.,]|[.,]\D)",
    re.ASCII,
)
_SWITCH_TIME = re.compile(
    r"(?P<month>[A-Z][a-z]{2}) {1,2}(?P<day>\d{1,2}) (?P<year>\d{4}) "
    r"(?P<clock>\d\d:\d\d:\d\d)(?P<zone>[+-]\d\d:\d\d)?(?=[^\d.])",
    re.ASCII,
)
_NO_YEAR = re.compile(
    r"(?:^[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d"
    r"|^(?:\([^)]{1,80}\) )?[A-Z]{4,8} \d\d-\d\d \d\d:\d\d:\d\d|^\[ {0,6}\d{1,9}\.\d{6}\])(?=\D)",
    re.ASCII,
)
_WRITER = re.compile(
    r"\[(?P<level>[A-Z]{4,9})\] ?(?P<component>[A-Z][A-Z_]{1,24})\((?P<pid>-?\d{1,10}),(?P<names>[^)]{0,160})\):",
    re.ASCII,
)
_LEVEL = re.compile(
    r"(?:^|[\s(\[=|])(?P<level>CRITICAL|EXCEPTION|ERROR|WARNING|WARN|EVENT|TRACE|INFO|DEBUG)(?=[\]\s:|])", re.ASCII
)
_PID = re.compile(r"\bpid\s?[:=\[]\s?(?P<pid>\d{1,10})(?=\D)", re.ASCII | re.IGNORECASE)
_DEVICE = re.compile(
    r"(?<![a-z])(?:logic_?dev(?:ice)?|device_?logic|device|dev)_?(?:id)?"
    r"(?:\s?[=:\[]\s?| is |[ -])(?P<id>\d{1,4})(?=[^\d.\w])",
    re.ASCII | re.IGNORECASE,
)
_STREAM = re.compile(r"(?<![a-z])stream_?id\s?[=:\[]{1,2}\s?(?P<id>\d{1,9})(?=\D)", re.ASCII | re.IGNORECASE)
_TASK = re.compile(r"(?<![a-z])task_?id\s?[=:\[]{1,2}\s?(?P<id>\d{1,9})(?=\D)", re.ASCII | re.IGNORECASE)
_RANK = re.compile(
    r"(?<![a-z])(?<!remote )(?:rank_?id|local_?rank|global_?rank|rank)"
    r"(?:\s?[=:]\s?\[?|\[|(?=\d))(?P<id>\d{1,6})(?=[^\d.])",
    re.ASCII | re.IGNORECASE,
)
_BLAMES = tuple(
    re.compile(pattern, re.ASCII | re.IGNORECASE)
    for pattern in (
        r"serverId\[(?P<server>[^\]]{1,64})\], ?deviceId\[(?P<device>\d{1,4})\]",
        r"Cluster Exception Location\[IP/ID\]:\[(?P<where>[^\]]{1,80})\]",
        r"\]: rank \[(?P<rank>[^\]]{1,80})\] status\[LOST\]",
        r"remote ?rank ?: ?\[?(?P<rank>\d{1,9})(?=\D)",
        r"remote physic id: ?(?P<physical>\d{1,4})(?=\D)",
        r"remoteIP\{deviceId\[(?P<device>\d{1,4})\]",
        r"remoteIP:\[(?P<address>[^\]]{1,64})\]",
        r"connect server\[(?P<server>[^\]]{1,80})\]",
        r"cqe err(?:or)? ?(?:status)?\[\d{1,4}\].{0,80}?\bip:\[(?P<address>[^\]]{1,64})\]",
        r"^.{0,200}\|\s{1,8}(?P<link>[\w.:%]{1,64}\(\d{1,6}\))\s{1,8}\|",
    )
)  # fmt: skip
_NAMES = {"physical": "the device with the physical id"}
_NOBODY = "4294967295"
_FILE = re.compile(r"(?P<file>[\w./-]{1,160}\.(?:cc|cpp|c|h|hpp|py|ts|go)):(?P<line>\d{1,6})(?=\D)", re.ASCII)
_NAMED_FILE = re.compile(r"\[FILE:(?P<file>[\w./ -]{1,120})\]\[LINE:(?P<line>\d{1,6})\]", re.ASCII | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Head:
    """When, how loud and by whom; every field None where the line does not tell."""

    time: str | None = None
    local_s: float | None = None
    utc_offset_s: float | None = None
    level: str | None = None
    component: str | None = None
    pid: int | None = None
    process: str | None = None

    @property
    def begins_a_message(self) -> bool:
        """A line of prose in the middle of a message has neither."""
        return self.time is not None or self.component is not None


def head_of(line: str) -> Head:
    """line: with its end of line, if it has one."""
    part = line[:_HEAD_CHARS] if len(line) > _HEAD_CHARS else line
    writer, level = _WRITER.search(part), _LEVEL.search(part)
    time, local_s, offset_s = _time(part)
    if writer:
        pid = int(writer["pid"])
        name = writer["names"].rpartition(",")[2].strip()
        return Head(
            time, local_s, offset_s, writer["level"], writer["component"], pid if pid > 0 else None, name or None
        )
    pid_match = _PID.search(part)
    pid_read = int(pid_match["pid"]) if pid_match else None
    return Head(time, local_s, offset_s, level["level"] if level else None, None, pid_read, None)


def device_of(line: str) -> int | None:
    """The device that the line is about, by the job's own numbers; None: none, or two different ones."""
    found = {int(match["id"]) for match in _DEVICE.finditer(line)}
    return found.pop() if len(found) == 1 else None


def stream_of(line: str) -> int | None:
    return _first(_STREAM, line)


def task_of(line: str) -> int | None:
    return _first(_TASK, line)


def rank_of(line: str) -> int | None:
    """The rank that wrote the line, not one that it blames."""
    return _first(_RANK, line)


def blamed(line: str) -> str | None:
    """Whom the line points at: `rank 4`, `device 0 of 10.0.0.1`, …"""
    for pattern in _BLAMES:
        match = pattern.search(line)
        if match is None:
            continue
        said = {name: text for name, text in match.groupdict().items() if text}
        if _NOBODY in said.values():
            continue
        if "server" in said and "device" in said:
            return f"device {said['device']} of {said['server']}"
        name, text = next(iter(said.items()))
        return text if name in ("where", "address", "link") else f"{_NAMES.get(name, name)} {text}"
    return None


def source_of(line: str) -> str | None:
    """Which file of the vendor's or the framework's sources wrote it."""
    match = _FILE.search(line) or _NAMED_FILE.search(line)
    return f"{match['file'].rsplit('/', 1)[-1].strip()}:{match['line']}" if match else None


def _first(pattern: re.Pattern[str], line: str) -> int | None:
    match = pattern.search(line)
    return int(match["id"]) if match else None


def _time(part: str) -> tuple[str | None, float | None, float | None]:
    match = _TIME.search(part)
    if match is not None:
        offset_s, day = _offset_s(match["zone"]), match["day"].replace("/", "-")
        local_s = _local_s(f"{day}T{match['clock']}", match["part"])
        return (match[0], local_s, offset_s) if local_s is not None else (None, None, None)
    switch = _SWITCH_TIME.search(part)
    if switch is not None and switch["month"].lower() in _MONTHS:
        day = f"{switch['year']}-{_MONTHS.index(switch['month'].lower()) + 1:02}-{int(switch['day']):02}"
        local_s = _local_s(f"{day}T{switch['clock']}", "")
        return (switch[0], local_s, _offset_s(switch["zone"])) if local_s is not None else (None, None, None)
    bare = _NO_YEAR.search(part)
    return (bare[0].strip(), None, None) if bare else (None, None, None)


def _local_s(text: str, part: str) -> float | None:
    """`part`: what stands behind the second, `.588.123` as well as `.588123`."""
    try:
        whole = datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()
    except ValueError:
        return None
    digits = "".join(char for char in part if char.isdigit())
    return whole + (float(f"0.{digits}") if digits else 0.0)


def _offset_s(zone: str | None) -> float | None:
    if zone is None:
        return None
    if zone == "Z":
        return 0.0
    hours, minutes = int(zone[1:3]), int(zone[-2:])
    if hours > 23 or minutes > 59:
        return None
    return (-1.0 if zone[0] == "-" else 1.0) * (hours * 3600 + minutes * 60)
