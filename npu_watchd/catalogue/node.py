"""The metrics of the node and of the daemon itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from npu_watchd.catalogue.family import Kind, NodeFamily, Sample, each, one
from npu_watchd.model.fabric import PortKey
from npu_watchd.model.snapshot import Outcome

_G, _C = Kind.GAUGE, Kind.COUNTER
_SMI = "npu-smi info"


def _node_info(outcome: Outcome) -> Iterable[Sample]:
    snapshot = outcome.snapshot
    installed = snapshot.installed
    labels = {
        "node": snapshot.node,
        "driver": snapshot.driver_version or "",
        "npu_smi": snapshot.tool_version or "",
        "firmware": snapshot.firmware_version or "",
        "cann": ", ".join(installed.cann_versions) if installed else "",
        "frameworks": ", ".join(installed.frameworks) if installed else "",
    }
    return ((labels, 1.0),)


def _findings(outcome: Outcome) -> Iterable[Sample]:
    for finding in outcome.findings:
        port = finding.subject if isinstance(finding.subject, PortKey) else None
        labels = {
            "rule": finding.rule,
            "severity": finding.severity.value,
            "device_id": finding.device_id or "",
            "rdma_device": port.rdma_device if port else "",
            "port": str(port.port) if port else "",
        }
        yield labels, 1.0


def _probe_up(outcome: Outcome) -> Iterable[Sample]:
    for state in outcome.snapshot.probes:
        yield {"probe": state.probe, "device_id": state.device_id or ""}, float(state.up)


def _tally(field: str) -> Callable[[Outcome], Iterable[Sample]]:
    def read(outcome: Outcome) -> Iterable[Sample]:
        return each("probe", {tally.probe: getattr(tally, field) for tally in outcome.snapshot.tallies})

    return read


def _probe_failures(outcome: Outcome) -> Iterable[Sample]:
    for tally in outcome.snapshot.tallies:
        for kind, count in sorted(tally.failures.items()):
            yield {"probe": tally.probe, "kind": kind}, float(count)


def _log_events(outcome: Outcome) -> Iterable[Sample]:
    for code, count in sorted(outcome.snapshot.tool_log_events.items()):
        yield {"kind": "npu_smi", "code": code}, float(count)
    for (severity, device_id), count in sorted(outcome.snapshot.pcie_log_events.items()):
        yield {"kind": "pcie", "code": severity, "device_id": device_id}, float(count)


def _notifications(field: str) -> Callable[[Outcome], Iterable[Sample]]:
    def read(outcome: Outcome) -> Iterable[Sample]:
        return each("target", {target: getattr(it, field) for target, it in outcome.engine.notifications.items()})

    return read


NODE_FAMILIES: tuple[NodeFamily, ...] = (
    NodeFamily(
        "npu_node_info",
        _G,
        "The node and its versions; the only series with the node's name.",
        ("node", "driver", "npu_smi", "firmware", "cann", "frameworks"),
        _node_info,
    ),
    NodeFamily(
        "npu_devices_expected",
        _G,
        "Devices there should be: [node] expected_devices, else the most that the tools have shown since the start.",
        (),
        lambda outcome: one(outcome.snapshot.devices_expected),
    ),
    NodeFamily(
        "npu_devices_present",
        _G,
        f"Devices in the newest table; absent: no table (`{_SMI}`).",
        (),
        lambda outcome: one(outcome.snapshot.devices_present),
    ),
    NodeFamily(
        "npu_node_log_events_total",
        _C,
        "pcie: errors in the kernel's log by severity, since boot as far as its ring reaches back; npu_smi: lines of "
        "npu-smi's own error log by code, since the daemon started.",
        ("kind", "code", "device_id"),
        _log_events,
    ),
    NodeFamily(
        "npu_watchd_finding_active",
        _G,
        "1 for each finding that stands, held ones included; none where nothing is wrong. One rule, one alert.",
        ("rule", "severity", "device_id", "rdma_device", "port"),
        _findings,
    ),
    NodeFamily(
        "npu_watchd_kernel_log_lost_records_total",
        _C,
        "Records that the kernel overwrote before we read them; absent: its log is not readable (/dev/kmsg).",
        (),
        lambda outcome: one(outcome.snapshot.kernel_log_lost),
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
        "Readings that failed, by kind: missing denied timeout wedged exit unparseable unsupported.",
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
        lambda outcome: one(outcome.engine.tool_share_ratio),
    ),
    NodeFamily(
        "npu_watchd_period_stretch_ratio",
        _G,
        "How many times longer than planned the probes' periods are, because the tool is slow and its share is capped.",
        (),
        lambda outcome: one(outcome.engine.period_stretch_ratio),
    ),
    NodeFamily(
        "npu_watchd_abandoned_processes",
        _G,
        "Processes of a tool that not even SIGKILL could end (D state); no other of that tool is started meanwhile.",
        ("tool",),
        lambda outcome: each("tool", outcome.engine.abandoned_processes),
    ),
    NodeFamily(
        "npu_watchd_cycle_duration_seconds",
        _G,
        "How long the cycle before this one took.",
        (),
        lambda outcome: one(outcome.engine.cycle_duration_s),
    ),
    NodeFamily(
        "npu_watchd_cycle_timestamp_seconds",
        _G,
        "When this page was made.",
        (),
        lambda outcome: one(outcome.snapshot.at.wall_s),
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
        lambda outcome: one(outcome.engine.config_reload_ok),
    ),
    NodeFamily(
        "npu_watchd_history_written",
        _G,
        "1: history, findings and journal are on disk; 0: they cannot be written, and a restart would forget some.",
        (),
        lambda outcome: one(outcome.engine.history_written),
    ),
    NodeFamily(
        "npu_watchd_clock_jumps_total",
        _C,
        "Times that the wall clock was seen to jump by more than two seconds.",
        (),
        lambda outcome: one(outcome.engine.clock_jumps),
    ),
    NodeFamily(
        "npu_watchd_notifications_total",
        _C,
        "Requests with alerts to this Alertmanager, those that failed included.",
        ("target",),
        _notifications("sent"),
    ),
    NodeFamily(
        "npu_watchd_notification_failures_total",
        _C,
        "Of these, the ones that it did not take, or to which no good answer came; the log says why.",
        ("target",),
        _notifications("failures"),
    ),
    NodeFamily(
        "npu_watchd_notification_drops_total",
        _C,
        "Alerts that had no room among the 1000 that are kept for this Alertmanager.",
        ("target",),
        _notifications("dropped"),
    ),
    NodeFamily(
        "npu_watchd_notification_last_success_timestamp_seconds",
        _G,
        "When this Alertmanager last took alerts; absent: not since the daemon started, perhaps for want of alerts.",
        ("target",),
        _notifications("last_success_wall_s"),
    ),
)
