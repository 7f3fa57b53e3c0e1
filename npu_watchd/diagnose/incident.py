"""One job's end: what was seen around it, which devices it had, and whether the daemon was watching."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from npu_watchd.diagnose.clue import Clue, Document, Origin, once
from npu_watchd.diagnose.weights import AFTER_S, BEFORE_S
from npu_watchd.model.log_event import Role

_FRESH_S = 3600.0
"""A snapshot so near to the incident still shows who had the devices."""


@dataclass(frozen=True, slots=True)
class Incident:
    """Everything that the ranking looks at."""

    clues: tuple[Clue, ...]
    """By time; those of the log that have none stand at the end."""
    ended_s: float | None
    """Unix seconds of the job's last words; None: no telling."""
    devices: frozenset[str] = frozenset()
    """Device ids that the job had; empty: nobody knows."""
    devices_by_pid: bool = False
    """True: the daemon saw the job's pids on them. False: they are the log's own numbers."""
    watched: bool = False
    """The daemon ran already when the job ended, and its snapshot is of nearly that time."""
    well: frozenset[str] = frozenset()
    """What the daemon saw to be well then: devices_well, links_well, alone, no_oom."""
    versions: Mapping[str, str] = field(default_factory=dict)
    jobs: tuple[str, ...] = ()
    """On the job's devices, as the snapshot has them."""
    notes: tuple[str, ...] = ()
    """What a reader must know about this diagnosis: clocks, logs cut, no daemon."""


def incident_of(
    log_clues: Sequence[Clue],
    journal_clues: Iterable[Clue],
    document: Document | None,
    ended_s: float | None,
    findings_now: Iterable[Clue] = (),
    notes: tuple[str, ...] = (),
) -> Incident:
    """What belongs together: the log whole, of journal and findings what stood around the job's end."""
    at_s = (
        ended_s
        if ended_s is not None
        else max((clue.at_s for clue in log_clues if clue.at_s is not None), default=None)
    )
    around = [clue for clue in (*journal_clues, *findings_now) if at_s is None or _around(clue, at_s)]
    log_clues = _placed(log_clues)
    clues = once((*log_clues, *around))
    devices, by_pid = _devices(log_clues, document)
    watched = document is not None and at_s is not None and _watched(document, at_s)
    return Incident(
        clues=clues,
        ended_s=at_s,
        devices=devices,
        devices_by_pid=by_pid,
        watched=watched,
        well=_well(clues, devices, document) if watched and document is not None else frozenset(),
        versions=_versions(document),
        jobs=_jobs(document, devices),
        notes=notes,
    )


def _placed(clues: Sequence[Clue]) -> tuple[Clue, ...]:
    """With the device that the rest of a log names, where that is of one process with one device."""
    by_log: dict[str, list[Clue]] = {}
    for clue in clues:
        by_log.setdefault(clue.where.rpartition(":")[0], []).append(clue)
    only: dict[str, str] = {}
    for name, some in by_log.items():
        devices = {clue.device_id for clue in some if clue.device_id is not None}
        if len(devices) == 1 and len({clue.pid for clue in some if clue.pid is not None}) == 1:
            only[name] = devices.pop()
    return tuple(
        replace(clue, device_id=only.get(clue.where.rpartition(":")[0]))
        if clue.device_id is None and clue.origin is Origin.LOG and not clue.blames
        else clue
        for clue in clues
    )


def _around(clue: Clue, at_s: float) -> bool:
    if clue.at_s is None:
        return True
    if clue.origin is Origin.FINDING:
        return clue.at_s <= at_s + AFTER_S and (clue.until_s is None or clue.until_s >= at_s - BEFORE_S)
    return at_s - BEFORE_S <= clue.at_s <= at_s + AFTER_S


def _devices(clues: Sequence[Clue], document: Document | None) -> tuple[frozenset[str], bool]:
    pids = {clue.pid for clue in clues if clue.pid is not None and clue.origin is Origin.LOG}
    seen = {
        str(device["device_id"])
        for device in (document or {}).get("devices") or ()
        for process in device.get("processes") or ()
        if pids & {process.get("pid"), process.get("container_pid")}
    }
    if seen:
        return frozenset(seen), True
    return frozenset(clue.device_id for clue in clues if clue.device_id and clue.origin is Origin.LOG), False


def _watched(document: Document, at_s: float) -> bool:
    started = (document.get("engine") or {}).get("started_at")
    return isinstance(started, int | float) and started <= at_s and abs(document["at"] - at_s) <= _FRESH_S


def _well(clues: Sequence[Clue], devices: frozenset[str], document: Document) -> frozenset[str]:
    """Only what was seen: a device that is blind, or whose health is unknown, is not well."""
    rules = {clue.kind for clue in clues if clue.origin is Origin.FINDING}
    mine = [one for one in document.get("devices") or () if not devices or str(one["device_id"]) in devices]
    found = set[str]()
    bad = {clue.device_id for clue in clues if clue.origin is Origin.FINDING and clue.device_id}
    if mine and all(one.get("health") == "ok" and not one.get("blind") for one in mine):
        if not bad & {str(one["device_id"]) for one in mine}:
            found.add("devices_well")
        if all((one.get("roce") or {}).get("link_up") for one in mine) and not rules & _LINKS:
            found.add("links_well")
    lonely = mine and all(one.get("jobs") is not None and len(one["jobs"]["known"]) <= 1 for one in mine)
    if lonely and not rules & _SHARED and not any(one["jobs"]["unknown"] for one in mine):
        found.add("alone")
    if (
        not rules & {"host_oom"}
        and not {clue.kind for clue in clues} & {"oom_kill", "oom_kill_of_other"}
        and document.get("kernel_log_lost") == 0
    ):
        found.add("no_oom")
    return frozenset(found)


_LINKS = frozenset({"roce_down", "roce_flap", "roce_slow", "roce_errors", "optics"})
_SHARED = frozenset(
    {"jobs_share_device", "leftover", "host_contention", "visible_devices_overlap", "hccl_ports_conflict"}
)


def _versions(document: Document | None) -> dict[str, str]:
    if document is None:
        return {}
    names = {"driver": "driver_version", "npu-smi": "tool_version", "firmware": "firmware_version"}
    return {name: str(document[key]) for name, key in names.items() if document.get(key)}


def _jobs(document: Document | None, devices: frozenset[str]) -> tuple[str, ...]:
    found = dict.fromkeys(
        f"{job['scheduler']} {job['job']}"
        for device in (document or {}).get("devices") or ()
        if not devices or str(device["device_id"]) in devices
        for job in (device.get("jobs") or {}).get("known") or ()
    )
    return tuple(found)


def faults(clues: Iterable[Clue]) -> list[Clue]:
    """Of the logs: what went wrong where it was written."""
    return [clue for clue in clues if clue.origin is Origin.LOG and clue.role is Role.FAULT]
