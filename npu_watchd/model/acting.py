"""What we do to a scheduler, or do not: who holds the node there, what a verdict asks, and what became of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

MARK = r"q\d{8}T\d{6}Z-[0-9a-f]{8}"
"""What a mark looks like: when its quarantine began, and a digest of that instant (decide/acting.py)."""


class Holder(StrEnum):
    """Who keeps the node out of use at present, as the scheduler itself shows it."""

    NOBODY = "nobody"
    OURS = "ours"
    """Our mark is there, and is still as we made it."""
    OTHER = "other"
    """Somebody else took it out of use, or changed our mark: it is theirs, and we never touch it."""


@dataclass(frozen=True, slots=True)
class Hold:
    """What the scheduler says of this node."""

    holder: Holder
    text: str
    """The scheduler's own words: state and reason."""
    mark: str | None = None
    """The id in our mark; None unless OURS."""


@dataclass(frozen=True, slots=True)
class Intention:
    """What a verdict asks of a scheduler."""

    mark: str
    """Printable, no blanks, at most 64 characters: the same for the same quarantine, also after a restart."""
    reason: str
    """One line, at most 200 characters, without our name in front."""
    document: bytes
    """The node's verdict as JSON, for a hook."""


@dataclass(frozen=True, slots=True)
class Allowance:
    """Whether the fleet can spare this node."""

    granted: bool
    text: str
    """The count behind it: `2 of 40 nodes are in quarantine, at most 4 may be`."""


class Why(StrEnum):
    """Why nothing is done to a scheduler, though the verdict asks for it. Label `reason` of the metric."""

    DRY_RUN = "dry_run"
    BUDGET_SPENT = "budget_spent"
    """So much of the fleet is in quarantine that it is rather a common cause than so many faults: a person looks."""
    BUDGET_UNKNOWN = "budget_unknown"
    """Nobody said how much of the fleet is out: no answer is no permission."""
    HELD_BY_OTHER = "held_by_other"
    GIVEN_BACK = "given_back"
    """A person gave the node back while this very quarantine held it."""
    NOT_RELEASED = "not_released"
    """The verdict left quarantine, but by nobody's release."""
    UNKNOWN_MARK = "unknown_mark"
    """A mark of ours of which nothing is known here any more."""
    STALE = "stale"
    """The newest verdict is old: cycles have stopped."""
    UNREACHABLE = "unreachable"
    """The scheduler does not say who holds the node."""
    FAILED = "failed"
    """It refused to do it."""


@dataclass(frozen=True, slots=True)
class Acting:
    """How we stand with one scheduler."""

    holder: Holder | None = None
    """None: it has not been asked yet, or gave no answer."""
    blocked: Why | None = None
    """None: nothing is asked that is not done."""
    actions: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """Action (hold, free, release) and result (done, failed) → times, since the daemon started."""
