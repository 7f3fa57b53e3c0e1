"""The device's way to the CPU: links that came up worse than they can, errors on them, and too much traffic."""

from __future__ import annotations

from collections.abc import Iterable

from npu_watchd.model.finding import Action, Evidence, Severity
from npu_watchd.model.ids import DeviceKey
from npu_watchd.model.pcie import PcieLink
from npu_watchd.model.reading import NOT_READ_YET, Failure, FailureKind
from npu_watchd.model.snapshot import Device
from npu_watchd.rules.rule import Judgement, Polls, Rule, Unseen, Verified, View
from npu_watchd.rules.sight import blind, unread
from npu_watchd.rules.window import span

_AER = "npu_device_pcie_errors_total"
_IDLE = Failure(FailureKind.STALE, "the device is idle, and an idle link may be slow to save power")


def _busy(device: Device) -> bool | None:
    ratios = [device.utilization_ratio[unit] for unit in ("aicore", "npu") if unit in device.utilization_ratio]
    return max(ratios) > 0 if ratios else None


def _degraded(view: View) -> Iterable[Judgement]:
    for key, device in view.devices():
        because = blind(device, "pcie_link") or unread(device, "pcie_link", device.pcie_link)
        if because is not None:
            yield Unseen(key, because)
        elif device.pcie_link is not None:
            found = _worse(view, key, device, device.pcie_link)
            if found is not None:
                yield found


def _worse(view: View, key: DeviceKey, device: Device, link: PcieLink) -> Judgement | None:
    """An idle device's speed proves nothing: a finding that rests on it is held until the device works again."""
    degraded = link.degraded(_busy(device))
    if not degraded:
        doubtful = degraded is None or link.slow
        return Unseen(key, _IDLE) if doubtful and ("pcie_link", key) in view.active else None
    where = f"cat /sys/bus/pci/devices/{{{','.join(link.path)}}}"
    evidence = []
    if link.narrow:
        lanes = _least(link.lanes, link.path_lanes)
        evidence.append(
            Evidence("npu_device_pcie_link_lanes", lanes, link.path_max_lanes, "", None, f"{where}/current_link_width")
        )
    if link.slow:
        speed = _least(link.transfers_per_second, link.path_transfers_per_second)
        metric, limit = "npu_device_pcie_link_transfers_per_second", link.path_max_transfers_per_second
        evidence.append(Evidence(metric, speed, limit, "", None, f"{where}/current_link_speed"))
    words = " and ".join(word for word, bad in (("fewer lanes", link.narrow), ("less speed", link.slow)) if bad)
    summary = f"device {device.device_id}: its PCIe link at {link.address} has {words} than every part of the path can"
    return Verified(
        key, summary, tuple(evidence), for_polls=Polls("pcie_link", int(view.limit("pcie_link_polls", device)))
    )


def _least(*values: float | None) -> float:
    return min(value for value in values if value is not None)


def _errors(view: View) -> Iterable[Judgement]:
    for key, device in view.devices():
        found = _uncorrectable(view, key, device) or _correctable(view, key, device)
        because = blind(device, "pcie_aer")
        if because is not None:
            yield Unseen(key, because)
        elif found is not None:
            yield found
        elif device.pcie_link is None:
            # How many corrected errors are too many depends on the lanes, and nobody knows them.
            yield Unseen(key, blind(device, "pcie_link") or NOT_READ_YET)


def _source(device: Device, severity: str) -> str:
    address = device.identity.pci_address or "ADDRESS"
    return f"cat /sys/bus/pci/devices/{address}/aer_dev_{severity}"


def _uncorrectable(view: View, key: DeviceKey, device: Device) -> Verified | None:
    window_s = view.window(key, view.limit("pcie_errors_window_s", device))
    for severity in ("fatal", "nonfatal"):
        grown = view.history.increase(_AER, key, (("severity", severity),), window_s)
        if grown is not None and grown.count > 0:
            metric = f'increase of {_AER}{{severity="{severity}"}}'
            evidence = Evidence(metric, grown.count, 0, "", window_s, _source(device, severity))
            summary = f"device {device.device_id}: {grown.count:.0f} {severity} PCIe errors in {span(window_s)}"
            return Verified(key, summary, (evidence,), severity=Severity.CRITICAL, quarantines=severity == "fatal")
    return None


def _correctable(view: View, key: DeviceKey, device: Device) -> Verified | None:
    window_s = view.limit("pcie_correctable_window_s", device)
    grown = view.grown(_AER, key, (("severity", "correctable"),), window_s)
    link = device.pcie_link
    lanes = (link.max_lanes or link.lanes) if link else None
    if grown is None or lanes is None:
        return None
    limit = view.limit("pcie_correctable_per_minute_per_lane", device) * lanes * window_s / 60
    if ("pcie_errors", key) in view.active:
        limit /= 2
    if grown < limit:
        return None
    metric = f'increase of {_AER}{{severity="correctable"}}'
    evidence = Evidence(metric, grown, limit, "", window_s, _source(device, "correctable"))
    summary = (
        f"device {device.device_id}: {grown:.0f} corrected PCIe errors in {span(window_s)} "
        f"(limit {limit:.0f} for {lanes} lanes)"
    )
    return Verified(key, summary, (evidence,), severity=Severity.WARNING, quarantines=False)


def _saturated(view: View) -> Iterable[Judgement]:
    for key, device in view.devices():
        because = blind(device, "pcie_load") or unread(device, "pcie_load", device.pcie_load)
        if because is not None:
            yield Unseen(key, because)
            continue
        if device.pcie_load is None:
            continue
        limit = view.limit("pcie_load_ratio", device)
        ratios = {"receive": device.pcie_load.receive_ratio, "transmit": device.pcie_load.transmit_ratio}
        way, ratio = max(ratios.items(), key=lambda item: item[1] or 0.0)
        if ratio is not None and ratio > limit:
            metric = f'npu_device_pcie_load_ratio{{direction="{way}"}}'
            evidence = Evidence(
                metric, ratio, limit, "ratio", None, f"[probes.pcie_load], by {device.pcie_load.source}"
            )
            summary = f"device {device.device_id}: its PCIe link is {ratio:.0%} full ({way}, limit {limit:.0%})"
            yield Verified(key, summary, (evidence,), for_s=view.limit("pcie_load_s", device))


PCIE: tuple[Rule, ...] = (
    Rule(
        "pcie_link",
        "NpuPcieLinkDegraded",
        Severity.WARNING,
        False,
        Action.RESEAT,
        ("pcie_link",),
        ("pcie_link_polls",),
        "The device's PCIe link has fewer lanes than every part of its path can, or less speed while it works.",
        _degraded,
    ),
    Rule(
        "pcie_errors",
        "NpuPcieErrorsClimbing",
        Severity.CRITICAL,
        True,
        Action.INSPECT,
        ("pcie_aer",),
        ("pcie_correctable_per_minute_per_lane", "pcie_correctable_window_s", "pcie_errors_window_s"),
        "PCIe errors on the device's link climb, or one came that could not be corrected.",
        _errors,
    ),
    Rule(
        "pcie_load",
        "NpuPcieSaturated",
        Severity.WARNING,
        False,
        Action.MOVE_JOB,
        ("pcie_load",),
        ("pcie_load_ratio", "pcie_load_s"),
        "The device's PCIe link has been all but full for a minute.",
        _saturated,
        calm_s=60.0,
    ),
)
