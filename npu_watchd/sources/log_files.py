"""Log files as a person hands them in, or the newest ones that the site's globs find. Read from the end, bounded."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from npu_watchd.model.reading import Failure, FailureKind
from npu_watchd.sources.files import failure_of

MOST_BYTES = 16 * 1024 * 1024
"""Of one file its last 16 MiB: the end of a job is at the end of its log."""
MOST_FILES = 64
"""Two logs a rank of a node of 16 dies, and as many again."""
_MOST_FOUND = 20_000
_TOGETHER_S = 600.0
"""Ranks of one job stop writing within ten minutes of each other, or one of them still waits."""


@dataclass(frozen=True, slots=True)
class LogText:
    """The end of one file, or all of it."""

    path: Path
    modified_s: float
    """Unix seconds of its last change."""
    skipped_bytes: int
    """Not read, at its beginning."""
    text: str
    """UTF-8, with replacement characters where it is none."""


def read(path: Path, most_bytes: int = MOST_BYTES) -> LogText | Failure:
    """Its last `most_bytes`, from the beginning of a line. A pipe or a device is refused: it may never end."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        return failure_of(str(path), error)
    with open(fd, "rb") as file:
        try:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                return Failure(FailureKind.UNSUPPORTED, f"{path}: no regular file")
            start = max(0, status.st_size - most_bytes)
            file.seek(start)
            raw = file.read(most_bytes)
        except OSError as error:
            return failure_of(str(path), error)
    if start:
        cut = raw.find(b"\n") + 1
        start, raw = start + cut, raw[cut:]
    return LogText(path, status.st_mtime, start, raw.decode("utf-8", "replace"))


def newest(globs: Iterable[str], since_s: float) -> tuple[Path, ...]:
    """The logs of the latest incident: the file last written at or after `since_s`, and those written nearly then."""
    dated: dict[Path, float] = {}
    for path in found(globs):
        try:
            status = path.stat()
        except OSError:
            continue
        if stat.S_ISREG(status.st_mode) and status.st_mtime >= since_s:
            dated[path] = status.st_mtime
    if not dated:
        return ()
    last_s = max(dated.values())
    near = [path for path, modified_s in dated.items() if modified_s >= last_s - _TOGETHER_S]
    return tuple(sorted(near, key=lambda path: -dated[path])[:MOST_FILES])


def found(globs: Iterable[str]) -> Iterator[Path]:
    """What the globs find, at most some thousand; `~` is the home of whoever runs this."""
    left = _MOST_FOUND
    for pattern in globs:
        path = Path(pattern).expanduser()
        root = Path(path.anchor or ".")
        try:
            for path_found in root.glob(str(path.relative_to(path.anchor))):
                if left == 0:
                    return
                left -= 1
                yield path_found
        except OSError:  # a folder went away under us
            continue
