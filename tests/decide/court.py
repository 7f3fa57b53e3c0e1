"""One device before the judge: what is found of it, what is seen, and what people say, second by second."""

from __future__ import annotations

from dataclasses import replace

from npu_watchd.decide.case import Case
from npu_watchd.decide.judge import Kinds, judge_all, replaced, treated
from npu_watchd.decide.memo import cases_of, text_of
from npu_watchd.decide.orders import Register, Scene, decide
from npu_watchd.decide.sights import Sight
from npu_watchd.decide.standing import Moment
from npu_watchd.decide.verdicts import verdict_of, verdicts_of
from npu_watchd.limits import Limits
from npu_watchd.model.finding import Action, Evidence, Finding, Severity
from npu_watchd.model.ids import NODE, DeviceKey, Subject
from npu_watchd.model.reading import NOT_READ_YET, Failure, FailureKind
from npu_watchd.model.verdict import Answer, Decision, Order, State, Verdict

THREE = DeviceKey(3)
NOON_S = 1_790_000_000.0
TIMEOUT = Failure(FailureKind.TIMEOUT, "`npu-smi info` did not answer within 10 s")
KINDS = Kinds(frozenset({"probe_blind"}), frozenset({"jobs_share_device"}))
LIMITS = Limits()


def bad(count: float = 2, rule: str = "hbm_double_bit", subject: Subject = THREE) -> Finding:
    """Quarantines."""
    return _finding(rule, subject, count, quarantines=True, action=Action.RESET_DEVICE)


def mild(rule: str = "overheating", subject: Subject = THREE) -> Finding:
    return _finding(rule, subject, 95, quarantines=False, action=Action.INSPECT_COOLING)


def held(finding: Finding) -> Finding:
    return replace(finding, held=True, held_because=TIMEOUT.detail)


def _finding(rule: str, subject: Subject, count: float, *, quarantines: bool, action: Action) -> Finding:
    severity = Severity.CRITICAL if quarantines else Severity.WARNING
    evidence = Evidence("npu_device_memory_errors_total", count, 1, "", None, "npu-smi info -t ecc -i 3")
    summary = f"device 3: {rule} {count:g}"
    return Finding(rule, "Npu", subject, "3", severity, quarantines, action, NOON_S, summary, (evidence,))


def _name(subject: Subject) -> str:
    return "device 3" if subject == THREE else str(subject)


class Court:
    """Device 3 of a node, seen and at rest until a test says otherwise."""

    def __init__(self) -> None:
        self.cases: dict[Subject, Case] = {}
        self.seen: dict[Subject, Sight] = {NODE: Sight(None), THREE: Sight(None, "3", at_work=False)}
        self.findings: tuple[Finding, ...] = ()
        self.now_s = 0.0

    def pass_s(self, seconds: float) -> State:
        self.now_s += seconds
        return self.judge()

    def judge(self) -> State:
        self.cases = judge_all(self.cases, self.seen, self.findings, self.now, LIMITS, KINDS)
        return self.verdict.state

    def finds(self, *findings: Finding) -> State:
        """From now on, these."""
        self.findings = findings
        return self.pass_s(5)

    def sees(self, blind: Failure | None = None, *, at_work: bool | None = False) -> State:
        self.seen[THREE] = Sight(blind, "3", at_work)
        return self.pass_s(5)

    def lives(self, hours: float, *, at_work: bool = False) -> State:
        """Cycles of a minute."""
        self.seen[THREE] = replace(self.seen[THREE], at_work=at_work)
        for _ in range(round(hours * 60)):
            self.pass_s(60)
        return self.verdict.state

    def loses(self, *subjects: Subject) -> None:
        """The snapshot no longer shows them."""
        self.seen = {subject: sight for subject, sight in self.seen.items() if subject not in subjects}

    def restarts(self) -> State:
        """Nothing is read yet; what stood is held."""
        self.cases, _ = cases_of(text_of(self.cases, {}))
        self.findings = tuple(map(held, self.findings))
        return self.sees(NOT_READ_YET)

    def resets(self) -> None:
        self.cases[THREE] = treated(self.cases[THREE], self.now)

    def gets_a_new_chip(self) -> None:
        self.cases[THREE] = replaced(self.cases[THREE])

    def says(
        self,
        order: Order,
        subject: Subject = THREE,
        *,
        force: bool = False,
        seen: int | None = None,
        for_s: float | None = None,
    ) -> Answer:
        until_s = None if for_s is None else NOON_S + self.now_s + for_s
        rule = self.findings[0].rule if order is Order.ACK and self.findings else None
        decision = Decision(order, subject, "alice", "card reseated", NOON_S + self.now_s, until_s, rule, force, seen)
        scene = Scene(self.findings, frozenset(self.seen), _name, self.now)
        register, answer = decide(Register(self.cases, {}), decision, scene)
        self.cases = dict(register.cases)
        self.findings = tuple(one for one in self.findings if one.subject not in register.given_up)
        return answer

    @property
    def action(self) -> str | None:
        return self.verdict.action.value if self.verdict.action else None

    @property
    def now(self) -> Moment:
        return Moment(self.now_s, NOON_S + self.now_s)

    @property
    def verdicts(self) -> dict[Subject, Verdict]:
        return {verdict.subject: verdict for verdict in verdicts_of(self.cases, "any")}

    @property
    def verdict(self) -> Verdict:
        return verdict_of(THREE, self.cases[THREE])
