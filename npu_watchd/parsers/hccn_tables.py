"""The boxes that hccn_tool of Ascend 950 draws: a header between rules, then one row a line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from npu_watchd.parsers.lines import Line, integer


@dataclass(frozen=True, slots=True)
class Row:
    line: Line
    cells: Mapping[str, str]
    """By the header's words."""


def is_ruled(line: Line) -> bool:
    """True for a rule and for a line between bars."""
    return line.text.lstrip().startswith(("+-", "|"))


def rows(lines: Iterable[Line]) -> Iterator[Row]:
    """The rows of all boxes, each with its own header; lines that belong to no box are left out.

    A last line without its end is left out: a cell may be cut. Raises ParseError for a row that does not fit its
    header.
    """
    header: list[str] | None = None
    rules = 0
    for line in lines:
        text = line.text.strip()
        if text.startswith("+-"):
            rules += 1
            if rules == 3:
                header, rules = None, 0
        elif text.startswith("|") and line.ended:
            cells = _cells(line, text)
            if header is None:
                header = cells
            elif len(cells) != len(header):
                raise line.refuse(f"{len(cells)} cells where the header has {len(header)}")
            else:
                yield Row(line, dict(zip(header, cells, strict=True)))


@dataclass(frozen=True, slots=True)
class PortOfDie:
    """Ascend 950: a port has a number on its die. None where the box does not say it."""

    udie: int | None = None
    port: int | None = None


def one_port(found: Iterable[Row]) -> PortOfDie:
    """The port that all rows are about. Raises ParseError where they are about several."""
    port: PortOfDie | None = None
    for row in found:
        named = PortOfDie(*(integer(row.line, row.cells.get(name, "")) for name in ("UDie", "Port")))
        if port not in (None, named):
            raise row.line.refuse("rows of several ports")
        port = named
    return port or PortOfDie()


def _cells(line: Line, text: str) -> list[str]:
    if not text.endswith("|") or len(text) < 2:
        raise line.refuse("a row without its end")
    return [cell.strip() for cell in text[1:-1].split("|")]
