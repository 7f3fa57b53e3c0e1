"""What can take this node out of a scheduler's hands, and give it back."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from npu_watchd.model.reading import Failure


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


class Actuator(Protocol):
    """One scheduler. Each call is bounded in time, and done twice is as good as once."""

    @property
    def name(self) -> str:
        """As `[quarantine] act` has it."""

    def look(self) -> Hold | Failure:
        """Who holds the node."""

    def hold(self, intention: Intention) -> Failure | None:
        """Take the node out of use, unless somebody already has; None: it is done, or was."""

    def free(self, mark: str) -> Failure | None:
        """Give it back, if what holds it is still our mark of this id; else leave it. None: done, or not ours."""
