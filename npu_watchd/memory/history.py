"""What was: how much counters grew over resets, since when conditions hold, the best that ports have shown."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from npu_watchd.memory import counters
from npu_watchd.memory.counts import Counts, Sight
from npu_watchd.memory.growth import Increase
from npu_watchd.memory.rows import Changes, Labels, Life, PeakRow, Standing
from npu_watchd.memory.series import Reset
from npu_watchd.memory.spells import Spell
from npu_watchd.memory.states import States
from npu_watchd.memory.witnesses import WITNESS_KEPT_S, Tenants, Witnesses
from npu_watchd.model.ids import DeviceKey, Subject
from npu_watchd.model.snapshot import Snapshot

__all__ = ["KEPT_S", "Changes", "History", "Increase", "Labels", "Reset", "Spell"]

NOBODY_KNOWN: Tenants = {}
KEPT_S = 30 * 86_400.0
"""Retention of DESIGN 9."""
MOST_SERIES = 20_000
"""And as many conditions. A node of 16 devices and 10 ports has about 700 and 350."""
_SWEEP_S = 3_600.0
DRIVER_DOUBT_S = 180.0
"""How old the table may be that shows a driver: three periods of `npu_info`, stretched four times. assumption"""
SERIAL_WAIT_S = 600.0
"""How long after a start the lifetime counts of a device wait for its serial number. assumption: the board is asked
within the first minutes."""


class History:
    """All times are history time: seconds that never run backwards, handed in. For one thread."""

    def __init__(self, most_series: int = MOST_SERIES) -> None:
        self._counts = Counts(most_series)
        self._states = States(most_series)
        self._witnesses = Witnesses()
        self._peaks: dict[tuple[str, Subject, Labels], PeakRow] = {}
        self._serials: dict[Subject, str] = {}
        self._now_s = -math.inf
        self._began_s: float | None = None
        self._life = Life()
        self._driver_shown_s = 0.0
        self._doubt_from_s = 0.0
        self._refused_before = 0
        self._sweep_due_s = 0.0
        self._speeds: tuple[object, ...] = ()
        self._forget_changes()

    @property
    def now_s(self) -> float:
        """Of the newest cycle; 0 before the first."""
        return max(self._now_s, 0.0)

    @property
    def refused(self) -> int:
        """Sights of series and conditions that were one too many to be followed."""
        return self._refused_before + self._counts.refused + self._states.refused

    def observe(self, snapshot: Snapshot, now_s: float, tenants: Tenants = NOBODY_KNOWN) -> list[Reset]:
        """Take a cycle's snapshot; returns the counters that are now known to have begun anew.

        tenants: who is on the devices; kept of those to which an error code comes.
        now_s: an instant that is not later than the one before counts as just after it.
        """
        self._now_s = max(now_s, math.nextafter(self._now_s, math.inf))
        self._began_s = self._now_s if self._began_s is None else self._began_s
        self._live(snapshot)
        resets = self._replacements(snapshot)
        sight = Sight(self._now_s, self._life, self._doubt_from_s, self._strangers(snapshot))
        resets += self._counts.observe(snapshot, sight)
        self._witnesses.see(tenants, self._states.observe(snapshot, self._now_s), self._now_s)
        self._see_peaks(snapshot)
        if self._now_s >= self._sweep_due_s:
            self._sweep_due_s = self._now_s + _SWEEP_S
            self._counts.forget(self._now_s - KEPT_S)
            self._states.forget(self._now_s - KEPT_S)
            self._witnesses.forget(self._now_s - WITNESS_KEPT_S)
        return resets

    def increase(self, metric: str, subject: Subject, labels: Labels, window_s: float) -> Increase | None:
        """How much a counter grew in the window that ends now; None: it was never seen.

        Growth counts at the instant at which it was seen: what happened in a blind spell counts when that ends.
        """
        return self._counts.increase(metric, subject, labels, window_s, self._now_s)

    def series(self, metric: str, subject: Subject) -> Mapping[Labels, float]:
        """The count of each known series of the metric: the newest that is believed, however long ago it was read."""
        return self._counts.values(metric, subject)

    def state(self, name: str, subject: Subject) -> bool | None:
        """What holds now: `present`, `port_up`, `npu_port_up`, `error_code:CODE`, `probe_up:PROBE`; None: unknown."""
        return self._states.state(name, subject)

    def since(self, name: str, subject: Subject) -> float | None:
        """Since when the newest known value has held, spells of not knowing left aside; None: never known."""
        return self._states.since(name, subject)

    def ever(self, name: str, subject: Subject) -> bool:
        """Whether it has held within what is remembered."""
        return self._states.ever(name, subject)

    def spells(self, name: str, subject: Subject, window_s: float, *, value: bool = True) -> tuple[Spell, ...]:
        """Spells of `value` that began or ended in the window, oldest first; one that fills it whole is not there."""
        return self._states.spells(name, subject, value, self._now_s - window_s)

    def jobs(self, name: str, subject: Subject, at_s: float) -> tuple[str, ...]:
        """Whose the device was when the error code came with which such a spell began; (): nobody's, or not known."""
        return self._witnesses.jobs(name, subject, at_s)

    def names(self, prefix: str, subject: Subject) -> tuple[str, ...]:
        """The names of the subject's conditions with this prefix: `error_code:` gives each code ever seen active."""
        return self._states.names(prefix, subject)

    def peak(self, metric: str, subject: Subject, labels: Labels = ()) -> float | None:
        """The largest speed that a port had while it was up; None: never seen."""
        row = self._peaks.get((metric, subject, labels))
        return row.value if row else None

    def changes(self) -> Changes:
        """What is new since last asked, for the store; it is then forgotten here."""
        series, points, rewritten, dropped = self._counts.changes()
        states, transitions, retold, dropped_states = self._states.changes()
        found = Changes(
            standing=self._stand(),
            series=series,
            points=tuple(points),
            rewritten=rewritten,
            dropped=dropped,
            states=states,
            transitions=tuple(transitions),
            retold=retold,
            dropped_states=dropped_states,
            peaks={key: self._peaks[key] for key in self._new_peaks if key in self._peaks},
            dropped_peaks=frozenset(self._dropped_peaks - self._peaks.keys()),
            serials={key: self._serials[key] for key in self._new_serials},
            witnesses=self._witnesses.changes(),
        )
        self._forget_changes()
        return found

    def everything(self) -> Changes:
        """All of it, for a new database; what `changes` would tell stays to be told."""
        series, points = self._counts.everything()
        states, transitions = self._states.everything()
        return Changes(
            standing=self._stand(),
            series=series,
            points=tuple(points),
            states=states,
            transitions=tuple(transitions),
            peaks=dict(self._peaks),
            serials=dict(self._serials),
            witnesses=self._witnesses.everything(),
        )

    @classmethod
    def restore(cls, rows: Changes, most_series: int = MOST_SERIES) -> History:
        """The history as it was when `rows` were made; what the daemon counts itself has begun anew since."""
        history = cls(most_series)
        standing = rows.standing
        history._now_s = standing.now_s
        history._life = replace(standing.life, run=standing.life.run + 1)
        history._driver_shown_s, history._doubt_from_s = standing.driver_shown_s, standing.doubt_from_s
        history._refused_before = standing.refused
        points = (*(row for found in rows.rewritten.values() for row in found), *rows.points)
        transitions = (*(row for found in rows.retold.values() for row in found), *rows.transitions)
        history._counts.restore(rows.series.values(), points, standing.now_s)
        history._states.restore(rows.states.values(), transitions)
        history._peaks = dict(rows.peaks)
        history._serials = dict(rows.serials)
        history._witnesses.restore(rows.witnesses)
        return history

    def _stand(self) -> Standing:
        return Standing(self.now_s, self._life, self._driver_shown_s, self._doubt_from_s, self.refused)

    def _forget_changes(self) -> None:
        self._new_peaks: set[tuple[str, Subject, Labels]] = set()
        self._dropped_peaks: set[tuple[str, Subject, Labels]] = set()
        self._new_serials: set[Subject] = set()

    def _live(self, snapshot: Snapshot) -> None:
        """Follow the boot and the driver; while one of them is not known, it is what it was."""
        life = self._life
        if snapshot.boot_id is not None and snapshot.boot_id != life.boot_id:
            life = replace(life, boot_id=snapshot.boot_id, driver=life.driver if life.boot_id is None else None)
        if snapshot.driver_version is not None:
            if life.driver is not None and life.driver != snapshot.driver_version:
                self._doubt_from_s = self._driver_shown_s - DRIVER_DOUBT_S
            if life.driver != snapshot.driver_version:
                life = replace(life, driver=snapshot.driver_version)
            self._driver_shown_s = self._now_s
        self._life = life

    def _replacements(self, snapshot: Snapshot) -> list[Reset]:
        """Forget what is known of a chip in whose place there is another."""
        found: list[Reset] = []
        for key, device in snapshot.devices.items():
            serial, known = device.identity.serial_number, self._serials.get(key)
            if serial is None or serial == known:
                continue
            self._serials[key] = serial
            self._new_serials.add(key)
            if known is not None:
                self._counts.forget_subject(key)
                self._states.forget_codes(key)
                self._witnesses.forget_subject(key)
                gone = {peak for peak in self._peaks if peak[1] == key}
                self._peaks = {peak: row for peak, row in self._peaks.items() if peak not in gone}
                self._dropped_peaks |= gone
                self._speeds = ()
                found.append(Reset("replaced", key, None, (), None, None))
        return found

    def _strangers(self, snapshot: Snapshot) -> frozenset[DeviceKey]:
        if self._began_s is None or self._now_s - self._began_s >= SERIAL_WAIT_S:
            return frozenset()
        unread = (key for key, device in snapshot.devices.items() if device.identity.serial_number is None)
        return frozenset(key for key in unread if key in self._serials)

    def _see_peaks(self, snapshot: Snapshot) -> None:
        speeds = (
            [
                device.roce and (device.roce.link_up, device.roce.bits_per_second)
                for device in snapshot.devices.values()
            ],
            [(key, port.up, port.facts and port.facts.rate_gbps) for key, port in snapshot.ports.items()],
        )
        if speeds == self._speeds:
            return
        self._speeds = speeds
        for metric, subject, labels, value in counters.peaks_of(snapshot):
            known = self._peaks.get((metric, subject, labels))
            if known is None or value > known.value:
                self._peaks[metric, subject, labels] = PeakRow(metric, subject, labels, value)
                self._new_peaks.add((metric, subject, labels))
