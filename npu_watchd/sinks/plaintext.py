"""Text from tools and processes made fit to be shown: nothing in it can break a format or a terminal."""

from __future__ import annotations

import unicodedata

_UNSAFE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Control and format characters, lone surrogates, and the line and paragraph separators.

Format characters are invisible, or turn what stands around them: a name with U+202E reads backwards on a terminal.
"""


def clean(text: str, limit: int) -> str:
    """The text with unsafe characters replaced by U+FFFD, cut to `limit` characters (the last an ellipsis)."""
    cut = text if len(text) <= limit else text[: limit - 1] + "…"
    if cut.isascii() and cut.isprintable():
        return cut
    return "".join("\ufffd" if unicodedata.category(character) in _UNSAFE else character for character in cut)
