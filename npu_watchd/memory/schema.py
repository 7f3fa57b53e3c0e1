"""The tables of state.db, and how an older database becomes one of today's."""

from __future__ import annotations

import sqlite3

APPLICATION_ID = 0x6E707577
"""`npuw`: a database of ours and of nobody else's (SQLite, PRAGMA application_id)."""

# WITHOUT ROWID: the rows are small, and their key is most of them.
_FIRST = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE series (
    number INTEGER PRIMARY KEY, metric TEXT NOT NULL, subject TEXT NOT NULL, labels TEXT NOT NULL,
    first_s REAL NOT NULL, seen_s REAL NOT NULL, here INTEGER NOT NULL, value REAL NOT NULL, low REAL,
    boot_id TEXT, driver TEXT, run INTEGER NOT NULL
);
CREATE TABLE points (
    series INTEGER NOT NULL, after_s REAL NOT NULL, first_s REAL NOT NULL, last_s REAL NOT NULL, grown REAL NOT NULL,
    PRIMARY KEY (series, first_s)
) WITHOUT ROWID;
CREATE TABLE states (number INTEGER PRIMARY KEY, name TEXT NOT NULL, subject TEXT NOT NULL, current INTEGER);
CREATE TABLE transitions (
    state INTEGER NOT NULL, at_s REAL NOT NULL, value INTEGER NOT NULL, PRIMARY KEY (state, at_s)
) WITHOUT ROWID;
CREATE TABLE peaks (
    metric TEXT NOT NULL, subject TEXT NOT NULL, labels TEXT NOT NULL, value REAL NOT NULL,
    PRIMARY KEY (metric, subject, labels)
) WITHOUT ROWID;
CREATE TABLE serials (subject TEXT PRIMARY KEY, serial TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE events (
    number INTEGER PRIMARY KEY, at_s REAL NOT NULL, kind TEXT NOT NULL, text TEXT NOT NULL,
    device_id TEXT, rule TEXT, facts TEXT NOT NULL
);
CREATE INDEX events_at ON events (at_s);
CREATE TABLE findings (
    rule TEXT NOT NULL, subject TEXT NOT NULL, body TEXT NOT NULL, PRIMARY KEY (rule, subject)
) WITHOUT ROWID;
"""

MIGRATIONS: tuple[str, ...] = (_FIRST,)
"""The script at place n makes schema version n + 1 of version n. Never change one that was released: add one."""


class Unusable(Exception):
    """It is a database, but none that this version can go on with."""


class Later(Unusable):
    """A later version wrote it: nothing in it is damaged, and it is not this version's to change."""


def prepare(db: sqlite3.Connection) -> None:
    """Make a new database, or bring an older one up to date, in one transaction.

    Raises Unusable for one that is not ours or is damaged, Later for one of a later version, and sqlite3.Error.
    """
    version = int(db.execute("PRAGMA user_version").fetchone()[0])
    empty = db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0
    ours = db.execute("PRAGMA application_id").fetchone()[0] == APPLICATION_ID
    if not ours and not (empty and version == 0):
        raise Unusable("it is not a database of npu-watchd")
    if version > len(MIGRATIONS):
        raise Later(f"a later npu-watchd wrote it (schema {version}, this one knows {len(MIGRATIONS)})")
    damage = db.execute("PRAGMA quick_check(1)").fetchone()[0]
    if damage != "ok":
        raise Unusable(f"it is damaged: {' '.join(str(damage).split())}")
    if version == len(MIGRATIONS):
        return
    db.execute("BEGIN IMMEDIATE")
    try:
        for script in MIGRATIONS[version:]:
            for statement in script.split(";\n"):
                db.execute(statement)
        db.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
        db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        db.execute("COMMIT")
    except sqlite3.Error:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
