"""A month of a node on which nothing keeps quiet, ten minutes a step: as a test, and as `make bench`, live it."""

from __future__ import annotations

from collections.abc import Iterator

from npu_watchd.memory.backlog import Batch
from npu_watchd.memory.history import History
from npu_watchd.memory.store import Store
from npu_watchd.model.fabric import NpuPortStatistics, PortCounters, PortKey, RdmaPort
from npu_watchd.model.finding import Event
from npu_watchd.model.ids import DeviceKey
from npu_watchd.model.pcie import PcieErrors
from npu_watchd.model.records import MemoryErrors
from npu_watchd.model.snapshot import Identity, Port, Snapshot
from tests.memory.past import chip, node, roce

DEVICES = tuple(DeviceKey(number) for number in range(16))
PORTS = tuple(PortKey(f"mlx5_{number}", 1) for number in range(10))
BEGAN_S, STEP_S, STEPS_A_DAY = 1000.0, 600.0, 144
CODE = "80e18005"
"""Of the vendor's table: with a rule on how often it may come back."""


def snapshots(days: int, began_s: float = BEGAN_S) -> Iterator[tuple[float, Snapshot]]:
    """History time and what is seen then.

    Every ten minutes a corrected error on each device's memory, its PCIe link and its own port, and on each host port,
    and an error code on one device after another; every hour a host port and a device's own port that flap.
    """
    for step in range(days * STEPS_A_DAY):
        down = step % 6 == 0
        devices = [
            chip(
                key,
                identity=Identity(name="910B3"),
                memory_errors={"hbm": MemoryErrors(step, 0, step, 0)},
                error_codes=(CODE,) if step % len(DEVICES) == key.npu else (),
                pcie_errors=PcieErrors("0000:c1:00.0", step, 0, 0),
                roce=roce(
                    link_up=not (down and key == DEVICES[2]), statistics=NpuPortStatistics(errors={"receive_fcs": step})
                ),
            )
            for key in DEVICES
        ]
        ports = {}
        for key in PORTS:
            state = "Down" if down and key == PORTS[0] else "Active"
            facts = RdmaPort(key.rdma_device, 1, state=state, physical_state="LinkUp")
            errors = {"symbol_error": step, "port_rcv_errors": step // 2}
            counters = PortCounters(key, errors=errors, link_downs=step // 6)
            ports[key] = Port(key, present=True, expected=True, facts=facts, counters=counters)
        yield began_s + STEP_S * step, node(*devices, ports=ports)


def live(store: Store, days: int, began_s: float = BEGAN_S) -> History:
    """The history of these days, written every hour with two lines of the journal for each step, and pruned daily."""
    history, lines = History(), list[Event]()
    for step, (now_s, snapshot) in enumerate(snapshots(days, began_s)):
        history.observe(snapshot, now_s)
        for number, text in enumerate(_LINES, 2 * step + 1):
            lines.append(Event(number, now_s, "finding_opened", text, "3", "hbm_single_bit", {"severity": "warning"}))
        if step % 6 == 5:
            assert store.write(Batch(history.changes(), tuple(lines))) is None
            lines.clear()
        if step % STEPS_A_DAY == STEPS_A_DAY - 1:
            assert store.prune(now_s) is None
    return history


_LINES = ("Correctable errors climb: 12 in 1 h, 10 are too many.", "Port mlx5_0/1 is down: Down, LinkUp.")
