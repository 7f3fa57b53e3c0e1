"""Measured values of an optical module as hccn_tool prints them, in base units."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal

from npu_watchd.parsers.lines import Line, absent, quoted

SILENT = ("not supported", "get failed")
"""With these words the tool says, besides NA, that it has no value."""

_HIGHEST_DBM = 60
_NUMBER = re.compile(r"-?\d{1,12}(?:\.\d{1,8})?", re.ASCII)


def scaled(line: Line, text: str, unit: str) -> float | None:
    """`3290.00 mV` in the base unit; None for NA. Raises ParseError for another unit: it would be another number."""
    if absent(text) or text in SILENT:
        return None
    number, _, found = text.rpartition(" ")
    if found != unit:
        raise line.refuse(f"{quoted(text)} is not in {unit}")
    return measured(line, number, unit)


def measured(line: Line, text: str, unit: str) -> float | None:
    """The number in the base unit of `unit`; None for NA. Raises ParseError."""
    if absent(text) or text in SILENT:
        return None
    read = _UNITS.get(unit)
    if read is None:
        raise line.refuse(f"unknown unit {quoted(unit)}")
    if unit == "dBm" and text == "-inf":
        return 0.0
    if not _NUMBER.fullmatch(text):
        raise line.refuse(f"{quoted(text)} is no number")
    number = Decimal(text)
    if unit == "dBm" and abs(number) > _HIGHEST_DBM:
        raise line.refuse(f"{quoted(text)} dBm is no power of a lane")
    return read(number)


def _watts_of_dbm(decibels: Decimal) -> float:
    """To the nanowatt: finer than the tool's two decimals tell."""
    return float(round(10.0 ** (float(decibels) / 10) / 1000, 9))


def _milli(number: Decimal) -> float:
    return float(number.scaleb(-3))


_UNITS: dict[str, Callable[[Decimal], float]] = {
    "C": float,
    "V": float,
    "dB": float,
    "mV": _milli,
    "mA": _milli,
    "mW": _milli,
    "dBm": _watts_of_dbm,
}
