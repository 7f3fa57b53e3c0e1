"""One `[[at]]` of a scenario file → the events that it means, with everything checked that a type cannot say."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import msgspec

from npu_watchd.simnode.host_port import COUNTER_NAMES
from npu_watchd.simnode.procfs import is_job
from npu_watchd.simnode.roce_port import NET_HEALTH, STAT_KEYS, STAT_KEYS_950
from npu_watchd.simnode.scenario import Event, Killed, Started
from npu_watchd.simnode.scenario_processes import NewProcess
from npu_watchd.simnode.scenario_schema import (
    AerClimb,
    AerEnds,
    Climbs,
    Duration,
    FileEvent,
    PortLevels,
    Rate,
    RdmaLevels,
)
from npu_watchd.simnode.sockets import is_entry, is_listener
from npu_watchd.simnode.state import SUB_QUERIES
from npu_watchd.simnode.sysfs_pci import CORRECTABLE, UNCORRECTABLE

_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)([smhd])")
_RATE = re.compile(r"(\d+(?:\.\d+)?)/([smhd])")
_WHOLE_LEVELS = ("temperature", "hbm_temperature", "power", "clock", "lost", "mcu_dead")
_LEVELS = ("load", "hbm", "ddr", "hccs", "port", "optics", "rdma", "link", "pcie_load", "host")
_COUNTS_AMONG_LEVELS = {
    **dict.fromkeys(("hbm", "ddr"), ("used", "total")),
    "hccs": ("healthy", "first_error_lane"),
}
"""Parts that hold counts as well: these of their keys are levels."""
_COUNTERS = {"port": frozenset((*STAT_KEYS, *STAT_KEYS_950)), "rdma": COUNTER_NAMES}
_LEVELS_AMONG_COUNTERS = {
    part: set(kind.__struct_fields__) for part, kind in (("port", PortLevels), ("rdma", RdmaLevels))
}
_AER_NAMES = {
    "correctable": frozenset(CORRECTABLE),
    "nonfatal": frozenset(UNCORRECTABLE),
    "fatal": frozenset(UNCORRECTABLE),
}


def events(event: FileEvent, where: str, chips: int, hcas: tuple[str, ...]) -> Iterator[Event]:
    """As many as `times` says. Raises ValueError naming `where` in the file: `$.at[3]`."""
    if event.times != 1 and event.every is None:
        raise ValueError(f"times needs `every` - at `{where}.times`")
    every_s = _duration(event.every or 0, f"{where}.every")
    first = _event(event, where, chips, hcas)
    for at in range(event.times):
        yield replace(first, t_s=first.t_s + at * every_s)


def _event(event: FileEvent, where: str, chips: int, hcas: tuple[str, ...]) -> Event:
    devices, ports = _devices(event, chips, where), _hcas(event, hcas, where)
    levels = dict(_levels(event))
    counts = dict(_counts(event))
    climbs = {key: _rate(rate, f"{where}.climb.{key}") for key, rate in _climbs(event.climb)}
    _check(event, where, {*levels, *counts, *climbs}, devices, ports)
    if event.lasts is not None and (counts or event.reset or event.oom or event.stop is not None):
        raise ValueError(f"counts, reset, oom and stop are not taken back after a while - at `{where}.lasts`")
    return Event(
        _duration(event.t, f"{where}.t"),
        None if event.lasts is None else _duration(event.lasts, f"{where}.lasts"),
        devices,
        ports,
        event.note,
        levels,
        counts,
        climbs,
        tuple(_started(one) for one in event.start),
        () if event.stop == "all" else event.stop,
        event.reset,
        event.tool,
        _duration(event.tool_delay, f"{where}.tool_delay"),
        event.ignores_sigterm,
        event.driver,
        event.hccn_tool,
        tuple(Killed(one.pid, one.name, one.job, one.user, one.limit) for one in event.oom),
        event.lost_jobs,
    )


def _started(one: NewProcess) -> Started:
    return Started(
        *(one.pid, one.name, one.memory, one.container_pid, one.job, one.user),
        *(one.environ, one.listens, one.host_pid),
    )


def _check(event: FileEvent, where: str, keys: set[str], devices: tuple[int, ...], hcas: tuple[str, ...]) -> None:
    """Names that are none of those known, and events of a chip or of a host's port that do not say which."""
    unknown = set(event.fails or ()) - SUB_QUERIES
    if unknown:
        raise ValueError(f"{unknown.pop()!r} is none of {', '.join(sorted(SUB_QUERIES))} - at `{where}.fails`")
    if event.port is not None and event.port.net_health not in (None, *NET_HEALTH):
        raise ValueError(f"{event.port.net_health!r} is none of {', '.join(NET_HEALTH)} - at `{where}.port.net_health`")
    _check_words(event, where)
    for key in keys:
        _check_counter(key, where)
    of_port = {key for key in keys if key.startswith("rdma.")}
    of_host = {key for key in keys if key.startswith("host.")}
    if of_port and not hcas:
        raise ValueError(f"an event of a host's port needs `hca` or `hcas` - at `{where}`")
    if not devices and (keys - of_port - of_host or event.start or event.stop is not None or event.reset):
        raise ValueError(f"an event of a chip needs `device` or `devices` - at `{where}`")


def _check_words(event: FileEvent, where: str) -> None:
    """Of processes: their jobs, environments and addresses."""
    jobs = [*(("start", one.job) for one in event.start), *(("oom", one.job) for one in event.oom)]
    jobs += [("lost_jobs", job) for job in event.lost_jobs]
    for part, job in jobs:
        if job is not None and not is_job(job):
            forms = '"slurm 4711", "session 12" or "kubernetes" and a pod\'s uid'
            raise ValueError(f"{job!r} is no job like {forms} - at `{where}.{part}`")
    for process in event.start:
        for text in (entry for entry in process.environ if not is_entry(entry)):
            raise ValueError(f"{text!r} is no entry like NAME=value - at `{where}.start`")
        for text in (address for address in process.listens if not is_listener(address)):
            raise ValueError(f"{text!r} is no address like 10.0.0.1:60000 - at `{where}.start`")


def _check_counter(key: str, where: str) -> None:
    part, _, name = key.partition(".")
    if part == "aer":
        _, severity, name = name.split(".")
        names = _AER_NAMES[severity]
    elif part in _COUNTERS and name not in _LEVELS_AMONG_COUNTERS[part]:
        names = _COUNTERS[part]
    else:
        return
    if name not in names:
        raise ValueError(f"{name!r} is none of {', '.join(sorted(names))} - at `{where}.{key}`")


def _devices(event: FileEvent, chips: int, where: str) -> tuple[int, ...]:
    if event.devices == "all":
        return tuple(range(chips))
    devices = (*(event.devices or ()), *(() if event.device is None else (event.device,)))
    for device in devices:
        if not 0 <= device < chips:
            raise ValueError(f"device {device} is not there, the node has 0 to {chips - 1} - at `{where}.device`")
    return devices


def _hcas(event: FileEvent, hcas: tuple[str, ...], where: str) -> tuple[str, ...]:
    if event.hcas == "all":
        return hcas
    named = (*(event.hcas or ()), *(() if event.hca is None else (event.hca,)))
    for name in named:
        if name not in hcas:
            raise ValueError(f"{name!r} is not there, the node has {', '.join(hcas) or 'none'} - at `{where}.hca`")
    return named


def _levels(event: FileEvent) -> Iterator[tuple[str, Any]]:
    for key in _WHOLE_LEVELS:
        if (value := getattr(event, key)) is not None:
            yield key, value
    if event.health is not None:
        yield "health", None if event.health == "out of range" else event.health
    if event.codes is not None:
        yield "codes", [[one.code, one.text] for one in event.codes]
    if event.fails is not None:
        yield "fails", list(event.fails)
    for part in _LEVELS:
        for key, value in _set(getattr(event, part)):
            if key != "counters" and key in _COUNTS_AMONG_LEVELS.get(part, (key,)):
                yield f"{part}.{key}", list(value) if isinstance(value, tuple) else value


def _counts(event: FileEvent) -> Iterator[tuple[str, int]]:
    for part, counts in (("hbm", event.hbm), ("ddr", event.ddr), ("pcie", event.pcie)):
        for key, value in _set(counts):
            if key not in ("used", "total"):
                yield f"{part}.{key}", value
    for key, value in _set(event.hccs):
        if event.hccs is not None and key in ("errors", "retries"):
            yield f"hccs.{event.hccs.link}.{key}", value
    for part, named in (("port", event.port), ("rdma", event.rdma)):
        for key, value in ((named and named.counters) or {}).items():
            yield f"{part}.{key}", value
    yield from _aer(event.aer)


def _climbs(climbs: Climbs | None) -> Iterator[tuple[str, Rate]]:
    if climbs is None:
        return
    for part, rates in (("hbm", climbs.hbm), ("ddr", climbs.ddr), ("pcie", climbs.pcie)):
        for key, rate in _set(rates):
            yield f"{part}.{key}", rate
    for key, rate in _set(climbs.hccs):
        if climbs.hccs is not None and key != "link":
            yield f"hccs.{climbs.hccs.link}.{key}", rate
    for part, named in (("port", climbs.port), ("rdma", climbs.rdma)):
        for key, rate in (named or {}).items():
            yield f"{part}.{key}", rate
    yield from _aer(climbs.aer)


def _aer(ends: AerEnds | AerClimb | None) -> Iterator[tuple[str, Any]]:
    for end, severities in _set(ends):
        for severity, counts in _set(severities):
            for name, value in counts.items():
                yield f"aer.{end}.{severity}.{name}", value


def _set(part: msgspec.Struct | None) -> Iterator[tuple[str, Any]]:
    """The keys that the file gives."""
    for key in part.__struct_fields__ if part is not None else ():
        if (value := getattr(part, key)) is not None:
            yield key, value


def _duration(value: Duration, where: str) -> float:
    if not isinstance(value, str):
        return float(value)
    match = _DURATION.fullmatch(value)
    if match is None:
        raise ValueError(f'{value!r} is no time like 90, "90s", "15m", "2h" or "1d" - at `{where}`')
    return float(match[1]) * _SECONDS[match[2]]


def _rate(value: Rate, where: str) -> float:
    match = _RATE.fullmatch(value)
    if match is None:
        raise ValueError(f'{value!r} is no rate like "40/h", "2/m" or "0/h" - at `{where}`')
    return float(match[1]) / _SECONDS[match[2]]
