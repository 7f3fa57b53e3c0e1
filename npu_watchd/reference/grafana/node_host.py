"""Panels of the node's host, and of what watches it: the probes and the daemon."""

from __future__ import annotations

from npu_watchd.config.values import Seconds
from npu_watchd.limits import BY_NAME
from npu_watchd.reference.grafana.expressions import READS, YES, of_node
from npu_watchd.reference.grafana.panel import Kind, Line, Panel, Query

_CPU, _MEMORY, _IO = 'resource="cpu", kind="some"', 'resource="memory"', 'resource="io"'
_KINDS = "{{kind}}"
_CHOSEN_OR_NONE = 'device_id=~"$device_id|"'
"""A table of all devices, or the host, is no device's."""
_OOM_WINDOW = Seconds(BY_NAME["oom_window_s"].default)

HOST = (
    Panel(
        "CPU pressure",
        Kind.SERIES,
        "Share of the last minute in which some of the work waited for a CPU; absent where the kernel does "
        "not measure it.",
        (Query(of_node("npu_node_pressure_ratio", _CPU), _KINDS),),
        "percentunit",
        lines=(Line.of("host_cpu_pressure_ratio", "orange"),),
        bounds=(0, 1),
    ),
    Panel(
        "Memory pressure",
        Kind.SERIES,
        "Likewise for memory to be freed.",
        (Query(of_node("npu_node_pressure_ratio", _MEMORY), _KINDS),),
        "percentunit",
        lines=(Line.of("host_memory_pressure_ratio", "orange"),),
        bounds=(0, 1),
    ),
    Panel(
        "Input and output pressure",
        Kind.SERIES,
        "Likewise for disks and what is mounted.",
        (Query(of_node("npu_node_pressure_ratio", _IO), _KINDS),),
        "percentunit",
        bounds=(0, 1),
    ),
    Panel(
        "Memory of the host",
        Kind.SERIES,
        "What can be had without swapping, and /dev/shm, which takes of it.",
        (
            Query(of_node("npu_node_memory_total_bytes"), "total"),
            Query(of_node("npu_node_memory_available_bytes"), "available"),
            Query(of_node("npu_node_shm_used_bytes"), "shm used"),
            Query(of_node("npu_node_shm_total_bytes"), "shm size"),
        ),
        "bytes",
    ),
    Panel(
        f"Processes killed for want of memory, in {_OOM_WINDOW}",
        Kind.SERIES,
        "By the kernel, in cgroups too. The alert speaks of a job's.",
        (Query(f"increase({of_node('npu_node_oom_kills_total')}[{_OOM_WINDOW}])", "kills"),),
        lines=(Line.of("oom_kills"),),
    ),
    Panel(
        "Tasks, of all there can be",
        Kind.SERIES,
        "At 100 % no process and no thread can start.",
        (Query(f"{of_node('npu_node_tasks')} / {of_node('npu_node_tasks_max')}", "tasks"),),
        "percentunit",
        bounds=(0, 1),
    ),
    Panel(
        "Log events in an hour",
        Kind.SERIES,
        "PCIe errors in the kernel's log, and lines of npu-smi's own error log.",
        (Query(f"increase({of_node('npu_node_log_events_total')}[1h])", "{{kind}} {{code}} {{device_id}}"),),
        width=24,
    ),
)
PROBES = (
    Panel(
        "What could be read",
        Kind.STATES,
        "Each probe's newest calls: failed where that of any chosen device did; a gap: never asked, or not supported.",
        (Query(f"min by (probe) ({of_node('npu_watchd_probe_up', _CHOSEN_OR_NONE)})", "{{probe}}"),),
        states=READS,
        width=12,
        height=12,
    ),
    Panel(
        "Since the last success",
        Kind.SERIES,
        "Of any device.",
        (Query(f"time() - {of_node('npu_watchd_probe_last_success_timestamp_seconds')}", "{{probe}}"),),
        "s",
        12,
        12,
    ),
    Panel(
        "Failures in an hour",
        Kind.SERIES,
        "By kind; a failed read takes series away, it never makes a 0.",
        (
            Query(
                f"increase({of_node('npu_watchd_probe_failures_total')}[1h]) > 0",
                "{{probe}} {{kind}}",
            ),
        ),
    ),
    Panel(
        "How long the newest call took",
        Kind.SERIES,
        "A tool that slows down is often a driver in trouble.",
        (Query(of_node("npu_watchd_probe_duration_seconds"), "{{probe}}"),),
        "s",
    ),
    Panel(
        "Keys that no parser knows, in a day",
        Kind.SERIES,
        "A new version of the tool, perhaps.",
        (Query(f"increase({of_node('npu_watchd_parser_unknown_keys_total')}[1d])", "{{probe}}"),),
    ),
)
DAEMON = (
    Panel(
        "In order",
        Kind.STATES,
        "The newest config is in use; history, findings and journal are on disk.",
        (
            Query(of_node("npu_watchd_config_reload_success"), "config in use"),
            Query(of_node("npu_watchd_history_written"), "history on disk"),
        ),
        states=YES,
        height=6,
    ),
    Panel(
        "Version",
        Kind.TABLE,
        "The daemon's.",
        (Query(f"max by (version) ({of_node('npu_watchd_build_info')})"),),
        width=4,
        height=6,
        columns={"version": "version"},
    ),
    Panel(
        "Age of the page, length of a cycle",
        Kind.SERIES,
        "How old what Prometheus reads is, and how long the cycle before took.",
        (
            Query(f"time() - {of_node('npu_watchd_cycle_timestamp_seconds')}", "age"),
            Query(of_node("npu_watchd_cycle_duration_seconds"), "cycle"),
        ),
        "s",
        12,
        6,
    ),
    Panel(
        "The vendor's tool",
        Kind.SERIES,
        "Share of the time in which npu-smi runs for us, which `[engine] tool_share` caps, and how many "
        "times longer than planned the periods are for it.",
        (
            Query(of_node("npu_watchd_tool_share_ratio"), "share of the time"),
            Query(of_node("npu_watchd_period_stretch_ratio"), "periods, times longer"),
        ),
        width=12,
    ),
    Panel(
        "Calls that could not be ended",
        Kind.SERIES,
        "Processes that not even SIGKILL ends: the driver holds them.",
        (Query(of_node("npu_watchd_abandoned_processes"), "{{tool}}"),),
        width=12,
    ),
    Panel(
        "Alerts handed over, a second",
        Kind.SERIES,
        "Requests to each Alertmanager, those that it did not take, and alerts that were dropped for want of room.",
        (
            Query(f"rate({of_node('npu_watchd_notifications_total')}[$__rate_interval])", "{{target}}"),
            Query(
                f"rate({of_node('npu_watchd_notification_failures_total')}[$__rate_interval])", "{{target}} not taken"
            ),
            Query(f"rate({of_node('npu_watchd_notification_drops_total')}[$__rate_interval])", "{{target}} dropped"),
        ),
        "reqps",
    ),
    Panel(
        "Since an Alertmanager last took alerts",
        Kind.SERIES,
        "No data: not since the daemon started, perhaps for want of alerts.",
        (Query(f"time() - {of_node('npu_watchd_notification_last_success_timestamp_seconds')}", "{{target}}"),),
        "s",
    ),
    Panel(
        "Lost and odd, in an hour",
        Kind.SERIES,
        "Records of the kernel's log that were overwritten before they were read, and jumps of the wall clock.",
        (
            Query(f"increase({of_node('npu_watchd_kernel_log_lost_records_total')}[1h])", "records lost"),
            Query(f"increase({of_node('npu_watchd_clock_jumps_total')}[1h])", "clock jumps"),
        ),
    ),
)
