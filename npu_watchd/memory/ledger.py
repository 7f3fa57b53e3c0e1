"""The growth of counters as others read it, from the same file while the daemon writes: the API's threads."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import msgspec

from npu_watchd.memory.journal import failure_of, read_only
from npu_watchd.memory.stored import labels_of_text, subject_of_text, text_of_subject
from npu_watchd.model.ids import Subject
from npu_watchd.model.ledger import Account, Growth, Ledger
from npu_watchd.model.reading import Failure, FailureKind

MOST_STEPS = 5_000


def read(
    path: Path, metric: str, subject: Subject | None = None, since_s: float = 0.0, most: int = MOST_STEPS
) -> Ledger | Failure:
    """The counters of one metric, with their newest steps that were seen at or after `since_s`.

    Over a connection of its own that can write nothing; no more than `most` steps in all.
    """
    try:
        if not path.is_file():
            return Failure(FailureKind.MISSING, f"{path}: no such file; has the daemon run on this node?")
        db = read_only(path)
        try:
            # In one transaction: a counter and its steps are of the same moment.
            db.execute("BEGIN")
            return _select(db, metric, None if subject is None else text_of_subject(subject), since_s, most)
        finally:
            db.close()
    except (sqlite3.Error, OSError) as error:
        return failure_of(path, error)


def _select(db: sqlite3.Connection, metric: str, who: str | None, since_s: float, most: int) -> Ledger:
    """Raises sqlite3.Error."""
    rows = db.execute(
        "SELECT number, subject, labels, value, first_s FROM series WHERE metric = ? AND (? IS NULL OR subject = ?)"
        " ORDER BY number",
        (metric, who, who),
    ).fetchall()
    newest = db.execute(
        "SELECT series, after_s, first_s, last_s, grown FROM points WHERE series IN"
        " (SELECT number FROM series WHERE metric = ? AND (? IS NULL OR subject = ?)) AND last_s >= ?"
        " ORDER BY first_s DESC LIMIT ?",
        (metric, who, who, since_s, most + 1),
    ).fetchall()
    steps: dict[int, list[Growth]] = {}
    for series, *step in reversed(newest[:most]):
        steps.setdefault(series, []).append(Growth(*step))
    accounts, unreadable = [], 0
    for number, subject, labels, value, first_s in rows:
        try:
            read_as = subject_of_text(subject), labels_of_text(labels)
        except (ValueError, msgspec.MsgspecError):
            unreadable += 1
            continue
        accounts.append(Account(*read_as, value, first_s, tuple(steps.get(number, ()))))
    return Ledger(tuple(accounts), cut=len(newest) > most, unreadable=unreadable)
