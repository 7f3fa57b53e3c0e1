"""Text of others on a page or a terminal: nothing in it breaks a line, steers, hides or turns what stands beside it."""

from __future__ import annotations

import pytest

from npu_watchd.sinks.plaintext import clean


@pytest.mark.parametrize(
    "character",
    [
        pytest.param("\x1b", id="escape"),
        pytest.param("\n", id="line feed"),
        pytest.param("\u2028", id="line separator"),
        pytest.param("\ud800", id="lone surrogate"),
        pytest.param("\u202e", id="right-to-left override"),
        pytest.param("\u2066", id="left-to-right isolate"),
        pytest.param("\u200f", id="right-to-left mark"),
        pytest.param("\u200b", id="zero width space"),
        pytest.param("\ufeff", id="byte order mark"),
        pytest.param("\U000e0041", id="tag letter"),
    ],
)
def test_what_could_mislead_the_eye_is_replaced(character: str) -> None:
    assert clean(f"python{character}3", 40) == "python\ufffd3"


@pytest.mark.parametrize("text", ["python3", "训练任务", "тест", "naïve", "שלום", "é", "x·y – z"])
def test_what_people_write_stays(text: str) -> None:
    assert clean(text, 40) == text


def test_a_long_text_is_cut_and_shows_it() -> None:
    assert clean("x" * 41, 40) == "x" * 39 + "…"
    assert clean("x" * 40, 40) == "x" * 40
