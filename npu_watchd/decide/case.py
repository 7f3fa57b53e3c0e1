"""What the judge remembers of one subject from cycle to cycle, and over restarts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from npu_watchd.model.finding import Action, Evidence, Finding
from npu_watchd.model.verdict import Reason, State

Observed = Mapping[str, float | str]
"""Metric → the value that a finding showed."""


@dataclass(frozen=True, slots=True)
class Word:
    """What a person said, of one subject."""

    by: str
    reason: str
    at_s: float
    """Unix seconds."""
    until_s: float | None = None
    """Unix seconds; None: until it is taken back."""

    def holds(self, wall_s: float) -> bool:
        return self.until_s is None or wall_s < self.until_s


@dataclass(frozen=True, slots=True)
class Case:
    """One subject's. Instants are history time, seconds that never run backwards, where nothing else is said."""

    state: State
    since_wall_s: float
    """Unix seconds."""
    device_id: str | None = None
    reasons: tuple[Reason, ...] = ()
    action: Action | None = None
    held: bool = False
    blind: bool = False
    unread: bool = False
    """Its turn has not come since the daemon was started; `state` is the one before."""
    revision: int = 0
    seen_s: float | None = None
    """When it was last judged."""
    calm_since_s: float | None = None
    """Since when nothing is found any more; None: something is, or never was."""
    clean_s: float = 0.0
    """Of its probation: how long it was seen without a fault, in one piece but for what nobody could see."""
    load_s: float = 0.0
    """Of that, how long it was at work."""
    released_s: float | None = None
    """When a person last released it: what rules count over a window begins there."""
    released: Word | None = None
    excused: Mapping[str, Observed] = field(default_factory=dict)
    """Rule → what its finding showed when a person released the subject in spite of it."""
    afflicted: bool = False
    """Something that quarantines was seen when it was last judged, or could not be seen to have gone since."""
    treated_s: float | None = None
    """When it was reset or released since then: a fault that comes now has come back."""
    returns_s: tuple[float, ...] = ()
    """When faults came back, as far as that is remembered."""
    ordered: Word | None = None
    """Who put it into quarantine, where a person did."""
    maintenance: Word | None = None

    def excuses(self, finding: Finding) -> bool:
        """Whether a person has seen as much of this finding when releasing the subject, and nothing was added since."""
        known = self.excused.get(finding.rule)
        return known is not None and not any(_more(one, known) for one in finding.evidence)


def shown(finding: Finding) -> Observed:
    """What a release takes for known."""
    return {one.metric: one.observed for one in finding.evidence}


def still_excused(excused: Mapping[str, Observed], findings: Iterable[Finding]) -> Mapping[str, Observed]:
    """A finding that is over is no longer excused: when it comes again it is a new one."""
    standing = {finding.rule for finding in findings}
    return {rule: observed for rule, observed in excused.items() if rule in standing}


def _more(now: Evidence, known: Observed) -> bool:
    """What counts over a window begins at none where it was not told at the release."""
    before = known.get(now.metric, 0.0 if now.window_s is not None else None)
    if isinstance(now.observed, str) or isinstance(before, str) or before is None:
        return now.observed != before
    return now.observed > before
