"""Follows the files that globs find: what is new since the look before, through rotation, truncation and restarts."""

from __future__ import annotations

import os
import stat
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from npu_watchd.sources.log_files import found

MOST_FILES = 256
"""Those last written to: a node of 16 dies has some 50 plogs that grow."""
MOST_BYTES = 4 * 1024 * 1024
"""Of all files in one look; some 20 000 lines. What a file has more than that is lost, and counted."""
_LONGEST_LINE_BYTES = 64 * 1024
_MARK_BYTES = 256
"""The beginning of a file, by which we know it again: a file cut to nothing and written anew keeps its inode."""


@dataclass(frozen=True, slots=True)
class Position:
    """How far one file was read. What is persisted, so that a restart counts nothing twice."""

    path: str
    device: int
    inode: int
    offset: int
    """Bytes; the beginning of the first line not yet read."""
    mark_bytes: int
    mark: int
    """CRC-32 of its first `mark_bytes`."""


@dataclass(frozen=True, slots=True)
class TailedLine:
    """One new line."""

    path: str
    text: str
    """UTF-8 with replacement characters, without its end of line."""


@dataclass(frozen=True, slots=True)
class Look:
    """What one look brought."""

    lines: tuple[TailedLine, ...]
    """In the order of each file."""
    lost_bytes: int
    """Written faster than we read, or rotated away twice between two looks: not seen, and said so."""
    unreadable: tuple[str, ...]
    """Files that may not be read, with the reason."""


class LogTail:
    """For one thread. It holds no file open between two looks, so that it keeps no rotated file from being freed."""

    def __init__(
        self,
        globs: Iterable[str],
        positions: Iterable[Position] | None = None,
        *,
        most_bytes: int = MOST_BYTES,
        most_files: int = MOST_FILES,
    ) -> None:
        """positions: of the run before. None: the first run ever, and what the files hold already is none of ours."""
        self._globs = tuple(globs)
        self._positions = {(one.device, one.inode): one for one in positions or ()}
        self._from_the_end = positions is None
        self._most_bytes, self._most_files = most_bytes, most_files
        self._turn = 0

    @property
    def positions(self) -> tuple[Position, ...]:
        """To be persisted after the lines of a look were dealt with."""
        return tuple(self._positions.values())

    def look(self) -> Look:
        """The lines written since the look before; raises nothing."""
        files = self._files()
        lines: list[TailedLine] = []
        unreadable: list[str] = []
        lost, left = 0, self._most_bytes
        kept: dict[tuple[int, int], Position] = {}
        # Each look begins with another file, so that one that is written without end starves no other.
        self._turn = (self._turn + 1) % max(len(files), 1)
        for path, status in (*files[self._turn :], *files[: self._turn]):
            key = (status.st_dev, status.st_ino)
            try:
                position, raw, skipped = self._read(path, status, left)
            except OSError as error:
                unreadable.append(f"{path}: {error.strerror}")
                if key in self._positions:
                    kept[key] = self._positions[key]
                continue
            lost, left = lost + skipped, left - len(raw)
            kept[key] = position
            if not raw:
                continue
            texts = raw.decode("utf-8", "replace").split("\n")
            lines += (TailedLine(str(path), text.rstrip("\r")) for text in texts[: -1 if raw.endswith(b"\n") else None])
        self._positions, self._from_the_end = kept, False
        return Look(tuple(lines), lost, tuple(unreadable))

    def _files(self) -> list[tuple[Path, os.stat_result]]:
        """Each file once, whatever its names; the last written to. A rotated one is looked for by its `.1`."""
        seen: dict[tuple[int, int], tuple[Path, os.stat_result]] = {}
        known = {Path(f"{one.path}.1") for one in self._positions.values()}
        for path in (*found(self._globs), *known):
            try:
                status = path.stat()
            except OSError:
                continue
            key = (status.st_dev, status.st_ino)
            if stat.S_ISREG(status.st_mode) and (path not in known or key in self._positions):
                seen.setdefault(key, (path, status))
        newest = sorted(seen.values(), key=lambda one: (-one[1].st_mtime, str(one[0])))
        return sorted(newest[: self._most_files], key=lambda one: str(one[0]))

    def _read(self, path: Path, status: os.stat_result, left: int) -> tuple[Position, bytes, int]:
        """The new position, whole lines, and how many bytes were skipped for want of room. Raises OSError."""
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            status = os.fstat(fd)
            was = self._positions.get((status.st_dev, status.st_ino))
            start = self._start(fd, status.st_size, was)
            skipped = max(0, status.st_size - start - self._most_bytes)
            raw = os.pread(fd, max(0, min(left, self._most_bytes)), start + skipped)
            cut = raw.find(b"\n") + 1 if skipped else 0
            whole = raw[cut : raw.rfind(b"\n") + 1]
            if not whole and len(raw) >= _LONGEST_LINE_BYTES:
                whole = raw[cut:]  # a line without end is taken in pieces
            offset = start + skipped + cut + len(whole)
            mark_bytes = min(_MARK_BYTES, offset)
            mark = zlib.crc32(os.pread(fd, mark_bytes, 0))
        finally:
            os.close(fd)
        position = Position(str(path), status.st_dev, status.st_ino, offset, mark_bytes, mark)
        return position, whole, skipped + cut

    def _start(self, fd: int, size: int, was: Position | None) -> int:
        if was is None:
            return size if self._from_the_end else 0
        same = size >= was.offset and zlib.crc32(os.pread(fd, was.mark_bytes, 0)) == was.mark
        return was.offset if same else 0


def document(positions: Iterable[Position]) -> list[dict[str, Any]]:
    """As it is persisted."""
    return [asdict(position) for position in positions]


def positions_of(persisted: object) -> tuple[Position, ...] | None:
    """What was persisted; None where that is none of ours, or damaged: then the files are followed from their ends."""
    if not isinstance(persisted, list):
        return None
    read: list[Position] = []
    for entry in persisted:
        if not isinstance(entry, Mapping) or entry.keys() != {field.name for field in fields(Position)}:
            return None
        numbers = [entry[name] for name in ("device", "inode", "offset", "mark_bytes", "mark")]
        if not isinstance(entry["path"], str) or not all(type(number) is int and number >= 0 for number in numbers):
            return None
        read.append(Position(**entry))
    return tuple(read)
