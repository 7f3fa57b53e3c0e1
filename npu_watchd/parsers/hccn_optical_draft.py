"""An optical module while the lines of any of its three forms come in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from npu_watchd.model.fabric import NO_LIMITS, Limits, OpticalLane, OpticalModule
from npu_watchd.parsers.lines import Line

_OF_THE_LAST_MODULE = ("vendor_name", "part_number", "serial_number")


@dataclass(slots=True)
class Draft:
    """A module while its lines come in: no line may take back what another one said."""

    present: bool | None = None
    values: dict[str, Any] = field(default_factory=dict)
    lanes: dict[int, dict[str, Any]] = field(default_factory=dict)
    limits: dict[str, dict[str, float | None]] = field(default_factory=dict)
    masks: dict[str, int] = field(default_factory=dict)
    unknown: list[str] = field(default_factory=list)
    heard: bool = False
    tabular: bool = False

    def lane(self, line: Line, lane: int, name: str, value: float | bool | None) -> None:
        known = self.lanes.setdefault(lane, {})
        if name in known:
            raise line.refuse("the same value twice")
        known[name] = value
        self.heard = True

    def module_value(self, line: Line, name: str, value: Any) -> None:
        if name in self.values:
            raise line.refuse("the same value twice")
        self.values[name] = value
        self.heard = True

    def limit(self, what: str, side: str, value: float | None) -> None:
        """Each lane repeats the limits of its module; of two modules at a port (Ascend 950) the first."""
        self.limits.setdefault(what, {}).setdefault(side, value)

    def module(self) -> OpticalModule:
        self._flag_lanes()
        present = self.present
        if present is None and self.tabular and self._shows_light():
            present = True
        values = dict(self.values)
        if present is False:
            values = {key: value for key, value in values.items() if key not in _OF_THE_LAST_MODULE}
        limits: dict[str, Any] = {f"{what}_limits": _limits(sides) for what, sides in self.limits.items()}
        return OpticalModule(
            present=present,
            lanes=tuple(OpticalLane(lane, **self._lane(found, present)) for lane, found in sorted(self.lanes.items())),
            unknown_keys=tuple(dict.fromkeys(self.unknown)),
            **values,
            **limits,
        )

    def _flag_lanes(self) -> None:
        """A mask has a bit a lane; a bit beyond the lanes that have values makes a lane only where it is set."""
        raised = {lane for mask in self.masks.values() for lane in range(mask.bit_length()) if mask >> lane & 1}
        for lane in raised | set(self.lanes):
            self.lanes.setdefault(lane, {}).update({name: bool(mask >> lane & 1) for name, mask in self.masks.items()})

    def _shows_light(self) -> bool:
        return any(
            value is not None
            for found in self.lanes.values()
            for name, value in found.items()
            if not name.endswith("decibels")
        )

    @staticmethod
    def _lane(found: Mapping[str, Any], present: bool | None) -> dict[str, Any]:
        """The tables go on printing the signal-to-noise ratio of a module that is gone."""
        return {
            name: None if name.endswith("decibels") and present is not True else value for name, value in found.items()
        }


def _limits(sides: Mapping[str, float | None]) -> Limits:
    """Pair by pair: without its other half, or not above it, a limit says nothing."""
    found: dict[str, float | None] = {}
    for level in ("alarm", "warning"):
        high, low = sides.get(f"high_{level}"), sides.get(f"low_{level}")
        if high is not None and low is not None and high > low:
            found |= {f"high_{level}": high, f"low_{level}": low}
    return Limits(**found) if found else NO_LIMITS
