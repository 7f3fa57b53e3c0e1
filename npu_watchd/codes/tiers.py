"""How bad a code is: the vendor's fault levels, and what each means for severity, quarantine and the next step."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from npu_watchd.model.finding import Action, Severity


class Tier(Enum):
    """The vendor's levels under our names, mildest first; UNKNOWN apart. Also the label `level` of a code's metric."""

    HINT = "hint"
    SUB_HEALTH = "sub_health"
    RERUN_REQUEST = "rerun_request"
    RERUN_JOB = "rerun_job"
    RESET_WHEN_IDLE = "reset_when_idle"
    RESET_NOW = "reset_now"
    NO_NEW_JOBS = "no_new_jobs"
    SEPARATE = "separate"
    SEPARATE_BY_HAND = "separate_by_hand"
    UNKNOWN = "unknown"
    """A code that the vendor's table does not have, or has without a level."""


@dataclass(frozen=True, slots=True)
class TierFacts:
    """What a tier entails."""

    vendor_levels: tuple[str, ...]
    """The vendor's own words for it; empty: none."""
    severity: Severity | None
    """Of the finding; None: no finding, it is only shown."""
    quarantines: bool
    action: Action
    what: str
    """What the vendor wants done, in our words."""


# Levels and what they ask for: the open tables of the vendor's device plugin. Severity and action are our reading.
TIERS: dict[Tier, TierFacts] = {
    Tier.HINT: TierFacts(("NotHandleFault",), None, False, Action.OBSERVE, "nothing needs to be done"),
    Tier.SUB_HEALTH: TierFacts(
        ("SubHealthFault",), Severity.WARNING, False, Action.INSPECT, "it works, not at its best; jobs may go on"
    ),
    Tier.RERUN_REQUEST: TierFacts(
        ("RestartRequest",), Severity.WARNING, False, Action.CHECK_JOB, "run the request again (for training: the job)"
    ),
    Tier.RERUN_JOB: TierFacts(("RestartBusiness",), Severity.WARNING, False, Action.CHECK_JOB, "run the job again"),
    Tier.RESET_WHEN_IDLE: TierFacts(
        ("FreeRestartNPU",), Severity.WARNING, False, Action.RESET_DEVICE, "reset the chip once no job uses it"
    ),
    Tier.RESET_NOW: TierFacts(
        ("RestartNPU",), Severity.CRITICAL, False, Action.RESET_DEVICE, "stop the job and reset the chip now"
    ),
    Tier.NO_NEW_JOBS: TierFacts(
        ("PreSeparateNPU", "PreSeparateFault"),
        Severity.CRITICAL,
        True,
        Action.INSPECT,
        "no new jobs; a running one may go on to its end",
    ),
    Tier.SEPARATE: TierFacts(
        ("SeparateNPU", "SeparateFault", "SeparateDPU"),
        Severity.CRITICAL,
        True,
        Action.INSPECT,
        "it will not recover by itself: keep it away from jobs",
    ),
    Tier.SEPARATE_BY_HAND: TierFacts(
        ("ManuallySeparateNPU",),
        Severity.CRITICAL,
        True,
        Action.INSPECT,
        "it came back too often: keep it away from jobs until a person releases it",
    ),
    Tier.UNKNOWN: TierFacts(
        (), Severity.WARNING, False, Action.INSPECT, "nobody has said how bad it is: shown, warned about, no more"
    ),
}

BY_NAME: dict[str, Tier] = {
    **{tier.value: tier for tier in Tier},
    **{level: tier for tier, facts in TIERS.items() for level in facts.vendor_levels},
}
"""Our names and the vendor's → tier."""
