"""Time as a test moves it: several threads of which one acts at an instant, each until it waits."""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass, field

from npu_watchd.model.reading import Tick

NOON_S = 1_767_225_600.0
"""The Unix second at which every play begins."""
_GRAIN = 64
"""Instants are whole 64ths of a second, so that sums and differences of them are exact."""
_STUCK_S = 60.0
"""In real seconds: an actor that takes longer for what it does between two waits will never wait again."""


@dataclass(slots=True)
class _Actor:
    wakes_s: float
    go: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))


class Stage:
    """A clock, and the `halt` of npu_watchd.lanes.Lanes: who waits for it lets the time pass.

    A thread joins with its first call. Of several that wake at one instant the names decide.
    """

    def __init__(self) -> None:
        self._now_s = 0.0
        self._actors: dict[str, _Actor] = {}
        self._waits = threading.Semaphore(0)
        self._over = False

    def clock(self) -> Tick:
        return Tick(self._now_s, NOON_S + self._now_s)

    def is_set(self) -> bool:
        """Whether the play is over."""
        if threading.current_thread().name not in self._actors:
            self.wait(0.0)
        return self._over

    def wait(self, timeout: float) -> bool:
        """Let these seconds pass; at once where the play is over."""
        if self._over:
            return True
        wakes_s = math.ceil((self._now_s + timeout) * _GRAIN) / _GRAIN
        actor = self._actors.setdefault(threading.current_thread().name, _Actor(wakes_s))
        actor.wakes_s = wakes_s
        self._waits.release()
        actor.go.acquire()
        return self._over

    def gather(self, actors: int) -> None:
        """Until that many threads have joined; only then may the time pass."""
        for _ in range(actors):
            self._until_all_wait()

    def pass_until(self, end_s: float) -> None:
        """Let everybody act until then."""
        while self._actors:
            actor = min(self._actors.items(), key=lambda item: (item[1].wakes_s, item[0]))[1]
            if actor.wakes_s > end_s:
                break
            self._now_s = actor.wakes_s
            actor.go.release()
            self._until_all_wait()
        self._now_s = end_s

    def end(self) -> None:
        """Nobody waits any more."""
        self._over = True
        for actor in self._actors.values():
            actor.go.release()

    def _until_all_wait(self) -> None:
        assert self._waits.acquire(timeout=_STUCK_S), f"somebody acts, and does not wait: {list(self._actors)}"
