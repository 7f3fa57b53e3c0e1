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


def unread(device: Device, probe: str, record: object) -> Failure | None:
    """Why a record that may come is not there although nothing failed: its turn has not come since the daemon started,
    or since the device is back. None where it is there, and where the chip cannot say.

    Of a lesser probe that is no blindness that anybody could mend, so `Device.blind` leaves it out (memory/board.py);
    but what a finding rests on has not been looked at, and a restart of ours mends nothing.
    """
    return None if record is not None or probe in device.unsupported else NOT_READ_YET


def port_blind(snapshot: Snapshot, port: Port) -> Failure | None:
    """Likewise of a host port: None where its state is known, or where it is known to be gone."""
    if port.up is not None:
        return None
    return snapshot.blind.get("ibstat", _NO_PORTS if port.facts is None else NOT_READ_YET)
