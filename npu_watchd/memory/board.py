"""The newest reading of each probe and subject: the one place where threads meet."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from npu_watchd.memory.assembly import Facts, device_of
from npu_watchd.memory.roster import Roster
from npu_watchd.model.ids import NODE, DeviceKey, Subject
from npu_watchd.model.reading import NOT_READ_YET, Failure, FailureKind, Reading, Tick
from npu_watchd.model.records import Board as BoardRecord
from npu_watchd.model.records import CardList, DeviceMap, InfoTable
from npu_watchd.model.snapshot import Device, ProbeState, ProbeTally, Snapshot

STALE_PERIODS = 3
"""A reading older than this many of its periods is stale (docs: DESIGN 6; gpud and node-problem-detector use 3 too)."""


@dataclass(frozen=True, slots=True)
class Watch:
    """What is asked about one kind of chip, and how the answers age."""

    profile: str
    probes: frozenset[str]
    """Per-device probes that are asked of it."""
    vital: frozenset[str]
    disabled: frozenset[str]
    """Vital probes that the config switched off: what they would tell stays unknown."""


@dataclass(slots=True)
class _Slot:
    newest: Reading[Any] | None = None
    good: Reading[Any] | None = None
    """The newest that is a record."""


@dataclass(slots=True)
class _Tally:
    duration_s: float | None = None
    last_success_wall_s: float | None = None
    failures: dict[str, int] = field(default_factory=dict)
    unknown_keys: int = 0

    def frozen(self, probe: str) -> ProbeTally:
        return ProbeTally(probe, self.duration_s, self.last_success_wall_s, dict(self.failures), self.unknown_keys)


class Board:
    """Readings go in from the probes' threads; a snapshot comes out, whole and frozen."""

    def __init__(
        self, node: str, boot_id: str | None, expected: int | None, watch: Callable[[str | None], Watch]
    ) -> None:
        """watch: a chip's name, None where nobody knows it → what is asked of it."""
        self._lock = threading.Lock()
        self._node = node
        self._boot_id = boot_id
        self._expected = expected
        self._watch = watch
        self._slots: dict[tuple[str, Subject], _Slot] = {}
        self._tallies: dict[str, _Tally] = {}
        self._roster = Roster()
        self._log_events: dict[str, int] = {}
        self._edition = 0

    def configure(self, node: str, expected: int | None) -> None:
        """Take what a reloaded config says of the node."""
        with self._lock:
            self._node, self._expected = node, expected

    def put(self, readings: Iterable[Reading[Any]]) -> bool:
        """Take the readings of one call; True where the table shows other chips than before."""
        changed = False
        with self._lock:
            for reading in readings:
                slot = self._slots.setdefault((reading.probe, reading.subject), _Slot())
                self._edition += _is_refusal(slot.newest) != _is_refusal(reading)
                slot.newest = reading
                if not isinstance(reading.result, Failure):
                    slot.good = reading
                    self._edition += reading.subject == NODE
                    changed |= self._learn(reading)
                self._count(reading)
        return changed

    def count_log_events(self, codes: Iterable[str]) -> None:
        """Count lines of npu-smi's own error log by their code."""
        with self._lock:
            for code in codes:
                self._log_events[code] = self._log_events.get(code, 0) + 1

    def edition(self) -> int:
        """Grows whenever `cards` or `unsupported` may answer otherwise than before."""
        with self._lock:
            return self._edition

    def cards(self) -> list[tuple[int, tuple[int, ...], str | None, bool]]:
        """For whom to ask, of the newest table: NPU id, its chips, their name, and whether the chips have ids."""
        with self._lock:
            roster = self._roster
            npus = sorted({key.npu for key in roster.rows})
            return [
                (
                    npu,
                    roster.chips_of_card.get(npu, (0,)),
                    next((i.name for key, i in sorted(roster.identities.items()) if key.npu == npu and i.name), None),
                    roster.has_chip_ids,
                )
                for npu in npus
            ]

    def unsupported(self, probe: str, subject: Subject) -> bool:
        """True once the tool has said that it cannot tell this of that chip: it is asked once."""
        with self._lock:
            return self._unsupported(probe, subject) is not None

    def unwell(self) -> list[DeviceKey]:
        """Chips whose newest row is not OK, or is untrusted: `-t health` can say why."""
        with self._lock:
            return [key for key, row in self._roster.rows.items() if row.health != "OK" or not row.trusted]

    def snapshot(self, now: Tick, period_s: Callable[[str], float | None]) -> Snapshot:
        """The node at `now`.

        period_s: a probe's period as it really is, None for one that is switched off; readings age by it.
        """
        with self._lock:
            info = self._fresh("npu_info", NODE, now, period_s)
            table = info if isinstance(info, InfoTable) else None
            ids = self._roster.device_ids()
            devices = {
                key: device_of(self._facts(key, ids[key], table, now, period_s)) for key in self._roster.members()
            }
            return Snapshot(
                at=now,
                node=self._node,
                boot_id=self._boot_id,
                devices=devices,
                devices_expected=self._roster.expected(self._expected),
                devices_present=None if table is None else sum(1 for device in devices.values() if device.present),
                tool_version=table.tool_version if table else None,
                driver_version=table.driver_version if table else None,
                firmware_version=_common(device.identity.firmware for device in devices.values()),
                warnings=self._warnings(table),
                blind=self._node_blind(now, period_s),
                probes=tuple(self._probe_states(devices, period_s)),
                tallies=tuple(tally.frozen(name) for name, tally in sorted(self._tallies.items())),
                tool_log_events=dict(self._log_events),
            )

    def _facts(
        self,
        key: DeviceKey,
        device_id: tuple[str, str],
        table: InfoTable | None,
        now: Tick,
        period_s: Callable[[str], float | None],
    ) -> Facts:
        identity = self._roster.identities[key]
        watch = self._watch(identity.name)
        records: dict[str, object] = {}
        blind: dict[str, Failure] = {}
        unsupported: dict[str, str] = {}
        for probe in sorted(watch.probes):
            refused = self._unsupported(probe, key)
            if refused is not None:
                unsupported[probe] = refused
                continue
            found = self._fresh(probe, key, now, period_s)
            if not isinstance(found, Failure):
                records[probe] = found
            elif found is not NOT_READ_YET or probe in watch.vital:
                # That a lesser probe's first turn has not come is nothing that anybody need look at.
                blind[probe] = found
        for probe in watch.disabled:
            blind[probe] = Failure(FailureKind.MISSING, f"switched off by [probes.{probe}] enabled = false")
        if table is None:
            failure = self._fresh("npu_info", NODE, now, period_s)
            blind["npu_info"] = failure if isinstance(failure, Failure) else NOT_READ_YET
        return Facts(
            key=key,
            device_id=device_id[0],
            device_id_source=device_id[1],
            identity=identity,
            profile=watch.profile,
            table=table,
            row=self._roster.rows.get(key) if table is not None else None,
            records=records,
            blind=blind,
            unsupported=unsupported,
            vital=watch.vital,
        )

    def _fresh(
        self, probe: str, subject: Subject, now: Tick, period_s: Callable[[str], float | None]
    ) -> object | Failure:
        """The newest record while it is younger than three periods; else why there is none."""
        slot = self._slots.get((probe, subject), _Slot())
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

    def _unsupported(self, probe: str, subject: Subject) -> str | None:
        """The tool's words where this chip cannot say; of the node's own probes nothing is taken for granted."""
        slot = self._slots.get((probe, subject)) if isinstance(subject, DeviceKey) else None
        result = slot.newest.result if slot and slot.newest else None
        if isinstance(result, Failure) and result.kind is FailureKind.UNSUPPORTED:
            return result.detail
        return None

    def _learn(self, reading: Reading[Any]) -> bool:
        record = reading.result
        if isinstance(record, InfoTable):
            before = set(self._roster.rows)
            changed = self._roster.see_table(record)
            self._forget(before - set(self._roster.rows))
            return changed
        if isinstance(record, DeviceMap):
            self._roster.see_map(record)
        elif isinstance(record, CardList):
            self._roster.see_list(record)
        elif isinstance(record, BoardRecord) and isinstance(reading.subject, DeviceKey):
            self._roster.see_board(reading.subject, record)
        return False

    def _forget(self, gone: set[DeviceKey]) -> None:
        """What was read of a chip before it vanished says nothing of it when it is back, perhaps reset."""
        for (probe, subject), slot in self._slots.items():
            if subject in gone and self._unsupported(probe, subject) is None:
                slot.newest = slot.good = None

    def _count(self, reading: Reading[Any]) -> None:
        tally = self._tallies.setdefault(reading.probe, _Tally())
        tally.duration_s = reading.duration_s
        tally.unknown_keys += reading.unknown_keys
        if not isinstance(reading.result, Failure):
            tally.last_success_wall_s = reading.taken_at.wall_s
        elif reading.result.kind is not FailureKind.UNSUPPORTED or reading.subject == NODE:
            kind = reading.result.kind.value
            tally.failures[kind] = tally.failures.get(kind, 0) + 1

    def _warnings(self, table: InfoTable | None) -> tuple[str, ...]:
        found = list(table.warnings) if table else []
        found += self._roster.unclaimed
        if self._roster.lost_cards:
            lost = self._roster.lost_cards
            found.append(f"npu-smi counts {lost} card(s) that it cannot reach (NPU ID -1 in `npu-smi info -l`)")
        return tuple(found)

    def _node_blind(self, now: Tick, period_s: Callable[[str], float | None]) -> Mapping[str, Failure]:
        found: dict[str, Failure] = {}
        for probe in ("npu_info", "npu_map", "npu_list"):
            if period_s(probe) is None:
                continue
            state = self._fresh(probe, NODE, now, period_s)
            if isinstance(state, Failure):
                found[probe] = state
        return found

    def _probe_states(
        self, devices: Mapping[DeviceKey, Device], period_s: Callable[[str], float | None]
    ) -> Iterable[ProbeState]:
        """Up is what the newest call said, stale or not; a probe that was never asked has no state."""
        for (probe, subject), slot in sorted(self._slots.items(), key=lambda item: (item[0][0], str(item[0][1]))):
            if slot.newest is None or period_s(probe) is None or self._unsupported(probe, subject) is not None:
                continue
            device = devices.get(subject) if isinstance(subject, DeviceKey) else None
            if isinstance(subject, DeviceKey) and (device is None or device.present is False):
                continue
            failure = slot.newest.result if isinstance(slot.newest.result, Failure) else None
            yield ProbeState(probe, device.device_id if device else None, failure is None, failure)


def _is_refusal(reading: Reading[Any] | None) -> bool:
    """Whether the tool said that the chip cannot tell this."""
    result = reading.result if reading else None
    return isinstance(result, Failure) and result.kind is FailureKind.UNSUPPORTED


def _common(values: Iterable[str | None]) -> str | None:
    """The one value that all who know it share; several are joined, since a mixed node is news."""
    known = sorted({value for value in values if value is not None})
    return ", ".join(known) or None
