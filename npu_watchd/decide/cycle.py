"""One step of judging: history, rules, what stands, and the journal's lines of it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from npu_watchd.decide.bench import Bench
from npu_watchd.decide.changes import Change, changes
from npu_watchd.decide.orders import Scene
from npu_watchd.decide.standing import Moment, Said, Standing, stand
from npu_watchd.limits import Limits
from npu_watchd.memory.history import History
from npu_watchd.memory.series import Reset
from npu_watchd.model.finding import Event, Finding
from npu_watchd.model.ids import NODE, DeviceKey, Subject
from npu_watchd.model.reading import Failure, FailureKind
from npu_watchd.model.snapshot import Snapshot
from npu_watchd.model.verdict import Answer, Decision, Verdict
from npu_watchd.rules.contention import tenants
from npu_watchd.rules.quarantine import QUARANTINE
from npu_watchd.rules.rule import ANY_SITE, Rule, Site, Unseen, View

JOURNAL_KEPT = 2000
"""Lines that the API serves from memory; the journal on disk has more."""


@dataclass(frozen=True, slots=True)
class Judged:
    """What a step brought."""

    findings: tuple[Finding, ...]
    """The worst first, then the oldest."""
    events: tuple[Event, ...]
    """New lines of the journal, numbered."""
    changes: tuple[Change, ...]
    """What is news in the snapshot itself; each is among the events too."""
    verdicts: tuple[Verdict, ...] = ()
    """The node's first, then those of devices and ports."""
    faults: Mapping[str, str] = field(default_factory=dict)
    """Rule → the fault of ours that kept it from judging; what it had found is held."""


@dataclass(frozen=True, slots=True)
class Stood:
    """What stood when the daemon last ran."""

    findings: tuple[Finding, ...] = ()
    next_event: int = 1
    bench: Bench = field(default_factory=lambda: Bench({}, {}, "any"))


class Judging:
    """Goes from cycle to cycle; for the one thread that calls `step`."""

    def __init__(
        self,
        history: History,
        rules: Collection[Rule],
        limits: Limits,
        off: Collection[str] = (),
        site: Site = ANY_SITE,
        stood: Stood | None = None,
    ) -> None:
        """off: rules that are not judged."""
        stood = stood if stood is not None else Stood()
        self._history = history
        self._rules = tuple(rules)
        self._limits = limits
        self._off = frozenset(off)
        self._site = site
        self._standing = Standing({finding.key: finding for finding in stood.findings})
        self._next_event = stood.next_event
        self.bench = stood.bench
        self._before: Snapshot | None = None
        self._now = Moment(0.0, 0.0)
        self.journal: tuple[Event, ...] = ()
        """The newest lines, oldest first."""

    def take(self, limits: Limits, off: Collection[str], site: Site) -> None:
        """Go on with a new config's limits."""
        self._limits, self._off, self._site = limits, frozenset(off), site

    def recall(self, events: Iterable[Event]) -> None:
        """The journal as it was when the daemon last ran."""
        self.journal = (*events, *self.journal)[-JOURNAL_KEPT:]

    def note(self, kind: str, text: str, wall_s: float, **facts: str | float | bool) -> Event:
        """Write a line that no rule and no snapshot brings: the daemon started, the clock jumped."""
        return self._write([Event(0, wall_s, kind, text, facts=facts)])[0]

    def step(self, snapshot: Snapshot, history_s: float, abandoned: Mapping[str, int]) -> Judged:
        """Judge one snapshot. A rule that fails costs itself alone: what it had found is held."""
        resets = self._history.observe(snapshot, history_s, tenants(snapshot, self._site.sharing))
        now = Moment(history_s, snapshot.at.wall_s)
        view = self._view(snapshot, abandoned)
        faults: dict[str, str] = {}
        last = [rule for rule in self._rules if rule.id == QUARANTINE.id and rule.id not in self._off]
        said = [self._say(rule, view, faults) for rule in self._rules if rule.id not in {*self._off, QUARANTINE.id}]
        found, _ = stand(self._standing, said, snapshot, now)
        news = tuple(changes(self._before, snapshot))
        reset_lines = (_reset_event(reset, snapshot) for reset in resets)
        written = self._write([*(_change_event(change, now) for change in news), *reset_lines])
        first = _worst_first(found.findings.values())
        judged = self.bench.judge(snapshot, first, resets, now, self._limits, self._write)
        view = replace(view, verdicts=self.bench.own_verdicts)
        self._standing, opened = stand(
            self._standing, [*said, *(self._say(rule, view, faults) for rule in last)], snapshot, now
        )
        written += (*judged, *self._write(opened))
        self._before, self._now = snapshot, now
        return Judged(self.findings, written, news, self.bench.verdicts, faults)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All that stand, the worst first."""
        return self.bench.acknowledged(_worst_first(self._standing.findings.values()))

    def decide(self, decision: Decision) -> tuple[Answer, tuple[Event, ...]]:
        """Carry out a person's decision, between two cycles; the next one judges what it leads to."""
        snapshot = self._before
        if snapshot is None:
            return Answer(False, "nothing has been judged yet since npu-watchd was started; try again in a moment"), ()
        now = Moment(self._now.history_s, max(self._now.wall_s, decision.at_s))
        shown: frozenset[Subject] = frozenset({NODE, *snapshot.devices, *snapshot.ports})
        scene = Scene(self.findings, shown, self.bench.name, now)
        answer, events, given_up = self.bench.decide(decision, scene, self._write)
        left = {key: finding for key, finding in self._standing.findings.items() if finding.subject not in given_up}
        self._standing = replace(self._standing, findings=left)
        return answer, events

    def _view(self, snapshot: Snapshot, abandoned: Mapping[str, int]) -> View:
        active, ruling = frozenset(self._standing.findings), self.bench.ruling
        view = View(snapshot, self._history, self._limits, active, self._site, abandoned=abandoned)
        return replace(view, probation=ruling.probation, released_s=ruling.released_s)

    def _say(self, rule: Rule, view: View, faults: dict[str, str]) -> Said:
        try:
            return Said(rule, tuple(rule.evaluate(view)))
        except Exception as error:  # noqa: BLE001  # one faulty rule must not cost the node its others
            faults[rule.id] = f"{type(error).__name__}: {error}"
            failure = Failure(FailureKind.UNPARSEABLE, f"the rule itself failed: {faults[rule.id]}")
            stood = (subject for name, subject in view.active if name == rule.id)
            return Said(rule, tuple(Unseen(subject, failure) for subject in stood))

    def _write(self, events: list[Event]) -> tuple[Event, ...]:
        written = tuple(replace(event, number=number) for number, event in enumerate(events, self._next_event))
        self._next_event += len(written)
        if written:
            self.journal = (*self.journal, *written)[-JOURNAL_KEPT:]
        return written


def _worst_first(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    def rank(finding: Finding) -> tuple[bool, bool, float, str, str]:
        worse = finding.severity.value == "critical"
        return not finding.quarantines, not worse, finding.since_s, finding.rule, str(finding.subject)

    return tuple(sorted(findings, key=rank))


def _change_event(change: Change, now: Moment) -> Event:
    said = ", ".join(f"{key} {value}" for key, value in change.facts.items() if key != "device_id")
    device_id = change.facts.get("device_id")
    whose = f"device {device_id}: " if device_id is not None else ""
    words = (change.event.removeprefix("device_") if whose else change.event).replace("_", " ")
    text = f"{whose}{words}{f' ({said})' if said else ''}"
    return Event(0, now.wall_s, change.event, text, None if device_id is None else str(device_id), None, change.facts)


_WHY = {
    "boot_id": "the node was rebooted",
    "driver": "the driver's version changed",
    "run": "the daemon was started anew",
    "fell": "it fell: a reset of the device, or somebody cleared it",
    "replaced": "it is another chip",
}


def _reset_event(reset: Reset, snapshot: Snapshot) -> Event:
    device = snapshot.devices.get(reset.subject) if isinstance(reset.subject, DeviceKey) else None
    whose = f"device {device.device_id}" if device else str(reset.subject)
    labels = ", ".join(f"{key} {value}" for key, value in reset.labels)
    what = "all counters begin" if reset.metric is None else f"{reset.metric} began"
    values = "" if reset.before is None or reset.after is None else f", {reset.before:g} and now {reset.after:g}"
    why = _WHY.get(reset.reason, reset.reason)
    text = f"{whose}: {what} anew{f' ({labels})' if labels else ''}{values}: {why}"
    facts = {"metric": reset.metric or "", "reason": reset.reason}
    device_id = device.device_id if device else None
    return Event(0, snapshot.at.wall_s, "counters_reset", text, device_id, None, facts)
