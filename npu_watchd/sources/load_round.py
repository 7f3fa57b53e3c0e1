"""One measurement of the PCIe load of every NPU, or of every socket, by the way that this node has."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from npu_watchd.model.ids import NODE, DeviceKey, Subject
from npu_watchd.model.pcie import PcieLink, SocketPcieLoad
from npu_watchd.model.reading import Failure, FailureKind, Run
from npu_watchd.sources import executable, pcie_load, socket_load
from npu_watchd.sources.files import Root
from npu_watchd.sources.pci import PciTree
from npu_watchd.sources.pcie_load import Available, Backend
from npu_watchd.sources.sweep import Sweep

_SWEEP_S = 5.0
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_CPUINFO_BYTES = 16 * 1024 * 1024
"""A line of /proc/cpuinfo for each of some hundred cores; assumption: none has more than this."""
_PER_SOCKET = Failure(
    FailureKind.UNSUPPORTED,
    "PCIe load: nothing on this node tells devices apart; pcm-pcie measures whole CPU sockets, as shown for the node",
)


Results = Mapping[Subject, Any]
"""Subject → its record, or a Failure."""


class LoadRound:
    """Opt-in (`[probes.pcie_load] enabled = true`): every way costs something (sources/pcie_load.py)."""

    def __init__(
        self,
        sysfs: Path,
        procfs: Path,
        run: Run,
        tools: Callable[[], Mapping[str, str]],
        addresses: Callable[[], Mapping[DeviceKey, str]],
        has_dcmi: Callable[[], bool],
        monotonic: Callable[[], float],
    ) -> None:
        """tools: `perf` and `pcm_pcie` as the newest config has them. has_dcmi: a chip whose driver measures itself."""
        self._run = run
        self._tools = tools
        self._addresses = addresses
        self._has_dcmi = has_dcmi
        tree = PciTree(sysfs)
        self._units = Sweep("pcie units", lambda: pcie_load.units(sysfs), monotonic, _SWEEP_S)
        self._links = Sweep("pcie paths", lambda: tree.links(set(addresses().values())), monotonic, _SWEEP_S)
        self._proc = Root(procfs, _CPUINFO_BYTES)
        self._by_socket = False
        """The node's load has been measured by socket."""
        # To look for a tool may block as a file system does that does not answer.
        self._there = Sweep("pcie tools", self._look, monotonic, _SWEEP_S)

    def read(self, timeout_s: float) -> Results:
        """Device → its PcieLoad, or why there is none; NODE → the sockets' load, where that is all that can be had."""
        addresses = self._addresses()
        if not addresses and not self._by_socket:
            return {}  # which way there is depends on the chips
        backend = self._choose()
        if backend is Backend.PCM:
            self._by_socket = True
            return {NODE: self._sockets(timeout_s), **dict.fromkeys(addresses, _PER_SOCKET)}
        found = backend if isinstance(backend, Failure) else self._measured(backend, addresses, timeout_s)
        # What was said of the node must not stand until it is stale.
        node: Results = {NODE: backend if isinstance(backend, Failure) else ()} if self._by_socket else {}
        if isinstance(found, Failure):
            return {**node, **dict.fromkeys(addresses, found)}
        return {**node, **{key: found[key] for key in addresses if key in found}}

    def _sockets(self, timeout_s: float) -> tuple[SocketPcieLoad, ...] | Failure:
        answer = self._run(socket_load.pcm_argv(self._tools()["pcm_pcie"]), timeout_s)
        return answer if isinstance(answer, Failure) else socket_load.pcm_loads(answer)

    def _measured(
        self, backend: Backend, addresses: Mapping[DeviceKey, str], timeout_s: float
    ) -> pcie_load.Loads | Failure:
        if backend is Backend.PERF:
            return self._perf(addresses, timeout_s)
        answer = self._run(pcie_load.dcmi_argv(sys.executable), timeout_s)
        return answer if isinstance(answer, Failure) else pcie_load.dcmi_loads(answer, addresses)

    def _choose(self) -> Backend | Failure:
        units = self._units()
        if isinstance(units, Failure):
            return units
        there = self._there()
        if isinstance(there, Failure):
            return there
        cpuinfo = self._proc.read_text("cpuinfo")
        intel = not isinstance(cpuinfo, Failure) and pcie_load.is_intel(cpuinfo)
        chosen = pcie_load.choose(Available(self._has_dcmi(), units, there["perf"], intel, there["pcm_pcie"]))
        # Without units it may be any CPU, and nobody can tell which.
        if isinstance(chosen, Failure) and not units and isinstance(cpuinfo, Failure):
            return cpuinfo
        return chosen

    def _look(self) -> Mapping[str, bool]:
        return {name: not isinstance(executable.find(path, _PATH), Failure) for name, path in self._tools().items()}

    def _perf(self, addresses: Mapping[DeviceKey, str], timeout_s: float) -> pcie_load.Loads | Failure:
        links, units = self._links(), self._units()
        if isinstance(links, Failure):
            return links
        if isinstance(units, Failure):
            return units
        found = {key: links.get(address) for key, address in addresses.items()}
        paths = {key: link.path for key, link in found.items() if isinstance(link, PcieLink)}
        argv = pcie_load.perf_argv(self._tools()["perf"], paths, units)
        if isinstance(argv, Failure):
            return argv
        answer = self._run(argv, timeout_s)
        loads = answer if isinstance(answer, Failure) else pcie_load.perf_loads(answer, paths, units)
        return loads if isinstance(loads, Failure) else {**_without_path(found), **loads}


def _without_path(links: Mapping[DeviceKey, PcieLink | Failure | None]) -> dict[DeviceKey, Failure]:
    return {key: link for key, link in links.items() if isinstance(link, Failure)}
