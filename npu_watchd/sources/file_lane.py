"""What is read from files, each round in its period and deadline: ports, PCIe, processes, the host, versions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import Any, Protocol

from npu_watchd.model.fabric import RdmaPorts
from npu_watchd.model.ids import NODE, DeviceKey, Subject
from npu_watchd.model.reading import Failure, Reading, Run, Tick
from npu_watchd.parsers import ibstat
from npu_watchd.sources.pci import PciTree
from npu_watchd.sources.rdma import RdmaTree, excluded
from npu_watchd.sources.rounds import Pace
from npu_watchd.sources.sweep import Sweep

_SWEEP_S = 5.0
"""A sweep of 16 NPUs and 10 HCAs takes milliseconds; one that takes seconds has met a driver that hangs."""

_NO_CHIP_S = 5.0
"""After a round that had no chip to ask about: the first table is seconds away, and a whole period would be long."""

Results = Mapping[Subject, Any]
"""Subject → its record, or a Failure."""


@dataclass(frozen=True, slots=True)
class FileProbe:
    """One round of reads."""

    name: str
    every_s: float
    timeout_s: float | None
    """None: it runs no tool; every sweep has its own deadline."""


FILE_PROBES: tuple[FileProbe, ...] = (
    FileProbe("ibstat", 30, 5),
    FileProbe("rdma_counters", 30, None),
    FileProbe("pcie_link", 60, None),
    FileProbe("pcie_aer", 30, None),
    FileProbe("pcie_load", 30, 5),
    FileProbe("processes", 15, None),
    FileProbe("host", 15, None),
    FileProbe("versions", 3600, None),
)

Read = Callable[[float], Results]
"""The deadline in seconds → what was read."""


class FileLedger(Protocol):
    """Where readings go, and which chips there are."""

    def put(self, readings: Iterable[Reading[Any]]) -> bool: ...

    def pci_addresses(self) -> Mapping[DeviceKey, str]: ...


class Fabric:
    """The probes that read files: the host's ports, their counters, the PCIe links and errors of the chips."""

    def __init__(
        self,
        sysfs: Path,
        exclude: Iterable[str],
        run: Run,
        ibstat_path: Callable[[], str],
        addresses: Callable[[], Mapping[DeviceKey, str]],
        monotonic: Callable[[], float],
    ) -> None:
        """exclude: patterns of RDMA devices that are not read. ibstat_path: as the newest config has it."""
        self._run = run
        self._excluded = tuple(exclude)
        self._ibstat_path = ibstat_path
        self._addresses = addresses
        ports, counters = RdmaTree(sysfs, self._excluded), RdmaTree(sysfs, self._excluded)
        links, errors = PciTree(sysfs), PciTree(sysfs)
        # A tree says what it is reading, for the words of a hang, so each sweep has its own.
        self._ports = Sweep("ibstat", ports.ports, monotonic, _SWEEP_S, lambda: ports.reading)
        self._counters = Sweep("rdma_counters", counters.counters, monotonic, _SWEEP_S, lambda: counters.reading)
        self._links = Sweep(
            "pcie_link", lambda: links.links(set(addresses().values())), monotonic, _SWEEP_S, lambda: links.reading
        )
        self._errors = Sweep(
            "pcie_aer", lambda: errors.errors(set(addresses().values())), monotonic, _SWEEP_S, lambda: errors.reading
        )

    def reads(self) -> dict[str, Read]:
        """Probe → how it is read."""
        return {
            "ibstat": self._read_ports,
            "rdma_counters": lambda _: self._read_counters(),
            "pcie_link": lambda _: self._of_devices(self._links),
            "pcie_aer": lambda _: self._of_devices(self._errors),
        }

    def _read_ports(self, timeout_s: float) -> Results:
        """ibstat, and sysfs where ibstat is missing or fails: it gives up at the first device that it cannot read."""
        answer = self._run((self._ibstat_path(),), timeout_s)
        found = answer if isinstance(answer, Failure) else self._without_excluded(ibstat.read(answer))
        if isinstance(found, Failure) or found.errors:
            read = self._ports()
            # That sysfs shows none of the ports which ibstat has just seen there says only that we read another tree.
            if not isinstance(read, Failure) and (read.ports or isinstance(found, Failure) or not found.ports):
                return {NODE: read}
        return {NODE: found}

    def _without_excluded(self, found: RdmaPorts | Failure) -> RdmaPorts | Failure:
        """As sysfs leaves them out too: ports that only one of the two shows would come and go with ibstat."""
        if isinstance(found, Failure) or not self._excluded:
            return found
        return replace(found, ports=tuple(port for port in found.ports if not excluded(port.ca, self._excluded)))

    def _read_counters(self) -> Results:
        found = self._counters()
        if isinstance(found, Failure):
            return {NODE: found}
        return {NODE: found, **{port.key: port for port in found}}

    def _of_devices(self, sweep: Sweep[Mapping[str, Any]]) -> Results:
        addresses = self._addresses()
        found = sweep()
        if isinstance(found, Failure):
            return dict.fromkeys(addresses, found)
        return {key: found[address] for key, address in addresses.items() if address in found}


class FileLane:
    """For one thread that calls `turn`."""

    def __init__(self, reads: Mapping[str, Read], ledger: FileLedger, clock: Callable[[], Tick]) -> None:
        """reads: probe → how it is read."""
        self._reads = reads
        self._ledger = ledger
        self._clock = clock
        self._due_s: dict[str, float] = {}
        self._paces: Mapping[str, Pace] = {}

    def take(self, paces: Mapping[str, Pace]) -> None:
        """Go on with these periods; a probe without one is switched off."""
        self._paces = paces

    def _due(self, name: str, pace: Pace, now_s: float) -> float:
        """When its round comes; a period that was made shorter counts at once."""
        due_s = self._due_s[name] = min(self._due_s.get(name, now_s), now_s + pace.every_s)
        return due_s

    def turn(self) -> str | None:
        """Make the round that is most overdue, and name its probe; None where none is due."""
        now, paces = self._clock(), self._paces
        due = [
            (due_s, name)
            for name in self._reads
            if name in paces and (due_s := self._due(name, paces[name], now.mono_s)) <= now.mono_s
        ]
        if not due:
            return None
        name = min(due)[1]
        pace = paces[name]
        self._due_s[name] = now.mono_s + pace.every_s
        results = self._reads[name](pace.timeout_s)
        if not results:
            self._due_s[name] = now.mono_s + min(pace.every_s, _NO_CHIP_S)
        ended = self._clock()
        took_s = ended.mono_s - now.mono_s
        self._ledger.put(
            Reading(name, subject, ended, took_s, result, len(getattr(result, "unknown_keys", ())))
            for subject, result in results.items()
        )
        return name

    def idle_s(self) -> float:
        """Seconds until the next round is due; infinite where all are switched off."""
        now_s = self._clock().mono_s
        due = [self._due(name, pace, now_s) for name, pace in self._paces.items() if name in self._reads]
        return max(0.0, min(due, default=inf) - now_s)
