"""How counters grew over time, as far as it was kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from npu_watchd.model.ids import Subject
from npu_watchd.model.reading import Failure


@dataclass(frozen=True, slots=True)
class Growth:
    """One step. Instants are history time: Unix seconds by a clock that never runs backwards."""

    after_s: float
    """The counter was last seen without it: it grew after this."""
    first_s: float
    """When the growth was seen; of steps that were merged, that of the oldest."""
    last_s: float
    """Likewise of the newest."""
    grown: float


@dataclass(frozen=True, slots=True)
class Account:
    """One counter of one subject."""

    subject: Subject
    labels: tuple[tuple[str, str], ...]
    """Sorted; without device_id, rdma_device and port, which the subject tells."""
    value: float
    """The newest that is believed; a reset since then may have set it back."""
    since_s: float
    """History time at which it was first seen."""
    steps: tuple[Growth, ...]
    """Oldest first; (): it has not grown."""


@dataclass(frozen=True, slots=True)
class Ledger:
    accounts: tuple[Account, ...]
    cut: bool = False
    """True: there are older steps than those that are here."""
    unreadable: int = 0
    """Counters that this version cannot read; they are left out."""


ReadLedger = Callable[[str, Subject | None, float], Ledger | Failure]
"""Metric, subject (None: all), and the history time from which steps are wanted."""
