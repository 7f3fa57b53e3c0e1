"""One measurement of the PCIe load of every NPU, by the way that this node has."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from npu_watchd.model.ids import DeviceKey, Subject
from npu_watchd.model.pcie import PcieLink
from npu_watchd.model.reading import Failure, FailureKind, Run
from npu_watchd.sources import executable, pcie_load
from npu_watchd.sources.files import Root
from npu_watchd.sources.pci import PciTree
from npu_watchd.sources.pcie_load import Available, Backend
from npu_watchd.sources.sweep import Sweep

_SWEEP_S = 5.0
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_CPUINFO_BYTES = 16 * 1024 * 1024
"""A line of /proc/cpuinfo for each of some hundred cores; assumption: none has more than this."""
_PER_SOCKET = Failure(
    FailureKind.UNSUPPORTED, "pcm-pcie measures a socket, not a device: run it by hand to see what a socket carries"
)


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
        # To look for a tool may block as a file system does that does not answer.
        self._there = Sweep("pcie tools", self._look, monotonic, _SWEEP_S)

    def read(self, timeout_s: float) -> Mapping[Subject, Any]:
        """Device → its PcieLoad, or why there is none."""
        addresses = self._addresses()
        if not addresses:
            return {}
        backend = self._choose()
        found = backend if isinstance(backend, Failure) else self._measured(backend, addresses, timeout_s)
        if isinstance(found, Failure):
            return dict.fromkeys(addresses, found)
        return {key: found[key] for key in addresses if key in found}

    def _measured(
        self, backend: Backend, addresses: Mapping[DeviceKey, str], timeout_s: float
    ) -> pcie_load.Loads | Failure:
        if backend is Backend.PERF:
            return self._perf(addresses, timeout_s)
        if backend is Backend.PCM:
            return _PER_SOCKET
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
        loads = answer if isinstance(answer, Failure) else pcie_load.perf_loads(answer, paths)
        return loads if isinstance(loads, Failure) else {**_without_path(found), **loads}


def _without_path(links: Mapping[DeviceKey, PcieLink | Failure | None]) -> dict[DeviceKey, Failure]:
    return {key: link for key, link in links.items() if isinstance(link, Failure)}
