"""What waits to be written: batches that merge into one, within bounds, while the disk does not take them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from npu_watchd.memory.rows import Changes, PointRow
from npu_watchd.model.finding import Event, Finding

MOST_EVENTS = 10_000
MOST_POINTS = 50_000
"""Of growth, and as many transitions: some 10 MB, hours of the worst node."""


@dataclass(frozen=True, slots=True)
class Batch:
    """What one transaction writes."""

    changes: Changes = field(default_factory=Changes)
    events: tuple[Event, ...] = ()
    """Their numbers are the caller's: they grow."""
    findings: tuple[Finding, ...] | None = None
    """All that are active; None: the same as before."""
    meta: Mapping[str, str] = field(default_factory=dict)
    """What the caller wants to find again, by name; `history` and `next_event` are the store's own."""

    @property
    def empty(self) -> bool:
        """True where nothing but the time is new."""
        return self.changes.empty and not self.events and self.findings is None and not self.meta

    def then(self, later: Batch) -> Batch:
        return Batch(
            changes=self.changes.then(later.changes),
            events=(*self.events, *later.events),
            findings=self.findings if later.findings is None else later.findings,
            meta={**self.meta, **later.meta},
        )


class Backlog:
    """Batches that were not written yet, as one."""

    def __init__(self, most_events: int = MOST_EVENTS, most_points: int = MOST_POINTS) -> None:
        self._most_events = most_events
        self._most_points = most_points
        self._batch: Batch | None = None
        self.lost_events = 0
        """Lines of the journal that were too many; of growth nothing is lost but the exact times."""

    def put(self, batch: Batch) -> Batch:
        """Add a batch; returns all that waits."""
        waiting = batch if self._batch is None else self._batch.then(batch)
        excess = max(0, len(waiting.events) - self._most_events)
        if excess:
            self.lost_events += excess
            waiting = replace(waiting, events=waiting.events[excess:])
        changes = waiting.changes
        if len(changes.points) > self._most_points:
            changes = replace(changes, points=_thinned(changes.points))
        if len(changes.transitions) > self._most_points:
            changes = replace(changes, transitions=changes.transitions[-self._most_points // 2 :])
        self._batch = replace(waiting, changes=changes)
        return self._batch

    @property
    def waiting(self) -> Batch | None:
        return self._batch

    def written(self) -> None:
        """All that waited is on the disk."""
        self._batch = None


def _thinned(points: tuple[PointRow, ...]) -> tuple[PointRow, ...]:
    """Each two adjacent points of a series as one."""
    waiting: dict[int, PointRow] = {}
    found: list[PointRow] = []
    for point in points:
        first = waiting.pop(point.series, None)
        if first is None:
            waiting[point.series] = point
        else:
            found.append(first._replace(last_s=point.last_s, grown=first.grown + point.grown))
    return (*found, *waiting.values())
