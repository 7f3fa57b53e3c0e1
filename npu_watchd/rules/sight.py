"""Whether what a rule rests on can be seen."""

from __future__ import annotations

from npu_watchd.model.reading import NOT_READ_YET, Failure, FailureKind
from npu_watchd.model.snapshot import Device, Port, Snapshot

_ABSENT = Failure(FailureKind.EXIT, "the device is not there to be asked")
_NO_PORTS = Failure(FailureKind.MISSING, "the host's ports could not be read")


def blind(device: Device, *probes: str) -> Failure | None:
    """Why one of these cannot be seen of the device now; None where all can, or where the chip does not have them."""
    if device.present is False:
        return device.blind.get("npu_info", _ABSENT)
    return next((device.blind[probe] for probe in probes if probe in device.blind), None)


def port_blind(snapshot: Snapshot, port: Port) -> Failure | None:
    """Likewise of a host port: None where its state is known, or where it is known to be gone."""
    if port.up is not None:
        return None
    return snapshot.blind.get("ibstat", _NO_PORTS if port.facts is None else NOT_READ_YET)
