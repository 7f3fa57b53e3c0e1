"""The tail of npu-smi's own error log: it names each sub-query that failed, where the table shows a harmless zero."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from npu_watchd.model.reading import Failure
from npu_watchd.sources.files import failure_of, open_regular

MAX_POLL_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class NewLines:
    """What was written since the poll before."""

    lines: tuple[str, ...]
    """Complete lines without their ends, oldest first; UTF-8 with replacement characters."""
    skipped_bytes: int
    """Left out: more than one poll takes (the newest are kept), or the torn end of a file that was rotated away."""


class ToolLog:
    """Follows one log through rotation, truncation and absence. For one thread.

    What stands in the file when it is first seen is old and not returned. A file that was absent and then appears is
    new from its first line on. The file stays open between polls, so that the end of a rotated one is not lost.
    """

    def __init__(self, path: str | os.PathLike[str], max_poll_bytes: int = MAX_POLL_BYTES) -> None:
        self._path = os.fspath(path)
        self._max_poll_bytes = max_poll_bytes
        self._file: _Tail | None = None
        self._was_absent = False

    def poll(self) -> NewLines | Failure:
        """The lines since the last poll. A Failure where the file cannot be opened; the next poll tries again."""
        try:
            return self._poll()
        except OSError as error:
            self._was_absent = isinstance(error, FileNotFoundError)
            return failure_of(self._path, error)

    def _poll(self) -> NewLines:
        if self._file is None:
            self._file = _Tail(open_regular(self._path), from_start=self._was_absent)
            self._was_absent = False
        if _is_at(self._path, self._file.fd):
            return self._file.read(self._max_poll_bytes)
        rotated, self._file, self._was_absent = self._file, None, True
        try:
            newer = self._successor()
            budget = self._max_poll_bytes - sum(len(line) + 1 for line in newer.lines)
            older = rotated.read(max(budget, 0), ended=True)
        finally:
            rotated.close()
        return NewLines(older.lines + newer.lines, older.skipped_bytes + newer.skipped_bytes)

    def _successor(self) -> NewLines:
        try:
            self._file = _Tail(open_regular(self._path), from_start=True)
        except OSError:
            return NewLines((), 0)  # the next poll, with nothing left of the old file to return, says so
        self._was_absent = False
        return self._file.read(self._max_poll_bytes)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


class _Tail:
    """One open file and how far it was read: always just behind a line's end, or else `_torn`."""

    def __init__(self, fd: int, *, from_start: bool) -> None:
        self.fd = fd
        self._offset = 0 if from_start else os.fstat(fd).st_size
        self._torn = not self._is_behind_newline()
        """The line at the offset began before it: its rest is not a line."""

    def read(self, max_bytes: int, *, ended: bool = False) -> NewLines:
        """At most `max_bytes` of complete lines. `ended`: nothing will be added to this file any more."""
        size = os.fstat(self.fd).st_size
        if size < self._offset or not (self._torn or self._is_behind_newline()):
            self._offset, self._torn = 0, False  # cut short, or cut and written anew beyond where we were
        skipped = 0
        if size - self._offset > max_bytes:
            skipped = size - max_bytes - self._offset
            self._offset += skipped
            self._torn = not self._is_behind_newline()
        data = os.pread(self.fd, size - self._offset, self._offset)
        if self._torn:
            cut = data.find(b"\n") + 1 or len(data)
            self._torn = not data[:cut].endswith(b"\n")
            skipped += cut
            self._offset += cut
            data = data[cut:]
        whole, _, rest = data.rpartition(b"\n")
        lines = whole.split(b"\n") if len(rest) < len(data) else []
        self._offset += len(data) - len(rest)
        if ended:
            skipped += len(rest)
        return NewLines(tuple(line.decode("utf-8", errors="replace") for line in lines), skipped)

    def _is_behind_newline(self) -> bool:
        return self._offset == 0 or os.pread(self.fd, 1, self._offset - 1) == b"\n"

    def close(self) -> None:
        os.close(self.fd)


def _is_at(path: str, fd: int) -> bool:
    """Whether the file that we have open is still the one of that name."""
    try:
        return os.path.samestat(Path(path).stat(), os.fstat(fd))
    except OSError:
        return False
