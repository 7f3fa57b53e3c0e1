"""Who asks what, side by side: a lane a tool, and one for what is read from files; each in a thread of its own."""

from __future__ import annotations

import random
import socket
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

from npu_watchd import config
from npu_watchd.chips import profile_of
from npu_watchd.codes.table import lookup
from npu_watchd.memory.board import Board, Watch
from npu_watchd.model.fabric import PortKey
from npu_watchd.model.reading import Failure, Run, Tick
from npu_watchd.sources.agenda import Agenda
from npu_watchd.sources.file_lane import Fabric, FileLane
from npu_watchd.sources.files import Root
from npu_watchd.sources.hccn_probes import HCCN_PROBES
from npu_watchd.sources.host import HostRound
from npu_watchd.sources.job_sweep import JobSweep
from npu_watchd.sources.jobs import JobFinder
from npu_watchd.sources.lane import Lane, Orders
from npu_watchd.sources.load_round import LoadRound
from npu_watchd.sources.npu_smi_probes import NPU_SMI_PROBES
from npu_watchd.sources.probes import DEFAULTS, OPT_IN
from npu_watchd.sources.process_places import PlaceFinder, PlaceSweep
from npu_watchd.sources.process_round import ProcessRound
from npu_watchd.sources.rounds import Pace
from npu_watchd.sources.versions import VersionRound

_SHORTEST_REST_S, _LONGEST_REST_S = 0.02, 5.0
"""Of a lane with nothing due. It sleeps until something is, since each waking costs more than the look itself; but not
for long: another lane may have found new chips, or the config may be new."""
_BURST_S = 30.0
"""Tool seconds that may be spent at once: the first round of a 16-die node at 0.3 s a call (assumption)."""
_FROM_FILES = frozenset({"pcie_link", "pcie_aer", "pcie_load", "processes"})
"""Probes of a device that are not asked of a vendor's tool."""

Clock = Callable[[], Tick]


class Halt(Protocol):
    """threading.Event, set when the daemon ends: between two looks the lanes wait for it."""

    def is_set(self) -> bool: ...

    def wait(self, timeout: float) -> bool: ...


class Lanes:
    """All lanes of the node. `start` once, `close` once; `take` whenever the config is new."""

    def __init__(
        self,
        settings: config.Config,
        boot_id: str | None,
        run: Run,
        clock: Clock,
        halt: Halt,
        jitter: Callable[[], float] = random.random,
        code_tier: Callable[[str], str] = lambda code: lookup(code).tier.value,
    ) -> None:
        """jitter: a number in 0..1, anew at each call (sources/agenda.py). code_tier: as the site has it."""
        self._settings = settings
        self._paces = paces(settings)
        self._halt = halt
        expected = _expected(settings)
        self.board = Board(node_name(settings), boot_id, expected, self._watch, expected_ports(settings), code_tier)
        share = float(settings.engine.tool_share)
        self._tools = {
            tool: Lane(
                probes,
                run,
                Agenda(share, _BURST_S, jitter),
                self.board,
                clock,
                _orders(tool, settings),
                halt.wait,
            )
            for tool, probes in (("npu_smi", NPU_SMI_PROBES), ("hccn_tool", HCCN_PROBES))
        }
        sysfs = Path(settings.paths.sysfs)
        fabric = Fabric(
            sysfs,
            tuple(settings.fabric.exclude_devices),
            run,
            lambda: str(self._settings.tools.ibstat),
            self.board.pci_addresses,
            lambda: clock().mono_s,
        )
        load = LoadRound(
            sysfs,
            Path(settings.paths.procfs),
            run,
            lambda: {"perf": str(self._settings.tools.perf), "pcm_pcie": str(self._settings.tools.pcm_pcie)},
            self.board.pci_addresses,
            lambda: any(profile_of(name).name == "910B" for _, _, name, *_ in self.board.cards()),
            lambda: clock().mono_s,
        )
        jobs = JobSweep(
            JobFinder(Path(settings.paths.procfs), settings.contention.job_mapping_dir, lambda: clock().mono_s),
            lambda: clock().mono_s,
        )
        places = PlaceSweep(PlaceFinder(Path(settings.paths.procfs)), lambda: clock().mono_s)
        processes = ProcessRound(jobs, self.board.processes, lambda: clock().mono_s, places)
        host = HostRound(Path(settings.paths.procfs), Path(settings.paths.dev), lambda: clock().mono_s)
        paths = settings.paths
        installed = VersionRound(paths.ascend, paths.etc, tuple(paths.python), lambda: clock().mono_s)
        reads = {
            **fabric.reads(),
            "pcie_load": load.read,
            "processes": processes.read,
            "host": host.read,
            "versions": installed.read,
        }
        self._files = FileLane(reads, self.board, clock)
        self._files.take(self._paces)

    def take(self, settings: config.Config) -> None:
        """Go on with a new config."""
        self._settings, self._paces = settings, paces(settings)
        self.board.configure(node_name(settings), _expected(settings), expected_ports(settings))
        for tool, lane in self._tools.items():
            lane.take(_orders(tool, settings))
        self._files.take(self._paces)

    def start(self, worked: Callable[[str], None], failed: Callable[[Exception], None]) -> None:
        """worked: told the probe after each call. failed: told a fault of ours, which costs one turn."""
        for name, lane in {**self._tools, "files": self._files}.items():
            threading.Thread(target=self._look, args=(lane, worked, failed), name=f"lane {name}", daemon=True).start()

    def load(self, now: Tick) -> tuple[float | None, float]:
        """npu-smi's share of the last two minutes, None before its first call; and how much longer its periods are."""
        return self._tools["npu_smi"].load(now)

    def periods_s(self) -> Mapping[str, float]:
        """Each probe's period as it really is; one that is switched off has none."""
        found = {probe: pace.every_s for probe, pace in self._paces.items()}
        for lane in self._tools.values():
            found.update(lane.periods_s())
        return found

    def _look(self, lane: Lane | FileLane, worked: Callable[[str], None], failed: Callable[[Exception], None]) -> None:
        while not self._halt.is_set():
            rest_s = _LONGEST_REST_S
            try:
                while not self._halt.is_set() and (probe := lane.turn()) is not None:
                    worked(probe)
                rest_s = min(max(lane.idle_s(), _SHORTEST_REST_S), _LONGEST_REST_S)
            except Exception as error:
                failed(error)
            self._halt.wait(rest_s)

    def _watch(self, name: str | None) -> Watch:
        profile = profile_of(name)
        probes = frozenset(probe for probe in profile.probes | _FROM_FILES if probe in self._paces)
        off = frozenset(probe for probe in profile.vital & profile.probes if probe not in self._paces)
        return Watch(profile.name, probes, profile.vital, off)


def paces(settings: config.Config) -> dict[str, Pace]:
    """The probes that are switched on, with the config's periods and deadlines where it has some."""
    found: dict[str, Pace] = {}
    for name in DEFAULTS:
        chosen = settings.probe(name).enabled
        if chosen or (chosen is None and name not in OPT_IN):
            every_s, timeout_s = config.probe_times(settings, DEFAULTS, name)
            found[name] = Pace(float(every_s or 0), float(timeout_s or every_s or 0))
    return found


def expected_ports(settings: config.Config) -> frozenset[PortKey]:
    """`mlx5_0/1` for each RDMA port that should be there."""
    written = (entry.rpartition("/") for entry in settings.fabric.expected_ports)
    return frozenset(PortKey(device, int(port)) for device, _, port in written)


def _orders(tool: str, settings: config.Config) -> Orders:
    return Orders(str(getattr(settings.tools, tool)), paces(settings), lambda name: profile_of(name).probes)


def node_name(settings: config.Config) -> str:
    """As the config has it, else the host name."""
    return str(settings.node.name or socket.gethostname())


def boot_id_of(settings: config.Config) -> str | None:
    """Of this boot; None where the kernel does not tell it."""
    found = Root(settings.paths.procfs).read_text("sys/kernel/random/boot_id")
    return None if isinstance(found, Failure) else found.strip() or None


def _expected(settings: config.Config) -> int | None:
    return None if settings.node.expected_devices is None else int(settings.node.expected_devices)
