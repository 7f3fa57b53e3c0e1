"""What we cannot see: a tool that hangs, and probes without which nobody may call a device healthy."""

from __future__ import annotations

from collections.abc import Iterable

from npu_watchd.model.finding import Action, Evidence, Severity
from npu_watchd.model.ids import NODE, DeviceKey
from npu_watchd.model.reading import NOT_READ_YET, FailureKind
from npu_watchd.rules.rule import Judgement, Polls, Rule, Unseen, Verified, View

_HUNG = (FailureKind.TIMEOUT, FailureKind.WEDGED)
_TABLE = "npu-smi info"


def _wedged(view: View) -> Iterable[Judgement]:
    for tool, count in sorted(view.abandoned.items()):
        evidence = Evidence(
            f'npu_watchd_abandoned_processes{{tool="{tool}"}}', count, 0, "", None, "ps -eo pid,stat,wchan:32,args"
        )
        summary = f"{count} process(es) of {tool} cannot be ended: stuck in the driver (state D)"
        yield Verified(NODE, summary, (evidence,))
        return
    table = next((it for it in view.snapshot.probes if it.probe == "npu_info"), None)
    hung = table.failure if table else None
    if table is None:
        yield Unseen(NODE, NOT_READ_YET)
    elif hung is not None and hung.kind in _HUNG:
        evidence = Evidence('npu_watchd_probe_up{probe="npu_info"}', 0, 1, "", None, f"time {_TABLE}")
        polls = Polls("npu_info", int(view.limits["tool_hung_polls"]), failed=True)
        yield Verified(NODE, f"npu-smi hangs: {hung.detail}", (evidence,), for_polls=polls)


def _check(key: DeviceKey, probe: str) -> str:
    kinds = {"npu_ecc": f"{_TABLE} -t ecc -i {key.npu}", "npu_health": f"{_TABLE} -t health -i {key.npu} -c {key.chip}"}
    return kinds.get(probe, _TABLE)


def _blind(view: View) -> Iterable[Judgement]:
    """By the time that a reading counts as stale its probe has failed for three periods."""
    table = view.snapshot.blind.get("npu_info")
    if table is NOT_READ_YET:
        yield Unseen(NODE, NOT_READ_YET)
    elif table is not None:
        evidence = Evidence('npu_watchd_probe_up{probe="npu_info"}', 0, 1, "", None, _TABLE)
        yield Verified(NODE, f"the table of npu-smi cannot be read, so no device can: {table.detail}", (evidence,))
    if table is not None:
        return
    for key, device in view.devices():
        if device.present is not True:
            continue
        found = {probe: failure for probe, failure in device.blind.items() if probe in device.vital}
        told = {probe: failure for probe, failure in found.items() if failure is not NOT_READ_YET}
        if told:
            evidence_of = tuple(
                Evidence(
                    f'npu_watchd_probe_up{{probe="{probe}"}}', failure.detail, "a reading", "", None, _check(key, probe)
                )
                for probe, failure in sorted(told.items())
            )
            first = min(told)
            summary = f"device {device.device_id}: nobody can say whether it is healthy: {first}: {told[first].detail}"
            yield Verified(key, summary, evidence_of, for_s=view.limit("untrusted_s", device))
        elif found:
            yield Unseen(key, NOT_READ_YET)


BLINDNESS: tuple[Rule, ...] = (
    Rule(
        "tool_wedged",
        "NpuToolWedged",
        Severity.CRITICAL,
        False,
        Action.CHECK_DRIVER,
        ("npu_info",),
        ("tool_hung_polls",),
        "npu-smi hangs, or one of its processes cannot be ended: the driver is stuck.",
        _wedged,
    ),
    Rule(
        "probe_blind",
        "NpuProbeBlind",
        Severity.WARNING,
        False,
        Action.CHECK_DRIVER,
        ("npu_info", "npu_ecc", "npu_health"),
        ("untrusted_s",),
        "A probe without which nobody may call a device healthy has failed for three of its periods.",
        _blind,
        calm_s=30.0,
    ),
)
