"""A table of the page: on a phone each row becomes a card, with the column's title above each value."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from markupsafe import Markup

UNKNOWN = "–"

Cell = str | Markup
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Column(Generic[T]):
    """One column: its title, the CSS class of its cells, and what stands in the row of a thing."""

    title: str
    kind: str
    read: Callable[[T], Cell]


def table_section(anchor: str, title: str, columns: Sequence[Column[T]], things: Iterable[T]) -> Markup:
    """The section with its heading and the table, a row a thing."""
    heads = Markup("").join(
        Markup('<th scope="col" class="{}">{}</th>').format(column.kind, column.title) for column in columns
    )
    rows = Markup("\n").join(_row(columns, thing) for thing in things)
    return Markup(
        '<section id="{}">\n<h2>{}</h2>\n<div class="scroll"><table>\n<thead><tr>{}</tr></thead>\n'
        "<tbody>\n{}\n</tbody>\n</table></div>\n</section>"
    ).format(anchor, title, heads, rows)


def _row(columns: Sequence[Column[T]], thing: T) -> Markup:
    cells = Markup("").join(
        Markup('<td class="{}" data-title="{}">{}</td>').format(_kind(column.kind, cell), column.title, cell)
        for column, cell in ((column, column.read(thing)) for column in columns)
    )
    return Markup("<tr>{}</tr>").format(cells)


def _kind(kind: str, cell: Cell) -> str:
    return f"{kind} none".strip() if cell == UNKNOWN else kind


def badge(look: str, words: str) -> Markup:
    """Words that have a look of their own; `look` is a state of the style sheet."""
    return Markup('<span class="state state-{}">{}</span>').format(look, words)


def note(words: str, title: str = "") -> Markup:
    """Small words after a value; `title` is shown to whoever points at them."""
    return Markup(' <span class="note" title="{}">{}</span>').format(title, words)


def counts_cell(counts: Mapping[str, int | None]) -> Cell:
    """What is not 0, by name; `none` only where all is known and 0, a dash where nothing is known."""
    known = {name: count for name, count in counts.items() if count is not None}
    if not known:
        return UNKNOWN
    shown = [f"{name} {UNKNOWN if count is None else count}" for name, count in counts.items() if count != 0]
    words = ", ".join(shown)
    return Markup("<strong>{}</strong>").format(words) if any(known.values()) else words or "none"
