"""What it costs to read a full node's fabric, and how the calls of hccn_tool lie in their period."""

from __future__ import annotations

import random
import statistics
import tempfile
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from npu_watchd.chips import profile_of
from npu_watchd.memory.board import Board, Watch
from npu_watchd.model.fabric import RdmaPorts
from npu_watchd.model.ids import NODE
from npu_watchd.model.pcie import PcieErrors, PcieLink
from npu_watchd.model.reading import Failure, Output, Reading, Tick
from npu_watchd.model.records import DeviceMap, InfoTable
from npu_watchd.parsers import device_map, info_table
from npu_watchd.simnode import scenario_file, sysfs_ib, sysfs_pci
from npu_watchd.simnode.run import simulated_run
from npu_watchd.simnode.sysfs_ib import SimHca, SimPort
from npu_watchd.sources.agenda import Agenda
from npu_watchd.sources.hccn_probes import HCCN_PROBES
from npu_watchd.sources.lane import Lane, Orders
from npu_watchd.sources.pci import PciTree
from npu_watchd.sources.rdma import ERROR_COUNTERS, RdmaTree
from npu_watchd.sources.rounds import Pace
from tests.bench.sixteen_dies import BUSY_S, SCENARIO
from tests.bench.verdict import Row

NPUS, HCAS = 16, 10
ADDRESSES = [f"0000:{0x80 + number:02x}:00.0" for number in range(NPUS)]
CALL_S = 0.1
"""Of hccn_tool: one request to the device's own system and its answer (assumption; a busy one takes longer)."""
WINDOW_S = 1800.0


def rows(*, quick: bool) -> Iterator[Row]:
    with tempfile.TemporaryDirectory(prefix="npu-watchd-bench-") as directory:
        cpu_s = _sweep_s(Path(directory), 20 if quick else 100)
    yield Row(
        f"sysfs sweep of {NPUS} NPUs and {HCAS} HCAs (ports, counters, links, AER), CPU", 1000 * cpu_s, "ms", 20.0
    )
    calls = _calls(WINDOW_S)
    yield Row(f"hccn_tool for {NPUS} ports, processes at once", _most_at_once(calls), "", 1.0)
    minute = WINDOW_S / 60
    by_second = [sum(1 for began, _ in calls if second <= began < second + 1) for second in range(int(WINDOW_S))]
    yield Row("the same, calls a minute", len(calls) / minute)
    # Were they made in one go, the busiest tenth of the minutes' seconds would hold all of them.
    tenth = sorted(by_second, reverse=True)[: len(by_second) // 10]
    yield Row(
        "the same, share of the calls in the busiest tenth of all seconds", 100 * sum(tenth) / len(calls), "%", 33.0
    )


def _sweep_s(sysfs: Path, times: int) -> float:
    """The median CPU time of one round of everything that is read from files."""
    counters = dict.fromkeys((Path(name).name for name in ERROR_COUNTERS if name.startswith("hw_counters")), 7)
    hcas = [SimHca(f"mlx5_{n}", ports=(SimPort(netdev=f"ens{n}np0", hw_counters=counters),)) for n in range(HCAS)]
    sysfs_ib.write(sysfs, hcas)
    npus = [sysfs_pci.PciDevice(address, 0xD802) for address in ADDRESSES]
    sysfs_pci.write(tuple(sysfs_pci.port(f"0000:{n:02x}:01.0", npu) for n, npu in enumerate(npus)), sysfs)
    ports, pci = RdmaTree(sysfs), PciTree(sysfs)

    def once() -> float:
        began = time.thread_time()
        found, counted = ports.ports(), ports.counters()
        links, errors = pci.links(ADDRESSES), pci.errors(ADDRESSES)
        took_s = time.thread_time() - began
        assert isinstance(found, RdmaPorts)
        assert not isinstance(counted, Failure)
        assert len(found.ports) == len(counted) == HCAS
        assert all(len(port.errors) == len(ERROR_COUNTERS) for port in counted)
        assert all(isinstance(link, PcieLink) for link in links.values())
        assert all(isinstance(error, PcieErrors) for error in errors.values())
        return took_s

    once()
    return statistics.median(once() for _ in range(times))


def _calls(until_s: float) -> list[tuple[float, float]]:
    """When each call of hccn_tool began and ended, on a node of sixteen ports, by the lane that the daemon has."""
    now_s = 0.0
    calls: list[tuple[float, float]] = []
    answer = cache(simulated_run(scenario_file.load(SCENARIO), lambda: BUSY_S))

    def run(argv: tuple[str, ...], timeout_s: float) -> Output | Failure:
        nonlocal now_s
        calls.append((now_s, now_s + CALL_S))
        now_s += CALL_S
        return answer(argv, timeout_s)

    def wait(seconds: float) -> None:
        nonlocal now_s
        now_s += seconds

    def clock() -> Tick:
        return Tick(now_s, 1.7e9 + now_s)

    board = Board("node", "boot", NPUS, _watch)
    board.put([Reading("npu_info", NODE, clock(), 0.1, _table(answer(("npu-smi", "info"), 10.0)))])
    board.put([Reading("npu_map", NODE, clock(), 0.1, _map(answer(("npu-smi", "info", "-m"), 10.0)))])
    orders = Orders("hccn_tool", {probe.name: Pace(probe.every_s, probe.timeout_s) for probe in HCCN_PROBES}, _asked_of)
    lane = Lane(HCCN_PROBES, run, Agenda(0.2, 30.0, random.Random(1).random), board, clock, orders, wait)
    while now_s < until_s:
        if lane.turn() is None:
            wait(1.0)
    devices = board.snapshot(clock(), lane.periods_s().get).devices.values()
    assert sum(1 for device in devices if device.roce is not None) == NPUS
    return [call for call in calls if call[0] < until_s]


def _most_at_once(calls: list[tuple[float, float]]) -> int:
    return max(sum(1 for began, ended in calls if began <= start < ended) for start, _ in calls[:500])


def _table(answer: Output | Failure) -> InfoTable:
    assert isinstance(answer, Output)
    return info_table.parse(answer.text)


def _map(answer: Output | Failure) -> DeviceMap:
    assert isinstance(answer, Output)
    return device_map.parse(answer.text)


def _asked_of(name: str | None) -> frozenset[str]:
    return profile_of(name).probes


def _watch(name: str | None) -> Watch:
    profile = profile_of(name)
    return Watch(profile.name, profile.probes, profile.vital, frozenset())
