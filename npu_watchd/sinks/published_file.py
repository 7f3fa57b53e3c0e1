"""A document as a file for other programs on the node: replaced whole, so that a reader never sees half of one."""

from __future__ import annotations

import threading
from pathlib import Path

STALE_AFTER_S = 60.0
"""A dozen cycles at the default of 5 s; assumption."""


def stale_after_s(cycle_s: float) -> float:
    """Age from which a document says nothing of the present: a daemon with long cycles writes as rarely."""
    return max(STALE_AFTER_S, 3 * cycle_s)


class PublishedFile:
    """One file in the runtime directory."""

    def __init__(self, runtime_dir: Path, name: str) -> None:
        self._dir = runtime_dir
        self._path = runtime_dir / name
        self._lock = threading.Lock()
        self._removed = False

    def write(self, document: bytes) -> str | None:
        """Replace the file; None, or why it could not be written (the daemon goes on without it).

        Once removed it stays away: a cycle that outlives the order to stop must not leave one behind.
        """
        with self._lock:
            if self._removed:
                return None
            try:
                self._replace(document)
            except OSError as error:
                return f"{error.filename or self._path}: {error.strerror}"
        return None

    def remove(self) -> None:
        """At the daemon's end: who reads no file knows that no daemon runs."""
        with self._lock:
            self._removed = True
            try:
                self._path.unlink(missing_ok=True)
            except OSError:
                return

    def _replace(self, document: bytes) -> None:
        beside = self._path.with_suffix(".new")
        self._dir.mkdir(mode=0o755, parents=True, exist_ok=True)
        beside.write_bytes(document)
        beside.chmod(0o644)
        beside.replace(self._path)
