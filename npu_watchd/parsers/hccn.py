"""`hccn_tool … -link, -link_stat, -speed, -net_health`: the NPU's own port.

910B and A3 answer in `key: value` lines, Ascend 950 partly in boxes; each function reads both.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from npu_watchd.model.fabric import (
    NET_HEALTH_LABELS,
    LinkChange,
    NetHealth,
    NpuLink,
    NpuLinkHistory,
    NpuLinkSpeed,
)
from npu_watchd.parsers import hccn_tables
from npu_watchd.parsers.hccn_words import answer_lines
from npu_watchd.parsers.lines import Line, absent, integer, quoted

_DEVICE = re.compile(r"\[devid (?P<device>\d{1,5})\]\s{0,16}", re.ASCII)
_CHANGE = re.compile(r"(?P<time>[A-Z][a-z]{2} .{15,25}?)\s{1,16}LINK[ _](?P<state>UP|DOWN)")
_ASCTIME = re.compile(
    r"[A-Z][a-z]{2} (?P<month>[A-Z][a-z]{2}) {1,2}(?P<day>\d{1,2}) (?P<time>\d\d:\d\d:\d\d) (?P<year>\d{4})", re.ASCII
)
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_UP = {"UP": True, "DOWN": False}
_RECORDS = "link change records"
_KEYS = ("current time", "link up count", "link down count", _RECORDS)
_SPEED = re.compile(r"Speed:\s{1,16}(?:(?P<megabits>-?\d{1,8}) Mb/s|(?P<unknown>Unknown!))", re.ASCII)
_GIGABITS = re.compile(r"(?P<number>\d{1,5}) ?G(?:bps)?", re.ASCII)
_LANES = re.compile(r"X(?P<number>\d{1,2})", re.ASCII)
_MEGA, _GIGA = 10**6, 10**9


def link(text: str) -> NpuLink:
    """`link status: UP` or `DOWN`, in that very line. Raises ParseError; a Busy where it is worth a retry."""
    line, value = _only(text, "link status")
    if value not in _UP:
        raise line.refuse(f"{quoted(value)} is neither UP nor DOWN")
    return NpuLink(_UP[value])


def net_health(text: str) -> NetHealth:
    """`net health status: …` in one of the tool's ten words. Raises ParseError as `link` does."""
    line, value = _only(text, "net health status")
    if value not in NET_HEALTH_LABELS:
        raise line.refuse(f"unknown state {quoted(value)}")
    return NetHealth(value)


def speed(text: str) -> NpuLinkSpeed:
    """`Speed: 200000 Mb/s`, or the row of Ascend 950 (`400 G`, X4). Raises ParseError as `link` does."""
    lines = list(answer_lines(text))
    found = list(hccn_tables.rows(lines))
    if found:
        return _speed_of_row(found)
    matches = [match for line in lines if (match := _SPEED.fullmatch(line.text.strip()))]
    if len(matches) != 1:
        raise lines[-1].refuse("no speed" if not matches else "several speeds")
    megabits = int(matches[0]["megabits"] or 0)
    return NpuLinkSpeed(megabits * _MEGA if megabits > 0 else None)


def link_history(text: str) -> NpuLinkHistory:
    """Counts and the newest changes of the link. Raises ParseError as `link` does.

    A last line without its end is left out where a number in it may be cut.
    """
    lines = list(answer_lines(text))
    found = list(hccn_tables.rows(lines))
    heard = _Heard()
    for line in lines:
        if not hccn_tables.is_ruled(line):
            heard.take(line)
    if heard.changes is None and not heard.values:
        raise lines[-1].refuse("no link history")
    changes = [_change_of_row(row) for row in found] if found else heard.changes
    now = heard.now()
    listed = None if changes is None else tuple(_against(now, *change) for change in changes)
    port = hccn_tables.one_port(found)
    return NpuLinkHistory(
        device_id=heard.device,
        current_time=now.isoformat() if now else None,
        up_count=heard.count("link up count"),
        down_count=heard.count("link down count"),
        up=listed[0].up if listed else None,
        changes=listed,
        udie=port.udie,
        port=port.port,
    )


_Change = tuple[datetime, bool]


@dataclass(slots=True)
class _Heard:
    """What the lines of a link history say, while they come in."""

    device: int | None = None
    values: dict[str, tuple[Line, str]] = field(default_factory=dict)
    changes: list[_Change] | None = None

    def take(self, line: Line) -> None:
        words = self._without_device(line)
        change = _CHANGE.fullmatch(words)
        if change is not None:
            self.changes = [*(self.changes or ()), (_time(line, change["time"]), _UP[change["state"]])]
            return
        key, colon, value = (part.strip() for part in words.partition(":"))
        if not line.ended:
            return
        if not colon or key not in _KEYS:
            raise line.refuse("no line of a link history")
        if key in self.values:
            raise line.refuse("the same key twice")
        self.values[key] = (line, value)
        if key == _RECORDS and absent(value) and value:
            self.changes = []

    def _without_device(self, line: Line) -> str:
        words = line.text.strip()
        match = _DEVICE.match(words)
        if match is None:
            return words
        device = int(match["device"])
        if self.device not in (None, device):
            raise line.refuse("lines of several devices")
        self.device = device
        return words[match.end() :]

    def count(self, key: str) -> int | None:
        return integer(*self.values[key]) if key in self.values else None

    def now(self) -> datetime | None:
        found = self.values.get("current time")
        return None if found is None or absent(found[1]) else _time(*found)


def _change_of_row(row: hccn_tables.Row) -> _Change:
    state = row.cells.get("Link_Status", "").removeprefix("LINK_")
    if state not in _UP:
        raise row.line.refuse("neither LINK_UP nor LINK_DOWN")
    return _time(row.line, row.cells.get("Time_Stamp", "")), _UP[state]


def _against(now: datetime | None, then: datetime, up: bool) -> LinkChange:
    ago = None if now is None else round((now - then).total_seconds())
    return LinkChange(then.isoformat(), up, None if ago is None or ago < 0 else ago)


def _time(line: Line, text: str) -> datetime:
    """As asctime(3) prints it in English, whatever the locale; the day of the week is not checked."""
    match = _ASCTIME.fullmatch(text)
    if match is None or match["month"] not in _MONTHS:
        raise line.refuse(f"{quoted(text)} is no time")
    month = _MONTHS.index(match["month"]) + 1
    try:
        return datetime.fromisoformat(f"{match['year']}-{month:02}-{int(match['day']):02}T{match['time']}")
    except ValueError as error:
        raise line.refuse(f"{quoted(text)} is no time") from error


def _only(text: str, key: str) -> tuple[Line, str]:
    """The value of the one line with this key. The words that may follow are whole even where the text is cut."""
    lines = list(answer_lines(text))
    found = [
        (line, value.strip())
        for line in lines
        for name, colon, value in [line.text.strip().partition(":")]
        if colon and name.strip() == key
    ]
    if len(found) != 1:
        line = found[-1][0] if found else lines[0]
        raise line.refuse(f"{key!r} twice" if found else f"no {key!r} in the answer")
    return found[0]


def _speed_of_row(found: Sequence[hccn_tables.Row]) -> NpuLinkSpeed:
    port = hccn_tables.one_port(found)
    line, cells = found[0].line, found[0].cells
    if len(found) > 1 or "Speed" not in cells:
        raise line.refuse("no row of a speed")
    status = cells.get("Status", "")
    gigabits = _cell(line, cells["Speed"], _GIGABITS) or None
    return NpuLinkSpeed(
        bits_per_second=None if gigabits is None else gigabits * _GIGA,
        lanes=_cell(line, cells.get("Width", ""), _LANES),
        max_lanes=_cell(line, cells.get("Cap", ""), _LANES),
        status=None if absent(status) else status,
        udie=port.udie,
        port=port.port,
    )


def _cell(line: Line, text: str, pattern: re.Pattern[str]) -> int | None:
    if absent(text) or text == "Unknown":
        return None
    match = pattern.fullmatch(text)
    if match is None:
        raise line.refuse(f"{quoted(text)} is not what this column holds")
    return int(match["number"])
