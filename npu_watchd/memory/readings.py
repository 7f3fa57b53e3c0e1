"""The newest reading of each probe and subject, the newest good one, and what each probe has done so far."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from npu_watchd.memory.news import is_news
from npu_watchd.model.ids import NODE, DeviceKey, Subject
from npu_watchd.model.reading import NOT_READ_YET, Failure, FailureKind, Reading, Tick
from npu_watchd.model.snapshot import Device, ProbeState, ProbeTally

STALE_PERIODS = 3
"""A reading older than this many of its periods is stale (DESIGN 6; gpud and node-problem-detector use 3 too)."""

Periods = Callable[[str], float | None]
"""A probe's period in seconds as it really is; None for one that is switched off."""


@dataclass(slots=True)
class _Slot:
    newest: Reading[Any] | None = None
    good: Reading[Any] | None = None
    """The newest that is a record."""
    successes: int = 0
    failures: int = 0


@dataclass(slots=True)
class _Tally:
    duration_s: float | None = None
    last_success_wall_s: float | None = None
    failures: dict[str, int] = field(default_factory=dict)
    unknown_keys: int = 0

    def count(self, reading: Reading[Any], *, excused: bool) -> None:
        """excused: the chip cannot say, so that this is no failure of the probe."""
        self.duration_s = reading.duration_s
        self.unknown_keys += reading.unknown_keys
        if not isinstance(reading.result, Failure):
            self.last_success_wall_s = reading.taken_at.wall_s
        elif not excused:
            kind = reading.result.kind.value
            self.failures[kind] = self.failures.get(kind, 0) + 1

    def frozen(self, probe: str) -> ProbeTally:
        return ProbeTally(probe, self.duration_s, self.last_success_wall_s, dict(self.failures), self.unknown_keys)


@dataclass(slots=True)
class Readings:
    """Not for several threads at once: the board has the lock."""

    slots: dict[tuple[str, Subject], _Slot] = field(default_factory=dict)
    tallies: dict[str, _Tally] = field(default_factory=dict)
    refusals: int = 0
    """Grows whenever `unsupported` answers otherwise than before."""
    news: int = 0
    """Grows with each record that cannot wait for the next cycle."""

    def put(self, reading: Reading[Any]) -> None:
        slot = self.slots.setdefault((reading.probe, reading.subject), _Slot())
        before = self.unsupported(reading.probe, reading.subject)
        slot.newest = reading
        if isinstance(reading.result, Failure):
            slot.failures += 1
        else:
            self.news += slot.good is not None and is_news(slot.good.result, reading.result)
            slot.good = reading
            slot.successes += 1
        refused = self.unsupported(reading.probe, reading.subject)
        self.refusals += (before is None) != (refused is None)
        self.tallies.setdefault(reading.probe, _Tally()).count(reading, excused=refused is not None)

    def newest(self, probe: str, subject: Subject) -> Reading[Any] | None:
        """What the newest call brought, whether it succeeded or not."""
        slot = self.slots.get((probe, subject))
        return slot.newest if slot else None

    def newest_good(self, probe: str, subject: Subject) -> Reading[Any] | None:
        """The newest that is a record, however old."""
        slot = self.slots.get((probe, subject))
        return slot.good if slot else None

    def fresh(self, probe: str, subject: Subject, now: Tick, period_s: Periods) -> object | Failure:
        """The newest record while it is younger than three periods; else why there is none."""
        slot = self.slots.get((probe, subject), _Slot())
        period = period_s(probe)
        if slot.good is not None and period is not None:
            age_s = now.mono_s - slot.good.taken_at.mono_s
            if age_s <= STALE_PERIODS * period:
                return slot.good.result
            if slot.newest is slot.good:
                return Failure(FailureKind.STALE, f"last read {age_s:.0f} s ago, at a period of {period:.0f} s")
        if slot.newest is not None and isinstance(slot.newest.result, Failure):
            return slot.newest.result
        return NOT_READ_YET

    def read_before(self, probe: str, subject: Subject, instant_s: float | None) -> bool:
        """Whether the newest record is from before that monotonic instant; False where either is not there."""
        slot = self.slots.get((probe, subject))
        good = slot.good if slot else None
        return good is not None and instant_s is not None and good.taken_at.mono_s < instant_s

    def fresh_of(self, probe: str, now: Tick, period_s: Periods) -> Mapping[Subject, object]:
        """Every fresh record of a probe, by subject."""
        found = {subject: self.fresh(probe, subject, now, period_s) for name, subject in self.slots if name == probe}
        return {subject: record for subject, record in found.items() if not isinstance(record, Failure)}

    def unsupported(self, probe: str, subject: Subject) -> str | None:
        """The tool's words where this chip cannot say; of the node's own probes nothing is taken for granted.

        A node that never had hccn_tool has no training cards, or does not use their ports: that is nobody's alarm.
        """
        result = self._refusal(probe, subject)
        if result is None:
            return None
        absent = result.kind is FailureKind.MISSING and probe.startswith("hccn_")
        absent = absent and self.slots[probe, subject].good is None
        return result.detail if absent or result.kind is FailureKind.UNSUPPORTED else None

    def settled(self, probe: str, subject: Subject) -> bool:
        """Whether the tool itself has said that this chip cannot say: nobody asks again.

        A tool that is missing is looked for again each time, which starts no process: it may come with the driver.
        """
        result = self._refusal(probe, subject)
        return result is not None and result.kind is FailureKind.UNSUPPORTED

    def _refusal(self, probe: str, subject: Subject) -> Failure | None:
        """What the newest call about a chip failed with; None where it succeeded, or the subject is no chip."""
        slot = self.slots.get((probe, subject)) if isinstance(subject, DeviceKey) else None
        result = slot.newest.result if slot and slot.newest else None
        return result if isinstance(result, Failure) else None

    def good(self, probe: str, subject: Subject) -> Reading[Any] | None:
        """The newest that is a record, however old."""
        slot = self.slots.get((probe, subject))
        return slot.good if slot else None

    def forget(self, gone: Collection[DeviceKey], only: str | None = None) -> None:
        """What was read of a chip before it vanished says nothing of it when it is back, perhaps reset.

        only: of this probe alone; None: of all.
        """
        for (probe, subject), slot in self.slots.items():
            if subject in gone and only in (None, probe) and self.unsupported(probe, subject) is None:
                slot.newest = slot.good = None

    def states(self, devices: Mapping[DeviceKey, Device], period_s: Periods) -> Iterable[ProbeState]:
        """Up is what the newest call said, stale or not; a probe that was never asked has no state."""
        for (probe, subject), slot in sorted(self.slots.items(), key=lambda item: (item[0][0], str(item[0][1]))):
            if slot.newest is None or period_s(probe) is None or self.unsupported(probe, subject) is not None:
                continue
            device = devices.get(subject) if isinstance(subject, DeviceKey) else None
            if subject != NODE and (device is None or device.present is False):
                continue
            failure = slot.newest.result if isinstance(slot.newest.result, Failure) else None
            device_id = device.device_id if device else None
            yield ProbeState(probe, device_id, failure is None, failure, slot.successes, slot.failures)
