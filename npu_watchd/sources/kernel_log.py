"""New lines of the kernel's log, from /dev/kmsg; what the kernel said before we looked is old and not returned."""

from __future__ import annotations

import os
from errno import EPIPE
from pathlib import Path

from npu_watchd.model.reading import Failure
from npu_watchd.sources.files import failure_of

_RECORD_BYTES = 8192
"""The kernel hands out one record a read, and none is longer (CONSOLE_EXT_LOG_MAX, include/linux/printk.h)."""
_MOST_RECORDS = 2000
"""Of one poll: a kernel that floods its log must not keep us from what else is to be done."""


class KernelLog:
    """Follows `path`, usually /dev/kmsg, without ever waiting for it. For one thread."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd: int | None = None

    def poll(self) -> tuple[str, ...] | Failure:
        """The messages since the last poll, oldest first; a Failure where it cannot be read (the next poll tries anew).

        Records that the kernel overwrote before we came are lost: it says so once, and the rest follows.
        """
        try:
            if self._fd is None:
                self._fd = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
                os.lseek(self._fd, 0, os.SEEK_END)
            return tuple(self._messages(self._fd))
        except OSError as error:
            self.close()
            return failure_of(str(self._path), error)

    def close(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _messages(self, fd: int) -> list[str]:
        found: list[str] = []
        for _ in range(_MOST_RECORDS):
            try:
                record = os.read(fd, _RECORD_BYTES)
            except BlockingIOError:
                break
            except OSError as error:
                if error.errno != EPIPE:
                    raise
                continue
            if not record:
                break
            found += [message for line in record.split(b"\n") if (message := _message(line))]
        return found


def _message(line: bytes) -> str:
    """`priority,sequence,microseconds,flags;text`; a line that begins with a blank tells more of the one before it."""
    text = line.decode("utf-8", errors="replace")
    return "" if text.startswith(" ") else text.partition(";")[2]
