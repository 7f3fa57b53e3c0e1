"""Which errors of a training step may pass by themselves, and which do not: a table of their own words.

Source: CANN's list of error codes, MindSpore's source, and logs of both; what stands in no row is not retried.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

MOST_CHARACTERS = 20_000
_DEEPEST = 6
"""Of a chain of exceptions."""


class Kind(StrEnum):
    """What to do about it."""

    RETRIABLE = "retriable"
    FATAL = "fatal"
    """Again would be the same again, or would hide a device that is broken."""


@dataclass(frozen=True, slots=True)
class Error:
    """One row."""

    name: str
    kind: Kind
    pattern: re.Pattern[str]
    why: str


def _row(name: str, kind: Kind, pattern: str, why: str) -> Error:
    return Error(name, kind, re.compile(pattern), why)


_R, _F = Kind.RETRIABLE, Kind.FATAL
ERRORS: tuple[Error, ...] = (
    _row("hbm_uncorrectable", _F, r"(?i)\bHBM\b.{0,80}(?:ECC|multi[- ]?bit|uncorrect)", "the device lost data"),
    _row(
        "device_lost", _F, r"\b507010\b|(?i:lost heartbeat of the device|device heartbeat lost)", "the device is gone"
    ),
    _row("ai_core", _F, r"\b50701[457]\b|(?i:aicore exception|vector core exception)", "a kernel failed on the device"),
    _row("rank_table", _F, r"\bEI0004\b", "the rank table is not valid"),
    _row("settings", _F, r"\bEI000[135]\b", "a setting is not valid, or differs between ranks"),
    _row("versions", _F, r"relies on whl packages of|CheckFailed: .{0,200}version", "versions do not fit"),
    _row(
        "occupied", _R, r"(?i)may be other processes occupying this card", "another process may leave the device soon"
    ),
    _row("leftover", _R, r"\bE30003\b|\b507033\b", "processes of the last run have not yet left the device"),
    _row(
        "device_memory",
        _F,
        r"\bEI0011\b|(?i:NPU out of memory|out of device memory)|\b207001\b",
        "no device memory left",
    ),
    _row(
        "compile_child",
        _R,
        r"kernel_build_client\.h:\d+ Response\b|Try to (?:send request|get response) before Open\(\)",
        "the compile child of this process ended",
    ),
    _row("notify_wait", _R, r"\bEI0002\b", "a peer did not come in time"),
    _row("socket_timeout", _R, r"\bEI0006\b|(?i:get socket timeout)", "a peer did not answer in time"),
    _row("port_bound", _R, r"\bEI0019\b", "a port is still bound by another process"),
    _row("link", _R, r"\bEI001[356]\b", "a link between ranks failed"),
)
"""The first row that fits holds: what is fatal stands before what may only follow from it."""


def classify(text: str) -> Error | None:
    """The row that fits; None: no row does, so nobody knows that again would help."""
    text = text[-MOST_CHARACTERS:]
    return next((error for error in ERRORS if error.pattern.search(text)), None)


def words_of(error: BaseException) -> str:
    """What an exception and those behind it say; never raises, whatever their __str__ does."""
    found: list[str] = []
    seen: set[int] = set()
    one: BaseException | None = error
    while one is not None and id(one) not in seen and len(found) < _DEEPEST:
        seen.add(id(one))
        try:
            found.append(str(one)[-MOST_CHARACTERS:])
        except Exception:  # noqa: BLE001  # a message that cannot be made is none
            found.append("")
        one = one.__cause__ or one.__context__
    # The outermost last: its words are never the ones that are cut.
    return "\n".join(reversed(found))
