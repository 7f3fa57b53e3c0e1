"""One counter over resets: what a new value says about how much it grew."""

from __future__ import annotations

from dataclasses import dataclass, field

from npu_watchd.memory.counters import Counter
from npu_watchd.memory.growth import Growth
from npu_watchd.memory.rows import Labels, Life, PointRow, SeriesRow
from npu_watchd.model.ids import Subject


@dataclass(frozen=True, slots=True)
class Reset:
    """A counter that began anew: for the journal."""

    reason: str
    """boot_id, driver, run: that changed. fell: the count is lower, twice in a row. replaced: it is another chip."""
    subject: Subject
    metric: str | None
    """None: every counter of the subject, since it is another chip."""
    labels: Labels
    before: float | None
    after: float | None


@dataclass(slots=True)
class Series:
    """A counter of one subject, and its growth."""

    number: int
    metric: str
    subject: Subject
    labels: Labels
    first_s: float
    seen_s: float
    value: float
    life: Life
    here: bool = True
    low: float | None = None
    growth: Growth = field(default_factory=Growth)

    def take(self, counter: Counter, value: float, life: Life, doubt_from_s: float) -> tuple[float, str | None]:
        """Take a new reading's value; returns how much the counter grew, and why it began anew (None: it did not).

        A value below the last one may be a failed read, which npu-smi prints as 0 (DESIGN 6.1): it counts when the
        reading after it is below too. The price: a reset without a new boot or driver is told one reading late; one
        that has made up for its fall by then is not seen, and its growth is the difference, which is less than the
        truth; and two failed reads in a row look like a reset, and what comes after them like growth.
        """
        reason = _changed(counter.begins_anew, self.life, life)
        before, self.life = self.value, life
        if reason is not None:
            self.value, self.low = value, None
            return max(0.0, value - self._counted_since(doubt_from_s, reason)), reason
        if value >= before:
            self.value, self.low = value, None
            return value - before, None
        if self.low is None:
            self.low = value
            return 0.0, None
        self.value, self.low = value, None
        # A lifetime count that falls was cleared, or is another chip's: what it shows need not be new.
        return 0.0 if counter.lifetime else value, "fell"

    def row(self, seen_s: float) -> SeriesRow:
        return SeriesRow(
            *(self.number, self.metric, self.subject, self.labels, self.first_s, seen_s, self.here),
            *(self.value, self.low, self.life),
        )

    def points(self) -> tuple[PointRow, ...]:
        return tuple(PointRow(self.number, *point) for point in self.growth.points())

    def _counted_since(self, doubt_from_s: float, reason: str) -> float:
        """What was counted while the driver on the table may have been the old one: it may be in the new value too."""
        found = self.growth.since(doubt_from_s) if reason == "driver" else None
        return found[0] if found else 0.0


def _changed(fields: tuple[str, ...], before: Life, now: Life) -> str | None:
    for name in fields:
        was, is_now = getattr(before, name), getattr(now, name)
        if was is not None and is_now is not None and was != is_now:
            return name
    return None
