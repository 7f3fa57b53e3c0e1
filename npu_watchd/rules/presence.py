"""Devices that should be there and are not."""

from __future__ import annotations

from collections.abc import Iterable

from npu_watchd.model.finding import Action, Evidence, Severity
from npu_watchd.model.ids import NODE, DeviceKey
from npu_watchd.rules.rule import Judgement, Polls, Rule, Unseen, Verified, View
from npu_watchd.rules.sight import blind

_CHECK = "npu-smi info -l; lspci -d 19e5:"


def _missing(view: View) -> Iterable[Judgement]:
    polls = Polls("npu_info", int(view.limits["missing_polls"]))
    for key, device in view.devices():
        if device.present is None:
            because = blind(device, "npu_info")
            if because is not None:
                yield Unseen(key, because)
        elif device.present is False:
            evidence = Evidence("npu_device_present", 0, 1, "", None, "npu-smi info")
            where = f"NPU {key.npu} chip {key.chip}"
            address = f" at {device.identity.pci_address}" if device.identity.pci_address else ""
            summary = f"device {device.device_id} ({where}{address}) is no longer in the table of npu-smi"
            yield Verified(key, summary, (evidence,), for_polls=polls)
    yield from _fewer_than_expected(view, polls)


def _fewer_than_expected(view: View, polls: Polls) -> Iterable[Judgement]:
    """Devices that the config expects and that never were seen have no id: they are the node's finding."""
    snapshot = view.snapshot
    if snapshot.devices_present is None:
        if "npu_info" in snapshot.blind:
            yield Unseen(NODE, snapshot.blind["npu_info"])
        return
    # Who was missing before the daemon was started anew still is, under a finding of its own that is held.
    missed = {key for rule, key in view.active if rule == "device_missing" and isinstance(key, DeviceKey)}
    never_seen = (snapshot.devices_expected or 0) - len(snapshot.devices.keys() | missed)
    if never_seen > 0:
        seen = Evidence(
            "npu_devices_present", snapshot.devices_present, snapshot.devices_expected, "", None, "npu-smi info"
        )
        told = Evidence("[node] expected_devices", float(snapshot.devices_expected or 0), None, "", None, _CHECK)
        summary = (
            f"{never_seen} of {snapshot.devices_expected} expected devices have never been in the table of npu-smi"
        )
        yield Verified(NODE, summary, (seen, told), for_polls=polls)


PRESENCE: tuple[Rule, ...] = (
    Rule(
        "device_missing",
        "NpuDeviceMissing",
        Severity.CRITICAL,
        True,
        Action.RESET_DEVICE,
        ("npu_info",),
        ("missing_polls",),
        "A device that is expected, or was there before, is missing from three complete tables of npu-smi in a row.",
        _missing,
    ),
)
