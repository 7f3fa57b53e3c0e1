"""Small builders of Outcomes: a quiet 910B3 device and a node of them, with what a test wants changed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from npu_watchd.model.ids import DeviceKey
from npu_watchd.model.reading import Failure, FailureKind, Tick
from npu_watchd.model.records import MemoryErrors, ProcessRow
from npu_watchd.model.snapshot import (
    Device,
    Engine,
    Identity,
    Memory,
    Outcome,
    ProbeState,
    ProbeTally,
    Snapshot,
)

AT = Tick(mono_s=1000.0, wall_s=1_790_000_000.0)
TIMEOUT = Failure(FailureKind.TIMEOUT, "npu-smi info -t ecc -i 3: no answer within 10 s")
TOOL_MISSING = Failure(FailureKind.MISSING, "npu-smi: not found on PATH")
UNTRUSTED = Failure(FailureKind.UNPARSEABLE, "the row bears the marks of a failed sub-query: Bus-Id 0000:00:00.0")


def device(number: int = 0, **changes: Any) -> Device:
    """A healthy, idle 910B3."""
    quiet = Device(
        key=DeviceKey(number),
        device_id=str(number),
        device_id_source="logic_id",
        identity=Identity(
            name="910B3", phy_id=number, logic_id=number, pci_address=f"0000:{0x80 + number:02x}:00.0", firmware="7.1"
        ),
        profile="910B",
        present=True,
        health="ok",
        error_codes=(),
        power_watts=93.5,
        temperature_celsius={"chip": 46.0, "hbm": 51.0},
        utilization_ratio={"aicore": 0.0},
        clock_hertz=8.0e8,
        clock_max_hertz=1.8e9,
        memory={"hbm": Memory(used_bytes=3 << 30, total_bytes=64 << 30)},
        memory_errors={"hbm": MemoryErrors(single_bit=0, double_bit=0)},
        processes=(),
    )
    return replace(quiet, **changes)


def process(name: str | None, pid: int = 4711) -> ProcessRow:
    return ProcessRow(npu=0, chip=0, pid=pid, name=name, memory_bytes=2 << 30)


def outcome(devices: Iterable[Device] = (), **changes: Any) -> Outcome:
    """A node of these devices, all expected; `changes` go into the snapshot."""
    by_key = {one.key: one for one in devices}
    present = [one.present for one in by_key.values()]
    snapshot = Snapshot(
        at=AT,
        node="node-17",
        boot_id="0b1c",
        devices=by_key,
        devices_expected=len(by_key),
        devices_present=None if None in present else present.count(True),
        tool_version="24.1.rc2",
        driver_version="24.1.rc2",
        firmware_version="7.1.0",
    )
    engine = Engine(
        version="0.1.0",
        cycle_duration_s=0.01,
        config_reload_ok=True,
        started_wall_s=AT.wall_s - 60,
        tool_share_ratio=0.05,
    )
    return Outcome(replace(snapshot, **changes), engine)


def tool_missing() -> Outcome:
    """A node on which npu-smi is not installed: no device was ever seen."""
    return outcome(
        devices_expected=None,
        devices_present=None,
        tool_version=None,
        driver_version=None,
        firmware_version=None,
        blind={"npu_info": TOOL_MISSING},
        probes=(ProbeState("npu_info", None, up=False, failure=TOOL_MISSING),),
        tallies=(ProbeTally("npu_info", None, None, {"missing": 4}),),
    )
