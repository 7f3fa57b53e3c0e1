"""Which jobs were on a device when an error code came to it: told then, since later nobody can find out."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping

from npu_watchd.memory.rows import WitnessRow
from npu_watchd.model.ids import Subject

Tenants = Mapping[Subject, frozenset[str]]
"""Device → its jobs, as far as they are known; one that is not in it: nobody knows."""

RECENT_S = 90.0
"""How long after its last sight a job may have been there when a code came: a code is seen up to a period of
`npu_health` late, and what brought it may have ended the job. assumption"""
MOST_ROWS = 100
"""Of one device: a code that comes every half hour for two days. Beyond, the oldest go, and are then unknown."""
MOST_JOBS = 16
"""Of one row: as many as are exported of a device."""
WITNESS_KEPT_S = 2 * 86_400.0
"""Rules on repeats look back 24 hours, and as far again for what belongs to it."""


class Witnesses:
    """For one thread. All times are history time."""

    def __init__(self) -> None:
        self._recent: dict[Subject, dict[str, float]] = {}
        """Device → job → when it was last seen there."""
        self._rows: dict[Subject, deque[WitnessRow]] = {}
        self._dirty: set[Subject] = set()

    def see(self, tenants: Tenants, begun: Iterable[tuple[str, Subject]], now_s: float) -> None:
        """Take a cycle. begun: conditions that have just become true, by name, of which the jobs are kept."""
        for subject, there in tenants.items():
            self._recent.setdefault(subject, {}).update(dict.fromkeys(there, now_s))
        for subject, seen in self._recent.items():
            if any(now_s - at_s > RECENT_S for at_s in seen.values()):
                self._recent[subject] = {job: at_s for job, at_s in seen.items() if now_s - at_s <= RECENT_S}
        for name, subject in begun:
            jobs = sorted(self._recent.get(subject, ()))
            if jobs:
                rows = self._rows.setdefault(subject, deque(maxlen=MOST_ROWS))
                rows.append(WitnessRow(name, now_s, tuple(jobs[:MOST_JOBS])))
                self._dirty.add(subject)

    def jobs(self, name: str, subject: Subject, at_s: float) -> tuple[str, ...]:
        """Who was there when the condition became true at that instant; (): nobody, or nobody knows."""
        rows = self._rows.get(subject, ())
        return next((row.jobs for row in rows if row.name == name and row.at_s == at_s), ())

    def forget(self, until_s: float) -> None:
        """Drop what is older."""
        for subject, rows in self._rows.items():
            while rows and rows[0].at_s <= until_s:
                rows.popleft()
                self._dirty.add(subject)

    def forget_subject(self, subject: Subject) -> None:
        """Another chip is in its place."""
        if self._rows.pop(subject, None) is not None:
            self._dirty.add(subject)

    def changes(self) -> dict[Subject, tuple[WitnessRow, ...]]:
        """Of each device with news since last asked, all rows."""
        found = {subject: tuple(self._rows.get(subject, ())) for subject in self._dirty}
        self._dirty = set()
        return found

    def everything(self) -> dict[Subject, tuple[WitnessRow, ...]]:
        return {subject: tuple(rows) for subject, rows in self._rows.items()}

    def restore(self, rows: Mapping[Subject, tuple[WitnessRow, ...]]) -> None:
        self._rows = {subject: deque(some, MOST_ROWS) for subject, some in rows.items() if some}
