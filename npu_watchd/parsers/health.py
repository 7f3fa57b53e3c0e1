"""`npu-smi info -t health -i N [-c M]`: health a second time, and the active error codes (chip form and Ascend 950)."""

from __future__ import annotations

import re

from npu_watchd.model.records import HealthChip, HealthReport
from npu_watchd.parsers.device_rows import HEALTH_WORDS
from npu_watchd.parsers.lines import ParseError, absent, quoted
from npu_watchd.parsers.sections import Entry, Section, sections

_CODE = re.compile(r"^(?:0[xX])?[0-9A-Fa-f]{1,8}$")


def parse(text: str) -> HealthReport:
    """Health of every chip of the answer; the MCU is no chip and stands apart.

    Raises ParseError where the tool failed, and for a health word or a code that we do not know how to read.
    """
    answer = sections(text)
    unknown: list[str] = []
    chips = tuple(_chip(section, unknown) for section in answer.chips)
    if not any(chip.health for chip in chips):
        raise ParseError(1, "no health in the answer")
    mcu = _chip(answer.mcu, unknown).health if answer.mcu else None
    return HealthReport(answer.npu, chips, mcu, tuple(unknown))


def _chip(section: Section, unknown: list[str]) -> HealthChip:
    health: str | None = None
    codes: tuple[str, ...] | None = None
    information: tuple[str, ...] = ()
    for entry in section.by_key().values():
        if entry.key in ("Health", "Health Status"):
            health = _health(entry)
        elif entry.key == "Error Code":
            codes = _codes(entry)
        elif entry.key == "Error Information":
            information = tuple(part for part in entry.parts if not absent(part))
        else:
            unknown.append(entry.key)
    return HealthChip(section.chip, health, codes, information, section.failure)


def _health(entry: Entry) -> str | None:
    if absent(entry.value):
        return None
    if entry.value not in HEALTH_WORDS:
        raise entry.line.refuse(f"unknown health word {quoted(entry.value)}")
    return entry.value


def _codes(entry: Entry) -> tuple[str, ...]:
    if absent(entry.value):
        return ()
    words = entry.value.split()
    for word in words:
        if not _CODE.match(word):
            raise entry.line.refuse(f"{quoted(word)} is no error code")
    return tuple(word.lower().removeprefix("0x") for word in words)
