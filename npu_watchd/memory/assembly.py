"""From the newest readings of one chip to what may be said of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from npu_watchd.memory.occupants import all_of, jobs_of, processes_of
from npu_watchd.model.fabric import (
    NET_HEALTH_LABELS,
    NetHealth,
    NpuLink,
    NpuLinkHistory,
    NpuLinkSpeed,
    NpuPortStatistics,
    OpticalModule,
)
from npu_watchd.model.ids import DeviceKey
from npu_watchd.model.jobs import DeviceJobs
from npu_watchd.model.pcie import PcieErrors, PcieLink, PcieLoad
from npu_watchd.model.reading import Failure, FailureKind
from npu_watchd.model.records import (
    Clocks,
    DeviceRow,
    EccChip,
    Hccs,
    HealthChip,
    InfoTable,
    MemoryErrors,
    MemoryTemperature,
    PcieLinkErrors,
    ProcessMemoryChip,
    Usages,
)
from npu_watchd.model.snapshot import Device, Identity, Memory, NpuPort

_WORDS = {"OK": "ok", "Warning": "warning", "Alarm": "alarm", "Critical": "critical", "UNKNOWN": "unknown"}
_BAD = ("critical", "alarm", "warning")
BAD_WORDS = frozenset(word for word, state in _WORDS.items() if state in _BAD)
"""As npu-smi prints them."""

_ABSENT = {
    "npu_info": Failure(
        FailureKind.EXIT, "`npu-smi info` shows no such chip; compare `npu-smi info -l` and `lspci -d 19e5:`"
    )
}


@dataclass(frozen=True, slots=True)
class Facts:
    """What is fresh about one chip."""

    key: DeviceKey
    device_id: str
    device_id_source: str
    identity: Identity
    profile: str
    table: InfoTable | None
    """None: the table could not be read, or the newest good one is stale."""
    row: DeviceRow | None
    records: Mapping[str, object]
    """Probe → its fresh record about this chip."""
    blind: Mapping[str, Failure]
    unsupported: Mapping[str, str]
    vital: frozenset[str]
    code_tier: Callable[[str], str]
    """An error code → how bad it is said to be."""
    health_outdated: bool = False
    """The table has called the chip's health bad since its newest record of `npu_health` was read."""


def device_of(facts: Facts) -> Device:
    """The chip as the snapshot shows it: what is not fresh or not trusted is left out, and `blind` says why."""
    row = facts.row if facts.row is not None and facts.row.trusted else None
    present = None if facts.table is None else facts.row is not None
    # A chip that is not in the table cannot be asked anything else.
    blind = dict(_ABSENT if present is False else facts.blind)
    if facts.row is not None and row is None:
        marks = ", ".join(facts.row.distrust)
        blind["npu_info"] = Failure(FailureKind.UNPARSEABLE, f"the row bears the marks of a failed query: {marks}")
    # What was read of a chip before it vanished says nothing of it now.
    records = {} if present is False else facts.records
    said = _of(HealthChip, records.get("npu_health"))
    ecc = _of(EccChip, records.get("npu_ecc"))
    usages = _of(Usages, records.get("npu_usages"))
    clocks = _of(Clocks, records.get("npu_common"))
    link_to_cpu = _of(PcieLink, records.get("pcie_link"))
    load = _of(PcieLoad, records.get("pcie_load"))
    asked = "npu_health" not in facts.unsupported
    listed = processes_of(facts.key, facts.table) if facts.row is not None else None
    processes, cut = all_of(listed, _of(ProcessMemoryChip, records.get("npu_proc_mem")))
    return Device(
        key=facts.key,
        device_id=facts.device_id,
        device_id_source=facts.device_id_source,
        identity=facts.identity,
        profile=facts.profile,
        present=present,
        health="unknown"
        if present is False
        else merged_health(row.health if row else None, said, asked=asked, outdated=facts.health_outdated),
        error_codes=said.error_codes if said else None,
        code_tiers={code: facts.code_tier(code) for code in (said.error_codes or ())} if said else {},
        power_watts=row.power_watts if row else None,
        temperature_celsius=_temperatures(row, _of(MemoryTemperature, records.get("npu_temp"))),
        utilization_ratio=_utilization(row, usages),
        clock_hertz=clocks.clock_hertz if clocks else None,
        clock_max_hertz=clocks.clock_max_hertz if clocks else None,
        memory=_memory(row),
        memory_bandwidth_utilization_ratio=usages.memory_bandwidth_utilization_ratio if usages else {},
        memory_errors=_memory_errors(ecc) if ecc else {},
        processes=processes,
        processes_cut=cut,
        jobs=jobs_of(facts.key, processes, _of(DeviceJobs, records.get("processes"))),
        roce=_npu_port(records),
        pcie_link=link_to_cpu,
        pcie_errors=_of(PcieErrors, records.get("pcie_aer")),
        pcie_load=load.against(link_to_cpu, _busy(row)) if load else None,
        hccs=_of(Hccs, records.get("npu_hccs")),
        pcie_link_errors=_of(PcieLinkErrors, records.get("npu_pcie_err")),
        blind=blind,
        unsupported=facts.unsupported,
        vital=facts.vital,
        vital_blind=present is not True or bool(facts.vital & blind.keys()),
    )


R = TypeVar("R")


def _of(kind: type[R], record: object) -> R | None:
    return record if isinstance(record, kind) else None


def merged_health(table: str | None, said: HealthChip | None, *, asked: bool, outdated: bool = False) -> str:
    """The worse of the table's word and `-t health`'s; `ok` only when both say so.

    table: None where the row is missing or untrusted. asked: False where the chip does not answer `-t health`, so that
    the table's word is all there is. A bad word counts by itself, a good one does not: npu-smi prints OK for a health
    query that failed. outdated: the table has had a bad word since `-t health` was read. An OK from then confirms none
    of now: of a chip that is bad and has no error code `-t health` says OK as well.
    """
    words = [_WORDS[word] for word in (table, said.health if said else None) if word is not None]
    for bad in _BAD:
        if bad in words:
            return bad
    sure = words == ["ok", "ok"] and not outdated if asked else words[:1] == ["ok"] and table is not None
    return "ok" if sure else "unknown"


def _busy(row: DeviceRow | None) -> bool | None:
    """Whether the chip computes; None where nobody knows."""
    ratio = row.aicore_utilization_ratio if row else None
    return None if ratio is None else ratio > 0


def _npu_port(records: Mapping[str, object]) -> NpuPort | None:
    """The chip's own port; each query that failed costs its own value."""
    link = _of(NpuLink, records.get("hccn_link"))
    history = _of(NpuLinkHistory, records.get("hccn_link_stat"))
    speed = _of(NpuLinkSpeed, records.get("hccn_speed"))
    health = _of(NetHealth, records.get("hccn_net_health"))
    # A link that is down has no speed (the tool refuses to tell one): what was read before it fell is of the past.
    down = link is not None and not link.up
    port = NpuPort(
        link_up=link.up if link else None,
        link_downs=history.down_count if history else None,
        bits_per_second=speed.bits_per_second if speed and not down else None,
        reachability=NET_HEALTH_LABELS[health.state] if health else None,
        statistics=_of(NpuPortStatistics, records.get("hccn_stat")),
        optical=_of(OpticalModule, records.get("hccn_optical")),
    )
    return None if port == NpuPort() else port


def _temperatures(row: DeviceRow | None, memory: MemoryTemperature | None) -> dict[str, float]:
    found = {
        "chip": row.temperature_celsius if row else None,
        "hbm": memory.hbm_celsius if memory else None,
    }
    return {sensor: celsius for sensor, celsius in found.items() if celsius is not None}


def _utilization(row: DeviceRow | None, usages: Usages | None) -> dict[str, float]:
    """By unit. The table is read four times as often as `-t usages`, so its AICore value stands."""
    found = dict(usages.unit_utilization_ratio) if usages else {}
    if row is not None and row.aicore_utilization_ratio is not None:
        found["aicore" if row.chip is not None else "npu"] = row.aicore_utilization_ratio
    return found


def _memory(row: DeviceRow | None) -> dict[str, Memory]:
    if row is None:
        return {}
    found = {
        "hbm": Memory(row.hbm_used_bytes, row.hbm_total_bytes),
        "ddr": Memory(row.memory_used_bytes, row.memory_total_bytes),
    }
    return {name: memory for name, memory in found.items() if memory.total_bytes is not None}


def _memory_errors(ecc: EccChip) -> dict[str, MemoryErrors]:
    found = {"hbm": ecc.hbm, "ddr": ecc.ddr}
    return {memory: counts for memory, counts in found.items() if counts is not None}


def common(values: Iterable[str | None]) -> str | None:
    """The one value that all who know it share; several are joined, since a mixed node is news."""
    known = sorted({value for value in values if value is not None})
    return ", ".join(known) or None
