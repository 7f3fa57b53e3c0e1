"""What can take this node out of a scheduler's hands, and give it back."""

from __future__ import annotations

from typing import Protocol

from npu_watchd.model.acting import Hold, Holder, Intention
from npu_watchd.model.reading import Failure

__all__ = ["Actuator", "Hold", "Holder", "Intention"]


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
