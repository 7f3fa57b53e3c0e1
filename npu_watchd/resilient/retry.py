"""A step that is tried again: so often, with growing pauses, and never in silence."""

from __future__ import annotations

import logging
import os
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from npu_watchd.resilient.errors import Error, Kind, classify, words_of
from npu_watchd.resilient.watchd import Incident, Watchd

T = TypeVar("T")

_LOG = logging.getLogger("npu_watchd.resilient")


@dataclass(frozen=True, slots=True)
class Policy:
    """How often and how soon. All assumptions, but for the first pause: E30003 asks for 10 s after the last process."""

    attempts: int = 3
    """Failures in a row after which it is over; a step that succeeds begins anew."""
    attempts_in_all: int = 30
    """In the life of the Retrier, so that a fault that comes and goes ends a job too."""
    first_pause_s: float = 10.0
    longest_pause_s: float = 300.0
    jitter_ratio: float = 0.25
    """Up to so much is added, so that ranks and jobs do not come back all at once."""

    def pause_s(self, attempt: int, chance: float) -> float:
        """attempt: 1 after the first failure. chance: 0..1."""
        doubled = self.first_pause_s * 2.0 ** min(attempt - 1, 30)
        return min(doubled, self.longest_pause_s) * (1 + self.jitter_ratio * chance)


class Retrier:
    """For one thread of one rank. An error that it does not retry is raised as it came."""

    def __init__(  # noqa: PLR0913  # each has a default: a training program names two or three
        self,
        *,
        device_id: str | int | None = None,
        rank: str | int | None = None,
        policy: Policy | None = None,
        renew: Callable[[], object] = lambda: None,
        judge: Callable[[str], Error | None] = classify,
        watchd: Watchd | None = None,
        sleep: Callable[[float], object] = time.sleep,
        chance: Callable[[], float] = random.random,
    ) -> None:
        """renew: makes the device's context anew before each retry; an error of its own ends the matter.

        judge: text of an error → its row, None for what is not retried. watchd: the node's daemon.
        """
        self._device_id = None if device_id is None else str(device_id)
        self._rank = os.environ.get("RANK_ID", os.environ.get("RANK")) if rank is None else str(rank)
        self._policy = policy or Policy()
        self._renew = renew
        self._judge = judge
        self._watchd = watchd or Watchd()
        self._sleep = sleep
        self._chance = chance
        self._in_a_row = 0
        self._in_all = 0

    def run(self, step: Callable[[], T]) -> T:
        """What the step returns. Raises what it raises once that is fatal, unknown, or came too often."""
        while True:
            try:
                found = step()
            except Exception as error:
                pause_s = self._pause_s(error)
                if pause_s is None:
                    raise
                self._sleep(pause_s)
                self._renew()
            else:
                self._in_a_row = 0
                return found

    def _pause_s(self, error: Exception) -> float | None:
        """Before the next try; None: there is none."""
        text = words_of(error)
        row = self._judge(text)
        if row is None:
            return None
        self._in_a_row += 1
        self._in_all += 1
        why = self._over(row)
        self._tell(row, "retry" if why is None else "stop", text)
        if why is not None:
            _LOG.error("%s: not tried again: %s", row.name, why)
            return None
        pause_s = self._policy.pause_s(self._in_a_row, self._chance())
        _LOG.warning(
            "%s: %s; try %d of %d in %.0f s", row.name, row.why, self._in_a_row + 1, self._policy.attempts, pause_s
        )
        return pause_s

    def _over(self, row: Error) -> str | None:
        if row.kind is Kind.FATAL:
            return row.why
        if self._in_a_row >= self._policy.attempts:
            return f"{self._in_a_row} failures in a row"
        if self._in_all >= self._policy.attempts_in_all:
            return f"{self._in_all} failures in all"
        try:
            sick = None if self._device_id is None else self._watchd.sick(self._device_id)
        except Exception:  # noqa: BLE001  # nothing that helps may end a training
            sick = None
        return None if sick is None else f"npu-watchd says of device {self._device_id}: {sick}"

    def _tell(self, row: Error, action: str, text: str) -> None:
        incident = Incident(
            row.name, action, self._in_a_row, self._device_id, self._rank, text, time.time(), os.getpid()
        )
        try:
            self._watchd.report(incident)
        except Exception:  # noqa: BLE001
            _LOG.debug("npu-watchd could not be told", exc_info=True)
