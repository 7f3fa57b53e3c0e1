"""What it costs to judge a full node with a month behind it, and what that month takes on disk."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from npu_watchd.decide.cycle import Judging
from npu_watchd.limits import Limits
from npu_watchd.memory.history import History
from npu_watchd.memory.store import Store
from npu_watchd.model.fabric import NpuPortStatistics, PortCounters, PortKey
from npu_watchd.model.ids import DeviceKey
from npu_watchd.model.reading import Failure, Tick
from npu_watchd.model.records import MemoryErrors
from npu_watchd.model.snapshot import Device, Port, ProbeState, Snapshot
from npu_watchd.rules import RULES
from tests.bench.verdict import Row
from tests.memory import month
from tests.memory.past import node
from tests.sinks import fabric
from tests.sinks.build import device

CYCLE_S = 5.0
CALM_S = 30 * 3600.0
"""After the month nothing happens for so long: what was found of it is over, and the history still holds it all."""
WARM = 20
"""Cycles by which all is found that will be."""


def rows(*, quick: bool) -> Iterator[Row]:
    days, times = (3, 40) if quick else (30, 100)
    with tempfile.TemporaryDirectory(prefix="npu-watchd-bench-") as directory:
        history, size_bytes = _month(Path(directory), days)
    what = f"{len(month.DEVICES)} devices, {len(month.PORTS)} ports, {days} days of history"
    quiet, ill = Quiet(days * month.STEPS_A_DAY - 1), Ill(days * month.STEPS_A_DAY - 1)
    history.observe(quiet.snapshot(0), history.now_s + CALM_S)
    for name, state in (("quiet", quiet), ("ill", ill)):
        cost_s, findings = _step_s(history, state, times)
        yield Row(f"judge {what}, {name} ({findings} findings), all read anew: CPU a cycle", 1000 * cost_s, "ms", 20.0)
    limit = None if quick else 20.0
    yield Row(f"state.db after {days} simulated days of a noisy node", size_bytes / 2**20, "MiB", limit)


def _month(directory: Path, days: int) -> tuple[History, int]:
    """What is remembered, and the bytes of all its files."""
    store = Store.open(directory / "state.db")
    assert not isinstance(store, Failure), store
    history = month.live(store, days)
    size_bytes = sum(file.stat().st_size for file in directory.iterdir())
    store.close()
    return history, size_bytes


def _step_s(history: History, state: Quiet, times: int) -> tuple[float, int]:
    """The median CPU time of observing, judging and asking for what is new; and how many findings stand."""
    judging = Judging(history, RULES, Limits())
    began_s, costs_s, findings = history.now_s, list[float](), 0
    for cycle in range(1, WARM + times + 1):
        snapshot = state.snapshot(cycle)
        began = time.thread_time()
        judged = judging.step(snapshot, began_s + CYCLE_S * cycle, {})
        history.changes()
        costs_s.append(time.thread_time() - began)
        assert not judged.faults, judged.faults
        findings = len(judged.findings)
    return statistics.median(costs_s[WARM:]), findings


class Quiet:
    """A node that is well. Each cycle makes its records anew, so that each counts as a new reading."""

    def __init__(self, counted: int) -> None:
        """counted: what each error counter has come to in the month."""
        self.counted = counted

    def snapshot(self, cycle: int) -> Snapshot:
        devices = [self.device(key, cycle) for key in month.DEVICES]
        names = [one.device_id for one in devices]
        asked = [*((probe, None) for probe in _NODE), *((probe, name) for name in names for probe in _EACH)]
        probes = tuple(ProbeState(probe, name, up=True, failure=None, successes=cycle) for probe, name in asked)
        ports = {key: self.port(key, cycle) for key in month.PORTS}
        return replace(node(*devices, ports=ports, probes=probes), at=Tick(CYCLE_S * cycle, 1.7e9 + CYCLE_S * cycle))

    def device(self, key: DeviceKey, cycle: int) -> Device:
        return device(
            key.npu,
            power_watts=90.0 + cycle % 7,
            memory_errors={"hbm": MemoryErrors(self.counted, 0, self.counted, 0)},
            roce=fabric.npu_port(statistics=NpuPortStatistics(errors={"receive_fcs": self.counted}, retries=0)),
            pcie_link=fabric.pcie_link(),
            pcie_errors=fabric.pcie_errors(self.counted),
        )

    def port(self, key: PortKey, cycle: int) -> Port:
        errors = {"symbol_error": self.counted, "port_rcv_errors": self.counted // 2}
        counters = PortCounters(key, errors=errors, bytes={"receive": cycle << 30}, link_downs=self.counted // 6)
        return replace(fabric.host_port(key.rdma_device), counters=counters)


class Ill(Quiet):
    """Nearly everything is wrong that can be wrong at once, and each counter climbs on."""

    def device(self, key: DeviceKey, cycle: int) -> Device:
        # The last four far above their neighbours, without which none would stand out.
        corrected = self.counted + cycle * (90 if key.npu >= 12 else 9)
        return device(
            key.npu,
            health="critical",
            error_codes=("80e01801", "80e18006", month.CODE),
            temperature_celsius={"chip": 111.0, "hbm": 99.0},
            memory_errors={"hbm": MemoryErrors(corrected, 7, corrected, 7, 80, 80)},
            roce=fabric.npu_port(
                link_downs=cycle,
                bits_per_second=100_000_000_000,
                statistics=NpuPortStatistics(errors={"receive_fcs": self.counted + 9000 * cycle}, retries=5000 * cycle),
                optical=fabric.module(fabric.lane(0, 1e-6, receive_los=True), fabric.lane(1, 1e-6)),
            ),
            pcie_link=fabric.pcie_link(lanes=8, path_lanes=8),
            pcie_errors=fabric.pcie_errors(self.counted + 90_000 * cycle),
        )

    def port(self, key: PortKey, cycle: int) -> Port:
        """Down for a minute and a half, up at half its speed for as long."""
        errors = {"symbol_error": self.counted + 900 * cycle, "port_rcv_errors": self.counted + 90_000 * cycle}
        counters = PortCounters(key, errors=errors, link_downs=self.counted // 6 + cycle)
        facts: dict[str, Any] = {"state": "Down"} if cycle % 36 < 18 else {"rate_gbps": 100.0}
        return replace(fabric.host_port(key.rdma_device, **facts), counters=counters)


_NODE = ("npu_info", "ibstat", "rdma_counters")
_EACH = (
    *("npu_ecc", "npu_health", "npu_temp", "npu_usages", "npu_common", "npu_hccs", "npu_board"),
    *("hccn_link", "hccn_link_stat", "hccn_stat", "hccn_speed", "hccn_optical", "pcie_link", "pcie_aer"),
)
