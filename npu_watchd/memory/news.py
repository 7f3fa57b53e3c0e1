"""Which readings cannot wait for the next cycle: what somebody may have to be paged for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from npu_watchd.model.fabric import NpuLink, NpuLinkHistory, RdmaPorts
from npu_watchd.model.pcie import PcieErrors, PcieLink
from npu_watchd.model.records import EccChip, Hccs, HealthChip, InfoTable, PcieLinkErrors


def is_news(before: object, now: object) -> bool:
    """Whether a record says something else than the one before it that a rule may find at once.

    Values that always move (temperatures, memory in use, traffic) and rates of errors are none: they can wait.
    """
    telling = _TELLING.get(type(now))
    return telling is not None and type(before) is type(now) and telling(before) != telling(now)


_TELLING: Mapping[type, Callable[[Any], object]] = {
    InfoTable: lambda table: {(row.npu, row.chip): (row.health, row.trusted) for row in table.devices},
    HealthChip: lambda chip: (chip.health, chip.error_codes),
    EccChip: lambda chip: (chip.hbm, chip.ddr),
    Hccs: lambda hccs: (hccs.healthy, hccs.error_counts),
    NpuLink: lambda link: link.up,
    NpuLinkHistory: lambda history: history.down_count,
    RdmaPorts: lambda ports: {port.key: port.up for port in ports.ports},
    PcieErrors: lambda errors: (errors.both_ends("nonfatal"), errors.both_ends("fatal")),
    PcieLinkErrors: lambda errors: errors.counts,
    PcieLink: lambda link: link.narrow,
}
"""Kind of record → what of it may page somebody."""
