"""Which call of a tool is due next, so that the tool's share of time stays below its cap.

Pure: instants in monotonic seconds are handed in. One agenda a tool, since a tool runs one process at a time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import inf

from npu_watchd.sources.probe import Target

LAST_RANK = 4
"""Of what can wait: how busy a device is, not whether it is there and well."""
_SPREAD_S = 60.0
_FIRST_REST_S, _LONGEST_REST_S = 60.0, 600.0
"""How long a port is left alone after the tool hung over it (assumption)."""
_WINDOW_S = 120.0
_DROP_S = 0.001
"""Of time beyond the instant at which the bucket is just empty: then there is something in it."""
_SMOOTHING = 0.3
"""Weight of the newest duration in the mean; assumption: a few calls forget a slow one."""


@dataclass(frozen=True, slots=True, order=True)
class Task:
    """One call that comes again and again."""

    probe: str
    target: Target


@dataclass(frozen=True, slots=True)
class Plan:
    """How often, and how much it matters."""

    every_s: float
    rank: int
    """0 first. What tells whether a device is there and healthy comes before what tells how busy it is."""


@dataclass(slots=True)
class _Entry:
    plan: Plan
    due_s: float
    mean_s: float | None = None
    """Smoothed duration of the calls that succeeded; None before the first."""


@dataclass(frozen=True, slots=True)
class _Rest:
    """A target over which the tool hung, and has not answered since."""

    times: int
    until_s: float


class Agenda:
    """The tasks of one tool.

    share: cap on the tool's share of time, 0..1. Where all the calls together would exceed it, every period stretches
    alike, so that none starves. What that cannot foresee, such as a hang, a bucket bounds: it fills with tool seconds
    at the rate of the share, every call empties it by what it took, and while it is empty nothing starts.
    """

    def __init__(self, share: float, burst_s: float, jitter: Callable[[], float]) -> None:
        """burst_s: tool seconds that may be spent at once, at the start or after calm.

        jitter: a number in 0..1, anew at each call; it keeps a fleet from polling in step.
        """
        self._share = share
        self._burst_s = burst_s
        self._jitter = jitter
        self._entries: dict[Task, _Entry] = {}
        self._tokens_s = burst_s
        self._filled_at_s: float | None = None
        self._spent: deque[tuple[float, float]] = deque()
        """When each call of the last `_WINDOW_S` ended, and how long it took."""
        self._called = False
        self._rests: dict[Target, _Rest] = {}

    def plan(self, wanted: Mapping[Task, Plan], now_s: float) -> None:
        """Take these tasks and no others. A new one is due at once, one of the last rank somewhere in its period."""
        for task in [task for task in self._entries if task not in wanted]:
            del self._entries[task]
        targets = {task.target for task in wanted}
        self._rests = {target: rest for target, rest in self._rests.items() if target in targets}
        stretch = self.stretch()
        for task, plan in wanted.items():
            entry, rest = self._entries.get(task), self._rests.get(task.target)
            if entry is None:
                wait_s = 0.0 if plan.rank < LAST_RANK else min(plan.every_s, _SPREAD_S) * self._jitter()
                self._entries[task] = _Entry(plan, max(now_s + wait_s, rest.until_s if rest else now_s))
            else:
                entry.plan = plan
                if rest is None:
                    entry.due_s = min(entry.due_s, now_s + plan.every_s * stretch)

    def hurry(self, tasks: Iterable[Task], now_s: float) -> None:
        """Make these due now: something was seen that they can explain."""
        for task in tasks:
            if task in self._entries:
                self._entries[task].due_s = min(self._entries[task].due_s, now_s)

    def next(self, now_s: float) -> Task | None:
        """The most pressing task that is due; None while nothing is, or while the cap forbids to start."""
        self._fill(now_s)
        if self._tokens_s <= 0:
            return None
        due = [(entry.plan.rank, entry.due_s, task) for task, entry in self._entries.items() if entry.due_s <= now_s]
        return min(due)[2] if due else None

    def idle_s(self, now_s: float) -> float:
        """Seconds until `next` may name a task: 0 while one is due; infinite where nothing is ever asked."""
        self._fill(now_s)
        due_s = min((entry.due_s for entry in self._entries.values()), default=inf)
        filled_s = now_s - self._tokens_s / self._share + _DROP_S if self._tokens_s <= 0 else now_s
        return max(0.0, max(due_s, filled_s) - now_s)

    def done(self, task: Task, began_s: float, ended_s: float, *, succeeded: bool, timed_out: bool = False) -> None:
        """Book a call that has ended, and when its task comes again.

        timed_out: the tool hung over this target. Whatever else is to be asked of it waits too, longer each time: a
        sick chip must not spend the share of the others.
        """
        took_s = max(0.0, ended_s - began_s)
        self._fill(ended_s)
        self._tokens_s -= took_s
        self._spent.append((ended_s, took_s))
        self._drop_old(ended_s)
        self._called = True
        entry = self._entries.get(task)
        if entry is None:
            return
        if succeeded:
            entry.mean_s = took_s if entry.mean_s is None else _SMOOTHING * took_s + (1 - _SMOOTHING) * entry.mean_s
        # Up to a tenth early: phases of nodes that started together drift apart, and no period is ever exceeded by it.
        # But never earlier than the share has room for: what can wait would pay for it, and starve.
        pace = max(1 - 0.1 * self._jitter(), self._demand() / self._share)
        entry.due_s = max(began_s + entry.plan.every_s * pace, ended_s)
        self._rest(task.target, ended_s, timed_out=timed_out, succeeded=succeeded)

    def _rest(self, target: Target, now_s: float, *, timed_out: bool, succeeded: bool) -> None:
        """Only of a port, whose tool is asked about it alone; npu-smi touches all cards whichever it is asked about."""
        if target.logic_id is None:
            return
        if succeeded:
            self._rests.pop(target, None)
        elif timed_out:
            before = self._rests.get(target)
            times = before.times + 1 if before else 1
            until_s = now_s + min(_LONGEST_REST_S, _FIRST_REST_S * 2.0 ** min(times - 1, 10))
            self._rests[target] = _Rest(times, until_s)
            for task, entry in self._entries.items():
                if task.target == target:
                    entry.due_s = max(entry.due_s, until_s)

    def stretch(self) -> float:
        """How many times longer than planned the periods are at the tool's present speed; 1 while the cap is kept.

        Only calls that succeeded count: a tool that hangs makes readings stale, it does not make old ones last longer.
        """
        return max(1.0, self._demand() / self._share)

    def _demand(self) -> float:
        """The share of time that all tasks would take at their planned periods.

        A task that has not succeeded yet is taken to be like the others: left out, it would get no room and never come.
        """
        known = [entry.mean_s for entry in self._entries.values() if entry.mean_s is not None]
        usual_s = sum(known) / len(known) if known else 0.0
        return sum(
            (usual_s if entry.mean_s is None else entry.mean_s) / entry.plan.every_s for entry in self._entries.values()
        )

    def share(self, now_s: float) -> float | None:
        """The tool's share of the last two minutes, 0..1; None before the first call."""
        self._drop_old(now_s)
        if not self._called:
            return None
        return min(1.0, sum(took_s for _, took_s in self._spent) / _WINDOW_S)

    def _drop_old(self, now_s: float) -> None:
        while self._spent and self._spent[0][0] <= now_s - _WINDOW_S:
            self._spent.popleft()

    def _fill(self, now_s: float) -> None:
        if self._filled_at_s is not None:
            self._tokens_s = min(self._burst_s, self._tokens_s + (now_s - self._filled_at_s) * self._share)
        self._filled_at_s = now_s
