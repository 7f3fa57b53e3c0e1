"""The kernel's log, from /dev/kmsg: first what its ring still holds of this boot, then what is new.

Form: Documentation/ABI/testing/dev-kmsg of Linux.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from errno import EPIPE
from pathlib import Path

from npu_watchd.model.reading import Failure
from npu_watchd.sources.files import failure_of

_RECORD_BYTES = 8192
"""The kernel hands out one record a read, and none is longer (CONSOLE_EXT_LOG_MAX, include/linux/printk.h)."""
_MOST_LINES = 4000
"""Of one poll: neither a ring of many megabytes nor a kernel that floods it must keep us from what else is to be done.
Some 20 ms; a ring of 1 MiB has about 10 000 records."""

_RECORD = re.compile(rb"(?P<priority>\d{1,10}),(?P<sequence>\d{1,20}),(?P<since_boot_us>\d{1,20}),[^;]*;(?P<text>.*)")
_ESCAPE = re.compile(rb"\\x([0-9a-f]{2})")
_LEVELS = 8
"""A priority is facility x 8 + level. Facility 0 is the kernel's own, which it lets no program claim."""


@dataclass(frozen=True, slots=True)
class KernelMessage:
    """One line that stands in the log."""

    sequence: int
    """The kernel's number of the record: it only grows while this boot lasts."""
    since_boot_s: float
    by_kernel: bool
    """False: a program wrote it into the log, and may have written anything."""
    text: str
    """UTF-8 with replacement characters, the kernel's `\\xNN` undone."""


@dataclass(frozen=True, slots=True)
class NewMessages:
    """What a poll brought."""

    messages: tuple[KernelMessage, ...]
    """Oldest first."""
    old: bool
    """True: from the ring as we found it, so that it may have been said long before we started."""
    lost: int
    """Records that the kernel overwrote after the poll before, ahead of us."""


class KernelLog:
    """Follows `path`, usually /dev/kmsg, from the beginning of its ring and without ever waiting. For one thread."""

    def __init__(self, path: Path, read: Callable[[int, int], bytes] = os.read) -> None:
        self._path = path
        self._read = read
        self._fd: int | None = None
        self._rest = b""
        """Of a line whose end has not been read yet: /dev/kmsg has none, a pipe may."""
        self._newest: int | None = None
        """Sequence number: a log that is opened anew begins with what was read before."""
        self._caught_up = False
        self._lost = 0

    def poll(self) -> NewMessages | Failure:
        """The messages that no poll has returned yet; at most some thousand, then the next poll goes on.

        A Failure where the log cannot be read; the next poll opens it anew, and nothing comes twice.
        """
        found: list[KernelMessage] = []
        old = not self._caught_up
        try:
            if self._fd is None:
                self._fd = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
                self._rest = b""
            for line in self._lines(self._fd):
                found += self._unseen(line)
        except OSError as error:
            self.close()
            if not found:  # what was read before it failed would not come again
                return failure_of(str(self._path), error)
        lost, self._lost = self._lost, 0
        return NewMessages(tuple(found), old, lost)

    def close(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _lines(self, fd: int) -> Iterator[bytes]:
        taken = 0
        while taken < _MOST_LINES:
            try:
                chunk = self._read(fd, _RECORD_BYTES)
            except BlockingIOError:
                chunk = b""
            except OSError as error:
                if error.errno != EPIPE:
                    raise
                taken += 1  # the next record was overwritten; the read after this one goes on behind the gap
                continue
            if not chunk:
                self._caught_up = True
                return
            *lines, rest = (self._rest + chunk).split(b"\n")
            self._rest = rest[:_RECORD_BYTES]
            taken += 1 + len(lines)
            yield from lines

    def _unseen(self, line: bytes) -> Iterator[KernelMessage]:
        """A line that begins with a blank tells more of the one before it; what has no head is no record."""
        record = _RECORD.match(line)
        if record is None:
            return
        sequence = int(record["sequence"])
        if self._newest is not None:
            if sequence <= self._newest:
                return
            self._lost += sequence - self._newest - 1
        self._newest = sequence
        text = _ESCAPE.sub(lambda escape: bytes.fromhex(escape[1].decode()), record["text"])
        since_boot_s, by_kernel = int(record["since_boot_us"]) / 1e6, int(record["priority"]) < _LEVELS
        for part in text.decode("utf-8", errors="replace").split("\n"):
            if part:
                yield KernelMessage(sequence, since_boot_s, by_kernel, part)
