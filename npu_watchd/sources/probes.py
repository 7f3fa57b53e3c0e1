"""PROBES: everything that is asked of a tool, and FILE_PROBES beside it, what is read from files."""

from __future__ import annotations

from collections.abc import Mapping

from npu_watchd.sources.file_lane import FILE_PROBES, FileProbe
from npu_watchd.sources.hccn_probes import HCCN_PROBES
from npu_watchd.sources.npu_smi_probes import NPU_SMI_PROBES
from npu_watchd.sources.probe import Probe

PROBES: tuple[Probe, ...] = (*NPU_SMI_PROBES, *HCCN_PROBES)
DEFAULTS: Mapping[str, Probe | FileProbe] = {
    **{probe.name: probe for probe in PROBES},
    **{probe.name: probe for probe in FILE_PROBES},
}
"""By name: each probe's own period and deadline."""
OPT_IN = frozenset({"pcie_load"})
"""Off unless the config says `enabled = true`, because each reading costs something."""
