"""`/api/v1/snapshot`: the node as JSON (docs/api.md); null is what nobody knows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import msgspec

from npu_watchd.model.reading import Failure
from npu_watchd.model.records import Hccs, MemoryErrors, ProcessRow
from npu_watchd.model.snapshot import Device, Outcome, ProbeState, ProbeTally

Document = dict[str, Any]


def snapshot_json(outcome: Outcome) -> bytes:
    """The document of docs/api.md, UTF-8, devices in the order of their keys."""
    document = snapshot_document(outcome)
    try:
        return msgspec.json.encode(document)
    except UnicodeEncodeError:
        return msgspec.json.encode(_encodable(document))


def snapshot_document(outcome: Outcome) -> Document:
    snapshot, engine = outcome.snapshot, outcome.engine
    return {
        "at": snapshot.at.wall_s,
        "node": snapshot.node,
        "boot_id": snapshot.boot_id,
        "tool_version": snapshot.tool_version,
        "driver_version": snapshot.driver_version,
        "firmware_version": snapshot.firmware_version,
        "devices_expected": snapshot.devices_expected,
        "devices_present": snapshot.devices_present,
        "devices": [_device(snapshot.devices[key]) for key in sorted(snapshot.devices)],
        "warnings": list(snapshot.warnings),
        "blind": _failures(snapshot.blind),
        "probes": [_probe(state) for state in snapshot.probes],
        "tallies": [_tally(tally) for tally in snapshot.tallies],
        "tool_log_events": dict(snapshot.tool_log_events),
        "engine": {
            "version": engine.version,
            "cycle_duration_seconds": _number(engine.cycle_duration_s),
            "config_reload_ok": engine.config_reload_ok,
            "started_at": engine.started_wall_s,
            "tool_share_ratio": _number(engine.tool_share_ratio),
            "period_stretch_ratio": _number(engine.period_stretch_ratio),
            "clock_jumps": engine.clock_jumps,
        },
    }


def _device(device: Device) -> Document:
    identity = device.identity
    return {
        "device_id": device.device_id,
        "device_id_source": device.device_id_source,
        "npu": device.key.npu,
        "chip": device.key.chip,
        "phy_id": identity.phy_id,
        "logic_id": identity.logic_id,
        "name": identity.name,
        "profile": device.profile,
        "pci_address": identity.pci_address,
        "firmware": identity.firmware,
        "serial_number": identity.serial_number,
        "present": device.present,
        "health": device.health,
        "error_codes": None if device.error_codes is None else list(device.error_codes),
        "power_watts": _number(device.power_watts),
        "temperature_celsius": _numbers(device.temperature_celsius),
        "utilization_ratio": _numbers(device.utilization_ratio),
        "clock_hertz": _number(device.clock_hertz),
        "clock_max_hertz": _number(device.clock_max_hertz),
        "memory": {
            kind: {"used_bytes": memory.used_bytes, "total_bytes": memory.total_bytes}
            for kind, memory in device.memory.items()
        },
        "memory_bandwidth_utilization_ratio": _numbers(device.memory_bandwidth_utilization_ratio),
        "memory_errors": {kind: _errors(errors) for kind, errors in device.memory_errors.items()},
        "processes": None if device.processes is None else [_process(process) for process in device.processes],
        "hccs": None if device.hccs is None else _hccs(device.hccs),
        "pcie_link_errors": None if device.pcie_link_errors is None else dict(device.pcie_link_errors.counts),
        "blind": _failures(device.blind),
        "unsupported": dict(device.unsupported),
        "vital_blind": device.vital_blind,
    }


def _errors(errors: MemoryErrors) -> Document:
    return {name: getattr(errors, name) for name in MemoryErrors.__slots__}


def _process(process: ProcessRow) -> Document:
    return {
        "pid": process.pid,
        "name": process.name,
        "memory_bytes": process.memory_bytes,
        "container_pid": process.container_pid,
    }


def _hccs(hccs: Hccs) -> Document:
    return {
        "healthy": hccs.healthy,
        "error_counts": list(hccs.error_counts),
        "retry_counts": list(hccs.retry_counts),
        "first_error_lane": hccs.first_error_lane,
    }


def _failure(failure: Failure) -> Document:
    return {"kind": failure.kind.value, "detail": failure.detail}


def _failures(failures: Mapping[str, Failure]) -> Document:
    return {probe: _failure(failure) for probe, failure in failures.items()}


def _probe(state: ProbeState) -> Document:
    return {
        "probe": state.probe,
        "device_id": state.device_id,
        "up": state.up,
        "failure": None if state.failure is None else _failure(state.failure),
    }


def _tally(tally: ProbeTally) -> Document:
    return {
        "probe": tally.probe,
        "duration_seconds": _number(tally.duration_s),
        "last_success_at": _number(tally.last_success_wall_s),
        "failures": dict(tally.failures),
        "unknown_keys": tally.unknown_keys,
    }


def _number(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _numbers(values: Mapping[str, float]) -> Document:
    return {key: _number(value) for key, value in values.items()}


def _encodable(value: Any) -> Any:
    """The same with lone surrogates replaced: JSON in UTF-8 cannot hold them."""
    if isinstance(value, str):
        return value.encode(errors="replace").decode()
    if isinstance(value, dict):
        return {_encodable(key): _encodable(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_encodable(item) for item in value]
    return value
