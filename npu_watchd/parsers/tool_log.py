"""Lines of npu-smi's own error log."""

from __future__ import annotations

import re
from dataclasses import dataclass

_LONGEST_LINE_CHARS = 4096
_FAILED = re.compile(r"(?<!\w)([A-Za-z_]\w{2,79})(?:\(\))?\]?\s+failed\b")
_CODE = re.compile(r"\b(?:err|ret)\s*(?:\bis\b|=|:)\s*(-\d{1,10})(?!\w)")


@dataclass(frozen=True, slots=True)
class ToolLogEvent:
    """One driver call that npu-smi made and that failed."""

    function: str
    """As the log names it, e.g. dcmi_get_device_health."""
    code: int
    """The driver's own, negative, e.g. -8006."""


def failures_in(line: str) -> ToolLogEvent | None:
    """The failure that this line reports, wherever in the line: what stands before it differs between versions.

    None: the line has no `FUNCTION failed` followed by `err is -N` (or ret, and `=` or `:` for `is`).
    """
    line = line[:_LONGEST_LINE_CHARS]
    for failed in _FAILED.finditer(line):
        if not _is_function(failed[1]):
            continue
        code = _CODE.search(line, failed.end())
        if code is not None:
            return ToolLogEvent(failed[1], int(code[1]))
    return None


def _is_function(word: str) -> bool:
    """Not a word of prose, as in `Query failed`."""
    return "_" in word.strip("_") or re.search(r"[a-z][A-Z]", word) is not None
