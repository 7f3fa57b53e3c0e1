"""The verdict: the state machine of DESIGN 8, pure.

Its invariants, held over random histories by tests/decide/test_judge.py:

* nothing but a person's release leaves quarantine, whatever is found, seen, reset or started anew;
* a subject of which something vital cannot be seen is never healthy;
* judging twice at one moment changes nothing;
* what a person has seen when releasing (baselines) does not quarantine again until there is more of it;
* after a restart a subject is what it was, or unknown: healthy only once all that is vital has been seen;
* contention, the host and blindness never quarantine.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from npu_watchd.decide.case import Case, Word, still_excused
from npu_watchd.decide.sights import Sight
from npu_watchd.decide.standing import Moment
from npu_watchd.limits import Limits
from npu_watchd.model.finding import Action, Finding
from npu_watchd.model.ids import NODE, Subject
from npu_watchd.model.verdict import Reason, State

SAME_RESET_S = 600.0
"""Assumption: every counter is read again within that time after a reset."""
MOST_UNWATCHED_S = 120.0
"""Between two judgements further apart than this nobody watched: it is no part of a probation (assumption)."""


@dataclass(frozen=True, slots=True)
class Found:
    """What stands about one subject, sorted by what it means for a verdict. The worst first."""

    bad: tuple[Finding, ...] = ()
    """Quarantines, and no person has excused it."""
    mild: tuple[Finding, ...] = ()
    blinding: tuple[Finding, ...] = ()
    """Says that something cannot be seen: it makes unknown, not ill."""

    @property
    def live(self) -> bool:
        """What quarantines is seen now."""
        return any(not finding.held for finding in self.bad)


@dataclass(frozen=True, slots=True)
class Kinds:
    """Rules whose findings say nothing against the device itself."""

    blinding: frozenset[str] = frozenset()
    circumstances: frozenset[str] = frozenset()
    """Who else is there, and what the host lacks: it is told, and no probation begins anew for it."""


def sorted_out(case: Case | None, findings: Iterable[Finding], kinds: Kinds) -> Found:
    """findings: of this subject alone, the worst first."""
    bad, mild, blinding = [], [], []
    for finding in findings:
        if finding.rule in kinds.blinding:
            blinding.append(finding)
        elif finding.quarantines and not (case and case.excuses(finding)):
            bad.append(finding)
        else:
            mild.append(finding)
    return Found(tuple(bad), tuple(mild), tuple(blinding))


def judge(
    case: Case | None,
    sight: Sight | None,
    findings: tuple[Finding, ...],
    now: Moment,
    limits: Limits,
    kinds: Kinds,
    blanket: Word | None = None,
) -> Case | None:
    """One subject's next case. sight: None where the snapshot no longer shows it. None: there is nothing to remember.

    blanket: the maintenance of the whole node. The event of a new state is the caller's, who also numbers it.
    """
    found = sorted_out(case, findings, kinds)
    if case is None:
        if sight is None and not findings:
            return None
        case = Case(State.UNKNOWN, now.wall_s)
    elif (
        sight is None
        and not findings
        and case.state not in (State.QUARANTINE, State.PROBATION)
        and not case.maintenance
    ):
        return None
    if blanket is None or case.maintenance is not None:
        return _judged(_remembered(case, sight, found, findings, now, limits, kinds), sight, found, now, limits)
    case = replace(case, maintenance=blanket)
    after = _judged(_remembered(case, sight, found, findings, now, limits, kinds), sight, found, now, limits)
    return replace(after, maintenance=None)


def _judged(case: Case, sight: Sight | None, found: Found, now: Moment, limits: Limits) -> Case:
    if _unread(case, sight, found):
        return replace(case, unread=True, reasons=(Reason("not read yet since npu-watchd was started"),), action=None)
    state = _next_state(case, sight, found, now, limits)
    if state is not case.state:
        case = _entered(case, state, now)
    return _told(case, sight, found, limits)


def _remembered(
    case: Case,
    sight: Sight | None,
    found: Found,
    findings: tuple[Finding, ...],
    now: Moment,
    limits: Limits,
    kinds: Kinds,
) -> Case:
    """The case with this cycle's observations, before its state is looked at."""
    returns_s = tuple(at for at in case.returns_s if now.history_s - at < limits["returns_window_s"])
    treated_s, begins = case.treated_s, found.live and not case.afflicted
    if begins and treated_s is not None and case.maintenance is None:
        returns_s = (*returns_s, now.history_s) if now.history_s - treated_s < limits["returns_window_s"] else returns_s
        treated_s = None
    clean_s, load_s = _probation(case, sight, found, now, kinds)
    calm_since_s = None if found.bad or found.mild else case.calm_since_s
    if calm_since_s is None and not found.bad and not found.mild and case.state is State.WATCH:
        calm_since_s = now.history_s
    maintenance = case.maintenance
    return replace(
        case,
        device_id=sight.device_id if sight else case.device_id,
        seen_s=now.history_s,
        blind=bool(sight is None or sight.blind or found.blinding),
        unread=False,
        calm_since_s=calm_since_s,
        clean_s=clean_s,
        load_s=load_s,
        excused=still_excused(case.excused, findings),
        afflicted=found.live or (case.afflicted and bool(found.bad)),
        treated_s=treated_s,
        returns_s=returns_s,
        maintenance=maintenance if maintenance and maintenance.holds(now.wall_s) else None,
    )


def _probation(case: Case, sight: Sight | None, found: Found, now: Moment, kinds: Kinds) -> tuple[float, float]:
    """Seconds without a fault, and at work: not seeing neither counts nor begins anew."""
    if case.state is not State.PROBATION or case.seen_s is None:
        return 0.0, 0.0
    against = (*found.bad, *(one for one in found.mild if one.rule not in kinds.circumstances | case.excused.keys()))
    if against:
        return 0.0, 0.0
    passed_s = now.history_s - case.seen_s
    if sight is None or sight.blind or found.blinding or not 0 < passed_s <= MOST_UNWATCHED_S:
        return case.clean_s, case.load_s
    return case.clean_s + passed_s, case.load_s + (passed_s if sight.at_work else 0.0)


def _unread(case: Case, sight: Sight | None, found: Found) -> bool:
    """Its turn has not come since the daemon was started: it is unknown, and that is no news."""
    waiting = sight is not None and sight.unread and not (found.bad or found.mild or found.blinding)
    return waiting and case.maintenance is None and case.state in (State.HEALTHY, State.WATCH, State.UNKNOWN)


def _next_state(case: Case, sight: Sight | None, found: Found, now: Moment, limits: Limits) -> State:
    if case.state is State.QUARANTINE:
        return State.QUARANTINE
    if found.bad and case.maintenance is None:
        return State.QUARANTINE
    if case.state is State.PROBATION and not _served(case, sight, limits):
        return State.PROBATION
    if case.maintenance is not None:
        return State.UNKNOWN
    if found.mild:
        return State.WATCH
    if case.blind:
        return State.UNKNOWN
    calming = case.calm_since_s is not None and now.history_s - case.calm_since_s < limits["verdict_calm_s"]
    return State.WATCH if calming else State.HEALTHY


def _served(case: Case, sight: Sight | None, limits: Limits) -> bool:
    """Whether the probation is over."""
    loaded = case.load_s >= limits["probation_load_s"] or (sight is not None and not sight.works)
    return not case.blind and case.clean_s >= limits["probation_clean_s"] and loaded


def _entered(case: Case, state: State, now: Moment) -> Case:
    fresh = replace(case, state=state, since_wall_s=now.wall_s, clean_s=0.0, load_s=0.0)
    if state is State.QUARANTINE:
        return replace(fresh, reasons=(), action=None, calm_since_s=None)
    return replace(fresh, calm_since_s=None if state is State.HEALTHY else fresh.calm_since_s)


def _told(case: Case, sight: Sight | None, found: Found, limits: Limits) -> Case:
    """The case with why it is what it is, and what to do."""
    if case.state is State.QUARANTINE:
        return _quarantined(case, found, limits)
    reasons: tuple[Reason, ...] = tuple(_reason(finding) for finding in (*found.bad, *found.mild))
    action = (found.bad or found.mild)[0].action if found.bad or found.mild else None
    if case.state is State.PROBATION:
        reasons, action = (Reason(_progress(case, sight, limits)), *reasons), action or Action.OBSERVE
    if case.maintenance is not None:
        reasons = (
            Reason(f"maintenance{_until(case.maintenance)}, {_word(case.maintenance.by, case.maintenance.reason)}"),
            *reasons,
        )
    if case.blind:
        reasons = (*reasons, *_blindness(sight, found))
        unread = sight is not None and sight.unread and not found.blinding
        action = action or (None if unread or case.maintenance else Action.CHECK_DRIVER)
    elif case.state is State.WATCH and not reasons:
        minutes = limits["verdict_calm_s"] / 60
        reasons = (Reason(f"what was found is over; it is watched until that has lasted {minutes:g} minutes"),)
    return replace(case, reasons=reasons, action=action, held=False)


def _quarantined(case: Case, found: Found, limits: Limits) -> Case:
    known = case.reasons if case.ordered is None else (one for one in case.reasons if one.rule is not None)
    reasons, action = tuple(known), case.action
    if found.bad:
        reasons, action = tuple(_reason(finding) for finding in found.bad), found.bad[0].action
    if case.ordered is not None:
        by_person = Reason(f"put into quarantine {_word(case.ordered.by, case.ordered.reason)}")
        reasons, action = (*reasons, by_person), action or Action.INSPECT
    if len(case.returns_s) >= limits["returns_to_replace"]:
        action = Action.REPLACE
    return replace(case, reasons=reasons, action=action, held=not found.live and case.ordered is None)


def _blindness(sight: Sight | None, found: Found) -> Iterable[Reason]:
    if found.blinding:
        return (_reason(finding) for finding in found.blinding)
    if sight is None:
        return (Reason("not seen since the daemon started"),)
    return (Reason(f"cannot be seen: {sight.blind.detail}"),) if sight.blind else ()


def _progress(case: Case, sight: Sight | None, limits: Limits) -> str:
    """To the half hour, so that a person sees it move and nobody's log does."""
    clean, load = (f"{int(seconds / 1800) / 2:g} h" for seconds in (case.clean_s, case.load_s))
    asked = f"{limits['probation_clean_s'] / 3600:g} h"
    words = f"on probation: {clean} of {asked} without a fault"
    if sight is None or sight.works:
        words += f", {load} of {limits['probation_load_s'] / 3600:g} h at work"
        words += ", which nobody can see here" if sight is not None and sight.at_work is None else ""
    return f"{words}; released {_word(case.released.by, case.released.reason)}" if case.released else words


def _reason(finding: Finding) -> Reason:
    return Reason(finding.summary + (" (held: it cannot be seen now)" if finding.held else ""), finding.rule)


def _until(word: Word) -> str:
    if word.until_s is None:
        return ""
    return f" until {datetime.fromtimestamp(word.until_s, UTC).strftime('%Y-%m-%d %H:%MZ')}"


def _word(by: str, reason: str) -> str:
    return f"by {by}: {reason}"


def judge_all(
    cases: Mapping[Subject, Case],
    seen: Mapping[Subject, Sight],
    findings: Iterable[Finding],
    now: Moment,
    limits: Limits,
    kinds: Kinds,
) -> dict[Subject, Case]:
    """Every subject's next case."""
    mine: dict[Subject, list[Finding]] = {}
    for finding in findings:
        mine.setdefault(finding.subject, []).append(finding)
    blanket = cases[NODE].maintenance if NODE in cases else None
    judged = {
        subject: judge(cases.get(subject), seen.get(subject), tuple(mine.get(subject, ())), now, limits, kinds, blanket)
        for subject in sorted({*cases, *seen, *mine}, key=str)
    }
    return {subject: case for subject, case in judged.items() if case is not None}


def treated(case: Case, now: Moment) -> Case:
    """The case of a device that was reset, or whose node was rebooted: what is wrong from now on has come back.

    Each counter that begins anew says so when it is next read: what comes within ten minutes is the same reset.
    """
    again = case.treated_s is None or now.history_s - case.treated_s > SAME_RESET_S
    if case.state is not State.QUARANTINE or not again:
        return case
    return replace(case, treated_s=now.history_s, afflicted=False)


def replaced(case: Case) -> Case:
    """The case of a device in whose place there is another chip: what the old one did says nothing of it."""
    return replace(case, treated_s=None, returns_s=(), excused={}, afflicted=False)
