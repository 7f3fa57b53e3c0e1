"""What is news between two cycles: one line a change, silence on a quiet node."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from npu_watchd.model.ids import DeviceKey
from npu_watchd.model.reading import NOT_READ_YET, Failure
from npu_watchd.model.snapshot import Device, Snapshot

_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")


@dataclass(frozen=True, slots=True)
class Change:
    """A thing that is now other than a cycle ago."""

    event: str
    """In snake case: the name in the log."""
    good: bool
    """True: back to normal, or plain news; False: somebody may have to act."""
    facts: Mapping[str, str | int] = field(default_factory=dict)


def changes(before: Snapshot | None, now: Snapshot) -> Iterator[Change]:
    """Every change from one snapshot to the next; `before` is None in the first cycle, whose sight is all news."""
    for key, device in now.devices.items():
        yield from _device(before.devices.get(key) if before else None, device)
    yield from _blindness(before, now)
    for warning in now.warnings:
        if before is None or warning not in before.warnings:
            yield Change("tool_warned", good=False, facts={"warning": warning})


def _device(was: Device | None, device: Device) -> Iterator[Change]:
    who: dict[str, str | int] = {"device_id": device.device_id, "npu": device.key.npu, "chip": device.key.chip}
    if was is None:
        what = {"name": device.identity.name or "", "profile": device.profile, "health": device.health}
        yield Change("device_seen", good=device.health in ("ok", "unknown"), facts={**who, **what})
    elif was.device_id != device.device_id:
        yield Change("device_id_changed", good=False, facts={**who, "before": was.device_id})
    if device.present is False and (was is None or was.present is not False):
        yield Change("device_vanished", good=False, facts=who)
    elif device.present and was is not None and was.present is False:
        yield Change("device_back", good=True, facts=who)
    if was is not None and was.health != device.health and device.present is not False:
        words = {"health": device.health, "before": was.health}
        yield Change("health_changed", good=device.health == "ok", facts={**who, **words})
    known = set((was.error_codes if was else None) or ())
    for code in sorted(set(device.error_codes or ()) - known):
        yield Change("error_code_appeared", good=False, facts={**who, "code": code})


_Sight = tuple[str, DeviceKey | None]
"""Probe and device; None: the node's own."""


def _sights(snapshot: Snapshot) -> dict[_Sight, Failure]:
    """Everything that is blind."""
    found: dict[_Sight, Failure] = {(probe, None): failure for probe, failure in snapshot.blind.items()}
    for key, device in snapshot.devices.items():
        found.update({(probe, key): failure for probe, failure in device.blind.items()})
    return found


def _blindness(before: Snapshot | None, now: Snapshot) -> Iterator[Change]:
    """Going blind and seeing again, one line a probe and cause however many devices it concerns.

    Of a device that vanishes or comes back its own line says all there is to say; and what has not been read yet is no
    blindness that anybody could mend.
    """
    was, sights = _sights(before) if before else {}, _sights(now)
    was = {sight: failure for sight, failure in was.items() if failure != NOT_READ_YET}
    lost: dict[tuple[str, str, str], list[_Sight]] = {}
    back: dict[str, list[_Sight]] = {}
    for sight, failure in sights.items():
        if failure == NOT_READ_YET or _absent(now, sight):
            continue
        if sight not in was or was[sight].kind is not failure.kind:
            # The same words with other numbers (`-i 3`, an age) are one cause.
            lost.setdefault((sight[0], failure.kind.value, _NUMBER.sub("#", failure.detail)), []).append(sight)
    for sight in was.keys() - sights.keys():
        if before is not None and not _absent(before, sight) and not _absent(now, sight):
            back.setdefault(sight[0], []).append(sight)
    for (probe, kind, _), found in lost.items():
        facts: dict[str, str | int] = {"probe": probe, "kind": kind, "detail": sights[found[0]].detail}
        yield Change("probe_went_blind", good=False, facts={**facts, **_devices(found, now)})
    for probe, found in sorted(back.items()):
        yield Change("probe_sees_again", good=True, facts={"probe": probe, **_devices(found, now)})


def _absent(snapshot: Snapshot, sight: _Sight) -> bool:
    key = sight[1]
    return key is not None and (key not in snapshot.devices or snapshot.devices[key].present is False)


def _devices(sights: list[_Sight], now: Snapshot) -> dict[str, str]:
    named = [now.devices[key].device_id for key in sorted(key for _, key in sights if key is not None)]
    return {"device_ids": ",".join(named)} if named else {}
