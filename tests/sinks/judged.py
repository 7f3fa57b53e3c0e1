"""Small builders of verdicts: the node of tests/sinks/build.py, judged."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from npu_watchd.model.finding import Action
from npu_watchd.model.ids import NODE, DeviceKey
from npu_watchd.model.snapshot import Outcome
from npu_watchd.model.verdict import Reason, State, Verdict
from tests.sinks.build import AT

BROKEN = Reason("device 3: 2 uncorrectable HBM errors since its last reset", "hbm_double_bit")
UNSEEN = Reason("cannot be seen: npu-smi info -t ecc -i 1: no answer within 10 s")
PROGRESS = Reason("on probation: 3.5 h of 24 h without a fault, 0.5 h of 1 h at work; released by alice: reset")


def of_node(state: State = State.HEALTHY, *reasons: Reason, **changes: Any) -> Verdict:
    """Two hours old."""
    return replace(Verdict(NODE, None, state, AT.wall_s - 7200, reasons), **changes)


def of_device(number: int, state: State = State.HEALTHY, *reasons: Reason, **changes: Any) -> Verdict:
    return replace(Verdict(DeviceKey(number), str(number), state, AT.wall_s - 7200, reasons), **changes)


def quarantined(number: int = 3, **changes: Any) -> Verdict:
    return of_device(number, State.QUARANTINE, BROKEN, action=Action.RESET_DEVICE, **changes)


def judged(shown: Outcome, *verdicts: Verdict) -> Outcome:
    return replace(shown, verdicts=verdicts)
