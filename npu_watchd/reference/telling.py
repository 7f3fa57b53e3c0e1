"""What the pages and the tests say of each rule beside its table: about what it is, and how its severity varies."""

from __future__ import annotations

from collections.abc import Mapping

DEVICE, PORT, NODE = "device", "port", "node"

SUBJECTS: Mapping[str, tuple[str, ...]] = {
    "device_missing": (DEVICE, NODE),
    "device_unhealthy": (DEVICE,),
    "error_code": (DEVICE,),
    "error_code_repeats": (DEVICE,),
    "hbm_double_bit": (DEVICE,),
    "hbm_single_bit": (DEVICE,),
    "isolated_pages": (DEVICE,),
    "overheating": (DEVICE,),
    "pcie_link": (DEVICE,),
    "pcie_errors": (DEVICE,),
    "pcie_load": (DEVICE,),
    "roce_down": (PORT, DEVICE),
    "roce_flap": (PORT, DEVICE),
    "roce_slow": (PORT, DEVICE),
    "roce_errors": (PORT, DEVICE),
    "optics": (DEVICE,),
    "jobs_share_device": (DEVICE,),
    "leftover": (DEVICE,),
    "hccl_ports_conflict": (DEVICE,),
    "hccl_settings_differ": (DEVICE,),
    "visible_devices_overlap": (DEVICE,),
    "outside_visible_devices": (DEVICE,),
    "host_contention": (NODE,),
    "host_oom": (NODE,),
    "version_mismatch": (NODE,),
    "tool_wedged": (NODE,),
    "probe_blind": (NODE, DEVICE),
    "quarantine": (DEVICE, NODE),
}
"""Rule → what a finding of it may be about."""

VARIES: Mapping[str, str] = {
    "device_unhealthy": "health Warning: warning; Alarm: critical; Critical: critical, and only it quarantines",
    "error_code": "severity, action and quarantine are those of the code's tier: `npu-watchd explain CODE`",
    "error_code_repeats": "critical where the code's own frequency rule quarantines, else warning",
    "isolated_pages": "warning at the first limit, action observe; critical at the second, which quarantines",
    "overheating": "warning and critical have limits of their own",
    "pcie_errors": "corrected errors: warning; non-fatal: critical; fatal: critical, and only it quarantines",
}
"""Rules whose findings differ in severity, action or quarantine; the rule's own values are the worst."""
