"""A reading is a record or a failure; there is no third."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Generic, TypeVar

from npu_watchd.model.ids import Subject


@dataclass(frozen=True, slots=True)
class Tick:
    """One instant, handed in by the daemon: nothing else reads a clock."""

    mono_s: float
    """For ages, periods and windows: never jumps."""
    wall_s: float
    """For people and for exported timestamps: Unix seconds, may jump."""


class FailureKind(Enum):
    """Why there is no record. Each is a different thing for ops to do."""

    MISSING = "missing"
    """The tool or file does not exist on this node."""
    DENIED = "denied"
    """It exists and we may not run or read it."""
    TIMEOUT = "timeout"
    """It did not answer within its deadline and was ended."""
    WEDGED = "wedged"
    """It could not be ended (D state), or an earlier one has not been, so no second one was started."""
    EXIT = "exit"
    """It answered that it failed."""
    UNPARSEABLE = "unparseable"
    """It answered in words that we cannot trust."""
    UNSUPPORTED = "unsupported"
    """It answered that this chip or this tool cannot say."""
    STALE = "stale"
    """The last good reading is older than three of its periods."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A read that did not succeed. Never a state of the hardware."""

    kind: FailureKind
    detail: str
    """What a person needs to see: the tool's own line, and the cure where one is known."""


NOT_READ_YET = Failure(FailureKind.STALE, "not read yet")
"""A probe's first turn has not come: nothing is known, and nothing is wrong."""


@dataclass(frozen=True, slots=True)
class Output:
    """What a tool answered within its deadline, whatever its exit code: the text decides, the code alone does not."""

    text: str
    """stdout, decoded as UTF-8 with replacement characters."""
    stderr: str = ""
    exit_code: int = 0
    """Negative: ended by that signal, as subprocess has it."""


Run = Callable[[tuple[str, ...], float], Output | Failure]
"""argv and deadline in seconds → the tool's answer, or why there is none. The one seam of the test suite."""

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Reading(Generic[R]):
    """What one probe learnt about one subject, and when."""

    probe: str
    subject: Subject
    taken_at: Tick
    duration_s: float
    """How long the tool took; shared by the subjects that one call answers for."""
    result: R | Failure
    unknown_keys: int = 0
    """Keys of the call's text that no parser knows; on the first reading of a call only."""
