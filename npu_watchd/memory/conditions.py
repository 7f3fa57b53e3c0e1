"""The yes-or-no facts of a snapshot whose changes are remembered."""

from __future__ import annotations

from npu_watchd.model.ids import NODE, Subject
from npu_watchd.model.snapshot import Snapshot

PRESENT, PORT_UP, NPU_PORT_UP = "present", "port_up", "npu_port_up"
ERROR_CODE, PROBE_UP = "error_code:", "probe_up:"
BOOT = "boot:"
"""With the boot id, of the node: since when that boot has been seen."""
CODES_READ = "error_codes_read"
"""True while a device's error codes are known: a code that was never seen is then not active."""

Condition = tuple[str, Subject]


def fingerprint(snapshot: Snapshot) -> tuple[object, ...]:
    """Equal for two snapshots whose conditions are: cheaper to make than they."""
    return (
        snapshot.boot_id,
        [(state.probe, state.device_id, state.up) for state in snapshot.probes],
        [
            (device.key, device.device_id, device.present, device.error_codes, device.roce and device.roce.link_up)
            for device in snapshot.devices.values()
        ],
        [(port.key, port.up) for port in snapshot.ports.values()],
    )


def conditions(snapshot: Snapshot) -> dict[Condition, bool]:
    """All that is known now; what is missing, nobody knows. Of error codes only those that are active."""
    found: dict[Condition, bool | None] = {}
    keys: dict[str, Subject] = {}
    if snapshot.boot_id is not None:
        found[BOOT + snapshot.boot_id, NODE] = True
    for key, device in snapshot.devices.items():
        keys[device.device_id] = key
        found[PRESENT, key] = device.present
        found[NPU_PORT_UP, key] = device.roce.link_up if device.roce else None
        if device.error_codes is not None:
            found[CODES_READ, key] = True
            found.update({(ERROR_CODE + code, key): True for code in device.error_codes})
    for port_key, port in snapshot.ports.items():
        found[PORT_UP, port_key] = port.up
    for state in snapshot.probes:
        subject = NODE if state.device_id is None else keys.get(state.device_id)
        if subject is not None:
            found[PROBE_UP + state.probe, subject] = state.up
    return {condition: value for condition, value in found.items() if value is not None}
