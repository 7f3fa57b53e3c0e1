"""The verdict itself as an alert: a person has to do something, and to release it afterwards."""

from __future__ import annotations

from collections.abc import Iterable

from npu_watchd.model.finding import Action, Evidence, Severity
from npu_watchd.model.ids import NODE, DeviceKey
from npu_watchd.model.verdict import State
from npu_watchd.rules.rule import Judgement, Rule, Verified, View


def _recommended(view: View) -> Iterable[Judgement]:
    """Of the node only where it is in quarantine for itself: what a device does to it has that device's alert."""
    for subject, verdict in view.verdicts.items():
        if verdict.state is not State.QUARANTINE or not (isinstance(subject, DeviceKey) or subject == NODE):
            continue
        whose = "the node" if subject == NODE else f"device {verdict.device_id}"
        what = "node" if subject == NODE else f"device {verdict.device_id}"
        why = verdict.reasons[0].text if verdict.reasons else "its reason is in the journal"
        held = "; nothing of it is seen now, but only a release ends a quarantine" if verdict.held else ""
        evidence = tuple(
            Evidence("verdict", "quarantine", "healthy", "", None, f"npu-watchd explain {what}: {reason.text}")
            for reason in verdict.reasons[:5]
        )
        yield Verified(
            subject,
            f"{whose} should be taken out of use: {why}{held}",
            evidence,
            action=verdict.action or Action.INSPECT,
        )


QUARANTINE = Rule(
    "quarantine",
    "NpuQuarantineRecommended",
    Severity.CRITICAL,
    False,
    Action.INSPECT,
    (),
    ("verdict_calm_s", "probation_clean_s", "probation_load_s", "returns_to_replace", "returns_window_s"),
    "The verdict is quarantine: the device or node should run no job until it is mended and a person releases it.",
    _recommended,
)
"""Judged after all the others, and after the verdicts that they lead to."""
