"""Where the processes on the chips live, and on which ports of the host they listen: /proc/PID/{ns,net,fd}.

A namespace is read once of each process. Who listens is read every half minute, and when a process is new: one table of
each network namespace, and of these the few ports that HCCL may want; folders of open files only when such a port has
an owner that is not known yet.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from errno import EFBIG
from pathlib import Path

from npu_watchd.model.hccl import HostPorts, Listener, ProcessPlace
from npu_watchd.model.jobs import Attribution, ProcessKey
from npu_watchd.model.reading import Failure
from npu_watchd.parsers import sockets
from npu_watchd.parsers.lines import ParseError
from npu_watchd.parsers.sockets import ListeningSocket
from npu_watchd.sources.files import open_regular
from npu_watchd.sources.process_tree import ProcessTree
from npu_watchd.sources.sweep import Sweep

LOOK_EVERY_S = 30.0
_SWEEP_S = 5.0
_MOST_BYTES = 8 * 1024 * 1024
_MOST_FILES = 65_536
"""Of one process; of one that has more nobody knows where it listens. Assumption: a training process has thousands."""


@dataclass(frozen=True, slots=True)
class _Home:
    """The namespaces of a process."""

    network: str | None
    mount: str | None


class PlaceFinder:
    """Blocks where procfs does: call it through PlaceSweep. For one thread at a time."""

    def __init__(self, procfs: Path) -> None:
        self._procfs = procfs
        self._tree = ProcessTree(procfs)
        self._homes: dict[ProcessKey, _Home] = {}
        self._owners: dict[int, ProcessKey | None] = {}
        """Inode of a socket → which process on the chips has it; None: none of them."""
        self._seen: frozenset[ProcessKey] = frozenset()
        self._file = ""

    @property
    def reading(self) -> str:
        """The file that is read at the moment."""
        return self._file or self._tree.reading

    def find(self, ports: Mapping[ProcessKey, HostPorts | None]) -> dict[ProcessKey, ProcessPlace]:
        """ports: process → what HCCL may want of the host; None: not known. One that is gone is left out."""
        homes = {key: home for key in ports if (home := self._home(key)) is not None}
        self._homes = {key: home for key, home in homes.items() if home.network is not None}
        host = self._link(1, "ns/mnt")
        if homes.keys() - self._seen:
            self._owners = {inode: key for inode, key in self._owners.items() if key is not None}
        self._seen = frozenset(homes)
        listening: dict[ProcessKey, tuple[Listener, ...] | None] = {}
        wanted_inodes: set[int] = set()
        for network in {home.network for home in homes.values()} - {None}:
            mates = [key for key, home in homes.items() if home.network == network]
            found = self._wanted(mates, [plan for key in mates if (plan := ports[key]) is not None])
            wanted_inodes |= {one.inode for one in found or ()}
            listening |= self._by_owner(mates, found)
        self._owners = {inode: key for inode, key in self._owners.items() if inode in wanted_inodes}
        return {
            key: ProcessPlace(
                home.network,
                None if home.mount is None or host is None else home.mount == host,
                listening.get(key),
            )
            for key, home in homes.items()
        }

    def _home(self, key: ProcessKey) -> _Home | None:
        if key in self._homes:
            return self._homes[key]
        home = _Home(self._link(key.pid, "ns/net"), self._link(key.pid, "ns/mnt"))
        return home if self._lives(key) else None

    def _lives(self, key: ProcessKey) -> bool:
        stat = self._tree.stat(key.pid)
        return not isinstance(stat, Failure) and stat.started_ticks == key.started_ticks

    def _link(self, pid: int, name: str) -> str | None:
        self._file = f"{self._procfs}/{pid}/{name}"
        try:
            return os.readlink(self._file)  # noqa: PTH115  # a Path for each of thousands of open files costs more
        except OSError:
            return None

    def _wanted(self, mates: list[ProcessKey], plans: list[HostPorts]) -> tuple[ListeningSocket, ...] | None:
        """Sockets of this network namespace that listen on a port which HCCL may want; None: not readable."""
        for key in mates:
            found = self._table(key.pid)
            # The table is that of whoever has the pid now.
            if found is not None and self._lives(key):
                return tuple(one for one in found if any(one.listener.port in plan for plan in plans))
        return None

    def _table(self, pid: int) -> tuple[ListeningSocket, ...] | None:
        found: list[ListeningSocket] = []
        for name in ("tcp", "tcp6"):
            self._file = f"{self._procfs}/{pid}/net/{name}"
            try:
                found += sockets.listening(_listening_part(self._file))
            except FileNotFoundError:
                if name == "tcp":
                    return None
                # A kernel without IPv6.
            except (OSError, ParseError):
                return None
        return tuple(found)

    def _by_owner(
        self, mates: list[ProcessKey], found: tuple[ListeningSocket, ...] | None
    ) -> dict[ProcessKey, tuple[Listener, ...] | None]:
        if found is None:
            return dict.fromkeys(mates)
        dark = self._own(mates, {one.inode for one in found} - self._owners.keys())
        return {
            key: None
            if key in dark
            else tuple(sorted({one.listener for one in found if self._owners.get(one.inode) == key}))
            for key in mates
        }

    def _own(self, mates: list[ProcessKey], inodes: set[int]) -> set[ProcessKey]:
        """Learn who has these sockets; returns the processes of which that cannot be read."""
        if not inodes:
            return set()
        dark: set[ProcessKey] = set()
        for key in mates:
            held = self._sockets(key.pid)
            if held is None or not self._lives(key):
                dark.add(key)
                continue
            self._owners |= dict.fromkeys(inodes & held, key)
        if not dark:
            self._owners |= dict.fromkeys(inodes - self._owners.keys())
        return dark

    def _sockets(self, pid: int) -> set[int] | None:
        folder = self._file = f"{self._procfs}/{pid}/fd"
        try:
            numbers = os.listdir(folder)
        except OSError:
            return None
        if len(numbers) > _MOST_FILES:
            return None
        links = (self._link(pid, f"fd/{number}") for number in numbers)
        return {int(link[8:-1]) for link in links if link and link.startswith("socket:[") and link[8:-1].isdigit()}


def _listening_part(name: str) -> str:
    """The file up to its first socket that does not listen; raises OSError.

    The kernel shows those that do before all others (tcp_seq_start of net/ipv4/tcp_ipv4.c), and walks a table of all
    that there could be for the rest.
    """
    fd = open_regular(name)
    try:
        data = bytearray()
        while len(data) <= _MOST_BYTES and (chunk := os.read(fd, 65_536)):
            data += chunk
            last = data[: data.rfind(b"\n")].rpartition(b"\n")[2]
            if b":" in last and b" 0A " not in last:
                return data.decode("ascii", errors="replace")
        if len(data) > _MOST_BYTES:
            raise OSError(EFBIG, "more sockets than anybody counts", name)
        return data.decode("ascii", errors="replace")
    finally:
        os.close(fd)


class PlaceSweep:
    """A finder within a deadline, and no more often than every half minute while the processes are the same.

    What a hang leaves unknown is None in the attributions: who is on a chip can be told without it.
    """

    def __init__(self, finder: PlaceFinder, monotonic: Callable[[], float], deadline_s: float = _SWEEP_S) -> None:
        self._finder = finder
        self._monotonic = monotonic
        self._asked: Mapping[ProcessKey, HostPorts | None] = {}
        self._known: Mapping[ProcessKey, ProcessPlace] = {}
        self._looked_s: float | None = None
        self._sweep = Sweep("process places", self._find, monotonic, deadline_s, lambda: finder.reading)

    def placed(self, found: Iterable[Attribution]) -> tuple[Attribution, ...]:
        """The same, with the place of each process; back within the deadline."""
        some = tuple(found)
        asked = {one.process: _ports(one) for one in some if one.process is not None}
        now_s = self._monotonic()
        due = self._looked_s is None or now_s - self._looked_s >= LOOK_EVERY_S
        if asked and (due or not asked.keys() <= self._asked.keys()):
            self._asked, self._looked_s = asked, now_s
            places = self._sweep()
            self._known = {} if isinstance(places, Failure) else places
        return tuple(
            replace(one, place=self._known.get(one.process)) if one.process is not None else one for one in some
        )

    def _find(self) -> dict[ProcessKey, ProcessPlace]:
        return self._finder.find(self._asked)


def _ports(one: Attribution) -> HostPorts | None:
    return None if one.variables is None else HostPorts.of(one.variables)
