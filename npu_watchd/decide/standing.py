"""From what the rules say in one cycle to the findings that stand: what is new, what stays, what is over."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from npu_watchd.model.finding import Event, Finding
from npu_watchd.model.ids import NODE, DeviceKey, Subject
from npu_watchd.model.reading import Failure, FailureKind
from npu_watchd.model.snapshot import Device, Snapshot
from npu_watchd.rules.rule import Judgement, Rule, Unseen, Verified

Key = tuple[str, Subject]
"""Rule and subject."""

_GONE = Failure(FailureKind.STALE, "not seen since the daemon started")


@dataclass(frozen=True, slots=True)
class Pending:
    """A condition that holds and has not lasted yet."""

    since_s: float
    """History time."""
    calls_before: int
    """Calls of the probe that is counted, before the one that showed it first."""


@dataclass(frozen=True, slots=True)
class Moment:
    """The present, by the two clocks that findings know."""

    history_s: float
    """Never runs backwards: for how long something lasts."""
    wall_s: float
    """For people."""


@dataclass(frozen=True, slots=True)
class Standing:
    """What stands after a cycle, and what may come to stand."""

    findings: Mapping[Key, Finding] = field(default_factory=dict)
    pending: Mapping[Key, Pending] = field(default_factory=dict)
    calm_since_s: Mapping[Key, float] = field(default_factory=dict)
    """Findings whose condition is gone, and since when (history time)."""


@dataclass(frozen=True, slots=True)
class Said:
    """What one rule says in one cycle."""

    rule: Rule
    judgements: tuple[Judgement, ...]


def stand(before: Standing, said: Iterable[Said], snapshot: Snapshot, now: Moment) -> tuple[Standing, list[Event]]:
    """The next standing, and what the journal has to say of the step. Judging twice at one moment changes nothing.

    A finding whose subject or source cannot be seen is held; one whose rule is no longer there is resolved.
    """
    findings: dict[Key, Finding] = {}
    pending: dict[Key, Pending] = {}
    calm: dict[Key, float] = {}
    calls = _calls(snapshot)
    for one in said:
        verified, unseen = _sorted(one.judgements)
        stood = {subject for rule, subject in (*before.findings, *before.pending) if rule == one.rule.id}
        # In the order of the subjects' names, so that the journal of one and the same story is always the same.
        for subject in sorted({*verified, *unseen, *stood}, key=str):
            key, found = (one.rule.id, subject), verified.get(subject)
            because = unseen.get(subject) or _lost(snapshot, subject)
            if found is not None:
                wait = None
                if key not in before.findings:
                    wait = _wait(before.pending.get(key), found, _counted(found, calls, snapshot), now)
                if wait is not None:
                    pending[key] = wait
                else:
                    findings[key] = _finding(one.rule, found, before.findings.get(key), snapshot, now)
            elif because is not None:
                _hold(key, because, before, findings, pending)
            else:
                _calm(one.rule, key, before, now, findings, calm)
    return Standing(findings, pending, calm), list(_events(before.findings, findings, now))


def _sorted(judgements: Iterable[Judgement]) -> tuple[dict[Subject, Verified], dict[Subject, Failure]]:
    """The first of each kind about each subject."""
    verified: dict[Subject, Verified] = {}
    unseen: dict[Subject, Failure] = {}
    for judgement in judgements:
        if isinstance(judgement, Unseen):
            unseen.setdefault(judgement.subject, judgement.because)
        else:
            verified.setdefault(judgement.subject, judgement)
    return verified, unseen


def _hold(
    key: Key, because: Failure, before: Standing, findings: dict[Key, Finding], pending: dict[Key, Pending]
) -> None:
    """Not seeing a fault neither mends it nor makes it last."""
    if key in before.findings:
        findings[key] = replace(before.findings[key], held=True, held_because=because.detail)
    elif key in before.pending:
        pending[key] = before.pending[key]


def _calm(
    rule: Rule, key: Key, before: Standing, now: Moment, findings: dict[Key, Finding], calm: dict[Key, float]
) -> None:
    """What no longer holds is over once that has lasted."""
    if key in before.findings:
        since_s = before.calm_since_s.get(key, now.history_s)
        if now.history_s - since_s < rule.calm_s:
            findings[key], calm[key] = replace(before.findings[key], held=False, held_because=None), since_s


def _wait(was: Pending | None, found: Verified, count: int, now: Moment) -> Pending | None:
    """None once the condition has lasted as long as it must. count: calls of the probe that is counted, so far."""
    pending = was or Pending(now.history_s, count - 1)
    long_enough = now.history_s - pending.since_s >= found.for_s
    often_enough = found.for_polls is None or count - pending.calls_before >= found.for_polls.count
    return None if long_enough and often_enough else pending


def _calls(snapshot: Snapshot) -> dict[tuple[str, str | None], tuple[int, int]]:
    return {(state.probe, state.device_id): (state.successes, state.failures) for state in snapshot.probes}


def _counted(found: Verified, calls: Mapping[tuple[str, str | None], tuple[int, int]], snapshot: Snapshot) -> int:
    """Calls of the probe about the subject; about the node where the probe is the node's."""
    polls, subject = found.for_polls, found.subject
    if polls is None:
        return 0
    device = snapshot.devices.get(subject) if isinstance(subject, DeviceKey) else None
    own = calls.get((polls.probe, device.device_id)) if device else None
    successes, failures = own or calls.get((polls.probe, None), (0, 0))
    return failures if polls.failed else successes


def _lost(snapshot: Snapshot, subject: Subject) -> Failure | None:
    """A subject that the snapshot does not show was not looked at, whatever the rule says by saying nothing."""
    known = subject == NODE or subject in snapshot.devices or subject in snapshot.ports
    return None if known else _GONE


def _finding(rule: Rule, found: Verified, was: Finding | None, snapshot: Snapshot, now: Moment) -> Finding:
    device = snapshot.devices.get(found.subject) if isinstance(found.subject, DeviceKey) else None
    return Finding(
        rule=rule.id,
        alert=rule.alert,
        subject=found.subject,
        device_id=device.device_id if device else was.device_id if was else None,
        severity=found.severity or rule.severity,
        quarantines=rule.quarantines if found.quarantines is None else found.quarantines,
        action=found.action or rule.action,
        since_s=was.since_s if was else now.wall_s,
        summary=found.summary,
        evidence=found.evidence,
        jobs=found.jobs or _jobs(device, was),
    )


def _jobs(device: Device | None, was: Finding | None) -> tuple[str, ...]:
    """Who is on the device; while nobody can tell, whoever was when it last could be told."""
    if device is not None and device.jobs is not None:
        return tuple(str(key) for key in device.jobs.by_job)
    return was.jobs if was else ()


def _events(before: Mapping[Key, Finding], after: Mapping[Key, Finding], now: Moment) -> Iterator[Event]:
    for key, finding in after.items():
        was = before.get(key)
        if was is None:
            yield _event("finding_opened", finding.summary, finding, now)
        elif was.severity != finding.severity:
            text = f"{was.severity.value} is now {finding.severity.value}: {finding.summary}"
            yield _event("finding_changed", text, finding, now)
        elif finding.held and not was.held:
            yield _event("finding_held", f"held, since it cannot be seen: {finding.held_because}", finding, now)
        elif was.held and not finding.held:
            yield _event("finding_seen_again", finding.summary, finding, now)
    for key, finding in before.items():
        if key not in after:
            yield _event("finding_resolved", f"over: {finding.summary}", finding, now)


def _event(kind: str, text: str, finding: Finding, now: Moment) -> Event:
    facts = {"alert": finding.alert, "severity": finding.severity.value, "subject": str(finding.subject)}
    return Event(0, now.wall_s, kind, text, finding.device_id, finding.rule, facts)
