"""`/api/v1/snapshot`: the node as JSON (docs/api.md); null is what nobody knows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import msgspec

from npu_watchd.model.fabric import NpuPortStatistics, OpticalLane, OpticalModule
from npu_watchd.model.pcie import SEVERITIES, PcieErrors, PcieLink, PcieLoad, SocketPcieLoad
from npu_watchd.model.reading import Failure
from npu_watchd.model.records import Hccs, MemoryErrors, ProcessRow
from npu_watchd.model.snapshot import Device, NpuPort, Outcome, Port, ProbeState, ProbeTally
from npu_watchd.sinks.web.findings import finding_document
from npu_watchd.sinks.web.host import host_document, oom_kill_document
from npu_watchd.sinks.web.installed import installed_document
from npu_watchd.sinks.web.jobs import jobs_document
from npu_watchd.sinks.web.verdicts import verdict_document

Document = dict[str, Any]


def snapshot_json(outcome: Outcome) -> bytes:
    """The document of docs/api.md, UTF-8, devices in the order of their keys."""
    return encoded(snapshot_document(outcome))


def encoded(document: Document) -> bytes:
    """A document as JSON in UTF-8, whatever the tools' words have in them."""
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
        "ports": [_port(snapshot.ports[key]) for key in sorted(snapshot.ports)],
        "verdicts": [verdict_document(verdict) for verdict in outcome.verdicts],
        "findings": [finding_document(finding) for finding in outcome.findings],
        "pcie_sockets": [_pcie_socket(load) for load in snapshot.pcie_sockets],
        "host": None if snapshot.host is None else host_document(snapshot.host),
        "installed": None if snapshot.installed is None else installed_document(snapshot.installed),
        "oom_kills": [oom_kill_document(kill, snapshot.at.wall_s) for kill in snapshot.oom_kills],
        "warnings": list(snapshot.warnings),
        "blind": _failures(snapshot.blind),
        "probes": [_probe(state) for state in snapshot.probes],
        "tallies": [_tally(tally) for tally in snapshot.tallies],
        "tool_log_events": dict(snapshot.tool_log_events),
        "pcie_log_events": [
            {
                "severity": key[0],
                "device_id": key[1] or None,
                "count": count,
                "before_start": snapshot.pcie_log_events_before.get(key, 0),
            }
            for key, count in sorted(snapshot.pcie_log_events.items())
        ],
        "kernel_log_lost": snapshot.kernel_log_lost,
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
        "processes_cut": device.processes_cut,
        "jobs": None if device.jobs is None else jobs_document(device.jobs),
        "roce": None if device.roce is None else _npu_port(device.roce),
        "pcie_link": None if device.pcie_link is None else _pcie_link(device.pcie_link),
        "pcie_errors": None if device.pcie_errors is None else _pcie_errors(device.pcie_errors),
        "pcie_load": None if device.pcie_load is None else _pcie_load(device.pcie_load),
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


def _npu_port(port: NpuPort) -> Document:
    return {
        "link_up": port.link_up,
        "link_downs": port.link_downs,
        "bits_per_second": port.bits_per_second,
        "reachability": port.reachability,
        "statistics": None if port.statistics is None else _statistics(port.statistics),
        "optical": None if port.optical is None else _optical(port.optical),
    }


def _statistics(statistics: NpuPortStatistics) -> Document:
    return {
        "packets": dict(statistics.packets),
        "errors": dict(statistics.errors),
        "retries": statistics.retries,
        "congestion_notifications": dict(statistics.congestion_notifications),
        "pause_frames": dict(statistics.pause_frames),
        "pfc_frames": dict(statistics.pfc_frames),
    }


def _optical(module: OpticalModule) -> Document:
    return {
        "present": module.present,
        "temperature_celsius": _number(module.temperature_celsius),
        "voltage_volts": _number(module.voltage_volts),
        "vendor_name": module.vendor_name,
        "part_number": module.part_number,
        "serial_number": module.serial_number,
        "lanes": [{name: _finite(getattr(lane, name)) for name in OpticalLane.__slots__} for lane in module.lanes],
    }


def _pcie_link(link: PcieLink) -> Document:
    return {
        "transfers_per_second": _number(link.transfers_per_second),
        "max_transfers_per_second": _number(link.max_transfers_per_second),
        "lanes": link.lanes,
        "max_lanes": link.max_lanes,
        "path_transfers_per_second": _number(link.path_transfers_per_second),
        "path_max_transfers_per_second": _number(link.path_max_transfers_per_second),
        "path_lanes": link.path_lanes,
        "path_max_lanes": link.path_max_lanes,
        "narrow": link.narrow,
        "slow": link.slow,
        "path": list(link.path),
        "failures": _failures(link.failures),
    }


def _pcie_errors(errors: PcieErrors) -> Document:
    return {
        **{severity: getattr(errors, severity) for severity in SEVERITIES},
        "counts": {severity: dict(counts) for severity, counts in errors.counts.items()},
        "ports": [
            {"address": port.address, **{severity: getattr(port, severity) for severity in SEVERITIES}}
            for port in errors.ports
        ],
        "far_end": errors.far_end,
        "failures": _failures(errors.failures),
    }


def _pcie_load(load: PcieLoad) -> Document:
    return {
        "receive_bytes_per_second": _number(load.receive_bytes_per_second),
        "transmit_bytes_per_second": _number(load.transmit_bytes_per_second),
        "receive_ratio": _number(load.receive_ratio),
        "transmit_ratio": _number(load.transmit_ratio),
        "window_seconds": _number(load.window_s),
        "source": load.source,
    }


def _pcie_socket(load: SocketPcieLoad) -> Document:
    return {
        "socket": load.socket,
        "receive_bytes_per_second": _number(load.receive_bytes_per_second),
        "transmit_bytes_per_second": _number(load.transmit_bytes_per_second),
        "window_seconds": _number(load.window_s),
    }


def _port(port: Port) -> Document:
    facts, counters = port.facts, port.counters
    return {
        "rdma_device": port.key.rdma_device,
        "port": port.key.port,
        "present": port.present,
        "expected": port.expected,
        "up": port.up,
        "state": facts.state if facts else None,
        "physical_state": facts.physical_state if facts else None,
        "rate_gbps": _number(facts.rate_gbps) if facts else None,
        "link_layer": facts.link_layer if facts else None,
        "firmware": facts.firmware if facts else None,
        "netdev": port.netdev,
        "errors": dict(counters.errors) if counters else None,
        "bytes": dict(counters.bytes) if counters else None,
        "link_downs": counters.link_downs if counters else None,
        "failures": dict(counters.failures) if counters else {},
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


def _finite(value: float | bool | None) -> float | bool | None:
    return value if isinstance(value, bool) else _number(value)


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
