"""Scenario files: TOML, strict. A key that nobody knows is an error that names the file and the key."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from npu_watchd.simnode.scenario import Event, Scenario, Started
from npu_watchd.simnode.scenario_schema import Climbs, Duration, File, FileEvent, Rate
from npu_watchd.simnode.silicon import SILICON
from npu_watchd.simnode.state import SUB_QUERIES

FOLDER = Path(__file__).parent / "scenarios"

_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)([smhd])")
_RATE = re.compile(r"(\d+(?:\.\d+)?)/([smhd])")


class ScenarioError(ValueError):
    """A scenario file that cannot be used; the text names the file and what to change."""


def names() -> tuple[str, ...]:
    """The scenarios that come with the package."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.toml")))


def load(name_or_path: str | Path) -> Scenario:
    """A scenario by its name here, or from a file.

    Raises ScenarioError naming the file and the key: not there, no TOML, unknown key, wrong type, contradiction.
    """
    path = FOLDER / f"{name_or_path}.toml" if str(name_or_path) in names() else Path(name_or_path)
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        known = ", ".join(names())
        raise ScenarioError(f"{path}: {error.strerror}; the scenarios that come along are {known}") from error
    return parse(text, path.stem, str(path))


def parse(text: str, name: str, file: str) -> Scenario:
    """A scenario from TOML text; `file` is what errors name."""
    try:
        read = msgspec.toml.decode(text, type=File)
        return _scenario(read, name)
    except (msgspec.DecodeError, ValueError) as error:
        raise ScenarioError(f"{file}: {error}") from error


def _scenario(read: File, name: str) -> Scenario:
    silicon = SILICON.get(read.generation)
    if silicon is None:
        raise ValueError(f"generation {read.generation!r} is none of {', '.join(SILICON)} - at `$.generation`")
    cards = read.cards or silicon.cards
    chips = cards * silicon.chips_per_card
    events = [_event(event, at, chips) for at, event in enumerate(read.at)]
    return Scenario(
        name,
        read.title,
        read.description.strip(),
        read.generation,
        read.tool_version,
        read.driver_version or read.tool_version,
        cards,
        read.chip_name,
        read.install_incomplete,
        tuple(sorted(events, key=lambda event: event.t_s)),
    )


def _event(event: FileEvent, at: int, chips: int) -> Event:
    where = f"$.at[{at}]"
    devices = _devices(event, chips, where)
    levels = dict(_levels(event))
    counts = dict(_counts(event))
    climbs = {key: _rate(rate, f"{where}.climb.{key}") for key, rate in _climbs(event.climb)}
    unknown = set(event.fails or ()) - SUB_QUERIES
    if unknown:
        raise ValueError(f"{unknown.pop()!r} is none of {', '.join(sorted(SUB_QUERIES))} - at `{where}.fails`")
    if event.lasts is not None and (counts or event.reset or event.stop is not None):
        raise ValueError(f"counts, reset and stop are not taken back after a while - at `{where}.lasts`")
    if not devices and (levels or counts or climbs or event.start or event.stop is not None or event.reset):
        raise ValueError(f"an event of a chip needs `device` or `devices` - at `{where}`")
    return Event(
        _duration(event.t, f"{where}.t"),
        None if event.lasts is None else _duration(event.lasts, f"{where}.lasts"),
        devices,
        event.note,
        levels,
        counts,
        climbs,
        tuple(Started(one.pid, one.name, one.memory, one.container_pid) for one in event.start),
        () if event.stop == "all" else event.stop,
        event.reset,
        event.tool,
        _duration(event.tool_delay, f"{where}.tool_delay"),
        event.ignores_sigterm,
        event.driver,
    )


def _devices(event: FileEvent, chips: int, where: str) -> tuple[int, ...]:
    if event.devices == "all":
        return tuple(range(chips))
    devices = (*(event.devices or ()), *(() if event.device is None else (event.device,)))
    for device in devices:
        if not 0 <= device < chips:
            raise ValueError(f"device {device} is not there, the node has 0 to {chips - 1} - at `{where}.device`")
    return devices


def _levels(event: FileEvent) -> Iterator[tuple[str, Any]]:
    for key in ("temperature", "hbm_temperature", "power", "clock", "lost", "mcu_dead"):
        if (value := getattr(event, key)) is not None:
            yield key, value
    if event.health is not None:
        yield "health", None if event.health == "out of range" else event.health
    if event.codes is not None:
        yield "codes", [[one.code, one.text] for one in event.codes]
    if event.fails is not None:
        yield "fails", list(event.fails)
    for part, levels in (("load", event.load), ("hbm", event.hbm), ("ddr", event.ddr), ("hccs", event.hccs)):
        for key, value in _set(levels):
            if part == "load" or key in ("used", "total", "healthy", "first_error_lane"):
                yield f"{part}.{key}", value


def _counts(event: FileEvent) -> Iterator[tuple[str, int]]:
    for part, counts in (("hbm", event.hbm), ("ddr", event.ddr), ("pcie", event.pcie)):
        for key, value in _set(counts):
            if key not in ("used", "total"):
                yield f"{part}.{key}", value
    for key, value in _set(event.hccs):
        if event.hccs is not None and key in ("errors", "retries"):
            yield f"hccs.{event.hccs.link}.{key}", value


def _climbs(climbs: Climbs | None) -> Iterator[tuple[str, Rate]]:
    if climbs is None:
        return
    for part, rates in (("hbm", climbs.hbm), ("ddr", climbs.ddr), ("pcie", climbs.pcie)):
        for key, rate in _set(rates):
            yield f"{part}.{key}", rate
    for key, rate in _set(climbs.hccs):
        if climbs.hccs is not None and key != "link":
            yield f"hccs.{climbs.hccs.link}.{key}", rate


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
