"""Which devices jobs were told to use: two that were told the same one, and one that is where it was not told to be.

Only of processes that see the host's own files: inside a container the same numbers mean other devices.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from npu_watchd.model.finding import Action, Evidence, Severity
from npu_watchd.model.hccl import device_list
from npu_watchd.model.ids import DeviceKey
from npu_watchd.model.jobs import Attribution, DeviceJobs, JobKey
from npu_watchd.model.reading import NOT_READ_YET
from npu_watchd.model.snapshot import Device
from npu_watchd.rules.contention import contending
from npu_watchd.rules.rule import Judgement, Polls, Rule, Unseen, Verified, View
from npu_watchd.rules.sight import blind

_NEEDS = ("npu_info", "processes")
_LIST = "ASCEND_RT_VISIBLE_DEVICES"


@dataclass(frozen=True, slots=True)
class _Told:
    """What a process was told to use."""

    variable: str
    value: str
    devices: frozenset[int]
    """Logic ids."""


def _told(one: Attribution) -> _Told | None:
    """None: nothing, or in a way of which nobody here knows what it means."""
    if one.variables is None or one.place is None or one.place.on_host is not True:
        return None
    text = one.variables.get(_LIST)
    if text is not None:
        ids = device_list(text)
        return None if ids is None else _Told(_LIST, text, frozenset(ids))
    # Beside a list these count within it.
    for name in ("DEVICE_ID", "ASCEND_DEVICE_ID"):
        text = one.variables.get(name)
        if text is not None:
            ids = device_list(text)
            return _Told(name, text, frozenset(ids)) if ids is not None and len(ids) == 1 else None
    return None


def _processes(view: View) -> Iterator[tuple[DeviceKey, Device, Attribution]]:
    for key, device in view.devices():
        for one in device.jobs.attributions if device.jobs is not None else ():
            yield key, device, one


def _logic_ids(view: View) -> Mapping[int, DeviceKey]:
    """Empty where one of them is not known: then a number may mean any."""
    ids = {device.identity.logic_id: key for key, device in view.devices()}
    return {} if None in ids else {number: key for number, key in ids.items() if number is not None}


def _dark(view: View, key: DeviceKey, device: Device) -> Judgement | None:
    because = blind(device, *_NEEDS)
    # One process whose place has not come hides what any device is claimed for.
    if because is None and any(one.place is None for _, _, one in _processes(view) if one.process is not None):
        because = NOT_READ_YET
    return None if because is None else Unseen(key, because)


# Two jobs that were told the same device


def _overlap(view: View) -> Iterable[Judgement]:
    claims = _claims(view)
    for key, device in view.devices():
        found = _claimed_twice(view, key, device, claims.get(key, {}))
        dark = _dark(view, key, device) if found is None else None
        if found is not None:
            yield found
        elif dark is not None:
            yield dark


def _claims(view: View) -> dict[DeviceKey, dict[JobKey, list[Attribution]]]:
    """Device → the jobs that were told to use it.

    A list of every device of the node claims none of them; nor does a process that is where it was not told to be: it
    does not do as it was told, as one that has inherited a DEVICE_ID which means nothing to it.
    """
    by_id = _logic_ids(view)
    found: dict[DeviceKey, dict[JobKey, list[Attribution]]] = {}
    for _, device, one in _processes(view):
        told = _told(one)
        if told is None or one.job is None or told.devices >= by_id.keys():
            continue
        if device.identity.logic_id not in told.devices:
            continue
        for key in (by_id[number] for number in sorted(told.devices & by_id.keys())):
            some = found.setdefault(key, {}).setdefault(one.job.key, [])
            if one.process not in [other.process for other in some]:
                some.append(one)
    return found


def _claimed_twice(
    view: View, key: DeviceKey, device: Device, claims: Mapping[JobKey, list[Attribution]]
) -> Verified | None:
    here = device.jobs.by_job.keys() if device.jobs is not None else frozenset[JobKey]()
    if len(claims) < 2 or len(claims.keys() & here) > 1:
        return None  # of two that are on it jobs_share_device speaks
    everyone = DeviceJobs(tuple(one for some in claims.values() for one in some))
    jobs = contending(replace(device, jobs=everyone), view.site.sharing)
    if len(jobs) < 2:
        return None
    evidence = [_evidence(str(job), one, None) for job in jobs for one in claims[job][:1]]
    names = ", ".join(str(job) for job in jobs)
    summary = f"device {device.device_id}: {len(jobs)} jobs were told to use it: {names}"
    return Verified(key, summary, tuple(evidence), for_polls=_polls(view))


# A job where it was not told to be


def _outside(view: View) -> Iterable[Judgement]:
    by_id = _logic_ids(view)
    for key, device in view.devices():
        found = _strayed(view, key, device) if by_id else None
        dark = _dark(view, key, device) if found is None else None
        if found is not None:
            yield found
        elif dark is not None:
            yield dark


def _strayed(view: View, key: DeviceKey, device: Device) -> Verified | None:
    for one in device.jobs.attributions if device.jobs is not None else ():
        told, here = _told(one), device.identity.logic_id
        if told is None or told.variable != _LIST or here is None or here in told.devices or one.job is None:
            continue
        if view.site.sharing.serves(one.name, str(one.job.key)):
            continue
        evidence = _evidence(str(one.job.key), one, str(here))
        summary = f"device {device.device_id}: {one.job.key} is on it and was told to use {told.value} ({_LIST})"
        return Verified(key, summary, (evidence,), for_polls=_polls(view))
    return None


def _polls(view: View) -> Polls:
    return Polls("processes", int(view.limits["shared_polls"]))


def _evidence(job: str, one: Attribution, limit: str | None) -> Evidence:
    told = _told(one)
    pid = one.process.pid if one.process is not None else one.pid
    check = f"tr '\\0' '\\n' </proc/{pid}/environ | grep DEVICE"
    variable, value = (told.variable, told.value) if told else ("", "")
    return Evidence(f"{variable} of {job}, pid {pid}", value, limit, "", None, check)


VISIBLE_DEVICES: tuple[Rule, ...] = (
    Rule(
        "visible_devices_overlap",
        "NpuVisibleDevicesOverlap",
        Severity.WARNING,
        False,
        Action.MOVE_JOB,
        _NEEDS,
        ("shared_polls",),
        "Two or more jobs were told to use one device that the site does not share.",
        _overlap,
    ),
    Rule(
        "outside_visible_devices",
        "NpuOutsideVisibleDevices",
        Severity.WARNING,
        False,
        Action.CHECK_JOB,
        _NEEDS,
        ("shared_polls",),
        "A job is on a device that the list of devices it was started with does not have.",
        _outside,
    ),
)
