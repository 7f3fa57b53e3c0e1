"""How much each kind of clue speaks for each cause.

A strength is the share of incidents with that clue alone in which we hold the cause to be the true one. No published
count of such incidents exists, so all are assumptions, ordered by what the vendor's documents and the collected threads
say; the labelled cases of `tests/diagnose` hold them to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from npu_watchd.diagnose.cause import Cause

ENOUGH = 0.5
"""Score from which on a cause is named. assumption: below it the cause is more likely to be another."""
PROOF = 0.6
"""Strength of a clue without which hardware is never named: a chip is replaced for it. assumption."""
BEFORE_S = 1800.0
"""So long before the job's last words a finding may have ended and still count. assumption: HCCL waits up to 1836 s
(HCCL_EXEC_TIMEOUT) before a rank says what happened to its peer."""
AFTER_S = 600.0
"""So long after them a finding may have opened. assumption: devices and ports are polled every 60 s."""
OLD_S = 6 * 3600.0
"""A device's fault that was there so long before the job died is not by itself what ended it. assumption."""
OLD_FACTOR = 0.6
ELSEWHERE_FACTOR = 0.3
"""A finding of a device that the log does not name. assumption."""
NOBODY_KNOWS_FACTOR = 0.6
"""A finding of a device when nobody knows which devices the job had. assumption."""
OUTDONE_FACTOR = 0.6
"""A finding, where the log itself names another cause beyond doubt. assumption."""
LATER_FACTOR = 0.5
"""A failed connection after some rank had failed for a reason of its own. assumption."""

_V, _H, _C, _N, _M, _S = (
    Cause.VERSION_MISMATCH,
    Cause.HARDWARE,
    Cause.CONTENTION,
    Cause.NETWORK,
    Cause.HOST_MEMORY,
    Cause.SOFTWARE,
)


@dataclass(frozen=True, slots=True)
class Weight:
    """What one kind of clue says."""

    strengths: Mapping[Cause, float]
    certain: bool = False
    """It names its cause beyond doubt: a finding that speaks for another one steps back."""
    group: str = ""
    """Of one group only the strongest counts: they are one fact in several words."""
    follows: bool = False
    """A failure elsewhere brings it about, too: later than one, it counts half."""


LOG: Mapping[str, Weight] = {
    "compile_child_silent": Weight({_M: 0.35, _V: 0.2}, group="compile_child"),
    "compile_pipe_broken": Weight({_M: 0.3, _V: 0.15}, group="compile_child"),
    "compile_client_closed": Weight({_M: 0.2, _V: 0.15}, group="compile_child"),
    "tbe_main_process_gone": Weight({_M: 0.25}, group="killed"),
    "killed": Weight({_M: 0.4}, group="killed"),
    "worker_died": Weight({_M: 0.1}, group="killed"),
    "oom_kill": Weight({_M: 0.85}, certain=True),
    "oom_kill_of_other": Weight({_M: 0.55}),
    "host_memory_short": Weight({_M: 0.6}),
    "process_limit": Weight({_M: 0.75}, certain=True),
    "shared_memory_short": Weight({_M: 0.7}, certain=True),
    "disk_full": Weight({_S: 0.3}),
    "host_lockup": Weight({_M: 0.1}),
    "versions_do_not_fit": Weight({_V: 0.75}, certain=True),
    "versions_warned": Weight({_V: 0.4}),
    "feature_unsupported": Weight({_V: 0.6}, certain=True),
    "symbol_missing": Weight({_V: 0.75}, certain=True),
    "compiler_not_importable": Weight({_V: 0.8}, certain=True),
    "operators_missing": Weight({_V: 0.6}, certain=True),
    "driver_library_unusable": Weight({_V: 0.35}),
    "compile_failed": Weight({_S: 0.6, _V: 0.1}, certain=True),
    "setting_invalid": Weight({_S: 0.7}, certain=True),
    "rank_table_invalid": Weight({_S: 0.7}, certain=True),
    "ranks_differ": Weight({_S: 0.7}, certain=True),
    "data_type_unsupported": Weight({_S: 0.65}, certain=True),
    "dataset_failed": Weight({_S: 0.6}, certain=True),
    "framework_misused": Weight({_S: 0.6}, certain=True),
    "python_error": Weight({_S: 0.5}, certain=True),
    "core_exception": Weight({_S: 0.55, _H: 0.1}),
    "cpu_kernel_exception": Weight({_S: 0.55, _H: 0.05}),
    "crashed": Weight({_S: 0.15}, follows=True),
    "operator_timeout": Weight({_S: 0.1, _H: 0.05}, group="waits"),
    "device_memory_uncorrectable": Weight({_H: 0.85}, certain=True),
    "device_os_memory_error": Weight({_H: 0.8}, certain=True),
    "device_memory_suspect": Weight({_H: 0.3}),
    "device_heartbeat_lost": Weight({_H: 0.45}),
    "device_gone": Weight({_H: 0.4}),
    "device_exception": Weight({_H: 0.15, _S: 0.1}),
    "host_device_channel": Weight({_H: 0.2}),
    "pcie_uncorrected": Weight({_H: 0.45}),
    "dma_failed": Weight({_H: 0.2, _N: 0.15}),
    "driver_internal_error": Weight({_H: 0.1, _V: 0.1}),
    "device_occupied": Weight({_C: 0.7}, certain=True),
    "too_many_processes": Weight({_C: 0.75}, certain=True),
    "communication_memory_short": Weight({_C: 0.6}, certain=True),
    "port_taken": Weight({_C: 0.75}, certain=True),
    "address_in_use": Weight({_C: 0.5}),
    "device_memory_short": Weight({_S: 0.4, _C: 0.3}),
    "device_not_started": Weight({_C: 0.15, _H: 0.1}),
    "tls_differs": Weight({_N: 0.8}, certain=True),
    "device_address_wrong": Weight({_N: 0.75}, certain=True),
    "npu_port_down": Weight({_N: 0.7}, certain=True),
    "port_signal_bad": Weight({_N: 0.7}, certain=True),
    "switch_fault": Weight({_N: 0.6}),
    "roce_retransmission": Weight({_N: 0.7}, follows=True),
    "root_unreachable": Weight({_N: 0.6}, group="unconnected", follows=True),
    "link_not_established": Weight({_N: 0.6}, group="unconnected", follows=True),
    "firewall_suspected": Weight({_N: 0.3}, follows=True),
    "conntrack_full": Weight({_N: 0.5}),
    "link_error": Weight({_N: 0.45, _H: 0.2}, follows=True),
    "peer_not_ready": Weight({_N: 0.15}, group="waits", follows=True),
    "notify_wait": Weight({_N: 0.1}, group="waits", follows=True),
    "peer_heartbeat_lost": Weight({_N: 0.15}, group="waits", follows=True),
    "peer_stuck": Weight({_S: 0.1}, group="waits", follows=True),
    "collective_timeout": Weight({_N: 0.1}, group="waits", follows=True),
}
"""By the kind of a line. What is not here is told, and weighs nothing."""

CRITICAL: Mapping[str, Weight] = {
    "device_unhealthy": Weight({_H: 0.75}),
    "error_code": Weight({_H: 0.65}),
    "isolated_pages": Weight({_H: 0.6}),
    "pcie_errors": Weight({_H: 0.65}),
    "overheating": Weight({_H: 0.4}),
}
"""By the rule of a finding that is critical."""

FINDING: Mapping[str, Weight] = {
    "device_missing": Weight({_H: 0.85}),
    "device_unhealthy": Weight({_H: 0.3}),
    "error_code": Weight({_H: 0.2}),
    "error_code_repeats": Weight({_H: 0.8}),
    "hbm_double_bit": Weight({_H: 0.85}),
    "hbm_single_bit": Weight({_H: 0.15}),
    "isolated_pages": Weight({_H: 0.25}),
    "pcie_errors": Weight({_H: 0.25}),
    "pcie_link": Weight({_H: 0.15}),
    "overheating": Weight({_H: 0.2}),
    "tool_wedged": Weight({_H: 0.2}),
    "pcie_load": Weight({_C: 0.3}),
    "jobs_share_device": Weight({_C: 0.7}),
    "leftover": Weight({_C: 0.6}),
    "hccl_ports_conflict": Weight({_C: 0.7}),
    "visible_devices_overlap": Weight({_C: 0.65}),
    "outside_visible_devices": Weight({_C: 0.35}),
    "host_contention": Weight({_C: 0.55}),
    "hccl_settings_differ": Weight({_S: 0.55}),
    "roce_down": Weight({_N: 0.8}),
    "roce_flap": Weight({_N: 0.7}),
    "roce_slow": Weight({_N: 0.3}),
    "roce_errors": Weight({_N: 0.4}),
    "optics": Weight({_N: 0.5}),
    "host_oom": Weight({_M: 0.85}),
    "version_mismatch": Weight({_V: 0.4}),
}
"""By the rule of any finding."""

ALONE = Weight({_S: 0.35}, group="alone")
"""Device memory short, and no second job on the device: then it is this job's own doing."""
AGAINST: Mapping[str, Mapping[Cause, float]] = {
    "alone": {_C: 0.5},
    "devices_well": {_H: 0.5},
    "links_well": {_N: 0.1},
    "no_oom": {_M: 0.3},
}
"""What speaks against: the daemon watched, and saw nothing. A score is cut by that share. assumption."""


def weight_of(kind: str, *, finding: bool, critical: bool) -> Weight | None:
    """None: it is told, and weighs nothing."""
    if not finding:
        return LOG.get(kind)
    return (CRITICAL.get(kind) if critical else None) or FINDING.get(kind)
