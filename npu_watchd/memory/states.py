"""All conditions that are followed, by name and subject."""

from __future__ import annotations

from collections.abc import Iterable

from npu_watchd.memory import conditions
from npu_watchd.memory.conditions import Condition
from npu_watchd.memory.rows import StateRow, TransitionRow
from npu_watchd.memory.spells import MOST_TRANSITIONS, Spell, Timeline
from npu_watchd.model.ids import Subject
from npu_watchd.model.snapshot import Snapshot


class States:
    """For one thread."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.refused = 0
        self._lines: dict[Condition, Timeline] = {}
        self._names: dict[Subject, dict[str, None]] = {}
        self._next = 1
        self._fingerprint: tuple[object, ...] | None = None
        self._forget_changes()

    def observe(self, snapshot: Snapshot, now_s: float) -> list[Condition]:
        """Take a cycle's snapshot; returns the error codes that have just come."""
        begun: list[Condition] = []
        fingerprint = conditions.fingerprint(snapshot)
        if fingerprint == self._fingerprint:
            return begun
        self._fingerprint = fingerprint
        found = conditions.conditions(snapshot)
        for condition, value in found.items():
            line = self._lines.get(condition) or self._begin(condition)
            if line is not None and self._tell(line, value, now_s) and condition[0].startswith(conditions.ERROR_CODE):
                begun.append(condition)
        for (name, subject), line in self._lines.items():
            if (name, subject) in found:
                continue
            if name.startswith(conditions.ERROR_CODE) and (conditions.CODES_READ, subject) in found:
                self._tell(line, False, now_s)
            elif line.current is not None:
                line.current = None
                self._dirty.add(line.number)
        return begun

    def state(self, name: str, subject: Subject) -> bool | None:
        line = self._lines.get((name, subject))
        if line is None and name.startswith(conditions.ERROR_CODE):
            return False if self.state(conditions.CODES_READ, subject) else None
        return line.current if line else None

    def since(self, name: str, subject: Subject) -> float | None:
        line = self._lines.get((name, subject))
        return line.since_s if line else None

    def ever(self, name: str, subject: Subject) -> bool:
        line = self._lines.get((name, subject))
        return line is not None and line.ever

    def spells(self, name: str, subject: Subject, value: bool, start_s: float) -> tuple[Spell, ...]:
        line = self._lines.get((name, subject))
        return line.spells(value, start_s) if line else ()

    def names(self, prefix: str, subject: Subject) -> tuple[str, ...]:
        return tuple(name for name in self._names.get(subject, ()) if name.startswith(prefix))

    def forget_codes(self, subject: Subject) -> None:
        """Drop what is known of a device's error codes: another chip is in its place."""
        for name in self.names(conditions.ERROR_CODE, subject):
            self._drop((name, subject))
        self._fingerprint = None

    def forget(self, until_s: float) -> None:
        """Drop what was over by `until_s`; codes that have not been active since, and what nobody has known since."""
        for condition, line in list(self._lines.items()):
            line.forget(until_s)
            old = line.since_s is None or line.since_s <= until_s
            gone = condition[0].startswith(conditions.ERROR_CODE) and not line.last
            if old and (gone or line.current is None):
                self._drop(condition)

    def changes(
        self,
    ) -> tuple[dict[int, StateRow], list[TransitionRow], dict[int, tuple[TransitionRow, ...]], frozenset[int]]:
        """States, transitions, retold and dropped since last asked."""
        lines = {line.number: line for line in self._lines.values()} if self._dirty or self._retold else {}
        rows = {number: lines[number].row() for number in sorted(self._dirty)}
        retold = {number: tuple(lines[number].transitions()) for number in sorted(self._retold)}
        told = [row for row in self._told if row.state in lines and row.state not in retold]
        dropped = frozenset(self._dropped)
        self._forget_changes()
        return rows, told, retold, dropped

    def everything(self) -> tuple[dict[int, StateRow], list[TransitionRow]]:
        rows = {line.number: line.row() for line in self._lines.values()}
        return rows, [row for line in self._lines.values() for row in line.transitions()]

    def restore(self, rows: Iterable[StateRow], transitions: Iterable[TransitionRow]) -> None:
        lines: dict[int, Timeline] = {}
        for row in rows:
            lines[row.number] = self._add(Timeline(*row))
        for transition in transitions:
            if transition.state in lines:
                current = lines[transition.state].current
                lines[transition.state].tell(transition.value, transition.at_s)
                lines[transition.state].current = current

    def __len__(self) -> int:
        return len(self._lines)

    def _forget_changes(self) -> None:
        self._dirty: set[int] = set()
        self._told: list[TransitionRow] = []
        self._retold: set[int] = set()
        self._dropped: set[int] = set()

    def _begin(self, condition: Condition) -> Timeline | None:
        if len(self._lines) >= self.most:
            self.refused += 1
            return None
        return self._add(Timeline(self._next, *condition))

    def _add(self, line: Timeline) -> Timeline:
        self._lines[line.name, line.subject] = line
        self._names.setdefault(line.subject, {})[line.name] = None
        self._next = max(self._next, line.number + 1)
        return line

    def _tell(self, line: Timeline, value: bool, now_s: float) -> bool:
        """True where the condition has just become true."""
        if line.current is not value:
            self._dirty.add(line.number)
        if not line.tell(value, now_s):
            return False
        self._told.append(TransitionRow(line.number, now_s, value))
        if len(line.at) > MOST_TRANSITIONS:
            line.at = line.at[MOST_TRANSITIONS // 4 :]
            self._retold.add(line.number)
        return value

    def _drop(self, condition: Condition) -> None:
        line = self._lines.pop(condition)
        del self._names[line.subject][line.name]
        self._dirty.discard(line.number)
        self._retold.discard(line.number)
        self._dropped.add(line.number)
