"""What one Alertmanager has to be told, and when: a state machine without I/O and without a clock."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from npu_watchd.model.reading import Tick
from npu_watchd.sinks.alertmanager.alert import Alert, Labels, Posting

LIFE_S = 240.0
"""A firing alert ends this long after the last time it was sent: DESIGN section 8."""
TAIL_S = 300.0
"""A resolved one is sent for this much longer: DESIGN section 8. Longer than LIFE_S, so what the tail could not tell
has ended by itself."""
ALERTS_MAX = 1000
"""Alerts that are kept, firing and resolved (assumption: a node has some twenty subjects and thirty rules)."""
BATCH_MAX = 100
"""Alerts in one POST: some 200 kB, below the 1 MB that a reverse proxy lets through where nobody raised it."""
FIRST_RETRY_S, LAST_RETRY_S = 1.0, 60.0
"""Rests after failures, each twice the one before (assumption); never longer than the period of re-sending."""


@dataclass(frozen=True, slots=True)
class Batch:
    """One POST."""

    postings: tuple[Posting, ...]
    at_s: float
    """The monotonic instant for which it was made."""


@dataclass(frozen=True, slots=True)
class _Entry:
    alert: Alert
    resolved_mono_s: float | None = None
    """None while it fires."""
    sent_mono_s: float | None = None
    """When the server last took it in this state; None: not yet."""
    tried_mono_s: float = -math.inf
    """When it was last sent in this state, taken or not."""
    known: bool = False
    """True: the server may know of it, also where it gave no good answer."""

    def due_s(self, resend_s: float) -> float:
        return -math.inf if self.sent_mono_s is None else self.sent_mono_s + resend_s

    def ends_at_s(self, now: Tick) -> float:
        """By the present wall clock, so that a jump of it neither resolves nor fires anything."""
        if self.resolved_mono_s is None:
            return now.wall_s + LIFE_S
        return now.wall_s - max(0.0, now.mono_s - self.resolved_mono_s)


class Outbox:
    """For one thread. `take` the newest alerts, send what is `due`, then say `sent` or `failed`."""

    def __init__(self, resend_s: float) -> None:
        self.resend_s = resend_s
        """How often what fires is sent again; may be changed at any time."""
        self.dropped = 0
        """Alerts that had no room: each counts once for as long as it has none."""
        self._entries: dict[Labels, _Entry] = {}
        self._refused: frozenset[Labels] = frozenset()
        self._failures = 0
        self._not_before_s = -math.inf

    def take(self, alerts: Iterable[Alert], now: Tick) -> None:
        """All that fires now; what fired before and is not among them is resolved at `now`."""
        wanted = self._admitted(alerts)
        for labels, alert in wanted.items():
            entry = self._entries.get(labels)
            if entry is None or entry.resolved_mono_s is not None:
                entry = _Entry(alert, known=entry is not None)
            self._entries[labels] = replace(entry, alert=alert)
        for labels in self._entries.keys() - wanted.keys():
            self._end(labels, now)
        self._make_room()

    def due(self, now: Tick) -> Batch | None:
        """What to send at `now`: what was never tried first, then what was tried longest ago; None: nothing is due.

        One alert that the server refuses can thus not keep it from hearing of the others.
        """
        self._expire(now)
        if now.mono_s < self._not_before_s:
            return None
        ready = [entry for entry in self._entries.values() if entry.due_s(self.resend_s) <= now.mono_s]
        ready.sort(key=lambda entry: entry.tried_mono_s)
        postings = [Posting(entry.alert, entry.ends_at_s(now), entry.resolved_mono_s) for entry in ready[:BATCH_MAX]]
        return Batch(tuple(postings), now.mono_s) if postings else None

    def sent(self, batch: Batch) -> None:
        """The server took the batch."""
        self._failures, self._not_before_s = 0, -math.inf
        for labels, entry, current in self._still_held(batch):
            sent_mono_s = batch.at_s if current else entry.sent_mono_s
            self._entries[labels] = replace(_tried(entry, batch, current), sent_mono_s=sent_mono_s)

    def failed(self, batch: Batch, now: Tick) -> None:
        """It did not, or nobody knows whether it did: the newest state is sent again after a rest."""
        for labels, entry, current in self._still_held(batch):
            self._entries[labels] = _tried(entry, batch, current)
        # Bounded before the power is taken: an outage of a month is some fifty thousand failures.
        rest_s = FIRST_RETRY_S * 2.0 ** min(self._failures, 16)
        self._failures += 1
        self._not_before_s = now.mono_s + min(rest_s, LAST_RETRY_S, self.resend_s)

    def idle_s(self, now: Tick) -> float | None:
        """Seconds until something is due; None: nothing will be, unless `take` brings it."""
        if not self._entries:
            return None
        first_s = min(entry.due_s(self.resend_s) for entry in self._entries.values())
        return max(0.0, first_s - now.mono_s, self._not_before_s - now.mono_s)

    def _admitted(self, alerts: Iterable[Alert]) -> dict[Labels, Alert]:
        wanted = {alert.labels: alert for alert in alerts}
        refused: frozenset[Labels] = frozenset()
        if len(wanted) > ALERTS_MAX:
            ranked = sorted(wanted.values(), key=_rank)
            refused = frozenset(alert.labels for alert in ranked[ALERTS_MAX:])
            wanted = {alert.labels: alert for alert in ranked[:ALERTS_MAX]}
        self.dropped += len(refused - self._refused)
        self._refused = refused
        for labels in refused:
            # It fires still, so nobody may be told that it is over.
            self._entries.pop(labels, None)
        return wanted

    def _end(self, labels: Labels, now: Tick) -> None:
        entry = self._entries[labels]
        if entry.resolved_mono_s is not None:
            return
        if entry.known:
            self._entries[labels] = _Entry(entry.alert, now.mono_s, known=True)
        else:
            del self._entries[labels]

    def _make_room(self) -> None:
        surplus = len(self._entries) - ALERTS_MAX
        if surplus > 0:
            ended = {
                labels: entry.resolved_mono_s
                for labels, entry in self._entries.items()
                if entry.resolved_mono_s is not None
            }
            for labels in sorted(ended, key=lambda labels: ended[labels])[:surplus]:
                del self._entries[labels]
            self.dropped += surplus

    def _expire(self, now: Tick) -> None:
        for labels, entry in list(self._entries.items()):
            if entry.resolved_mono_s is not None and now.mono_s >= entry.resolved_mono_s + TAIL_S:
                del self._entries[labels]

    def _still_held(self, batch: Batch) -> Iterator[tuple[Labels, _Entry, bool]]:
        """The batch's alerts that are not gone since, and whether each is still in the state that was sent."""
        for posting in batch.postings:
            entry = self._entries.get(posting.alert.labels)
            if entry is not None:
                yield posting.alert.labels, entry, entry.resolved_mono_s == posting.resolved_mono_s


def _tried(entry: _Entry, batch: Batch, current: bool) -> _Entry:
    return replace(entry, known=True, tried_mono_s=batch.at_s if current else entry.tried_mono_s)


def _rank(alert: Alert) -> tuple[bool, float, Labels]:
    """Who stays when there is no room: the critical, then those that fire longest."""
    return ("severity", "critical") not in alert.labels, alert.starts_at_s, alert.labels
