"""/proc/PID/{stat,cgroup,environ,status} below a root that can stand elsewhere.

psutil would read the same files, but its procfs is global to the process and its reads follow no deadline; so the
few files that a job is known by are read here, and the rest of psutil is not needed.
"""

from __future__ import annotations

import os
import pwd
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from npu_watchd.model.reading import Failure, FailureKind
from npu_watchd.parsers import process_files
from npu_watchd.parsers.lines import ParseError
from npu_watchd.parsers.process_files import ProcessStat, ProcessStatus
from npu_watchd.sources.files import Root, failure_of

V = TypeVar("V")

_MOST_BYTES = 8 * 1024 * 1024
"""An environment has up to a quarter of the stack's limit, 2 MiB of the usual 8 (execve(2))."""
_INITIAL = "pid:[4026531836]"
"""The kernel's fixed inode number of the first PID namespace (PROC_PID_INIT_INO)."""


class ProcessTree:
    """Reads below `procfs`, usually /proc; `reading` is the file that is read at the moment, for words about a hang."""

    def __init__(self, procfs: Path) -> None:
        self._procfs = procfs
        self._root = Root(procfs, _MOST_BYTES)
        self.reading = ""

    def stat(self, pid: int) -> ProcessStat | Failure:
        """MISSING for a process that is gone."""
        found = self._parsed(f"{pid}/stat", process_files.stat)
        if isinstance(found, ProcessStat) and found.pid != pid:
            return Failure(FailureKind.UNPARSEABLE, f"{self._procfs}/{pid}/stat: speaks of pid {found.pid}")
        return found

    def status(self, pid: int) -> ProcessStatus | Failure:
        return self._parsed(f"{pid}/status", process_files.status)

    def text(self, pid: int, name: str) -> str | Failure:
        """`cgroup` or `environ`; MISSING where the process is gone, DENIED where it is another user's."""
        return self._text(f"{pid}/{name}")

    def uptime_s(self) -> float | Failure:
        return self._parsed("uptime", process_files.uptime_s)

    def boot_wall_s(self) -> int | None:
        found = self._parsed("stat", process_files.boot_wall_s)
        return None if isinstance(found, Failure) else found

    def pids(self) -> Iterator[int]:
        """Of every process that can be seen, in no order; none where the folder cannot be listed."""
        try:
            names = os.listdir(self._procfs)
        except OSError:
            return
        yield from (int(name) for name in names if name.isascii() and name.isdigit() and len(name) <= 10)

    def sees_all(self) -> bool:
        """True: this procfs is of the first PID namespace, so a pid in it is the node's own."""
        try:
            return str((self._procfs / "self" / "ns" / "pid").readlink()) == _INITIAL
        except OSError:
            return False

    def confined(self) -> bool:
        """True: this procfs is of another PID namespace than the first, so what the host numbers is not in it."""
        try:
            return str((self._procfs / "self" / "ns" / "pid").readlink()) != _INITIAL
        except OSError:
            return False

    def _parsed(self, name: str, parse: Callable[[str], V]) -> V | Failure:
        text = self._text(name)
        if isinstance(text, Failure):
            return text
        try:
            return parse(text)
        except ParseError as error:
            return Failure(FailureKind.UNPARSEABLE, f"{self._procfs}/{name}: {error}")

    def _text(self, name: str) -> str | Failure:
        self.reading = f"{self._procfs}/{name}"
        try:
            return self._root.read_text(name)
        except OSError as error:
            return failure_of(self.reading, error)


def user_name(uid: int) -> str | None:
    """From the system's user database, which may ask a directory server and wait for it; None: it has no name."""
    try:
        return pwd.getpwuid(uid).pw_name
    except (KeyError, OverflowError):
        return None
