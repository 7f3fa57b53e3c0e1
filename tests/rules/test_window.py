"""Spans as findings name them."""

from __future__ import annotations

import pytest

from npu_watchd.rules.window import span


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (43200, "12 h"),
        (86400, "24 h"),
        (5400, "90 min"),
        (600, "10 min"),
        (240, "4 min"),
        (90, "90 s"),
        (30, "30 s"),
        (0.1, "0.1 s"),
    ],
)
def test_a_span_is_named_exactly(seconds: float, words: str) -> None:
    assert span(seconds) == words
