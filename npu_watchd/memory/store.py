"""state.db: history, journal and findings over restarts, in SQLite. For one thread at a time."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from npu_watchd.memory import journal, schema
from npu_watchd.memory.backlog import Batch
from npu_watchd.memory.journal import failure_of
from npu_watchd.memory.opening import beyond_use, connect, identity, move_aside
from npu_watchd.memory.rows import Changes, PointRow, Standing
from npu_watchd.memory.stored import (
    WITNESSES,
    finding_of_row,
    json_of,
    peak_of_row,
    row_of_event,
    row_of_finding,
    row_of_peak,
    row_of_series,
    row_of_witnesses,
    series_of_row,
    standing_of_text,
    state_of_row,
    subject_of_text,
    text_of_labels,
    text_of_subject,
    transition_of_row,
    witnesses_of_row,
)
from npu_watchd.model.finding import Event, Finding
from npu_watchd.model.reading import Failure, FailureKind

NAME = "state.db"
KEPT_S = 30 * 86_400.0
MOST_BYTES = 200 << 20
"""Both of DESIGN 9."""
_TAIL = 1000


@dataclass(frozen=True, slots=True)
class Loaded:
    """What was kept."""

    history: Changes
    """For History.restore."""
    events: tuple[Event, ...]
    """The newest thousand of the journal, oldest first."""
    findings: tuple[Finding, ...]
    """Those that were active."""
    meta: Mapping[str, str]
    next_event: int
    """The first number that no event ever had."""
    troubles: tuple[str, ...] = ()
    """Rows that this version cannot read; they are left out."""


class Store:
    """A database that is open.

    Write-ahead log with `synchronous = NORMAL`: what `write` has taken survives the end of the process at any moment.
    The price: a power cut may take back the newest transactions; the database itself stays whole.
    """

    def __init__(self, path: Path, db: sqlite3.Connection, said: str | None) -> None:
        self._path = path
        self._db = db
        self.said = said
        """What a person should know of the opening: that a database was moved aside, and why. None: nothing."""
        self._file = identity(path)

    @classmethod
    def open(cls, path: Path) -> Store | Failure:
        """Open the database, or begin a new one; one that is damaged, or not ours, is first moved aside.

        A Failure where the folder or the disk does not allow it, or a later version wrote it: nothing is moved then,
        and it may be tried again.
        """
        try:
            path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
            try:
                return cls(path, connect(path), None)
            except (schema.Unusable, sqlite3.DatabaseError) as error:
                if not beyond_use(error):
                    raise
                aside = move_aside(path)
                said = f"{path}: {error}; it was moved to {aside.name}, and the history begins anew"
                return cls(path, connect(path), said)
        except schema.Later as error:
            cure = "it is left as it is and nothing is written: start the later version again, or move the file away"
            return Failure(FailureKind.DENIED, f"{path}: {error}; {cure}")
        except schema.Unusable as error:
            return failure_of(path, sqlite3.DatabaseError(str(error)))
        except (sqlite3.Error, OSError) as error:
            return failure_of(path, error)

    def load(self) -> Loaded | Failure:
        """Everything but the older part of the journal."""
        try:
            return self._load()
        except sqlite3.Error as error:
            return failure_of(self._path, error)

    def write(self, batch: Batch) -> Failure | None:
        """Write all of a batch, or nothing and say why: keep it then, and try again. Twice is as good as once."""
        # SQLite would write on into a file that no longer has a name, and a restart would find nothing.
        if identity(self._path) != self._file:
            detail = f"{self._path}: it was removed or replaced while we had it open; a restart begins a new one"
            return Failure(FailureKind.MISSING, detail)
        return self._transaction(lambda: self._write(batch))

    def prune(self, now_s: float, most_bytes: int = MOST_BYTES) -> Failure | None:
        """Drop what is older than 30 days; and while there is more than `most_bytes`, the oldest lines and points."""
        failure = self._transaction(lambda: self._forget(now_s - KEPT_S))
        for _ in range(20):
            if failure is not None or self.used_bytes() <= most_bytes:
                break
            failure = self._transaction(self._forget_oldest)
        if failure is not None:
            return failure
        try:
            # One step of this statement frees one page, and `execute` takes only one.
            self._db.executescript("PRAGMA incremental_vacuum")
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        except sqlite3.Error as error:
            return failure_of(self._path, error)
        return None

    def events(self, since_s: float, device_id: str | None = None, limit: int = 1000) -> tuple[Event, ...] | Failure:
        """As `journal.read`, for the thread that writes."""
        try:
            return journal.select(self._db, since_s, device_id, limit)
        except sqlite3.Error as error:
            return failure_of(self._path, error)

    def used_bytes(self) -> int:
        """Without the pages that are free to be used again. 0 where the database does not answer."""
        try:
            pages, free, size = (
                self._db.execute(f"PRAGMA {name}").fetchone()[0]
                for name in ("page_count", "freelist_count", "page_size")
            )
        except sqlite3.Error:
            return 0
        return int((pages - free) * size)

    def close(self) -> None:
        self._db.close()

    def _transaction(self, work: Callable[[], None]) -> Failure | None:
        try:
            self._db.execute("BEGIN IMMEDIATE")
            work()
            self._db.execute("COMMIT")
        except sqlite3.Error as error:
            return failure_of(self._path, error)
        finally:
            # Also after a fault of ours: a transaction left open would refuse the next.
            if self._db.in_transaction:
                with suppress(sqlite3.Error):
                    self._db.execute("ROLLBACK")
        return None

    def _write(self, batch: Batch) -> None:
        self._write_counts(batch.changes)
        self._write_states(batch.changes)
        meta = dict(batch.meta)
        meta |= dict(map(row_of_witnesses, batch.changes.witnesses.items()))
        if batch.changes.standing != Standing():
            meta["history"] = json_of(batch.changes.standing)
        if batch.events:
            self._many("events", 7, map(row_of_event, batch.events))
            meta["next_event"] = str(max(event.number for event in batch.events) + 1)
        if batch.findings is not None:
            self._db.execute("DELETE FROM findings")
            self._many("findings", 3, map(row_of_finding, batch.findings))
        self._many("meta", 2, meta.items())

    def _write_counts(self, changes: Changes) -> None:
        for table, column, numbers in (
            ("series", "number", changes.dropped),
            ("points", "series", {*changes.dropped, *changes.rewritten}),
        ):
            self._delete(table, (column,), ((number,) for number in numbers))
        for points in (*changes.rewritten.values(), changes.points):
            self._many("points", 5, points)
        self._many("series", 12, map(row_of_series, changes.series.values()))
        peaks = (
            (metric, text_of_subject(who), text_of_labels(labels)) for metric, who, labels in changes.dropped_peaks
        )
        self._delete("peaks", ("metric", "subject", "labels"), peaks)
        self._many("peaks", 4, map(row_of_peak, changes.peaks.values()))
        self._many("serials", 2, ((text_of_subject(who), serial) for who, serial in changes.serials.items()))

    def _write_states(self, changes: Changes) -> None:
        for table, column, numbers in (
            ("states", "number", changes.dropped_states),
            ("transitions", "state", {*changes.dropped_states, *changes.retold}),
        ):
            self._delete(table, (column,), ((number,) for number in numbers))
        for transitions in (*changes.retold.values(), changes.transitions):
            self._many("transitions", 3, transitions)
        states = changes.states.values()
        self._many("states", 4, ((row.number, row.name, text_of_subject(row.subject), row.current) for row in states))

    def _many(self, table: str, columns: int, rows: Iterable[tuple[object, ...]]) -> None:
        marks = ", ".join("?" * columns)
        self._db.executemany(f"INSERT OR REPLACE INTO {table} VALUES ({marks})", rows)  # noqa: S608

    def _delete(self, table: str, columns: tuple[str, ...], rows: Iterable[tuple[object, ...]]) -> None:
        where = " AND ".join(f"{column} = ?" for column in columns)
        self._db.executemany(f"DELETE FROM {table} WHERE {where}", rows)  # noqa: S608

    def _forget(self, until_s: float) -> None:
        """The transition into what held at `until_s` stays: it tells since when."""
        self._db.execute("DELETE FROM events WHERE at_s <= ?", (until_s,))
        self._db.execute("DELETE FROM points WHERE last_s <= ?", (until_s,))
        self._db.execute(
            "DELETE FROM transitions WHERE at_s < (SELECT max(later.at_s) FROM transitions AS later"
            " WHERE later.state = transitions.state AND later.at_s <= ?)",
            (until_s,),
        )

    def _forget_oldest(self) -> None:
        """A tenth of the journal and of the points."""
        for table, column in (("events", "number"), ("points", "last_s")):
            self._db.execute(
                f"DELETE FROM {table} WHERE {column} <= (SELECT {column} FROM {table} ORDER BY {column}"  # noqa: S608
                f" LIMIT 1 OFFSET (SELECT count(*) / 10 FROM {table}))"
            )

    def _load(self) -> Loaded:
        troubles: list[str] = []

        def table(make: Callable[..., T], query: str) -> list[T]:
            return _readable(make, self._db.execute(query), troubles)

        meta = dict(self._db.execute("SELECT key, value FROM meta"))
        standing = _readable(standing_of_text, [(meta.pop("history", "{}"),)], troubles)
        series = table(series_of_row, "SELECT * FROM series")
        states = table(state_of_row, "SELECT * FROM states")
        peaks = table(peak_of_row, "SELECT * FROM peaks")
        told = [(name, meta.pop(name)) for name in sorted(meta) if name.startswith(WITNESSES)]
        history = Changes(
            standing=standing[0] if standing else Standing(),
            series={row.number: row for row in series},
            points=tuple(map(PointRow._make, self._db.execute("SELECT * FROM points ORDER BY series, first_s"))),
            states={row.number: row for row in states},
            transitions=tuple(table(transition_of_row, "SELECT * FROM transitions ORDER BY state, at_s")),
            peaks={(row.metric, row.subject, row.labels): row for row in peaks},
            witnesses=dict(_readable(witnesses_of_row, told, troubles)),
            serials=dict(table(lambda who, serial: (subject_of_text(who), serial), "SELECT * FROM serials")),
        )
        return Loaded(
            history=history,
            events=journal.select(self._db, 0.0, None, _TAIL),
            findings=tuple(table(finding_of_row, "SELECT * FROM findings")),
            next_event=int(meta.pop("next_event", "1")),
            meta=meta,
            troubles=tuple(troubles),
        )


T = TypeVar("T")


def _readable(make: Callable[..., T], rows: Iterable[tuple[Any, ...]], troubles: list[str]) -> list[T]:
    found: list[T] = []
    for row in rows:
        try:
            found.append(make(*row))
        except (ValueError, KeyError, TypeError, msgspec.MsgspecError) as error:
            troubles.append(f"a row cannot be read and is left out: {str(row)[:100]}: {error}")
    return found
