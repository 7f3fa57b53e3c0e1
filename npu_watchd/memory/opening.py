"""How state.db is opened, and how one that is of no use gets out of the way."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

from npu_watchd.memory import schema

KEPT_ASIDE = 3
"""Damaged databases: a person may want to look at one, nobody at thirty."""
_BUSY_S = 1.0
"""How long a write waits for another process; a cycle must not wait longer."""
_WAL_BYTES = 4 << 20


def connect(path: Path) -> sqlite3.Connection:
    """Raises schema.Unusable, sqlite3.Error."""
    db = sqlite3.connect(path, timeout=_BUSY_S, isolation_level=None, check_same_thread=False)
    try:
        db.execute("PRAGMA auto_vacuum = INCREMENTAL")
        db.execute("PRAGMA journal_mode = WAL").fetchone()
        db.execute("PRAGMA synchronous = NORMAL")
        db.execute(f"PRAGMA journal_size_limit = {_WAL_BYTES}")
        schema.prepare(db)
    except BaseException:
        db.close()
        raise
    return db


def identity(path: Path) -> tuple[int, int] | None:
    """Which file this is; None: there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def beyond_use(error: Exception) -> bool:
    """Whether the database is to blame, and not the folder, the disk or another process."""
    if isinstance(error, schema.Unusable):
        return not isinstance(error, schema.Later)
    return (getattr(error, "sqlite_errorcode", 0) & 0xFF) in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def move_aside(path: Path) -> Path:
    """Rename the database and its log; returns its new name. Only the newest few of those names stay."""
    pattern = re.compile(re.escape(path.name) + r"\.corrupt-([0-9]+)")
    matches = [(pattern.fullmatch(found.name), found) for found in path.parent.iterdir()]
    old = sorted((int(match.group(1)), found) for match, found in matches if match)
    aside = path.with_name(f"{path.name}.corrupt-{old[-1][0] + 1 if old else 1}")
    path.rename(aside)
    for ending in ("-wal", "-shm"):
        beside = Path(f"{path}{ending}")
        if beside.exists():
            beside.rename(f"{aside}{ending}")
    for _, found in old[: max(0, len(old) + 1 - KEPT_ASIDE)]:
        for ending in ("", "-wal", "-shm"):
            Path(f"{found}{ending}").unlink(missing_ok=True)
    return aside
