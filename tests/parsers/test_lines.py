"""Lines, numbers and what is shown of a text that nobody can trust."""

from __future__ import annotations

import pytest

from npu_watchd.model.reading import Failure, FailureKind
from npu_watchd.parsers.lines import Line, ParseError, decimal, integer, lines_of, quoted

LINE = Line(7, "the line", ended=True)


def test_lines_are_numbered_as_in_an_editor_and_only_the_last_may_lack_its_end() -> None:
    assert list(lines_of("a\n\n  b  \r\nc")) == [
        Line(1, "a", ended=True),
        Line(3, "  b", ended=True),
        Line(4, "c", ended=False),
    ]
    assert list(lines_of("\n \t\n")) == []


@pytest.mark.parametrize("text", ["NA", "N/A", "-", "", "Failed", " NA "])
def test_words_for_nothing_are_none(text: str) -> None:
    assert integer(LINE, text) is None
    assert decimal(LINE, text) is None


@pytest.mark.parametrize("text", ["-1", "1.0", "1_000", "٣", "²", "0x10", "1 2", "1" * 21, "--", "NaN"])
def test_what_is_no_count_is_refused(text: str) -> None:
    with pytest.raises(ParseError, match=r"^line 7: .* is no count: 'the line'$"):
        integer(LINE, text)


@pytest.mark.parametrize("text", ["nan", "inf", "1e5", ".5", "1.2.3", "--1", "٣", "9" * 400, "1,5"])
def test_what_is_no_number_is_refused(text: str) -> None:
    with pytest.raises(ParseError, match=r"^line 7: .* is no number: 'the line'$"):
        decimal(LINE, text)


def test_numbers() -> None:
    assert (integer(LINE, "0"), integer(LINE, "4294967295")) == (0, 4294967295)
    assert (decimal(LINE, "-12.5"), decimal(LINE, "0.0"), decimal(LINE, "46")) == (-12.5, 0.0, 46.0)


def test_what_is_shown_is_one_printable_line_of_bounded_length() -> None:
    assert quoted("a\x1b[2J\nb") == "'a�[2J�b'"
    assert quoted("x" * 161) == repr("x" * 160 + "…")


def test_our_own_confusion_names_the_line_and_the_tools_refusal_does_not() -> None:
    assert ParseError(3, "odd").failure() == Failure(FailureKind.UNPARSEABLE, "line 3: odd")
    assert ParseError(3, "no", FailureKind.DENIED).failure() == Failure(FailureKind.DENIED, "no")
    assert str(ParseError(3, "no", FailureKind.DENIED)) == "line 3: no"
