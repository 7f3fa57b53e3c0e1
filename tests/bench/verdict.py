"""A row of the bench's table: what was measured, and whether that is within the limit that we hold ourselves to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """One measurement."""

    what: str
    measured: float
    unit: str = ""
    limit: float | None = None
    """In the same unit, at most; None: told for its own sake."""

    @property
    def over(self) -> bool:
        return self.limit is not None and not self.measured <= self.limit

    def cells(self) -> tuple[str, str, str, str]:
        limit = "" if self.limit is None else f"≤ {_number(self.limit)} {self.unit}".rstrip()
        verdict = "" if self.limit is None else "OVER" if self.over else "ok"
        return self.what, f"{_number(self.measured)} {self.unit}".rstrip(), limit, verdict


def table(rows: Sequence[Row]) -> str:
    """The rows in columns, as Markdown that reads well on a terminal too."""
    head = ("what", "measured", "limit", "verdict")
    cells = [head, *(row.cells() for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(head))]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |" for line in cells
    ]
    return "\n".join([lines[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *lines[1:]])


def _number(value: float) -> str:
    """Three digits are as many as a measurement of this kind holds."""
    return f"{value:.0f}" if value >= 100 or value == int(value) else f"{value:.3g}"
