"""Acts on schedulers, where the config says so: a thread of its own, for which no cycle waits."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from math import inf
from typing import Protocol

import msgspec

from npu_watchd import config
from npu_watchd.decide.acting import NONE, Do, Grip, Memory, Step, Wish, next_step, remembered, wish_of
from npu_watchd.lanes import node_name
from npu_watchd.model.acting import Acting, Allowance, Hold, Holder, Intention, Why
from npu_watchd.model.finding import Event
from npu_watchd.model.ids import NODE
from npu_watchd.model.reading import Failure, FailureKind, Tick
from npu_watchd.model.verdict import Answer, Decision, Order, Verdict
from npu_watchd.posts import Post, actuators, budget
from npu_watchd.sinks.actuators.command import Start
from npu_watchd.sinks.actuators.document import intention_of
from npu_watchd.sinks.plaintext import clean

NAME = "acts"
"""Under which our memory of our own marks lies in state.db's table `meta`."""
_FIRST_RETRY_S, _LONGEST_RETRY_S = 5.0, 300.0
"""After a failure; twice as long each further time (assumption)."""
_REASON_MAX = 300
_NO_BUDGET = Failure(FailureKind.MISSING, "[quarantine] prometheus is not set, so there is nobody to ask")


class Log(Protocol):
    """structlog's `warning`: an event and its facts."""

    def __call__(self, event: str, /, **facts: object) -> None: ...


class Court(Protocol):
    """The docket, as far as we need it."""

    @property
    def verdicts(self) -> tuple[Verdict, ...]: ...

    @property
    def journal(self) -> tuple[Event, ...]: ...

    def decide(self, decision: Decision) -> Answer: ...

    def note(self, kind: str, text: str, wall_s: float, **facts: str | float | bool) -> None: ...

    def kept(self, name: str) -> str | None: ...

    def keep(self, name: str, text: str) -> None: ...


class Warden:
    """`open` once, `judged` and `tally` from the engine's cycle, `take` for a new config, `stop` and `join` at the end.

    Schedulers are served one after another, so that there is never more than one action at a time.
    """

    def __init__(
        self, settings: config.Config, court: Court, start: Start, clock: Callable[[], Tick], log: Log
    ) -> None:
        self._settings = settings
        self._court = court
        self._start = start
        self._clock = clock
        self._log = log
        self._new_settings = True
        self._judged: Tick | None = None
        self._wake = threading.Event()
        self._fault: str | None = None
        """Of ours, when it was last told."""
        self._opened = self._stopped = False
        self._thread: threading.Thread | None = None
        self._memories: dict[str, Memory] | None = None
        """By actuator; None: not recalled yet."""
        self._posts: dict[str, Post] = {}
        self._budget = budget(settings)

    def open(self) -> None:
        """From now on it acts by itself; without that, a caller of `turn` does it."""
        self._opened = True

    def judged(self, at: Tick) -> None:
        """The node was judged; where there is something to act on, its thread is there from now on."""
        self._judged = at
        if self._opened and self._thread is None and self._settings.quarantine.act:
            self._thread = threading.Thread(target=self._work, name="warden", daemon=True)
            self._thread.start()
        self._wake.set()

    def tally(self) -> Mapping[str, Acting]:
        """By actuator."""
        return {name: post.acting for name, post in self._posts.items()}

    def take(self, settings: config.Config) -> None:
        """Go on with this config. A scheduler that it no longer names is left as it is."""
        self._settings, self._new_settings = settings, True
        self._wake.set()

    def stop(self) -> None:
        self._stopped = True
        self._wake.set()

    def join(self, timeout_s: float) -> None:
        if self._thread is not None:
            self._thread.join(timeout_s)

    def _work(self) -> None:
        while not self._stopped:
            idle_s = _FIRST_RETRY_S
            try:
                idle_s = self.turn()
            except Exception as error:  # noqa: BLE001  # a fault of ours costs one turn
                if repr(error) != self._fault:
                    self._fault = repr(error)
                    self._log(
                        "acting_failed", error=self._fault, costs="nothing is done to a scheduler until it is over"
                    )
            self._wake.wait(None if idle_s == inf else idle_s)
            self._wake.clear()

    def turn(self) -> float:
        """Serve each scheduler that is due; seconds until the next is."""
        if self._new_settings:
            self._new_settings = False
            try:
                self._place()
            except Exception:
                self._new_settings = True
                raise
        judged = self._judged
        if judged is None:
            return inf
        for post in self._posts.values():
            if not self._stopped:
                self._serve(post, judged)
        return min((post.due_s for post in self._posts.values()), default=inf) - self._clock().mono_s

    def _place(self) -> None:
        """A post for each scheduler of the config; what we remember of them stays."""
        if self._memories is None:
            self._memories = _recalled(self._court.kept(NAME), self._log)
        held = {name: memory.grip.mark for name, memory in self._memories.items() if memory.grip is not None}
        made = actuators(self._settings, self._start, lambda: self._clock().wall_s, held)
        before = self._posts
        self._posts = {one.name: Post(one, before[one.name].acting if one.name in before else Acting()) for one in made}
        self._budget = budget(self._settings)
        if made:
            chosen = self._settings.quarantine
            says = {"dry_run": chosen.dry_run, "prometheus": chosen.prometheus or "nobody, hence no action"}
            self._log("acting_on", actuators=list(self._posts), max_share=float(chosen.max_share), **says)

    def _serve(self, post: Post, judged: Tick) -> None:
        verdicts, wish = self._wish(judged)
        asked = (wish.mark, wish.released)
        if self._clock().mono_s < post.due_s and (asked == post.asked or post.failures):
            return
        post.asked = asked
        hold = post.look()
        self._remember(post, remembered(wish, hold, self._memory(post)))
        step = self._next(post, wish, hold, None)
        if step.do is Do.ASK:
            step = self._next(post, wish, hold, self._budget.ask() if self._budget else _NO_BUDGET)
        if self._wish(judged)[1].mark != wish.mark:
            # While scheduler and Prometheus answered, somebody has decided: this turn is of yesterday.
            post.due_s = -inf
            return
        failure = self._act(post, step, wish, verdicts)
        self._plan(post, wish, step, failure or (hold if isinstance(hold, Failure) else None))

    def _wish(self, judged: Tick) -> tuple[tuple[Verdict, ...], Wish]:
        verdicts = self._court.verdicts
        return verdicts, wish_of(verdicts[0], self._court.journal, self._clock().mono_s - judged.mono_s)

    def _next(self, post: Post, wish: Wish, hold: Hold | Failure, allowance: Allowance | Failure | None) -> Step:
        return next_step(wish, hold, self._memory(post), allowance, dry_run=self._settings.quarantine.dry_run)

    def _act(self, post: Post, step: Step, wish: Wish, verdicts: tuple[Verdict, ...]) -> Failure | None:
        """Do it, count it, and tell of it; of what cannot be done only once."""
        if step.do is Do.NOTHING:
            self._tell_blocked(post, step.why, (step.why, wish.mark, step.kind), step.text)
            return None
        if step.do is Do.HOLD and wish.mark is not None:
            intention = intention_of(wish.mark, node_name(self._settings), verdicts)
            failure = self._hold(post, intention, wish, step.text)
        else:
            grip = self._memory(post).grip
            assert grip is not None
            failure = self._free(post, grip) if step.do is Do.FREE else self._release(post, grip, step.text)
        post.count(step.do.value, "done" if failure is None else "failed")
        if failure is None:
            self._tell_blocked(post, None, None, "")
        else:
            text = f"cannot {step.do.value} the node: {failure.detail}"
            self._tell_blocked(post, Why.FAILED, (Why.FAILED, wish.mark, failure.kind), text)
        return failure

    def _hold(self, post: Post, intention: Intention, wish: Wish, allowed: str) -> Failure | None:
        failure = post.actuator.hold(intention)
        if failure is not None:
            return failure
        found = post.look()
        if isinstance(found, Failure):
            return found
        if found.holder is not Holder.OURS:
            return Failure(FailureKind.EXIT, f"it said that it was done, but it shows: {found.text}")
        self._remember(post, remembered(wish, found, self._memory(post)))
        self._tell(post, "acted_hold", f"took the node out of use: {found.text} ({allowed})", intention.mark)
        return None

    def _free(self, post: Post, grip: Grip) -> Failure | None:
        before = post.acting.holder
        failure = post.actuator.free(grip.mark)
        if failure is not None:
            return failure
        self._remember(post, replace(self._memory(post), grip=None))
        found = post.look()
        shown = found.detail if isinstance(found, Failure) else found.text
        if before is Holder.OURS:
            self._tell(post, "acted_free", f"gave the node back after its release: {shown}", grip.mark)
        elif before is Holder.OTHER:
            self._tell(post, "left_alone", f"the node was released, but somebody else holds it: {shown}", grip.mark)
        return None

    def _release(self, post: Post, grip: Grip, shown: str) -> Failure | None:
        """A person gave the node back there: that is a release, whatever is still found."""
        name = post.actuator.name
        reason = clean(f"somebody gave the node back there while our mark {grip.mark} held it: {shown}", _REASON_MAX)
        self._tell(post, "given_back", reason, grip.mark)
        answer = self._court.decide(Decision(Order.RELEASE, NODE, name, reason, self._clock().wall_s, force=True))
        self._log("released_by_scheduler", actuator=name, accepted=answer.accepted, text=answer.text)
        self._remember(post, replace(self._memory(post), given_back=grip.wanted))
        return None

    def _plan(self, post: Post, wish: Wish, step: Step, failure: Failure | None) -> None:
        now_s = self._clock().mono_s
        if failure is not None:
            rest_s = min(_FIRST_RETRY_S * 2.0**post.failures, _LONGEST_RETRY_S)
            post.failures, post.due_s = min(post.failures + 1, 30), now_s + rest_s
            return
        post.failures = 0
        watched = wish.mark is not None or step.why is not None or self._memory(post).grip is not None
        # After a person's release what is left of our mark is cleared away at once.
        rest_s = 0.0 if step.do is Do.RELEASE else self._settings.quarantine.every_s
        post.due_s = now_s + rest_s if watched else inf

    def _memory(self, post: Post) -> Memory:
        return (self._memories or {}).get(post.actuator.name, NONE)

    def _remember(self, post: Post, memory: Memory) -> None:
        if memory != self._memory(post):
            self._memories = {**(self._memories or {}), post.actuator.name: memory}
            self._court.keep(NAME, msgspec.json.encode(self._memories).decode())

    def _tell(self, post: Post, kind: str, text: str, mark: str) -> None:
        name = post.actuator.name
        self._court.note(kind, f"{name}: {text}", self._clock().wall_s, actuator=name, mark=mark)
        self._log(kind, actuator=name, mark=mark, text=text)

    def _tell_blocked(self, post: Post, why: Why | None, key: tuple[object, ...] | None, text: str) -> None:
        """One line when it begins, and when the reason or the quarantine is another."""
        news = why is not None and key != post.told
        post.told = key
        post.acting = replace(post.acting, blocked=why)
        if news:
            name = post.actuator.name
            self._court.note("action_blocked", f"{name}: {text}", self._clock().wall_s, actuator=name, why=str(why))
            self._log("action_blocked", actuator=name, reason=str(why), text=text)


def _recalled(text: str | None, log: Log) -> dict[str, Memory]:
    if text is None:
        return {}
    try:
        return msgspec.json.decode(text, type=dict[str, Memory])
    except msgspec.MsgspecError as error:
        log("acts_unreadable", error=str(error), costs="our marks of before the start are not given back by themselves")
        return {}
