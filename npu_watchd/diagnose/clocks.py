"""What a log's clock was ahead of UTC, when its lines do not say."""

from __future__ import annotations

from collections.abc import Sequence

from npu_watchd.model.log_event import LogEvent

_NEAR_S = 1200.0
"""A log is written a little after its last event. assumption."""
_AROUND_S = 450.0
_HOUR_S = 3600.0


def offset_of(events: Sequence[LogEvent], modified_s: float, node_offset_s: float) -> tuple[float, bool]:
    """Seconds ahead of UTC, and whether that is more than an assumption.

    A container often has UTC where the node has its own zone. The file's last change tells which: the whole hours
    that lie between it and the last event's time. modified_s: Unix seconds.
    """
    locals_s = [event.local_s for event in events if event.local_s is not None and event.utc_offset_s is None]
    if not locals_s:
        return node_offset_s, True
    last_s = max(locals_s)
    for offset_s in (node_offset_s, 0.0):
        if -_AROUND_S <= modified_s - (last_s - offset_s) <= _NEAR_S:
            return offset_s, True
    ahead_s = round((last_s - modified_s) / _HOUR_S) * _HOUR_S
    if -12 * _HOUR_S <= ahead_s <= 14 * _HOUR_S and abs(last_s - ahead_s - modified_s) <= _AROUND_S:
        return ahead_s, True
    return node_offset_s, False
