"""An instant as people write it: so long ago, a Unix second, or a date."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime

_AGO = re.compile(r"(\d+(?:\.\d+)?)(s|m|h|d|w)")
_UNIT_S = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}


def instant(text: str, now_s: float) -> float:
    """Unix seconds of `24h` (before now), `1767225600`, `2026-11-30` or `2026-11-30T18:00:00Z`; UTC by default.

    Raises ValueError naming the text and the forms that there are.
    """
    bare = text.strip()
    if ago := _AGO.fullmatch(bare):
        return now_s - float(ago[1]) * _UNIT_S[ago[2]]
    try:
        number = float(bare)
    except ValueError:
        number = math.nan
    if math.isfinite(number):
        return number
    try:
        read = datetime.fromisoformat(bare)
    except ValueError:
        forms = 'write how long ago ("24h"), a Unix second, or a date ("2026-11-30T18:00:00Z")'
        raise ValueError(f"{text[:60]!r} is no instant; {forms}") from None
    return (read if read.tzinfo else read.replace(tzinfo=UTC)).timestamp()
