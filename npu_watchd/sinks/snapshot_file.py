"""The newest snapshot as a file, for `npu-watchd status`: replaced whole, so that a reader never sees half of one."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import msgspec

NAME = "snapshot.json"
_SHOWN = frozenset(
    {
        "at",
        "node",
        "tool_version",
        "driver_version",
        "devices_expected",
        "devices_present",
        "devices",
        "ports",
        "blind",
        "warnings",
        "findings",
        "verdicts",
    }
)
"""Keys without which there is nothing to show."""


class SnapshotFile:
    """`snapshot.json` in the runtime directory."""

    def __init__(self, runtime_dir: Path) -> None:
        self._dir = runtime_dir
        self._path = runtime_dir / NAME
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


def read(runtime_dir: Path) -> tuple[bytes, dict[str, Any]]:
    """The file as it is, and as the document that it holds.

    Raises FileNotFoundError where no daemon runs, OSError, and ValueError for what no daemon of ours has written.
    """
    path = runtime_dir / NAME
    raw = path.read_bytes()
    try:
        document = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: {error}") from error
    if not isinstance(document, dict) or not document.keys() >= _SHOWN or not isinstance(document["at"], float | int):
        raise ValueError(f"{path}: is no snapshot of this version of npu-watchd; restart the daemon")
    return raw, document
