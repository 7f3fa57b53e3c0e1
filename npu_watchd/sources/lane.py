"""One tool's calls, one after another: what is due is asked, and what the answer brings to light is asked next."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from npu_watchd.model.ids import DeviceKey, Subject
from npu_watchd.model.reading import Failure, FailureKind, Reading, Run, Tick
from npu_watchd.sources.agenda import Agenda, Plan, Task
from npu_watchd.sources.probe import Probe, Wait, ask
from npu_watchd.sources.rounds import VITAL_RANK, Card, Pace, health_of, rounds

_LONG_SHARE = 1 / 3
"""Of its deadline: a call that failed after longer than that is taken for one that hung (assumption)."""


class Ledger(Protocol):
    """Where readings go, and what is known from those before."""

    def put(self, readings: Iterable[Reading[Any]]) -> bool:
        """Take a call's readings; True where the table shows other chips than before."""

    def edition(self) -> int:
        """Grows whenever `cards` or `unsupported` may answer otherwise than before."""

    def cards(self) -> list[tuple[int, tuple[int, ...], str | None, bool, Mapping[int, int], tuple[int, ...]]]: ...

    def unwell(self) -> list[DeviceKey]: ...

    def unsupported(self, probe: str, subject: Subject) -> bool: ...


@dataclass(frozen=True, slots=True)
class Orders:
    """What the config says of the tool; replaced as a whole."""

    path: str
    """The tool: a name on PATH, or a path."""
    paces: Mapping[str, Pace]
    """The probes that are switched on."""
    asked_of: Callable[[str | None], frozenset[str]]
    """A chip's name → the per-device probes that it can answer."""


class Lane:
    """For one thread that calls `turn`; `load`, `periods_s` and `take` may come from others.

    The lock guards the agenda and is never held while the ledger is asked, which has a lock of its own.
    """

    def __init__(
        self,
        probes: Iterable[Probe],
        run: Run,
        agenda: Agenda,
        ledger: Ledger,
        clock: Callable[[], Tick],
        orders: Orders,
        wait: Wait,
    ) -> None:
        """probes: of one tool. wait: lets seconds pass before a busy tool is asked again."""
        self._probes = {probe.name: probe for probe in probes}
        self._run = run
        self._wait = wait
        self._agenda = agenda
        self._ledger = ledger
        self._clock = clock
        self._orders = orders
        self._lock = threading.Lock()
        self._unwell: frozenset[DeviceKey] = frozenset()
        self._failed: set[Task] = set()
        """Those whose newest call brought nothing."""
        self._known: tuple[Orders, int] | None = None
        """From which orders and which edition of the ledger `_wanted` was made."""
        self._wanted: Mapping[Task, Plan] = {}

    def take(self, orders: Orders) -> None:
        """Go on with these orders."""
        self._orders = orders

    def turn(self) -> str | None:
        """Make the most pressing call that is due, and name its probe; None where none is, or the share is spent."""
        began = self._clock()
        orders = self._orders
        self._plan(orders, began.mono_s)
        with self._lock:
            task = self._agenda.next(began.mono_s)
        if task is None:
            return None
        probe, pace = self._probes[task.probe], orders.paces[task.probe]
        others = succeeded = timed_out = False
        try:
            readings = ask(probe, task.target, self._run, orders.path, pace.timeout_s, self._clock, self._wait)
            others = self._ledger.put(readings)
            failures = [reading.result for reading in readings if isinstance(reading.result, Failure)]
            succeeded = len(failures) < len(readings)
            hung = any(failure.kind in (FailureKind.TIMEOUT, FailureKind.WEDGED) for failure in failures)
            # One that is busy to the end, or says after a long while that it failed, costs the others as much.
            took_s = self._clock().mono_s - began.mono_s
            timed_out = hung or (not succeeded and took_s > _LONG_SHARE * pace.timeout_s)
        finally:
            # Whatever went wrong, the call took its time: unbooked, it would come again at once, for ever.
            ended = self._clock()
            with self._lock:
                self._agenda.done(task, began.mono_s, ended.mono_s, succeeded=succeeded, timed_out=timed_out)
        if task.probe == "npu_info" and succeeded:
            self._plan(orders, ended.mono_s)
            self._follow_up(others, task in self._failed, ended.mono_s)
        (self._failed.discard if succeeded else self._failed.add)(task)
        return task.probe

    def idle_s(self) -> float:
        """Seconds until the next call is due, as things stand: the table may show other chips before."""
        with self._lock:
            return self._agenda.idle_s(self._clock().mono_s)

    def load(self, now: Tick) -> tuple[float | None, float]:
        """The tool's share of the last two minutes, None before its first call; and how much longer periods are."""
        with self._lock:
            return self._agenda.share(now.mono_s), self._agenda.stretch()

    def periods_s(self) -> dict[str, float]:
        """Each probe's period as it really is, by which its readings age; one that is switched off has none."""
        with self._lock:
            stretch = self._agenda.stretch()
        return {probe: pace.every_s * stretch for probe, pace in self._orders.paces.items() if probe in self._probes}

    def _plan(self, orders: Orders, now_s: float) -> None:
        """Tell the agenda what is wanted, where that may have changed: the lane looks far more often than it does."""
        edition = self._ledger.edition()
        if self._known is not None and self._known[0] is orders and self._known[1] == edition:
            return
        cards = [Card(*card) for card in self._ledger.cards()]
        self._wanted = rounds(self._probes.values(), orders.paces, cards, orders.asked_of, self._ledger.unsupported)
        self._known = (orders, edition)
        with self._lock:
            self._agenda.plan(self._wanted, now_s)

    def _follow_up(self, others: bool, again: bool, now_s: float) -> None:
        """Other chips than before: map and list say why. A chip that has just stopped being OK: its health does.

        again: the table before could not be read. What failed with it, and keeps devices blind, is asked anew at once:
        else the end of an outage would look like the beginning of another, of each device.
        """
        unwell = frozenset(self._ledger.unwell())
        with self._lock:
            if again:
                vital = [task for task, plan in self._wanted.items() if plan.rank == VITAL_RANK]
                self._agenda.hurry([task for task in vital if task in self._failed], now_s)
            if others:
                self._agenda.hurry([task for task in self._wanted if task.probe in ("npu_map", "npu_list")], now_s)
            self._agenda.hurry(health_of(self._wanted, unwell - self._unwell), now_s)
        self._unwell = unwell
