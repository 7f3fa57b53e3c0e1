"""What is news between two cycles: one line a change, silence on a quiet node."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from npu_watchd.model.fabric import PortKey
from npu_watchd.model.ids import DeviceKey
from npu_watchd.model.pcie import PcieLink
from npu_watchd.model.reading import NOT_READ_YET, Failure
from npu_watchd.model.snapshot import Device, Port, Snapshot

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
        was = before.devices.get(key) if before else None
        yield from _device(was, device)
        yield from _links(was, device)
    for name, port in now.ports.items():
        yield from _port(before.ports.get(name) if before else None, name, port)
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
    if was is not None and was.health != device.health and device.present is not False and not _first_ok(was, device):
        words = {"health": device.health, "before": was.health}
        yield Change("health_changed", good=device.health == "ok", facts={**who, **words})
    known = set((was.error_codes if was else None) or ())
    for code in sorted(set(device.error_codes or ()) - known):
        yield Change("error_code_appeared", good=False, facts={**who, "code": code})


def _links(was: Device | None, device: Device) -> Iterator[Change]:
    """The device's own port, and its PCIe link. One that is bad when it is first read is news; one unread is not."""
    who: dict[str, str | int] = {"device_id": device.device_id, "npu": device.key.npu, "chip": device.key.chip}
    before, up = (one.roce.link_up if one and one.roce else None for one in (was, device))
    if up is False and before is not False:
        yield Change("npu_link_down", good=False, facts=who)
    elif up and before is False:
        yield Change("npu_link_up", good=True, facts=who)
    had, link = was.pcie_link if was else None, device.pcie_link
    if link is None:
        return
    width, narrow_before = _width(link), _width(had) if had and had.narrow else {}
    if link.narrow and (not narrow_before or width["lanes"] < narrow_before["lanes"]):
        yield Change("pcie_narrow", good=False, facts={**who, **width})
    elif link.narrow is False and narrow_before:
        yield Change("pcie_wide_again", good=True, facts={**who, **width})


def _width(link: PcieLink) -> dict[str, int]:
    """Of the narrowest link on the path, and what the path can have; of a link that is narrow both are known."""
    widths = {
        "lanes": link.lanes if link.path_lanes is None else link.path_lanes,
        "lanes_possible": link.path_max_lanes,
    }
    return {name: lanes for name, lanes in widths.items() if lanes is not None}


def _port(was: Port | None, key: PortKey, port: Port) -> Iterator[Change]:
    """A port that never was up and need not be may come and go without a word."""
    who: dict[str, str | int] = {"rdma_device": key.rdma_device, "port": key.port}
    if port.present is False:
        if was is None or was.present is not False:
            yield Change("port_vanished", good=False, facts=who)
        return
    if port.present and was is not None and was.present is False:
        yield Change("port_back", good=True, facts=who)
    before = was.up if was is not None and was.present is not False else None
    facts = port.facts
    if port.up is False and before is not False and port.expected:
        words = {"state": facts.state or "", "physical_state": facts.physical_state or ""} if facts else {}
        yield Change("port_down", good=False, facts={**who, **words})
    elif port.up and before is False:
        yield Change("port_up", good=True, facts=who)


def _first_ok(was: Device, device: Device) -> bool:
    """A device that was unknown only because its health had not been read yet, and is well, is no news."""
    return device.health == "ok" and was.health == "unknown" and NOT_READ_YET in was.blind.values()


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
