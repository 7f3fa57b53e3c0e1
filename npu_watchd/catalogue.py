"""Every exported metric, declared once, with the getter that reads it.

Names, labels and units are DESIGN section 7's: a contract with other people's dashboards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from npu_watchd.model.snapshot import HEALTH_STATES, Device, Outcome


class Kind(Enum):
    GAUGE = "gauge"
    COUNTER = "counter"


Sample = tuple[Mapping[str, str], float]
"""Label values by name, and the value. A label whose value is empty is left out of the exposition."""


@dataclass(frozen=True, slots=True)
class DeviceFamily:
    """A metric that each device has; the renderer adds the label `device_id`."""

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...]
    """Beside device_id."""
    read: Callable[[Device], Iterable[Sample]]


@dataclass(frozen=True, slots=True)
class NodeFamily:
    """A metric of the node or of the daemon."""

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...]
    read: Callable[[Outcome], Iterable[Sample]]


Family = DeviceFamily | NodeFamily


def _one(value: float | bool | None) -> Iterable[Sample]:
    """A sample without further labels, or none where nobody knows the value."""
    return () if value is None else (({}, float(value)),)


def _each(label: str, values: Mapping[str, float | None]) -> Iterable[Sample]:
    """A sample for each key whose value somebody knows."""
    return [({label: key}, float(value)) for key, value in values.items() if value is not None]


def _states(label: str, states: Iterable[str], current: str) -> Iterable[Sample]:
    return [({label: state}, float(state == current)) for state in states]


def _device_info(device: Device) -> Iterable[Sample]:
    identity = device.identity
    labels = {
        "npu_id": str(device.key.npu),
        "chip_id": str(device.key.chip),
        "phy_id": "" if identity.phy_id is None else str(identity.phy_id),
        "name": identity.name or "",
        "pci_address": identity.pci_address or "",
        "firmware": identity.firmware or "",
    }
    return ((labels, 1.0),)


def _error_codes(device: Device) -> Iterable[Sample]:
    return [({"code": code, "level": device.health}, 1.0) for code in dict.fromkeys(device.error_codes or ())]


def _memory_errors(suffix: str) -> Callable[[Device], Iterable[Sample]]:
    """Counts by memory and kind, of the fields of MemoryErrors with this suffix."""

    def read(device: Device) -> Iterable[Sample]:
        for memory, errors in device.memory_errors.items():
            for kind in ("single_bit", "double_bit"):
                count = getattr(errors, kind + suffix)
                if count is not None:
                    yield {"memory": memory, "kind": kind}, float(count)

    return read


def _links(counts: tuple[int, ...] | None) -> Iterable[Sample]:
    return [({"link": str(link)}, float(count)) for link, count in enumerate(counts or ())]


def _node_info(outcome: Outcome) -> Iterable[Sample]:
    snapshot = outcome.snapshot
    labels = {
        "node": snapshot.node,
        "driver": snapshot.driver_version or "",
        "npu_smi": snapshot.tool_version or "",
        "firmware": snapshot.firmware_version or "",
    }
    return ((labels, 1.0),)


def _probe_up(outcome: Outcome) -> Iterable[Sample]:
    for state in outcome.snapshot.probes:
        yield {"probe": state.probe, "device_id": state.device_id or ""}, float(state.up)


def _tally(field: str) -> Callable[[Outcome], Iterable[Sample]]:
    def read(outcome: Outcome) -> Iterable[Sample]:
        return _each("probe", {tally.probe: getattr(tally, field) for tally in outcome.snapshot.tallies})

    return read


def _probe_failures(outcome: Outcome) -> Iterable[Sample]:
    for tally in outcome.snapshot.tallies:
        for kind, count in sorted(tally.failures.items()):
            yield {"probe": tally.probe, "kind": kind}, float(count)


def _log_events(outcome: Outcome) -> Iterable[Sample]:
    for code, count in sorted(outcome.snapshot.tool_log_events.items()):
        yield {"kind": "npu_smi", "code": code}, float(count)


_G, _C = Kind.GAUGE, Kind.COUNTER
_SMI = "npu-smi info"

DEVICE_FAMILIES: tuple[DeviceFamily, ...] = (
    DeviceFamily(
        "npu_device_info",
        _G,
        f"Who the device is (`{_SMI}`, `-m`, `-t board`); join it on device_id.",
        ("npu_id", "chip_id", "phy_id", "name", "pci_address", "firmware"),
        _device_info,
    ),
    DeviceFamily(
        "npu_device_present",
        _G,
        f"1 while the newest table shows the device, 0 while it does not; absent: no table (`{_SMI}`).",
        (),
        lambda device: _one(device.present),
    ),
    DeviceFamily(
        "npu_device_health",
        _G,
        f"State set: the worse of `{_SMI}` and `-t health`; ok only when both say so, unknown when one cannot be read.",
        ("state",),
        lambda device: _states("state", HEALTH_STATES, device.health),
    ),
    DeviceFamily(
        "npu_device_error_code_active",
        _G,
        f"1 for each error code that is active, with the device's health as level (`{_SMI} -t health`: Error Code).",
        ("code", "level"),
        _error_codes,
    ),
    DeviceFamily(
        "npu_device_temperature_celsius",
        _G,
        f"Temperature by sensor: chip (`{_SMI}`: Temp), hbm (`-t memory`: HBM Temperature).",
        ("sensor",),
        lambda device: _each("sensor", device.temperature_celsius),
    ),
    DeviceFamily(
        "npu_device_power_watts",
        _G,
        f"Power; on A3 the whole card's, on its first die; rated instead of measured on 310 (`{_SMI}`: Power).",
        (),
        lambda device: _one(device.power_watts),
    ),
    DeviceFamily(
        "npu_device_utilization_ratio",
        _G,
        f"Utilisation by unit, 0 to 1 (`{_SMI}`: AICore; `-t usages`: the others).",
        ("unit",),
        lambda device: _each("unit", device.utilization_ratio),
    ),
    DeviceFamily(
        "npu_device_clock_hertz",
        _G,
        f"Present AICore clock (`{_SMI} -t common`: Aicore curFreq).",
        (),
        lambda device: _one(device.clock_hertz),
    ),
    DeviceFamily(
        "npu_device_clock_max_hertz",
        _G,
        f"Nominal AICore clock (`{_SMI} -t common`: Aicore Freq).",
        (),
        lambda device: _one(device.clock_max_hertz),
    ),
    DeviceFamily(
        "npu_device_memory_used_bytes",
        _G,
        f"Memory in use, the device's own share included (`{_SMI}`: HBM-Usage, Memory-Usage).",
        ("memory",),
        lambda device: _each("memory", {name: memory.used_bytes for name, memory in device.memory.items()}),
    ),
    DeviceFamily(
        "npu_device_memory_total_bytes",
        _G,
        f"Memory there is (`{_SMI}`: HBM-Usage, Memory-Usage).",
        ("memory",),
        lambda device: _each("memory", {name: memory.total_bytes for name, memory in device.memory.items()}),
    ),
    DeviceFamily(
        "npu_device_memory_bandwidth_utilization_ratio",
        _G,
        f"Share of the memory bandwidth in use, 0 to 1 (`{_SMI} -t usages`: Bandwidth Usage Rate).",
        ("memory",),
        lambda device: _each("memory", device.memory_bandwidth_utilization_ratio),
    ),
    DeviceFamily(
        "npu_device_memory_errors_total",
        _C,
        f"ECC errors since the device was last reset (`{_SMI} -t ecc`: Bit Error Count).",
        ("memory", "kind"),
        _memory_errors(""),
    ),
    DeviceFamily(
        "npu_device_memory_lifetime_errors_total",
        _C,
        f"ECC errors in the device's life (`{_SMI} -t ecc`: Aggregate Total Err Cnt).",
        ("memory", "kind"),
        _memory_errors("_lifetime"),
    ),
    DeviceFamily(
        "npu_device_memory_isolated_pages",
        _G,
        f"Pages taken out of use (`{_SMI} -t ecc`: Isolated Pages Count).",
        ("memory", "kind"),
        _memory_errors("_isolated_pages"),
    ),
    DeviceFamily(
        "npu_device_processes",
        _G,
        f"Processes that the table lists, at most 8 a chip; absent where it lists none at all (`{_SMI}`).",
        (),
        lambda device: _one(None if device.processes is None else len(device.processes)),
    ),
    DeviceFamily(
        "npu_device_hccs_errors_total",
        _C,
        f"Errors by HCCS link, in the tool's order (`{_SMI} -t hccs`: hccs error count).",
        ("link",),
        lambda device: _links(device.hccs.error_counts if device.hccs else None),
    ),
    DeviceFamily(
        "npu_device_hccs_retries_total",
        _C,
        f"Retries by HCCS link, in the tool's order (`{_SMI} -t hccs`: hccs retry count).",
        ("link",),
        lambda device: _links(device.hccs.retry_counts if device.hccs else None),
    ),
    DeviceFamily(
        "npu_device_pcie_link_errors_total",
        _C,
        f"PCIe link errors as the device counts them (`{_SMI} -t pcie-err`).",
        ("kind",),
        lambda device: _each("kind", device.pcie_link_errors.counts if device.pcie_link_errors else {}),
    ),
)

NODE_FAMILIES: tuple[NodeFamily, ...] = (
    NodeFamily(
        "npu_node_info",
        _G,
        "The node and its versions; the only series with the node's name.",
        ("node", "driver", "npu_smi", "firmware"),
        _node_info,
    ),
    NodeFamily(
        "npu_devices_expected",
        _G,
        "Devices there should be: [node] expected_devices, else the most that the tools have shown since the start.",
        (),
        lambda outcome: _one(outcome.snapshot.devices_expected),
    ),
    NodeFamily(
        "npu_devices_present",
        _G,
        f"Devices in the newest table; absent: no table (`{_SMI}`).",
        (),
        lambda outcome: _one(outcome.snapshot.devices_present),
    ),
    NodeFamily(
        "npu_node_log_events_total",
        _C,
        "Lines that npu-smi wrote into its own error log since the daemon started, by error code.",
        ("kind", "code", "device_id"),
        _log_events,
    ),
    NodeFamily(
        "npu_watchd_probe_up",
        _G,
        "1: the probe's newest call succeeded; 0: it failed; absent: never asked, or the chip does not support it.",
        ("probe", "device_id"),
        _probe_up,
    ),
    NodeFamily(
        "npu_watchd_probe_duration_seconds",
        _G,
        "How long the probe's newest call took.",
        ("probe",),
        _tally("duration_s"),
    ),
    NodeFamily(
        "npu_watchd_probe_last_success_timestamp_seconds",
        _G,
        "When the probe last succeeded, for any device.",
        ("probe",),
        _tally("last_success_wall_s"),
    ),
    NodeFamily(
        "npu_watchd_probe_failures_total",
        _C,
        "Readings that failed, by kind: missing denied timeout wedged exit unparseable.",
        ("probe", "kind"),
        _probe_failures,
    ),
    NodeFamily(
        "npu_watchd_parser_unknown_keys_total",
        _C,
        "Keys in the tool's text that no parser knows: a new tool version, perhaps.",
        ("probe",),
        _tally("unknown_keys"),
    ),
    NodeFamily(
        "npu_watchd_tool_share_ratio",
        _G,
        "Share of the last 120 s in which npu-smi ran for us; [engine] tool_share caps it.",
        (),
        lambda outcome: _one(outcome.engine.tool_share_ratio),
    ),
    NodeFamily(
        "npu_watchd_period_stretch_ratio",
        _G,
        "How many times longer than planned the probes' periods are, because the tool is slow and its share is capped.",
        (),
        lambda outcome: _one(outcome.engine.period_stretch_ratio),
    ),
    NodeFamily(
        "npu_watchd_abandoned_processes",
        _G,
        "Processes of a tool that not even SIGKILL could end (D state); no other of that tool is started meanwhile.",
        ("tool",),
        lambda outcome: _each("tool", outcome.engine.abandoned_processes),
    ),
    NodeFamily(
        "npu_watchd_cycle_duration_seconds",
        _G,
        "How long the cycle before this one took.",
        (),
        lambda outcome: _one(outcome.engine.cycle_duration_s),
    ),
    NodeFamily(
        "npu_watchd_cycle_timestamp_seconds",
        _G,
        "When this page was made.",
        (),
        lambda outcome: _one(outcome.snapshot.at.wall_s),
    ),
    NodeFamily(
        "npu_watchd_build_info",
        _G,
        "The daemon's version.",
        ("version",),
        lambda outcome: (({"version": outcome.engine.version}, 1.0),),
    ),
    NodeFamily(
        "npu_watchd_config_reload_success",
        _G,
        "1: the newest config is in use; 0: it was bad, and the one before it is.",
        (),
        lambda outcome: _one(outcome.engine.config_reload_ok),
    ),
    NodeFamily(
        "npu_watchd_clock_jumps_total",
        _C,
        "Times that the wall clock was seen to jump by more than two seconds.",
        (),
        lambda outcome: _one(outcome.engine.clock_jumps),
    ),
)

CATALOGUE: tuple[Family, ...] = (*DEVICE_FAMILIES, *NODE_FAMILIES)
