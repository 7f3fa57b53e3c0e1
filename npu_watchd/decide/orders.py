"""People's decisions: what each may change, when it is refused, and what it overrides."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from npu_watchd.decide.case import Case, Word, shown
from npu_watchd.decide.standing import Moment
from npu_watchd.model.finding import Finding
from npu_watchd.model.ids import NODE, Subject
from npu_watchd.model.verdict import Answer, Decision, Order, State

Key = tuple[str, Subject]
"""A finding: its rule and its subject."""


@dataclass(frozen=True, slots=True)
class Register:
    """All that decisions may change."""

    cases: Mapping[Subject, Case]
    acks: Mapping[Key, Word]
    """Findings that somebody has taken on."""
    given_up: frozenset[Subject] = frozenset()
    """Released although the snapshot no longer shows them: what stood about them is over."""


@dataclass(frozen=True, slots=True)
class Scene:
    """What the person decides about."""

    findings: tuple[Finding, ...]
    shown: frozenset[Subject]
    """Subjects that the newest snapshot shows."""
    names: Callable[[Subject], str]
    """For a person: `device 3`."""
    now: Moment


def decide(register: Register, decision: Decision, scene: Scene) -> tuple[Register, Answer]:
    """The register after a decision, unchanged where it is refused."""
    case = register.cases.get(decision.subject)
    if case is None and decision.subject not in scene.shown:
        return register, Answer(
            False, f"{scene.names(decision.subject)} is not known here; `npu-watchd status` lists all"
        )
    if decision.seen is not None and decision.seen != _revision(register, decision.subject):
        now = case.state if case else State.UNKNOWN
        text = f"the state has changed since you looked: {scene.names(decision.subject)} is {now}; look again"
        return register, Answer(False, text)
    if decision.until_s is not None and decision.until_s <= scene.now.wall_s:
        return register, Answer(False, "it would be over already: give --for a time that lies ahead, such as 4h")
    return _ORDERS[decision.order](register, decision, scene)


def _revision(register: Register, subject: Subject) -> int:
    """The node's is the newest of all, since its verdict is made of theirs."""
    if subject == NODE:
        return max((case.revision for case in register.cases.values()), default=0)
    case = register.cases.get(subject)
    return case.revision if case else 0


def _release(register: Register, decision: Decision, scene: Scene) -> tuple[Register, Answer]:
    subjects = _quarantined(register, decision.subject)
    if not subjects:
        state = register.cases[decision.subject].state if decision.subject in register.cases else State.UNKNOWN
        return register, Answer(False, f"{scene.names(decision.subject)} is not in quarantine, it is {state}")
    against = [
        finding
        for finding in scene.findings
        if finding.subject in subjects and finding.quarantines and not register.cases[finding.subject].excuses(finding)
    ]
    if against and not decision.force:
        first = against[0]
        why = "cannot be seen to be over" if first.held else "is there"
        cure = "mend it first (the alert's runbook says how), or give --force to release it all the same"
        return register, Answer(False, f"what quarantined it {why}: {first.summary}; {cure}")
    cases = dict(register.cases)
    for subject in subjects:
        cases[subject] = _released(
            cases[subject], decision, [one for one in scene.findings if one.subject == subject], scene
        )
    gone = subjects - scene.shown
    names = ", ".join(sorted(scene.names(subject) for subject in subjects))
    text = f"{names}: released, now on probation" if not gone else f"{names}: released"
    after = replace(
        register, cases={key: case for key, case in cases.items() if key not in gone}, given_up=register.given_up | gone
    )
    return after, Answer(True, text, tuple(finding.summary for finding in against))


def _quarantined(register: Register, subject: Subject) -> frozenset[Subject]:
    """Of the node: itself, and each part of it."""
    found = register.cases if subject == NODE else {subject} & register.cases.keys()
    return frozenset(one for one in found if register.cases[one].state is State.QUARANTINE)


def _released(case: Case, decision: Decision, findings: Iterable[Finding], scene: Scene) -> Case:
    """What a person saw is no longer held against it; if it comes again, it has come back."""
    return replace(
        case,
        state=State.PROBATION,
        since_wall_s=scene.now.wall_s,
        reasons=(),
        action=None,
        held=False,
        clean_s=0.0,
        load_s=0.0,
        calm_since_s=None,
        released_s=scene.now.history_s,
        released=Word(decision.by, decision.reason, decision.at_s),
        excused={finding.rule: shown(finding) for finding in findings if finding.quarantines},
        afflicted=False,
        treated_s=scene.now.history_s,
        ordered=None,
    )


def _quarantine(register: Register, decision: Decision, scene: Scene) -> tuple[Register, Answer]:
    was = register.cases.get(decision.subject) or Case(State.UNKNOWN, scene.now.wall_s)
    word = Word(decision.by, decision.reason, decision.at_s)
    since_s = was.since_wall_s if was.state is State.QUARANTINE else scene.now.wall_s
    case = replace(was, state=State.QUARANTINE, since_wall_s=since_s, unread=False, calm_since_s=None, ordered=word)
    text = f"{scene.names(decision.subject)}: in quarantine until somebody releases it"
    return replace(register, cases={**register.cases, decision.subject: case}), Answer(True, text)


def _ack(register: Register, decision: Decision, scene: Scene) -> tuple[Register, Answer]:
    key = (decision.rule or "", decision.subject)
    found = next((finding for finding in scene.findings if finding.key == key), None)
    if found is None:
        text = (
            f"no finding {decision.rule} stands about {scene.names(decision.subject)}; `npu-watchd status` lists them"
        )
        return register, Answer(False, text)
    word = Word(decision.by, decision.reason, decision.at_s, decision.until_s)
    text = f"{found.alert} of {scene.names(decision.subject)}: acknowledged; it stands until it is mended"
    return replace(register, acks={**register.acks, key: word}), Answer(True, text)


def _maintenance(register: Register, decision: Decision, scene: Scene) -> tuple[Register, Answer]:
    was = register.cases.get(decision.subject) or Case(State.UNKNOWN, scene.now.wall_s)
    word = Word(decision.by, decision.reason, decision.at_s, decision.until_s)
    register = replace(register, cases={**register.cases, decision.subject: replace(was, maintenance=word)})
    return register, Answer(
        True, f"{scene.names(decision.subject)}: in maintenance, nothing new quarantines it meanwhile"
    )


def _maintenance_over(register: Register, decision: Decision, scene: Scene) -> tuple[Register, Answer]:
    was = register.cases.get(decision.subject)
    if was is None or was.maintenance is None:
        return register, Answer(False, f"{scene.names(decision.subject)} is not in maintenance")
    register = replace(register, cases={**register.cases, decision.subject: replace(was, maintenance=None)})
    return register, Answer(True, f"{scene.names(decision.subject)}: maintenance is over, it is judged again")


_ORDERS: Mapping[Order, Callable[[Register, Decision, Scene], tuple[Register, Answer]]] = {
    Order.RELEASE: _release,
    Order.QUARANTINE: _quarantine,
    Order.ACK: _ack,
    Order.MAINTENANCE: _maintenance,
    Order.MAINTENANCE_OVER: _maintenance_over,
}
