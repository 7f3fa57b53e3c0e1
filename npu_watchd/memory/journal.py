"""The journal as others read it, from the same file while the daemon writes: the CLI, the API's threads."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from urllib.parse import quote

from npu_watchd.memory.stored import EVENT_COLUMNS, event_of_row
from npu_watchd.model.finding import Event
from npu_watchd.model.reading import Failure, FailureKind

_CODE = 0xFF
"""The low byte of SQLite's extended result codes is the plain one."""


def read(
    path: Path, since_s: float = 0.0, device_id: str | None = None, limit: int = 1000, after: int = 0
) -> tuple[Event, ...] | Failure:
    """As `select`, over a connection of its own that can write nothing."""
    if not path.is_file():
        return Failure(FailureKind.MISSING, f"{path}: no such file; has the daemon run on this node?")
    try:
        db = read_only(path)
        try:
            return select(db, since_s, device_id, limit, after)
        finally:
            db.close()
    except sqlite3.Error as error:
        return failure_of(path, error)


def read_only(path: Path) -> sqlite3.Connection:
    """A connection that can write nothing. Raises sqlite3.Error.

    A database in WAL mode wants its -shm file; where there is none, no daemon has it open and the file stands still.
    """
    still = "" if Path(f"{path}-wal").exists() else "&immutable=1"
    return sqlite3.connect(f"file:{quote(str(path))}?mode=ro{still}", uri=True, timeout=1.0)


def select(
    db: sqlite3.Connection, since_s: float, device_id: str | None, limit: int, after: int = 0
) -> tuple[Event, ...]:
    """The newest `limit` events at or after `since_s`, oldest first; of all devices and of none where `device_id` is
    None; only those with a number above `after`. Raises sqlite3.Error.
    """
    rows = db.execute(
        f"SELECT {EVENT_COLUMNS} FROM events WHERE at_s >= ? AND number > ? AND (? IS NULL OR device_id = ?)"  # noqa: S608
        " ORDER BY number DESC LIMIT ?",
        (since_s, after, device_id, device_id, limit),
    ).fetchall()
    return tuple(event_of_row(row) for row in reversed(rows))


def failure_of(path: Path, error: sqlite3.Error | OSError) -> Failure:
    """Why not: denied (read-only, no rights), timeout (locked by another), unparseable (damaged), exit (all else)."""
    if isinstance(error, OSError):
        kind = FailureKind.DENIED if isinstance(error, PermissionError) else FailureKind.EXIT
        return Failure(kind, f"{error.filename or path}: {error.strerror}")
    code = getattr(error, "sqlite_errorcode", 0) & _CODE
    kinds = {
        sqlite3.SQLITE_BUSY: FailureKind.TIMEOUT,
        sqlite3.SQLITE_LOCKED: FailureKind.TIMEOUT,
        sqlite3.SQLITE_READONLY: FailureKind.DENIED,
        sqlite3.SQLITE_PERM: FailureKind.DENIED,
        sqlite3.SQLITE_AUTH: FailureKind.DENIED,
        sqlite3.SQLITE_CORRUPT: FailureKind.UNPARSEABLE,
        sqlite3.SQLITE_NOTADB: FailureKind.UNPARSEABLE,
    }
    return Failure(kinds.get(code, FailureKind.EXIT), f"{path}: {error}")
