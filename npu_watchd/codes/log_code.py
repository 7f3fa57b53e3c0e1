"""One code of a job's log, explained."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass

_WIDTH, _COLUMN = 110, 10
_SOURCE = "CANN's error code references and public headers, in our words"

NEXT = "npu-watchd diagnose LOG"
LINK = "hccn_tool -i N -link -g; hccn_tool -i N -net_health -g"
BUSY = "npu-smi info    # the processes of the device; npu-watchd status"
"""Commands of many of them."""


@dataclass(frozen=True, slots=True)
class LogCode:
    """One code of a log."""

    code: str
    name: str
    """The vendor's own where it has underscores; else in our words."""
    text: str
    """What it says, and what it does not."""
    cause: str
    """Of `npu-watchd diagnose`, or `-` where the code alone names none."""
    check: str
    """A command that tells more."""

    def lines(self) -> list[str]:
        """A heading, the meaning, and the facts, wrapped for a terminal."""
        facts = (("cause", self.cause), ("check", self.check), ("source", _SOURCE))
        told = [
            line for name, text in facts for line in _wrapped(text, f"  {name:{_COLUMN}}")
        ]  # fmt: skip
        return [f"{self.code}  {self.name}", *_wrapped(self.text, ""), "", *told]

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def document(self) -> dict[str, object]:
        """The same as plain data, for JSON."""
        return {
            "code": self.code,
            "form": "log",
            "name": self.name,
            "text": self.text,
            "cause": None if self.cause == "-" else self.cause,
            "check": self.check,
            "source": _SOURCE,
        }


def _wrapped(text: str, head: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent=head, subsequent_indent=" " * len(head), break_on_hyphens=False)
