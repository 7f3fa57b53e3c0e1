"""What has happened to one chip up to an instant: its levels, its counters, its processes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from npu_watchd.simnode.scenario import Event, Started

SINCE_RESET = ("single_bit", "double_bit")
"""These have a `…_lifetime` twin that grows with them and survives a reset."""
WAITING = "double_bit_next_isolated_pages"
ISOLATED = "double_bit_isolated_pages"
OF_THE_HOST = "aer."
"""The kernel counts these since it enumerated the device, whatever is done to the device."""


@dataclass(frozen=True, slots=True)
class Climb:
    per_second: float
    until_s: float


@dataclass(slots=True)
class ChipStory:
    """Filled by `tell`; read by the timeline."""

    levels: dict[str, Any] = field(default_factory=dict)
    counts: dict[str, float] = field(default_factory=dict)
    processes: dict[int, Started] = field(default_factory=dict)
    _climbs: dict[str, Climb] = field(default_factory=dict)
    _now_s: float = 0.0

    def tell(self, events: Iterable[Event], t_s: float) -> ChipStory:
        """All events of this chip up to `t_s`, in order; the climbs run on until then."""
        for event in events:
            if event.t_s > t_s:
                break
            self._advance(event.t_s)
            self._happen(event, event.in_force(t_s))
        self._advance(t_s)
        return self

    def count(self, key: str) -> int:
        # A rate times a time may end a hair below the whole number that it means.
        return int(self.counts.get(key, 0.0) + 1e-6)

    def _happen(self, event: Event, in_force: bool) -> None:
        if event.reset:
            self._reset()
        for key, value in event.counts.items():
            self._add(key, value - self.counts.get(key, 0.0))
        for key, rate in event.climbs.items():
            until = float("inf") if event.lasts_s is None else event.t_s + event.lasts_s
            self._climbs[key] = Climb(rate, until)
        if event.stop is not None:
            for pid in event.stop or tuple(self.processes):
                self.processes.pop(pid, None)
        if in_force:
            self.levels |= event.levels
            self.processes |= {process.pid: process for process in event.start}

    def _advance(self, to_s: float) -> None:
        for key, climb in self._climbs.items():
            self._add(key, climb.per_second * max(0.0, min(to_s, climb.until_s) - self._now_s))
        self._now_s = to_s

    def _add(self, key: str, amount: float) -> None:
        self.counts[key] = self.counts.get(key, 0.0) + amount
        memory, _, kind = key.rpartition(".")
        if kind in SINCE_RESET and amount > 0:
            twin = f"{key}_lifetime"
            self.counts[twin] = self.counts.get(twin, 0.0) + amount
        if kind == "double_bit" and amount > 0:
            waiting = f"{memory}.{WAITING}"
            self.counts[waiting] = self.counts.get(waiting, 0.0) + amount

    def _reset(self) -> None:
        self.levels.clear()
        self.processes.clear()
        self._climbs.clear()
        for key in list(self.counts):
            memory, _, kind = key.rpartition(".")
            if kind == WAITING:
                isolated = f"{memory}.{ISOLATED}"
                self.counts[isolated] = self.counts.get(isolated, 0.0) + self.counts[key]
            if key.startswith(OF_THE_HOST):
                continue
            if kind == WAITING or not kind.endswith(("_lifetime", "_isolated_pages")):
                self.counts[key] = 0.0
