"""Cut a capture at any byte: an error or a subset, never another number."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from npu_watchd.parsers import blocks
from npu_watchd.parsers.lines import ParseError
from tests.parsers.subset import excess
from tests.parsers.texts import CAPTURES, TYPED, parser_of

TYPED_FILES = sorted(TYPED.glob("*.txt"))
RENDERED_FILES = sorted((CAPTURES / "npu-smi").glob("*.txt"))


def kind_of(path: Path) -> str:
    return path.name.partition("__")[0]


# Health and errors are judged from these: a lost line must not move a number to another chip either.
JUDGED_FILES = [
    path
    for path in TYPED_FILES + RENDERED_FILES
    if kind_of(path) in ("info", "list", "map", "ecc", "health", "proc-mem")
]


def excesses(parse: Callable[[str], Any], text: str, lesser: Iterable[tuple[object, str]]) -> list[str]:
    """Where a lesser text says more than the whole one. A whole text that is refused may not be read when it is cut."""
    try:
        whole = parse(text)
    except ParseError as error:
        whole = error
    found = []
    for label, part in lesser:
        try:
            record = parse(part)
        except ParseError:
            continue
        reason = f"read as {record}" if isinstance(whole, ParseError) else excess(record, whole)
        if reason is not None:
            found.append(f"{label}: {reason}")
    return found


def cuts(text: str, step: int = 1) -> Iterable[tuple[object, str]]:
    return ((end, text[:end]) for end in range(0, len(text), step))


def without_a_line(text: str) -> Iterable[tuple[object, str]]:
    lines = text.splitlines(keepends=True)
    return (
        (f"without line {number}", "".join(lines[: number - 1] + lines[number:])) for number in range(1, len(lines))
    )


@pytest.mark.parametrize("path", TYPED_FILES, ids=lambda path: path.stem)
def test_every_cut_of_a_typed_capture_is_an_error_or_a_subset(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert excesses(parser_of(kind_of(path)), text, cuts(text)) == []


@pytest.mark.parametrize(
    "path",
    [path for path in TYPED_FILES if kind_of(path) not in ("info", "list", "map")],
    ids=lambda path: path.stem,
)
def test_every_cut_is_an_error_or_a_subset_for_parse_as_a_block_too(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert excesses(blocks.parse, text, cuts(text)) == []


@pytest.mark.parametrize("path", RENDERED_FILES, ids=lambda path: path.stem)
def test_cuts_of_a_rendered_capture_are_errors_or_subsets(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert excesses(parser_of(kind_of(path)), text, cuts(text, step=1 if len(text) < 400 else 61)) == []


@pytest.mark.parametrize("path", JUDGED_FILES, ids=lambda path: path.stem)
def test_a_capture_that_lost_one_line_is_an_error_or_a_subset(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert excesses(parser_of(kind_of(path)), text, without_a_line(text)) == []
