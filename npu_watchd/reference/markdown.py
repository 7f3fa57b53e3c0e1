"""Pieces of the generated pages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator


def made(source: str) -> str:
    """The first line of a generated page."""
    return f"<!-- Made by `npu-watchd reference`; change the table in {source} instead. -->"


def cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    """A table below a blank line."""
    names = tuple(head)
    yield from ("", f"| {' | '.join(names)} |", f"|{'---|' * len(names)}")
    yield from (f"| {' | '.join(cell(text) for text in row)} |" for row in rows)
