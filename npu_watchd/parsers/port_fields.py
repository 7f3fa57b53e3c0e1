"""Values of an RDMA port's fields, however they were redacted."""

from __future__ import annotations

import re

from npu_watchd.parsers.lines import Line, absent, decimal, integer, quoted

_LONGEST = 64
_REDACTED = re.compile(
    r"(?:0[xX])?[xX*#.?_:-]+|<[^>]*>|\[[^]]*\]|\(?(?:redacted|removed|hidden|masked)\)?", re.IGNORECASE
)
_PARTLY_REDACTED = re.compile(r"(?:0[xX])?[0-9a-fA-F:]*[xX*#]{2,}[0-9a-fA-FxX*#:]*")
_GUID = re.compile(r"0[xX][0-9a-fA-F]{1,16}")
_MASK = re.compile(r"0[xX][0-9a-fA-F]{1,8}")
_RATE = re.compile(r"(?P<gbps>\d{1,6}(?:\.\d{1,3})?)(?: \(FDR10\))?", re.ASCII)


def withheld(text: str) -> bool:
    """True where the field is empty, says NA, or was made unreadable by whoever pasted it."""
    if absent(text):
        return True
    if len(text) > _LONGEST:
        return False
    return _REDACTED.fullmatch(text) is not None or _PARTLY_REDACTED.fullmatch(text) is not None


def word(line: Line, text: str) -> str | None:
    """Free text; None where withheld. Raises ParseError for more than a name can be."""
    if withheld(text):
        return None
    if len(text) > _LONGEST or not text.isprintable():
        raise line.refuse("no name")
    return text


def count(line: Line, text: str) -> int | None:
    """An unsigned decimal number; None where withheld. Raises ParseError."""
    return None if withheld(text) else integer(line, text)


def guid(line: Line, text: str) -> str | None:
    """0x and 16 digits of lower-case hex; None where withheld, even in part. Raises ParseError."""
    if withheld(text):
        return None
    if not _GUID.fullmatch(text):
        raise line.refuse(f"{quoted(text)} is no GUID")
    return f"0x{int(text, 16):016x}"


def mask(line: Line, text: str) -> int | None:
    """A number in hex with its 0x; None where withheld. Raises ParseError."""
    if withheld(text):
        return None
    if not _MASK.fullmatch(text):
        raise line.refuse(f"{quoted(text)} is no hexadecimal number")
    return int(text, 16)


def rate_gbps(line: Line, text: str) -> float | None:
    """`200`, `2.5` or `10 (FDR10)` in Gbit/s; None where withheld, and for 0, which a failed read prints."""
    if withheld(text):
        return None
    match = _RATE.fullmatch(text)
    if match is None:
        raise line.refuse(f"{quoted(text)} is no rate")
    return decimal(line, match["gbps"]) or None
