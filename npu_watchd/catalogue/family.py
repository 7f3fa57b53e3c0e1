"""What a metric is: its name, type, help and labels, and the getter that reads it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from npu_watchd.model.snapshot import Device, Outcome


class Kind(Enum):
    GAUGE = "gauge"
    COUNTER = "counter"


Sample = tuple[Mapping[str, str], float]
"""Label values by name, and the value. A label whose value is empty is left out of the exposition."""


@dataclass(frozen=True, slots=True)
class DeviceFamily:
    """A metric that each device has; the renderer adds the label `device_id`."""

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...]
    """Beside device_id."""
    read: Callable[[Device], Iterable[Sample]]


@dataclass(frozen=True, slots=True)
class NodeFamily:
    """A metric of the node or of the daemon."""

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...]
    read: Callable[[Outcome], Iterable[Sample]]


Family = DeviceFamily | NodeFamily


def one(value: float | bool | None) -> Iterable[Sample]:
    """A sample without further labels, or none where nobody knows the value."""
    return () if value is None else (({}, float(value)),)


def each(label: str, values: Mapping[str, float | None]) -> Iterable[Sample]:
    """A sample for each key whose value somebody knows."""
    return [({label: key}, float(value)) for key, value in values.items() if value is not None]


def states(label: str, states: Iterable[str], current: str) -> Iterable[Sample]:
    return [({label: state}, float(state == current)) for state in states]
