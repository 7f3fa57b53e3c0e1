"""What a rule is: what it needs to see, and what it says of each subject it can judge."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from npu_watchd.codes.overrides import NO_OVERRIDES, Overrides
from npu_watchd.limits import Limits
from npu_watchd.memory.history import History, Labels
from npu_watchd.model.finding import Action, Evidence, Severity
from npu_watchd.model.ids import DeviceKey, Subject
from npu_watchd.model.reading import Failure
from npu_watchd.model.snapshot import Device, Snapshot
from npu_watchd.model.verdict import Verdict


@dataclass(frozen=True, slots=True)
class Sharing:
    """Who may be on a chip together, as [contention] has it."""

    share: str = "never"
    """never, same_user, vnpu or allowed."""
    services: tuple[str, ...] = ()
    """Patterns of those that may be on any chip: a process's name, or scheduler and id."""
    devices: Mapping[str, str] = field(default_factory=dict)
    """device_id → the same as `share` for this device alone."""

    def of(self, device_id: str) -> str:
        """Who may share this device."""
        return self.devices.get(device_id, self.share)

    def serves(self, *names: str | None) -> bool:
        """Whether one of these names, of a process or of a job, is a service's."""
        return any(fnmatchcase(name, pattern) for pattern in self.services for name in names if name)


EXCLUSIVE = Sharing()


@dataclass(frozen=True, slots=True)
class Site:
    """What this site says that no vendor can: its word on error codes, and who may share a chip."""

    overrides: Overrides = NO_OVERRIDES
    sharing: Sharing = EXCLUSIVE


ANY_SITE = Site()


@dataclass(frozen=True, slots=True)
class View:
    """What rules look at in one cycle."""

    snapshot: Snapshot
    history: History
    limits: Limits
    active: frozenset[tuple[str, Subject]] = frozenset()
    """Findings of the cycle before, as rule and subject: some limits are lower for what is already found."""
    site: Site = ANY_SITE
    abandoned: Mapping[str, int] = field(default_factory=dict)
    """Tool → processes that nothing could end."""
    probation: frozenset[Subject] = frozenset()
    """Of these half the usual repeats are too many."""
    released_s: Mapping[Subject, float] = field(default_factory=dict)
    """When a person last released them (history time): what came before is no longer held against them."""
    verdicts: Mapping[Subject, Verdict] = field(default_factory=dict)
    """Each subject's own, of this cycle; empty while the rules are judged that lead to them."""

    def limit(self, name: str, device: Device) -> float:
        return self.limits.of(name, device.identity.name, device.profile)

    def grown(self, metric: str, subject: Subject, labels: Labels, window_s: float) -> float | None:
        """How much a counter grew in the window, to hold against a rate; None: it was never seen.

        What is first seen after a time longer than the window in which nobody could look, because the daemon or the
        probe was away, came at some time in it: only the share that lies in the window counts (assumption: it came
        evenly), and what came after it in full.
        """
        found = self.history.increase(metric, subject, labels, window_s)
        if found is None or found.first_s is None or found.after_s is None:
            return None if found is None else found.count
        unseen_s = found.first_s - found.after_s
        if unseen_s <= window_s:
            return found.count
        now_s = self.history.now_s
        later = self.history.increase(metric, subject, labels, now_s - found.first_s)
        after = later.count if later else 0.0
        return after + (found.count - after) * (found.first_s - (now_s - window_s)) / unseen_s

    def window(self, subject: Subject, window_s: float) -> float:
        """The window as far back as the subject's last release."""
        since_s = self.released_s.get(subject)
        return window_s if since_s is None else max(0.0, min(window_s, self.history.now_s - since_s))

    def devices(self) -> Iterable[tuple[DeviceKey, Device]]:
        return self.snapshot.devices.items()


@dataclass(frozen=True, slots=True)
class Polls:
    """So many calls of a probe about the subject, or about the node where the probe is the node's."""

    probe: str
    count: int
    failed: bool = False
    """True: calls that failed; False: those that brought a record."""


@dataclass(frozen=True, slots=True)
class Verified:
    """The rule's condition holds for the subject now; it becomes a finding once it has lasted."""

    subject: Subject
    summary: str
    evidence: tuple[Evidence, ...]
    severity: Severity | None = None
    """None: the rule's own."""
    quarantines: bool | None = None
    action: Action | None = None
    for_s: float = 0.0
    """It must hold this long."""
    for_polls: Polls | None = None
    """It must hold over this many calls; the one that showed it first is one of them."""
    jobs: tuple[str, ...] = ()
    """Whom it concerns, where it is about the node; of a device those that are on it are known."""


@dataclass(frozen=True, slots=True)
class Unseen:
    """Nobody can tell whether the condition holds: what was found stays, and nothing new is found."""

    subject: Subject
    because: Failure


Judgement = Verified | Unseen
"""A subject of which a rule says nothing is one whose condition was looked at and does not hold."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule, one alert, one runbook."""

    id: str
    alert: str
    severity: Severity
    """The worst that it can have."""
    quarantines: bool
    """Whether it ever does."""
    action: Action
    needs: tuple[str, ...]
    """The probes that it rests on."""
    limits: tuple[str, ...]
    """Names of the limits that it compares with."""
    summary: str
    """One sentence for docs and for `explain`: what is wrong when it fires."""
    evaluate: Callable[[View], Iterable[Judgement]]
    calm_s: float = 0.0
    """The condition must be gone this long before the finding is resolved."""
