"""Where cases lie between cycles: judged with each, changed by people's decisions, kept over restarts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from npu_watchd.decide import memo
from npu_watchd.decide.case import Case, Word
from npu_watchd.decide.judge import Kinds, judge_all, replaced, treated
from npu_watchd.decide.orders import Register, Scene, decide
from npu_watchd.decide.sights import sights
from npu_watchd.decide.standing import Moment
from npu_watchd.decide.verdicts import NodeWhen, change_text, is_news, verdict_of, verdicts_of
from npu_watchd.limits import Limits
from npu_watchd.memory.series import Reset
from npu_watchd.model.finding import Event, Finding
from npu_watchd.model.ids import NODE, DeviceKey, Subject
from npu_watchd.model.snapshot import Snapshot
from npu_watchd.model.verdict import Answer, Decision, State, Verdict
from npu_watchd.rules import BLINDING, CIRCUMSTANCES
from npu_watchd.rules.quarantine import QUARANTINE

KINDS = Kinds(BLINDING, CIRCUMSTANCES)
_RESETS = frozenset({"boot_id", "driver", "fell"})
_REMEMBER_S = 300.0
"""How often the progress of a probation is written; the rest is at once."""

Write = Callable[[list[Event]], tuple[Event, ...]]
"""Numbers events and puts them into the journal."""


@dataclass(frozen=True, slots=True)
class Ruling:
    """What people have decided and the judge has found, as the rules look at it."""

    probation: frozenset[Subject]
    released_s: Mapping[Subject, float]


class Bench:
    """For one thread at a time."""

    def __init__(self, cases: Mapping[Subject, Case], acks: memo.Acks, node_when: NodeWhen) -> None:
        self._cases = dict(cases)
        self._acks = dict(acks)
        self.node_when = node_when
        self._told: tuple[object, float] = (None, 0.0)
        """What of the cases was last handed to be kept, and when (history time)."""

    @property
    def ruling(self) -> Ruling:
        probation = frozenset(key for key, case in self._cases.items() if case.state is State.PROBATION)
        released_s = {key: case.released_s for key, case in self._cases.items() if case.released_s is not None}
        return Ruling(probation, released_s)

    @property
    def own_verdicts(self) -> Mapping[Subject, Verdict]:
        """Each subject's for itself."""
        return {subject: verdict_of(subject, case) for subject, case in self._cases.items()}

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """The node's first, made of its parts'."""
        return verdicts_of(self._cases, self.node_when)

    def judge(
        self,
        snapshot: Snapshot,
        findings: Iterable[Finding],
        resets: Iterable[Reset],
        now: Moment,
        limits: Limits,
        write: Write,
    ) -> tuple[Event, ...]:
        """Judge every subject; returns the journal's lines of what is new."""
        before = {key: self._after_resets(key, case, resets, now) for key, case in self._cases.items()}
        against = [finding for finding in findings if finding.rule != QUARANTINE.id]
        after = judge_all(before, sights(snapshot), against, now, limits, KINDS)
        self._acks = {key: word for key, word in self._acks.items() if word.holds(now.wall_s)}
        news = [key for key in after if is_news(before.get(key), after[key])]
        events = write([_event(key, before.get(key), after[key], now) for key in news])
        self._cases = after | {
            key: replace(after[key], revision=event.number) for key, event in zip(news, events, strict=True)
        }
        return events

    def acknowledged(self, findings: Iterable[Finding]) -> tuple[Finding, ...]:
        """The findings, with who has taken each on; what is over is no longer acknowledged when it comes again."""
        found = tuple(findings)
        self._acks = {key: word for key, word in self._acks.items() if key in {one.key for one in found}}
        return tuple(
            replace(one, acknowledged=_said(self._acks[one.key]) if one.key in self._acks else None) for one in found
        )

    def decide(
        self, decision: Decision, scene: Scene, write: Write
    ) -> tuple[Answer, tuple[Event, ...], frozenset[Subject]]:
        """Carry out a decision; also the subjects about which nothing stands any more, since they are given up."""
        register, answer = decide(Register(self._cases, self._acks), decision, scene)
        if not answer.accepted:
            return answer, (), frozenset()
        events = write([_event_of(decision, answer, self._device_id(decision.subject))])
        changed = {key for key, case in register.cases.items() if case is not self._cases.get(key)}
        self._cases = {
            key: replace(case, revision=events[0].number) if key in changed else case
            for key, case in register.cases.items()
        }
        self._acks = dict(register.acks)
        return answer, events, register.given_up

    def text(self, now_s: float) -> str | None:
        """All of it to be kept; None: the same as when last asked, but for a probation's minutes."""
        lasting = {
            key: (
                case.state,
                case.revision,
                case.excused,
                case.afflicted,
                case.treated_s,
                case.returns_s,
                case.maintenance,
            )
            for key, case in self._cases.items()
        }
        known, told_s = self._told
        waits = any(case.state is State.PROBATION for case in self._cases.values()) and now_s - told_s >= _REMEMBER_S
        if (lasting, self._acks) == known and not waits:
            return None
        self._told = ((lasting, dict(self._acks)), now_s)
        return memo.text_of(self._cases, self._acks)

    def name(self, subject: Subject) -> str:
        device_id = self._device_id(subject)
        return f"device {device_id}" if device_id is not None else str(subject)

    def _device_id(self, subject: Subject) -> str | None:
        return self._cases[subject].device_id if subject in self._cases else None

    def _after_resets(self, key: Subject, case: Case, resets: Iterable[Reset], now: Moment) -> Case:
        reasons = {reset.reason for reset in resets if reset.subject == key} if isinstance(key, DeviceKey) else set()
        if "replaced" in reasons:
            return replaced(case)
        return treated(case, now) if reasons & _RESETS else case


def _said(word: Word) -> str:
    return f"by {word.by}: {word.reason}"


def _event(subject: Subject, before: Case | None, after: Case, now: Moment) -> Event:
    facts: dict[str, str | int | float | bool] = {"state": str(after.state)}
    if before is not None:
        facts["before"] = str(before.state)
    if after.action is not None:
        facts["action"] = after.action.value
    kind = "node_verdict_changed" if subject == NODE else "verdict_changed"
    return Event(0, now.wall_s, kind, change_text(subject, before, after), after.device_id, None, facts)


def _event_of(decision: Decision, answer: Answer, device_id: str | None) -> Event:
    facts: dict[str, str | int | float | bool] = {"by": decision.by, "reason": decision.reason}
    if decision.until_s is not None:
        facts["until"] = decision.until_s
    if decision.force:
        facts["force"] = True
    against = f" (in spite of: {'; '.join(answer.overridden)})" if answer.overridden else ""
    text = f"{answer.text}, by {decision.by}: {decision.reason}{against}"
    return Event(0, decision.at_s, f"decided_{decision.order}", text, device_id, decision.rule, facts)
