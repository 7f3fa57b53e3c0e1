"""A round of file reads that may block for ever, as sysfs does on a driver that hangs; it must not block the daemon."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from npu_watchd.model.reading import Failure, FailureKind

R = TypeVar("R")


@dataclass(slots=True)
class _Round(Generic[R]):
    """One run of the sweep, in a thread of its own since nothing can interrupt a read that the kernel does not end."""

    since_s: float
    over: threading.Event = field(default_factory=threading.Event)
    result: R | None = None
    error: BaseException | None = None

    def run(self, sweep: Callable[[], R]) -> None:
        try:
            self.result = sweep()
        except BaseException as error:  # noqa: BLE001 - raised again in the thread that asked
            self.error = error
        finally:
            self.over.set()


class Sweep(Generic[R]):
    """Calls `sweep` in a daemon thread and waits for it up to `deadline_s`. Safe to share between threads.

    Once a round has not come back, every call says WEDGED at once, until it has; then a new round starts, and what the
    late one read is thrown away: it is of the past. So at most one thread is ever lost. `clock` is monotonic, in
    seconds, and only tells how long that has been. `working_on` says which file is read at the moment, for people.
    """

    def __init__(
        self,
        name: str,
        sweep: Callable[[], R],
        clock: Callable[[], float],
        deadline_s: float,
        working_on: Callable[[], str] = lambda: "",
    ) -> None:
        self._name = name
        self._sweep = sweep
        self._clock = clock
        self._deadline_s = deadline_s
        self._working_on = working_on
        self._turn = threading.Lock()
        self._round: _Round[R] | None = None

    def __call__(self) -> R | Failure:
        """What the sweep returns, or WEDGED; raises what the sweep raises. Back within the deadline."""
        with self._turn:
            if self._round is not None and not self._round.over.is_set():
                return self._wedged(self._round)
            current = self._round = _Round(self._clock())
            thread = threading.Thread(target=current.run, args=(self._sweep,), name=self._name, daemon=True)
            try:
                thread.start()
            except RuntimeError as error:
                self._round = None
                return Failure(FailureKind.DENIED, f"{self._name}: the kernel gave no thread for it: {error}")
            if not current.over.wait(self._deadline_s):
                return self._wedged(current)
            self._round = None
            if current.error is not None:
                raise current.error
            return current.result  # type: ignore[return-value]  # set, as there is no error

    def _wedged(self, stuck: _Round[R]) -> Failure:
        file = self._working_on()
        where = f"the read of {file}" if file else "a read"
        detail = f"{self._name}: {where} has not returned for {self._clock() - stuck.since_s:.0f} s"
        cure = "no second one is started until it has; check `dmesg` for the driver behind it"
        return Failure(FailureKind.WEDGED, f"{detail}; {cure}")
