"""What is wrong with a device, a port or the node, and the evidence that a person can check by hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from npu_watchd.model.ids import Subject


class Severity(Enum):
    """As the alert's label `severity` has it."""

    WARNING = "warning"
    CRITICAL = "critical"


class Action(Enum):
    """The one thing to do next; the runbook says how."""

    RESET_DEVICE = "reset_device"
    INSPECT = "inspect"
    REPLACE = "replace"
    OBSERVE = "observe"
    INSPECT_COOLING = "inspect_cooling"
    RESEAT = "reseat"
    MOVE_JOB = "move_job"
    CHECK_CABLE = "check_cable"
    CHECK_OPTICS = "check_optics"
    CLEAN_UP = "clean_up"
    CHECK_JOB = "check_job"
    CHECK_DRIVER = "check_driver"
    DIAGNOSE = "diagnose"
    ALIGN_VERSIONS = "align_versions"
    ALIGN_SETTINGS = "align_settings"


@dataclass(frozen=True, slots=True)
class Evidence:
    """One value beside its limit."""

    metric: str
    """Its name on /metrics, with the labels that tell it from its siblings; or a plain word where it is not there."""
    observed: float | str
    limit: float | str | None
    """None: nothing to compare with, it is told for its own sake."""
    unit: str
    """Base unit, as the metric's; "" for counts and words."""
    window_s: float | None
    """The span over which it was counted; None for a value of this moment."""
    source: str
    """The command, and the key in its answer, with which a person checks it on the node."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One rule about one subject: there is never a second of the same rule about the same subject."""

    rule: str
    alert: str
    """The alert's name, the same in Alertmanager and in Prometheus' rules."""
    subject: Subject
    device_id: str | None
    """Of the device that it is about; None for the host's ports and for the node."""
    severity: Severity
    quarantines: bool
    action: Action
    since_s: float
    """Unix seconds at which it became active."""
    summary: str
    """One sentence with the value and the limit."""
    evidence: tuple[Evidence, ...]
    held: bool = False
    """True: what it rests on can no longer be seen. It stays active: not seeing a fault does not mend it."""
    held_because: str | None = None
    """The failure of the probe; None unless held."""
    jobs: tuple[str, ...] = ()
    acknowledged: str | None = None
    """Who has taken it on, and what they said; None: nobody."""

    @property
    def key(self) -> tuple[str, Subject]:
        """What makes it the same finding from one cycle to the next."""
        return self.rule, self.subject


@dataclass(frozen=True, slots=True)
class Event:
    """One line of the journal."""

    number: int
    """Grows by one; never used twice, also over restarts. 0: not yet in the journal."""
    at_s: float
    """Unix seconds, by the wall clock as it was then."""
    kind: str
    """Snake case: finding_opened, finding_resolved, finding_held, counters_reset, clock_jumped, daemon_started, …"""
    text: str
    """One sentence for a person."""
    device_id: str | None = None
    rule: str | None = None
    facts: Mapping[str, str | int | float | bool] = field(default_factory=dict)
