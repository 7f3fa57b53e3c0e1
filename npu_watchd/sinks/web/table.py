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


def table_section(
    anchor: str,
    title: str,
    columns: Sequence[Column[T]],
    things: Iterable[T],
    names: Callable[[T], str] | None = None,
) -> Markup:
    """The section with its heading and the table, a row a thing, whose first cell says which.

    names: the anchors of the rows, where links lead to them.
    """
    heads = Markup("").join(
        Markup('<th scope="col" class="{}">{}</th>').format(column.kind, column.title) for column in columns
    )
    rows = Markup("\n").join(_row(columns, thing, names(thing) if names else None) for thing in things)
    table = Markup(
        '<div class="scroll" role="region" aria-label="{title}, table" tabindex="0"><table>\n'
        '<caption class="unseen">{title}</caption>\n<thead><tr>{heads}</tr></thead>\n'
        "<tbody>\n{rows}\n</tbody>\n</table></div>"
    ).format(title=title, heads=heads, rows=rows)
    return section(anchor, title, table)


def section(anchor: str, title: str, body: Markup) -> Markup:
    """A part of the page that has a heading, by which a screen reader lists it."""
    return Markup(
        '<section id="{anchor}" aria-labelledby="{anchor}-title">\n<h2 id="{anchor}-title">{title}</h2>\n{body}\n'
        "</section>"
    ).format(anchor=anchor, title=title, body=body)


_HEAD = Markup('<th scope="row" class="{}" data-title="{}">{}</th>')
_CELL = Markup('<td class="{}" data-title="{}">{}</td>')


def _row(columns: Sequence[Column[T]], thing: T, name: str | None) -> Markup:
    cells = Markup("").join(
        (_CELL if at else _HEAD).format(_kind(column.kind, cell), column.title, cell)
        for at, (column, cell) in enumerate((column, column.read(thing)) for column in columns)
    )
    return Markup("<tr{}>{}</tr>").format(Markup(' id="{}"').format(name) if name else Markup(), cells)


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
