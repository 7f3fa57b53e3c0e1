"""What the host has left, read file by file below procfs, and the file system of /dev/shm."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from errno import EOPNOTSUPP
from pathlib import Path
from typing import TypeVar

from npu_watchd.model.host import RESOURCES, Host, Pressure, SharedMemory
from npu_watchd.model.ids import NODE, Subject
from npu_watchd.model.reading import Failure, FailureKind
from npu_watchd.parsers import host, process_files
from npu_watchd.parsers.lines import ParseError
from npu_watchd.sources.files import Root, failure_of
from npu_watchd.sources.sweep import Sweep

V = TypeVar("V")

_SWEEP_S = 5.0
"""A look takes a millisecond; one that takes seconds has met something that hangs."""
_SHM = "shm"
_NO_PRESSURE = (
    "this kernel does not measure pressure: it is older than 4.20 or built without CONFIG_PSI, or it wants `psi=1` on "
    "its command line"
)
_NO_OOM_COUNT = "this kernel does not count oom_kill (before 4.13)"


class HostTree:
    """Blocks where procfs does: call it through HostRound. For one thread at a time."""

    def __init__(self, procfs: Path, dev: Path) -> None:
        self._procfs = procfs
        self._root = Root(procfs)
        self._shm = dev / _SHM
        self.reading = ""
        """The file that is read at the moment, for words about a hang."""
        self._failures: dict[str, Failure] = {}
        self._unsupported: dict[str, str] = {}

    def look(self) -> Host | Failure:
        """Everything, each file on its own; a Failure where nothing at all could be read."""
        self._failures, self._unsupported = {}, {}
        found = Host(
            pressure={name: one for name in RESOURCES if (one := self._pressure(name)) is not None},
            memory=self._parsed("meminfo", host.memory),
            oom_kills=self._oom_kills(),
            shared_memory=self._shared_memory(),
            load=self._parsed("loadavg", host.load),
            tasks_max=self._parsed("sys/kernel/pid_max", host.number),
            uptime_s=self._parsed("uptime", process_files.uptime_s),
            failures=self._failures,
            unsupported=self._unsupported,
        )
        if "meminfo" in self._failures and found == Host(failures=self._failures, unsupported=self._unsupported):
            return self._failures["meminfo"]
        return found

    def _pressure(self, resource: str) -> Pressure | None:
        name = f"pressure/{resource}"
        found = self._parsed(name, host.pressure)
        failure = self._failures.get(name)
        if failure is not None and _is_no_pressure(failure):
            del self._failures[name]
            self._unsupported[name] = _NO_PRESSURE
        return found

    def _oom_kills(self) -> int | None:
        count = self._parsed("vmstat", host.oom_kills)
        if count is None and "vmstat" not in self._failures:
            self._unsupported["vmstat"] = _NO_OOM_COUNT
        return count

    def _shared_memory(self) -> SharedMemory | None:
        """Only of a file system of its own: in an ordinary folder it would be the disk's room."""
        self.reading = str(self._shm)
        try:
            if self._shm.stat().st_dev == self._shm.parent.stat().st_dev:
                self._unsupported[_SHM] = f"{self._shm} is an ordinary folder"
                return None
            room = os.statvfs(self._shm)
        except OSError as error:
            self._failures[_SHM] = failure_of(str(self._shm), error)
            return None
        return SharedMemory((room.f_blocks - room.f_bfree) * room.f_frsize, room.f_blocks * room.f_frsize)

    def _parsed(self, name: str, parse: Callable[[str], V]) -> V | None:
        self.reading = f"{self._procfs}/{name}"
        text = self._root.read_text(name)
        if isinstance(text, Failure):
            self._failures[name] = text
            return None
        try:
            return parse(text)
        except ParseError as error:
            self._failures[name] = Failure(FailureKind.UNPARSEABLE, f"{self.reading}: {error}")
            return None


def _is_no_pressure(failure: Failure) -> bool:
    """The file is not there, or (before 5.x kernels hid it) cannot be read as pressure is switched off."""
    return failure.kind is FailureKind.MISSING or failure.detail.endswith(os.strerror(EOPNOTSUPP))


class HostRound:
    """For the lane of files: a hang costs one thread and a Failure, never the lane that asks."""

    def __init__(self, procfs: Path, dev: Path, monotonic: Callable[[], float]) -> None:
        tree = HostTree(procfs, dev)
        self._sweep = Sweep("host", tree.look, monotonic, _SWEEP_S, lambda: tree.reading)

    def read(self, _timeout_s: float) -> Mapping[Subject, Host | Failure]:
        """The node → its Host, or why there is none."""
        return {NODE: self._sweep()}
