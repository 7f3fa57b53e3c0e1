"""How a finding's sentence names the span that it was counted over."""

from __future__ import annotations


def span(seconds: float) -> str:
    """A duration in seconds, in the largest unit that leaves no rest: `12 h`, `10 min`, `90 s`."""
    for unit, unit_s in (("h", 3600.0), ("min", 60.0)):
        if seconds >= unit_s and seconds % unit_s == 0:
            return f"{seconds / unit_s:.0f} {unit}"
    return f"{seconds:g} s"
