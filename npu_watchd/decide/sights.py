"""What a cycle shows of each subject that gets a verdict, beside what is found wrong with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from npu_watchd.model.ids import NODE, Subject
from npu_watchd.model.reading import NOT_READ_YET, Failure, FailureKind
from npu_watchd.model.snapshot import Device, Port, Snapshot

_GONE = Failure(FailureKind.EXIT, "it is not in the table of npu-smi")
_NO_HEALTH = Failure(FailureKind.STALE, "npu-smi has no word for its health that `-t health` confirms")
_NO_PORT = Failure(FailureKind.STALE, "the port's state could not be read")
_NO_DEVICES = Failure(FailureKind.EXIT, "npu-smi shows no device")


@dataclass(frozen=True, slots=True)
class Sight:
    """One subject in one cycle."""

    blind: Failure | None
    """Why nobody may call it healthy; None: all that is vital can be seen."""
    device_id: str | None = None
    at_work: bool | None = None
    """Whether the chip computes, or the node's chips do; None: nobody can tell."""
    works: bool = True
    """False: it is no thing that computes (a port), so its probation asks for no load."""

    @property
    def unread(self) -> bool:
        """Its turn has not come since the daemon started: nothing failed."""
        return self.blind is NOT_READ_YET


def sights(snapshot: Snapshot) -> Mapping[Subject, Sight]:
    """The node, each device ever expected, and each port that should be there."""
    found: dict[Subject, Sight] = {
        NODE: Sight(_node_blind(snapshot), at_work=_any(map(_at_work, snapshot.devices.values())))
    }
    for key, device in snapshot.devices.items():
        found[key] = Sight(_device_blind(device), device.device_id, _at_work(device))
    for name, port in snapshot.ports.items():
        if port.expected:
            found[name] = Sight(_port_blind(snapshot, port), works=False)
    return found


def _node_blind(snapshot: Snapshot) -> Failure | None:
    if "npu_info" in snapshot.blind:
        return snapshot.blind["npu_info"]
    return None if snapshot.devices else NOT_READ_YET if snapshot.devices_present is None else _NO_DEVICES


def _device_blind(device: Device) -> Failure | None:
    vital = [failure for probe, failure in sorted(device.blind.items()) if probe in device.vital]
    told = [failure for failure in vital if failure is not NOT_READ_YET]
    if told:
        return told[0]
    if vital or device.present is None:
        return NOT_READ_YET if vital else device.blind.get("npu_info", NOT_READ_YET)
    if device.present is False:
        return _GONE
    return _NO_HEALTH if device.vital_blind or device.health == "unknown" else None


def _port_blind(snapshot: Snapshot, port: Port) -> Failure | None:
    return None if port.up is not None else snapshot.blind.get("ibstat", _NO_PORT)


def _at_work(device: Device) -> bool | None:
    ratio = device.utilization_ratio.get("aicore", device.utilization_ratio.get("npu"))
    if ratio is not None:
        return ratio > 0
    return None if device.processes is None else len(device.processes) > 0


def _any(values: map[bool | None]) -> bool | None:
    known = [value for value in values if value is not None]
    return any(known) if known else None
