"""Small pasts of a node, for the history: a quiet device and port, and each count and condition by its own name."""

from __future__ import annotations

from typing import Any

from npu_watchd.model.fabric import PortCounters, PortKey, RdmaPort
from npu_watchd.model.ids import DeviceKey
from npu_watchd.model.reading import Tick
from npu_watchd.model.records import MemoryErrors
from npu_watchd.model.snapshot import Device, Identity, NpuPort, Port, ProbeState, Snapshot

CHIP, PORT = DeviceKey(3), PortKey("mlx5_0", 1)
DOUBLE = (("kind", "double_bit"), ("memory", "hbm"))
SINGLE = (("kind", "single_bit"), ("memory", "hbm"))
ERRORS, LIFETIME = "npu_device_memory_errors_total", "npu_device_memory_lifetime_errors_total"


def hbm(double: int | None = None, life: int | None = None, single: int | None = None) -> dict[str, MemoryErrors]:
    """Double-bit errors since the reset and in the device's life."""
    return {"hbm": MemoryErrors(single_bit=single, double_bit=double, double_bit_lifetime=life)}


def chip(key: DeviceKey = CHIP, **changes: Any) -> Device:
    quiet: dict[str, Any] = {
        "key": key,
        "device_id": str(key.npu),
        "device_id_source": "logic_id",
        "identity": Identity(name="910B3", serial_number="SN-1"),
        "profile": "910B",
        "present": True,
        "health": "ok",
        "error_codes": (),
    }
    return Device(**{**quiet, **changes})


def port(downs: int | None = None, *, up: bool = True, rate_gbps: float | None = 200.0, **errors: int) -> Port:
    """A port of 200 Gbit/s; without `downs` and `errors` nobody could read its counters."""
    state, physical = ("Active", "LinkUp") if up else ("Down", "Polling")
    facts = RdmaPort("mlx5_0", 1, state=state, physical_state=physical, rate_gbps=rate_gbps)
    counters = PortCounters(PORT, errors=errors, link_downs=downs) if errors or downs is not None else None
    return Port(PORT, present=True, expected=True, facts=facts, counters=counters)


def node(
    *devices: Device,
    port: Port | None = None,
    boot_id: str | None = "boot-1",
    driver: str | None = "25.5.1",
    probes: tuple[ProbeState, ...] = (),
    **changes: Any,
) -> Snapshot:
    return Snapshot(
        at=Tick(0.0, 0.0),
        node="n1",
        boot_id=boot_id,
        devices={device.key: device for device in devices},
        devices_expected=None,
        devices_present=None,
        tool_version=driver,
        driver_version=driver,
        firmware_version=None,
        probes=probes,
        **{"ports": {} if port is None else {port.key: port}, **changes},
    )


def roce(**changes: Any) -> NpuPort:
    return NpuPort(**changes)
