"""`hccn_tool … -optical`: the transceiver of the NPU's port, in three forms.

`key : value` lines (910B, A3), the tables of `-optical -g v2` (910B, A3), and the boxes of Ascend 950. The limits of
the first form are the module's warning limits, as its source and the second form show.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from npu_watchd.model.fabric import OpticalModule
from npu_watchd.parsers import hccn_tables
from npu_watchd.parsers.hccn_optical_draft import Draft
from npu_watchd.parsers.hccn_units import SILENT, measured, scaled
from npu_watchd.parsers.hccn_words import answer_lines
from npu_watchd.parsers.lines import Line, absent, quoted

_NOT_PRESENT = "Optical module is not present."
_TEXT_VALUES = {"temperature": ("temperature_celsius", "C"), "Vcc": ("voltage_volts", "mV")}
# Key of the text form → what, which side of the limit, and the unit in which it is printed.
_TEXT_LIMITS = {
    f"{name} {side} Thres": (what, f"{side.lower()}_warning", unit)
    for name, what, unit in (
        ("Vcc", "voltage", "mV"),
        ("Temp", "temperature", "C"),
        ("TxPower", "transmit", "mW"),
        ("RxPower", "receive", "mW"),
    )
    for side in ("High", "Low")
}
_TEXT_LANE = re.compile(r"(?P<what>Tx Power|Rx Power|Tx Bias|Host SNR Lane|Media SNR Lane)(?P<lane>\d)?", re.ASCII)
_LANE_FIELDS = {
    "Tx Power": "transmit_watts",
    "Rx Power": "receive_watts",
    "Tx Bias": "bias_amperes",
    "Host SNR Lane": "host_snr_decibels",
    "Media SNR Lane": "media_snr_decibels",
}
_FLAGS = {
    "TxFault": "transmit_fault",
    "TxLos": "transmit_los",
    "RxLos": "receive_los",
    "TxLol": "transmit_lol",
    "RxLol": "receive_lol",
}
_TEXT_FLAG = re.compile(r"(?P<side>Tx|Rx) L(?P<what>os|oL) Flag")
_IDENTITY = {
    "vendor name": "vendor_name",
    "vendor part number": "part_number",
    "vendor serial number": "serial_number",
    "xsfp identifier": "identifier",
    "Name": "vendor_name",
    "Part_number": "part_number",
    "Serial_number": "serial_number",
    "Identifier": "identifier",
}
_KNOWN_AND_UNUSED = {
    "optical info",
    "high power enable reg",
    "vendor org unique id",
    "xsfp wave length",
    "manufact date code",
    "Physical Code",
    "vendor rev",
    "Specification compliance",
}
_TABLE_ITEM = re.compile(r"(?P<what>[A-Za-z]{2,20})(?: [Ll]ane(?P<lane>\d{1,2}))?\((?P<unit>[A-Za-z]{1,4})\)", re.ASCII)
_TABLE_LANE_FIELDS = {
    "TxPower": ("transmit_watts", "transmit"),
    "RxPower": ("receive_watts", "receive"),
    "Bias": ("bias_amperes", "bias"),
    "HostSNR": ("host_snr_decibels", None),
    "MediaSNR": ("media_snr_decibels", None),
}
_TABLE_MODULE_FIELDS = {"Temperature": "temperature", "Voltage": "voltage"}
_LIMIT_COLUMNS = {
    "HighAlarm": "high_alarm",
    "HighWarn": "high_warning",
    "LowWarn": "low_warning",
    "LowAlarm": "low_alarm",
}
_IGNORED_ITEMS = ("TxVPP", "RxVPP", "HostLTP", "MediaLTP")
_FLAG_WORDS = {"Normal": False, "Abnormal": True}


def parse(text: str) -> OpticalModule:
    """The module's state and its own limits; power in watts, 0.0 for no light. Raises ParseError; a Busy for a retry.

    `Optical module is not present.` is an answer. A last line without its end is left out: a number in it may be cut.
    """
    if text.strip() == _NOT_PRESENT:
        return OpticalModule(present=False)
    lines = list(answer_lines(text))
    draft = Draft()
    if any(line.text.strip().startswith("|") for line in lines):
        _read_boxes(lines, draft)
    elif any(line.text.lstrip().startswith("Items ") for line in lines):
        _read_tables(lines, draft)
    else:
        _read_text(lines, draft)
    if not draft.heard:
        raise lines[-1].refuse("no optical module in the answer")
    return draft.module()


def _read_text(lines: Iterable[Line], draft: Draft) -> None:
    for line in lines:
        key, colon, value = (part.strip() for part in line.text.partition(":"))
        if not line.ended:
            continue
        if not colon:
            raise line.refuse("no line of an optical module")
        _take_text(line, key, value, draft)


def _take_text(line: Line, key: str, value: str, draft: Draft) -> None:
    lane = _TEXT_LANE.fullmatch(key)
    flag = _TEXT_FLAG.fullmatch(key)
    if key == "present":
        _take_present(line, value, draft)
    elif key in _TEXT_VALUES:
        name, unit = _TEXT_VALUES[key]
        draft.module_value(line, name, scaled(line, value, unit))
    elif key in _TEXT_LIMITS:
        what, side, unit = _TEXT_LIMITS[key]
        draft.limit(what, side, scaled(line, value, unit))
    elif lane is not None:
        _take_lane(line, lane, value, draft)
    elif flag is not None:
        _take_mask(line, _FLAGS[flag["side"] + "L" + flag["what"].lower()], value, draft)
    elif key in _IDENTITY:
        draft.module_value(line, _IDENTITY[key], None if absent(value) else value)
    elif key not in _KNOWN_AND_UNUSED:
        draft.unknown.append(key)


def _take_present(line: Line, value: str, draft: Draft) -> None:
    words = {"present": True, "not present": False, "absent": False}
    if value not in words or draft.present is not None:
        raise line.refuse("neither present nor not present")
    draft.present = words[value]
    draft.heard = True


def _take_lane(line: Line, lane: re.Match[str], value: str, draft: Draft) -> None:
    """Without a lane's number the line says of all lanes that they have no value."""
    if lane["lane"] is None:
        if not absent(value):
            raise line.refuse("a value without its lane")
        return
    unit = {"Tx Power": "mW", "Rx Power": "mW", "Tx Bias": "mA"}.get(lane["what"], "dB")
    draft.lane(line, int(lane["lane"]), _LANE_FIELDS[lane["what"]], scaled(line, value, unit))


def _take_mask(line: Line, name: str, value: str, draft: Draft) -> None:
    if absent(value) or value in SILENT:
        return
    if not re.fullmatch(r"0x[0-9a-fA-F]{1,2}", value) or name in draft.masks:
        raise line.refuse(f"{quoted(value)} is no mask of lanes")
    draft.masks[name] = int(value, 16)


def _read_tables(lines: Iterable[Line], draft: Draft) -> None:
    """Two tables whose columns stand apart by blanks; no value holds one, but item names do."""
    draft.tabular = True
    header: list[str] = []
    for line in lines:
        words = line.text.strip()
        if not line.ended or set(words) <= {"=", "-"} or words.endswith("Monitoring:"):
            continue
        if words.startswith("Items "):
            header = words.split()
        elif " Flag " in words:
            name, _, rest = words.partition(" Flag ")
            _take_flags(line, name, [part.strip() for part in rest.split("|")], draft)
        elif header[1:2] == ["Value"]:
            parts = words.rsplit(None, len(header) - 1)
            if len(parts) != len(header):
                raise line.refuse(f"{len(parts)} columns where the header has {len(header)}")
            _take_item(line, dict(zip(header, parts, strict=True)), draft)
        elif words.partition(":")[0] != "High power enable reg":
            raise line.refuse("no line of an optical module")


def _read_boxes(lines: Iterable[Line], draft: Draft) -> None:
    draft.tabular = True
    found = list(hccn_tables.rows(lines))
    hccn_tables.one_port(found)
    for row in found:
        item = row.cells.get("Items")
        if item is None:
            _take_identity(row, draft)
        elif item.endswith(" Flag"):
            flags = [row.cells[name] for name in row.cells if name.startswith("Lane")]
            _take_flags(row.line, item.removesuffix(" Flag"), flags, draft)
        else:
            _take_item(row.line, row.cells, draft)


def _take_identity(row: hccn_tables.Row, draft: Draft) -> None:
    for name, value in row.cells.items():
        if name == "Present":
            _take_present(row.line, value, draft)
        elif name in _IDENTITY:
            draft.module_value(row.line, _IDENTITY[name], None if absent(value) else value)


def _take_flags(line: Line, name: str, words: Iterable[str], draft: Draft) -> None:
    if name not in _FLAGS:
        draft.unknown.append(f"{name} Flag")
        return
    for lane, word in enumerate(words):
        if word not in _FLAG_WORDS and not absent(word):
            raise line.refuse(f"unknown flag {quoted(word)}")
        draft.lane(line, lane, _FLAGS[name], _FLAG_WORDS.get(word))


def _take_item(line: Line, cells: Mapping[str, str], draft: Draft) -> None:
    item = _TABLE_ITEM.fullmatch(cells["Items"])
    what = item["what"] if item else ""
    if item is None or what not in (*_TABLE_LANE_FIELDS, *_TABLE_MODULE_FIELDS):
        if what not in _IGNORED_ITEMS:
            draft.unknown.append(cells["Items"])
        return
    value = measured(line, cells.get("Value", ""), item["unit"])
    if what in _TABLE_MODULE_FIELDS:
        limited: str | None = _TABLE_MODULE_FIELDS[what]
        unit = "celsius" if what == "Temperature" else "volts"
        draft.module_value(line, f"{limited}_{unit}", value)
    else:
        name, limited = _TABLE_LANE_FIELDS[what]
        if item["lane"] is None:
            raise line.refuse("a value without its lane")
        draft.lane(line, int(item["lane"]), name, value)
    # A lane that the module does not have repeats no limits.
    if limited is not None and value is not None:
        for column, side in _LIMIT_COLUMNS.items():
            if column in cells:
                draft.limit(limited, side, measured(line, cells[column], item["unit"]))
