"""All counters that are followed, by metric and subject: what a snapshot adds, what is asked of them, what is new."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from operator import is_

from npu_watchd.memory import counters
from npu_watchd.memory.counters import Counter, LogCounter, Values
from npu_watchd.memory.growth import MOST_POINTS, Increase
from npu_watchd.memory.rows import Labels, Life, PointRow, SeriesRow
from npu_watchd.memory.series import Reset, Series
from npu_watchd.model.fabric import PortKey
from npu_watchd.model.ids import NODE, DeviceKey, Subject
from npu_watchd.model.snapshot import Snapshot

MOST_POINTS_IN_ALL = 100_000
"""3 MB in memory, and some 5 MB on disk. Beyond, the series with the most points is merged."""


@dataclass(frozen=True, slots=True)
class Sight:
    """What else one needs to know to read a snapshot's counters."""

    now_s: float
    life: Life
    doubt_from_s: float
    strangers: frozenset[DeviceKey]
    """Devices whose serial number is not read yet, so that another chip may be there than before the boot."""


@dataclass(slots=True)
class _Group:
    """What one reading brings: the series of one metric and subject."""

    seen_s: float
    source: tuple[object, ...] = ()
    falling: bool = False
    """A fall waits for the next reading to confirm it."""
    series: dict[Labels, Series] = field(default_factory=dict)

    def seen(self, series: Series) -> float:
        return self.seen_s if series.here else series.seen_s


class Counts:
    """For one thread."""

    def __init__(self, most_series: int) -> None:
        self.most_series = most_series
        self.refused = 0
        self._groups: dict[str, dict[Subject, _Group]] = {metric: {} for metric in counters.FOLLOWED}
        self._by_number: dict[int, Series] = {}
        self._next = 1
        self._size = 0
        self._log: tuple[object, ...] = ()
        self._forget_changes()

    def observe(self, snapshot: Snapshot, sight: Sight) -> list[Reset]:
        return [
            *self._see_devices(snapshot, sight),
            *self._see_ports(snapshot, sight),
            *self._see_host(snapshot, sight),
            *self._see_log(snapshot, sight),
        ]

    def increase(self, metric: str, subject: Subject, labels: Labels, window_s: float, now_s: float) -> Increase | None:
        group = self._groups.get(metric, {}).get(subject)
        series = group.series.get(labels) if group else None
        if group is None or series is None:
            return None
        start_s = now_s - window_s
        covered_s = max(0.0, group.seen(series) - max(start_s, series.first_s))
        found = series.growth.since(start_s)
        if found is None:
            return Increase(0.0, covered_s, None, None)
        count, after_s, first_s, last_s = found
        return Increase(count, covered_s, first_s, last_s, after_s)

    def values(self, metric: str, subject: Subject) -> Mapping[Labels, float]:
        group = self._groups.get(metric, {}).get(subject)
        return {labels: series.value for labels, series in group.series.items()} if group else {}

    def forget_subject(self, subject: Subject) -> None:
        """Drop all series of a subject: another chip is in its place."""
        for groups in self._groups.values():
            for series in groups.pop(subject, _Group(0.0)).series.values():
                self._drop(series)

    def forget(self, until_s: float) -> None:
        """Drop growth, and series, of which nothing has been seen since `until_s`."""
        for groups in self._groups.values():
            for group in groups.values():
                for labels, series in list(group.series.items()):
                    self._size -= series.growth.forget(until_s)
                    if group.seen(series) <= until_s:
                        del group.series[labels]
                        self._drop(series)

    def changes(self) -> tuple[dict[int, SeriesRow], list[PointRow], dict[int, tuple[PointRow, ...]], frozenset[int]]:
        """Series, points, rewritten and dropped since last asked."""
        rows = {number: self._row(self._by_number[number]) for number in sorted(self._dirty)}
        rewritten = {number: self._by_number[number].points() for number in sorted(self._rewritten)}
        points = [row for row in self._points if row.series in self._by_number and row.series not in rewritten]
        dropped = frozenset(self._dropped)
        self._forget_changes()
        return rows, points, rewritten, dropped

    def everything(self) -> tuple[dict[int, SeriesRow], list[PointRow]]:
        """The same as if all had been new."""
        rows = {number: self._row(series) for number, series in self._by_number.items()}
        return rows, [row for series in self._by_number.values() for row in series.points()]

    def restore(self, rows: Iterable[SeriesRow], points: Iterable[PointRow], now_s: float) -> None:
        """Take what was kept; `now_s` is the instant at which it was."""
        for row in rows:
            if row.metric not in self._groups:
                continue
            # Until it is read again nobody has seen it later than `now_s`: so says its row from now on.
            seen_s = now_s if row.here else row.seen_s
            series = Series(*row[:5], seen_s, row.value, row.life, here=False, low=row.low)
            if row.here:
                self._dirty.add(row.number)
            group = self._groups[row.metric].setdefault(row.subject, _Group(now_s))
            group.series[row.labels] = series
            group.falling |= row.low is not None
            self._by_number[row.number] = series
            self._next = max(self._next, row.number + 1)
        for point in points:
            if point.series in self._by_number:
                self._by_number[point.series].growth.add(*point[1:])
                self._size += 1

    def __len__(self) -> int:
        return len(self._by_number)

    def _forget_changes(self) -> None:
        self._dirty: set[int] = set()
        self._points: list[PointRow] = []
        self._rewritten: set[int] = set()
        self._dropped: set[int] = set()

    def _see_devices(self, snapshot: Snapshot, sight: Sight) -> Iterator[Reset]:
        for counter in counters.DEVICE_COUNTERS:
            for key, device in snapshot.devices.items():
                group = self._group(counter, key, sight)
                if counter.lifetime and key in sight.strangers and _of_another_boot(group, sight.life):
                    continue
                if self._is_new(counter, group, counter.source(device), sight):
                    values = counters.device_values(counter.metric, device)
                    yield from self._take(counter, key, group, values, sight)

    def _see_ports(self, snapshot: Snapshot, sight: Sight) -> Iterator[Reset]:
        for counter in counters.PORT_COUNTERS:
            values: dict[PortKey, Values] | None = None
            for key, port in snapshot.ports.items():
                group = self._group(counter, key, sight)
                if self._is_new(counter, group, counters.port_source(port), sight):
                    values = counters.port_values(counter.metric, snapshot) if values is None else values
                    yield from self._take(counter, key, group, values.get(key, {}), sight)

    def _see_host(self, snapshot: Snapshot, sight: Sight) -> Iterator[Reset]:
        counter = counters.HOST_COUNTER
        group = self._group(counter, NODE, sight)
        if self._is_new(counter, group, counters.host_source(snapshot), sight):
            yield from self._take(counter, NODE, group, counters.host_values(snapshot), sight)

    def _see_log(self, snapshot: Snapshot, sight: Sight) -> Iterator[Reset]:
        counter = counters.LOG_COUNTER
        log = (snapshot.tool_log_events, snapshot.pcie_log_events)
        if log != self._log:
            self._log = log
            for subject, values in counters.log_values(snapshot).items():
                yield from self._take(counter, subject, self._group(counter, subject, sight), values, sight)
        for group in self._groups[counter.metric].values():
            group.seen_s = sight.now_s
            # A line that does not come is no blindness.
            absent = [series for series in group.series.values() if not series.here]
            for series in absent:
                series.here = True
                self._dirty.add(series.number)

    def _group(self, counter: Counter, subject: Subject, sight: Sight) -> _Group:
        groups = self._groups[counter.metric]
        group = groups.get(subject)
        if group is None:
            group = groups[subject] = _Group(sight.now_s)
        return group

    def _is_new(self, counter: Counter, group: _Group, source: tuple[object, ...], sight: Sight) -> bool:
        """Whether `source` is a reading that was not taken yet.

        An old one must not be taken again: it would confirm its own fall, and be taken for one of a new driver.
        """
        before, group.source = group.source, source
        if not source:
            if before:
                for series in group.series.values():
                    self._leave(group, series)
            return False
        same = len(before) == len(source) and all(map(is_, before, source))
        if not counter.dated:
            same = before == source and not group.falling
        if same:
            group.seen_s = sight.now_s
        return not same

    def _take(self, counter: Counter, subject: Subject, group: _Group, values: Values, sight: Sight) -> Iterator[Reset]:
        for labels, series in group.series.items():
            if labels not in values:
                self._leave(group, series)
        for labels, value in values.items():
            known = group.series.get(labels) or self._begin(counter, subject, labels, value, sight)
            if known is not None:
                group.series[labels] = known
                yield from self._grow(counter, group, known, value, sight)
        group.falling = any(series.low is not None for series in group.series.values())
        group.seen_s = sight.now_s

    def _begin(self, counter: Counter, subject: Subject, labels: Labels, value: float, sight: Sight) -> Series | None:
        """A series whose present count is inventory; None where there are too many."""
        if len(self._by_number) >= self.most_series:
            self.refused += 1
            return None
        inventory = 0.0 if isinstance(counter, LogCounter) else value
        now_s = sight.now_s
        series = Series(self._next, counter.metric, subject, labels, now_s, now_s, inventory, sight.life)
        self._by_number[self._next] = series
        self._dirty.add(self._next)
        self._next += 1
        return series

    def _grow(self, counter: Counter, group: _Group, series: Series, value: float, sight: Sight) -> Iterator[Reset]:
        before = (series.value, series.low, series.life, series.here)
        after_s, series.here = group.seen(series), True
        grown, reason = series.take(counter, value, sight.life, sight.doubt_from_s)
        if before != (series.value, series.low, series.life, True):
            self._dirty.add(series.number)
        if grown > 0:
            self._add(series, PointRow(series.number, after_s, sight.now_s, sight.now_s, grown))
        if reason is not None and before[0] > 0 and not isinstance(counter, LogCounter):
            yield Reset(reason, series.subject, series.metric, series.labels, before[0], value)

    def _add(self, series: Series, row: PointRow) -> None:
        series.growth.add(*row[1:])
        self._points.append(row)
        self._size += 1
        if len(series.growth) > MOST_POINTS:
            self._merge(series)
        elif self._size > MOST_POINTS_IN_ALL:
            self._merge(max(self._by_number.values(), key=lambda one: len(one.growth)))

    def _merge(self, series: Series) -> None:
        before = len(series.growth)
        series.growth.merge_oldest()
        self._size -= before - len(series.growth)
        self._rewritten.add(series.number)

    def _leave(self, group: _Group, series: Series) -> None:
        if series.here:
            series.seen_s, series.here = group.seen_s, False
            self._dirty.add(series.number)

    def _drop(self, series: Series) -> None:
        del self._by_number[series.number]
        self._size -= len(series.growth)
        self._dirty.discard(series.number)
        self._rewritten.discard(series.number)
        self._dropped.add(series.number)

    def _row(self, series: Series) -> SeriesRow:
        return series.row(self._groups[series.metric][series.subject].seen(series))


def _of_another_boot(group: _Group, life: Life) -> bool:
    return any(series.life.boot_id != life.boot_id for series in group.series.values())
