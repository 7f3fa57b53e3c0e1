"""What a scheduler and a person should make of a device, a port or the node, and what people have decided about it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from npu_watchd.model.finding import Action
from npu_watchd.model.ids import Subject


class State(StrEnum):
    """DESIGN 8; in the order of badness, the worst first."""

    QUARANTINE = "quarantine"
    UNKNOWN = "unknown"
    PROBATION = "probation"
    WATCH = "watch"
    HEALTHY = "healthy"


def worst(states: Iterable[State]) -> State:
    """HEALTHY of none."""
    order = list(State)
    return min(states, key=order.index, default=State.HEALTHY)


@dataclass(frozen=True, slots=True)
class Reason:
    """One thing that makes a verdict what it is."""

    text: str
    """One sentence for a person."""
    rule: str | None = None
    """The finding's; None: a person's word, or that something cannot be seen."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """There is one for each device that was ever expected, each expected port, and the node."""

    subject: Subject
    device_id: str | None
    """None for ports and for the node."""
    state: State
    since_s: float
    """Unix seconds at which it came to this state."""
    reasons: tuple[Reason, ...]
    """The worst first; () where all is well."""
    action: Action | None = None
    """The one thing to do next; None: nothing."""
    held: bool = False
    """True: in quarantine, though nothing that quarantines is seen any longer: only a person's release ends it."""
    blind: bool = False
    """True: something without which nobody may call it healthy cannot be seen now."""
    own_state: State | None = None
    """Of the node: for itself, without its parts; None of all others."""
    revision: int = 0
    """Number of the journal's line that brought this state: a decision that was made on an older one is refused."""


class Order(StrEnum):
    """What people may decide."""

    RELEASE = "release"
    QUARANTINE = "quarantine"
    ACK = "ack"
    MAINTENANCE = "maintenance"
    MAINTENANCE_OVER = "maintenance_over"


@dataclass(frozen=True, slots=True)
class Decision:
    """One person's word about one subject."""

    order: Order
    subject: Subject
    by: str
    """Who: the user name that the kernel vouches for."""
    reason: str
    at_s: float
    """Unix seconds."""
    until_s: float | None = None
    """Unix seconds at which it ends by itself; None: it does not."""
    rule: str | None = None
    """Of the finding that is acknowledged."""
    force: bool = False
    """Also against a finding that stands; what it overrides is in the answer and in the journal."""
    seen: int | None = None
    """Revision of the verdict that the person saw; None: not told."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of a decision."""

    accepted: bool
    text: str
    """One sentence: what is now, or why not and what to do."""
    overridden: tuple[str, ...] = ()
    """Summaries of the findings that it was made against."""
