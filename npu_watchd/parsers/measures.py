"""What the daemon takes from the other `-t` answers: utilisation, clocks, HBM temperature, firmware, link errors."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TypeVar

from npu_watchd.model.reading import Failure, FailureKind
from npu_watchd.model.records import Board, Clocks, Hccs, MemoryTemperature, PcieLinkErrors, Usages
from npu_watchd.parsers.lines import Line, ParseError, absent, decimal, integer
from npu_watchd.parsers.sections import HeadingOnly, Section, sections

M = TypeVar("M")

ByChip = Mapping[int | None, M | Failure]
"""Chip id (None: the answer names none) → what it said, or why it said nothing."""

_UNITS = {
    "Aicore Usage Rate(%)": "aicore",
    "Aivector Usage Rate(%)": "aivector",
    "Aicube Usage Rate(%)": "aicube",
    "Aicpu Usage Rate(%)": "aicpu",
    "Ctrlcpu Usage Rate(%)": "ctrlcpu",
    "NPU Utilization(%)": "npu",
    "Vectorcore Usage Rate(%)": "vectorcore",
}
_BANDWIDTHS = {
    "HBM Bandwidth Usage Rate(%)": "hbm",
    "DDR Bandwidth Usage Rate(%)": "ddr",
    "Memory Bandwidth Usage Rate(%)": "ddr",
}
_PCIE = re.compile(r"^(?P<name>[A-Za-z ]+?)(?: Error)? Count$")
_MHZ = 1_000_000


def usages(text: str) -> ByChip[Usages]:
    """`-t usages`: ratios 0..1 by unit and memory. Raises ParseError."""
    return _by_chip(text, _usages)


def clocks(text: str) -> ByChip[Clocks]:
    """`-t common`: `Aicore curFreq(MHZ)` and `Aicore Freq(MHZ)` in hertz. Raises ParseError."""
    return _by_chip(text, _clocks)


def memory_temperature(text: str) -> ByChip[MemoryTemperature]:
    """`-t memory`: `HBM Temperature(C)`; None where the chip has none, and for 0, which a failed query prints."""
    return _by_chip(text, _memory_temperature)


def board(text: str) -> ByChip[Board]:
    """`-t board`: the card's firmware and identity; one answer for all its chips. Raises ParseError."""
    return _by_chip(text, _board)


def hccs(text: str) -> ByChip[Hccs]:
    """`-t hccs`: one count a link, in the tool's order. Raises ParseError."""
    return _by_chip(text, _hccs)


def pcie_link_errors(text: str) -> ByChip[PcieLinkErrors]:
    """`-t pcie-err`: counts by the tool's key in snake case. Raises ParseError.

    Of kind UNSUPPORTED where only the heading is there: so 910B and 310P say in the card form that they cannot.
    """
    try:
        return _by_chip(text, _pcie_link_errors)
    except HeadingOnly as error:
        raise ParseError(error.number, "npu-smi printed a heading and no counts", FailureKind.UNSUPPORTED) from error


def _by_chip(text: str, read: Callable[[Section], M]) -> ByChip[M]:
    found: dict[int | None, M | Failure] = {}
    for section in sections(text).chips:
        if section.failure is not None:
            found[section.chip] = Failure(FailureKind.EXIT, section.failure)
        else:
            found[section.chip] = read(section)
    return found


def _texts(section: Section) -> dict[str, tuple[Line, str]]:
    return {entry.key: (entry.line, entry.value) for entry in section.by_key().values()}


def _usages(section: Section) -> Usages:
    texts = _texts(section)
    units = {unit: _ratio(*texts[key]) for key, unit in _UNITS.items() if key in texts}
    capacities = {"hbm": texts.get("HBM Capacity(MB)"), "ddr": texts.get("DDR Capacity(MB)")}
    bandwidths = {
        memory: _ratio(*texts[key])
        for key, memory in _BANDWIDTHS.items()
        # A memory of capacity 0 is none, whatever rate is printed for it.
        if key in texts and (capacities[memory] or ("", "?"))[1] != "0"
    }
    return Usages(
        {unit: ratio for unit, ratio in units.items() if ratio is not None},
        {memory: ratio for memory, ratio in bandwidths.items() if ratio is not None},
    )


def _ratio(line: Line, text: str) -> float | None:
    percent = decimal(line, text)
    if percent is None:
        return None
    if not 0 <= percent <= 100:
        raise line.refuse(f"a rate of {percent} %")
    return percent / 100


def _clocks(section: Section) -> Clocks:
    texts = _texts(section)
    return Clocks(_hertz(texts.get("Aicore curFreq(MHZ)")), _hertz(texts.get("Aicore Freq(MHZ)")))


def _hertz(found: tuple[Line, str] | None) -> float | None:
    megahertz = integer(*found) if found else None
    return megahertz * _MHZ if megahertz else None


def _memory_temperature(section: Section) -> MemoryTemperature:
    found = _texts(section).get("HBM Temperature(C)")
    return MemoryTemperature((decimal(*found) or None) if found else None)


def _board(section: Section) -> Board:
    texts = {key: value for key, (_, value) in _texts(section).items() if not absent(value)}
    return Board(
        firmware_version=texts.get("Firmware Version"),
        software_version=texts.get("Software Version"),
        product_name=texts.get("Product Name"),
        serial_number=texts.get("Serial Number"),
        compatibility=texts.get("Compatibility"),
    )


def _hccs(section: Section) -> Hccs:
    texts = _texts(section)
    status = texts.get("hccs health status")
    lane = texts.get("hccs first error lane")
    return Hccs(
        healthy={"OK": True, "NOK": False}.get(status[1]) if status else None,
        error_counts=_list(texts.get("hccs error count")),
        retry_counts=_list(texts.get("hccs retry count")),
        first_error_lane=None if lane is None or absent(lane[1]) else lane[1],
    )


def _list(found: tuple[Line, str] | None) -> tuple[int, ...]:
    if found is None:
        return ()
    line, text = found
    if not (text.startswith("[") and text.endswith("]")):
        raise line.refuse("no list")
    counts = [integer(line, part) for part in text[1:-1].split()]
    return tuple(count for count in counts if count is not None)


def _pcie_link_errors(section: Section) -> PcieLinkErrors:
    counts: dict[str, int] = {}
    for entry in section.by_key().values():
        match = _PCIE.match(entry.key)
        count = integer(entry.line, entry.value) if match else None
        if match and count is not None:
            counts["_".join(match["name"].lower().split())] = count
    return PcieLinkErrors(counts)
