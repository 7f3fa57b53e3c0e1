"""The checklist before a job: what each check found, why, and what to do; pure over facts that others gathered."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

Document = dict[str, Any]
"""The snapshot of docs/api.md: the daemon's, or one that we made ourselves."""


class Result(StrEnum):
    """What a check came to."""

    PASSED = "passed"
    WARNING = "warning"
    FAILED = "failed"
    UNKNOWN = "unknown"
    """It could not be made: never as good as passed."""
    SKIPPED = "skipped"
    """There is nothing here to check; counts for nothing."""


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the list."""

    name: str
    result: Result
    found: str
    """What was seen, or why nothing could be."""
    cure: str | None = None
    """None: nothing is to be done."""
    device_id: str | None = None
    """None: it is about the node, or about all devices together."""


_CODES = {Result.FAILED: 2, Result.UNKNOWN: 3, Result.WARNING: 1}


def exit_code(checks: Iterable[Check]) -> int:
    """As `check`: 0 all passed, 1 a warning, 2 something failed, 3 something could not be seen.

    What failed is told before what is unknown; where nothing was checked at all nobody knows.
    """
    results = {check.result for check in checks}
    found = next((code for result, code in _CODES.items() if result in results), 0)
    return found if results - {Result.SKIPPED} else 3


def document(checks: tuple[Check, ...]) -> Document:
    """As `preflight --json` prints it."""
    code = exit_code(checks)
    words = {0: "passed", 1: "warning", 2: "failed", 3: "unknown"}
    return {
        "result": words[code],
        "exit_code": code,
        "checks": [
            {
                "check": one.name,
                "device_id": one.device_id,
                "result": one.result.value,
                "found": one.found,
                "cure": one.cure,
            }
            for one in checks
        ],
    }


def passed(name: str, found: str, device_id: str | None = None) -> Check:
    return Check(name, Result.PASSED, found, None, device_id)


def unknown(name: str, why: str, cure: str | None = None, device_id: str | None = None) -> Check:
    return Check(name, Result.UNKNOWN, why, cure, device_id)
