"""`npu-smi info -t ecc -i N`: error counts and isolated pages, by chip and memory."""

from __future__ import annotations

import re

from npu_watchd.model.reading import FailureKind
from npu_watchd.model.records import EccChip, EccReport, MemoryErrors
from npu_watchd.parsers.lines import ParseError, integer
from npu_watchd.parsers.sections import Entry, HeadingOnly, Section, sections

_KEY = re.compile(
    r"^(?:(?P<memory>HBM|DDR) )?(?P<bits>Single|Double)[ -][Bb]it (?P<what>Error Count|Aggregate Total Err Cnt"
    r"|Isolated Pages Count|Next-Isolated Pages Count)$"
)
_FIELDS = {
    "Error Count": "",
    "Aggregate Total Err Cnt": "_lifetime",
    "Isolated Pages Count": "_isolated_pages",
    "Next-Isolated Pages Count": "_next_isolated_pages",
}
# The tool prints records minus isolated pages as an unsigned number of 32 bits: below zero it wraps.
_WRAPPED = 2**31


def parse(text: str) -> EccReport:
    """Counts of every chip of the answer; a chip that the tool could not read has its words in `failure`.

    Raises ParseError; of kind DENIED where the answer stops after its heading, which is what npu-smi prints, with exit
    0, when it may not read the ECC records.
    """
    try:
        answer = sections(text)
    except HeadingOnly as error:
        raise ParseError(
            error.number,
            "npu-smi printed a heading and no counts, as it does when it may not read the ECC records"
            " (run npu-watchd as root, on the host)",
            FailureKind.DENIED,
        ) from error
    unknown: list[str] = []
    chips = tuple(_chip(section, unknown) for section in answer.chips)
    if not any(chip.hbm or chip.ddr for chip in chips):
        raise ParseError(1, f"no ECC count in the answer; keys: {', '.join(unknown)[:120]}")
    return EccReport(answer.npu, chips, tuple(unknown))


def _chip(section: Section, unknown: list[str]) -> EccChip:
    counts: dict[str, dict[str, int | None]] = {}
    for entry in section.by_key().values():
        match = _KEY.match(entry.key)
        if match is None:
            unknown.append(entry.key)
            continue
        # 310B names no memory; it has DDR only.
        memory = (match["memory"] or "DDR").lower()
        name = match["bits"].lower() + "_bit" + _FIELDS[match["what"]]
        counts.setdefault(memory, {})[name] = _count(entry, wraps=match["what"].startswith("Next"))
    hbm, ddr = counts.get("hbm"), counts.get("ddr")
    return EccChip(
        chip=section.chip,
        hbm=MemoryErrors(**hbm) if hbm else None,
        ddr=MemoryErrors(**ddr) if ddr else None,
        failure=section.failure,
    )


def _count(entry: Entry, *, wraps: bool) -> int | None:
    count = integer(entry.line, entry.value)
    return None if count is not None and wraps and count >= _WRAPPED else count
