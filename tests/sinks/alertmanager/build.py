"""Findings as a rule would make them, and the clock's ticks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from npu_watchd.model.finding import Action, Evidence, Finding, Severity
from npu_watchd.model.ids import DeviceKey
from npu_watchd.model.reading import Tick
from npu_watchd.sinks.alertmanager.alert import Alert

NOON_S = 1_796_040_000.0
"""2026-11-30T12:00:00Z."""

DOUBLE_BIT = Evidence(
    metric='npu_device_memory_errors_total{memory="hbm",kind="double_bit"}',
    observed=3,
    limit=1,
    unit="",
    window_s=None,
    source="npu-smi info -t ecc -i 3: HBM Double Bit Error Count",
)


def finding(device: int = 3, **changes: Any) -> Finding:
    """Three uncorrectable errors on one device, since noon."""
    made = Finding(
        rule="hbm_double_bit",
        alert="NpuMemoryUncorrectableErrors",
        subject=DeviceKey(device),
        device_id=str(device),
        severity=Severity.CRITICAL,
        quarantines=True,
        action=Action.RESET_DEVICE,
        since_s=NOON_S,
        summary=f"3 uncorrectable memory errors on device {device}, limit 1",
        evidence=(DOUBLE_BIT,),
    )
    return replace(made, **changes)


def at(mono_s: float, jump_s: float = 0.0) -> Tick:
    """`mono_s` seconds after noon, on a wall clock that somebody has set by `jump_s`."""
    return Tick(mono_s, NOON_S + mono_s + jump_s)


def alert(name: str = "A", **changes: Any) -> Alert:
    made = Alert((("alertname", name), ("severity", "warning")), {"summary": name}, NOON_S)
    return replace(made, **changes)
