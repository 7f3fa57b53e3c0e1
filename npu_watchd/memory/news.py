"""Which readings cannot wait for the next cycle: what somebody may have to be paged for."""

from __future__ import annotations

from npu_watchd.model.fabric import NpuLink, NpuLinkHistory, RdmaPorts
from npu_watchd.model.pcie import PcieErrors, PcieLink
from npu_watchd.model.records import EccChip, HealthChip, InfoTable


def is_news(before: object, now: object) -> bool:
    """Whether a record says something else than the one before it that a rule may find at once.

    Values that always move (temperatures, memory in use, traffic) and rates of errors are none: they can wait.
    """
    if type(before) is not type(now):
        return False
    return _telling(before) != _telling(now)


def _telling(record: object) -> object:
    match record:
        case InfoTable():
            return {(row.npu, row.chip): (row.health, row.trusted) for row in record.devices}
        case HealthChip():
            return record.health, record.error_codes
        case EccChip():
            return record.hbm, record.ddr
        case NpuLink():
            return record.up
        case NpuLinkHistory():
            return record.down_count
        case RdmaPorts():
            return {port.key: port.up for port in record.ports}
        case PcieErrors():
            return record.both_ends("nonfatal"), record.both_ends("fatal")
        case PcieLink():
            return record.narrow
    return None
