"""Keys and values as npu-smi prints them: a tab, the key padded, ` : `, the value."""

from __future__ import annotations

from npu_watchd.simnode.state import ErrorCode

Pairs = list[tuple[str, object]]
"""Key and value in the order of printing. A value of ErrorCode is printed as its text."""

VERBATIM = "\0"
"""The key of a value that is printed as it stands, line ends included."""


def line(key: str, value: object, width: int = 30) -> str:
    """One line of a `-t` answer, of `-l` and of `board`."""
    return f"\t{key:<{width}} : {value}\n"


def lines(pairs: Pairs, width: int = 30) -> str:
    """All of them; `ecc` pads its keys to 40."""
    return "".join(_text(key, value, width) for key, value in pairs)


def _text(key: str, value: object, width: int) -> str:
    if isinstance(value, ErrorCode):
        return _information(key, value, width)
    return str(value) if key == VERBATIM else line(key, value, width)


def _information(key: str, code: ErrorCode, width: int) -> str:
    """One code's text; each but the first after a blank line, under a blank key.

    A text that cannot be had stands beside the first key without a blank, and alone for a later code.
    """
    gap = "" if key else "\n"
    if code.information is not None:
        return gap + line(key, code.information, width)
    sorry = f"Failed to get error information for error code : 0x{code.code.lower()}\n"
    return f"\t{key:<{width}} :{sorry}" if key else gap + sorry
