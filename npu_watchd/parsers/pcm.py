"""`pcm-pcie -csv`: what all PCIe devices of a CPU socket move, on Intel.

Source: intel/pcm, src/pcm-pcie.cpp and pcm-pcie.h (2024): definitions and settings go to stdout ahead of the table,
whose columns are named after the events of the CPU's generation; each interval prints its header anew.
"""

from __future__ import annotations

import re

from npu_watchd.model.pcie_tools import PcieSocketLoad, PcmTable
from npu_watchd.model.reading import FailureKind
from npu_watchd.parsers.lines import Line, ParseError, integer, lines_of, quoted

_READ, _WRITE = "PCIe Rd (B)", "PCIe Wr (B)"
_LONGEST_MESSAGE_CHARS = 500
_ROW = re.compile(r"\d+(?:,|$)")
_WORDS: tuple[tuple[re.Pattern[str], FailureKind, str], ...] = (
    (re.compile(r"is required for this tool"), FailureKind.UNSUPPORTED, "pcm-pcie knows no counters of this CPU"),
    (re.compile(r"Core offlining is not supported"), FailureKind.UNSUPPORTED, "switch the offlined cores on"),
    (re.compile(r"Unsupported processor"), FailureKind.UNSUPPORTED, ""),
    (
        re.compile(r"(?i)\bcan(?: ?not|'t) (?:open|access|read)\b.*\bmsr\b|modprobe msr"),
        FailureKind.DENIED,
        "modprobe msr",
    ),
    (re.compile(r"(?i)must be root|root privileges|permission denied"), FailureKind.DENIED, "run npu-watchd as root"),
    (
        re.compile(r"(?i)another instance|PMU is busy|counters are used"),
        FailureKind.EXIT,
        "another PCM has the counters",
    ),
)


def parse(text: str) -> PcmTable:
    """Every row of every interval. Raises ParseError; not of kind UNPARSEABLE where pcm-pcie itself refused."""
    rows: list[PcieSocketLoad] = []
    columns: tuple[str, ...] = ()
    sample = -1
    for line in lines_of(text):
        if not line.ended:
            continue  # it may have been cut in the middle of a number
        if line.text.startswith("Skt,"):
            columns = _columns(line)
            sample += 1
        elif columns and _ROW.match(line.text):
            row = _row(line, columns, sample)
            if any(other.sample == sample and other.socket == row.socket for other in rows):
                raise line.refuse("a second row of this socket in one interval")
            rows.append(row)
    if not rows:
        raise _nothing(text)
    return PcmTable(tuple(rows))


def refusal(text: str) -> ParseError | None:
    """The line with which pcm-pcie says, mostly on stderr, that it cannot count; None where there is none."""
    for line in lines_of(text):
        for pattern, kind, cure in _WORDS:
            if pattern.search(line.text[:_LONGEST_MESSAGE_CHARS]):
                words = quoted(line.text)[1:-1]
                return ParseError(line.number, f"pcm-pcie: {words} ({cure})" if cure else f"pcm-pcie: {words}", kind)
    return None


def _nothing(text: str) -> ParseError:
    refused = refusal(text)
    if refused is not None:
        return refused
    first = next(lines_of(text), None)
    return first.refuse("no table of pcm-pcie -csv") if first else ParseError(1, "pcm-pcie printed nothing")


def _columns(line: Line) -> tuple[str, ...]:
    names = tuple(name.strip() for name in line.text.split(",")[1:])
    if len(set(names)) != len(names) or "" in names:
        raise line.refuse("no header of pcm-pcie -csv")
    return names


def _row(line: Line, columns: tuple[str, ...], sample: int) -> PcieSocketLoad:
    cells = [integer(line, cell.strip()) for cell in line.text.split(",")]
    if len(cells) != len(columns) + 1:
        raise line.refuse(f"{len(cells)} cells below {len(columns) + 1} columns")
    values = {name: cell for name, cell in zip(columns, cells[1:], strict=True) if cell is not None}
    socket = cells[0]
    if socket is None or len(values) != len(columns):
        raise line.refuse("a cell without a number")
    read, write = values.pop(_READ, None), values.pop(_WRITE, None)
    return PcieSocketLoad(socket, sample, read, write, values)
