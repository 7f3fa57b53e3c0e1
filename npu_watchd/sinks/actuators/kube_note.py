"""Our mark on a Node: the annotation that says what we did, and the taint that does it."""

from __future__ import annotations

import re
from hashlib import sha256

import msgspec

from npu_watchd.sinks.plaintext import clean

KEY = "npu-watchd/quarantine"
"""Of the annotation and of the taint."""
_REASON_MAX = 200
_TAINT_VALUE = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
"""What the API server takes for a taint's value: a label's value."""


class Note(msgspec.Struct, frozen=True, forbid_unknown_fields=False):
    """What the annotation holds as JSON: a person who reads it needs no manual."""

    mark: str
    reason: str
    cordoned: bool
    """True: the node could be scheduled on before, and we cordoned it; False: the cordon was somebody else's."""
    effect: str
    """Of our taint."""

    @property
    def taint(self) -> dict[str, str]:
        return {"key": KEY, "value": taint_value(self.mark), "effect": self.effect}

    def text(self) -> str:
        return msgspec.json.encode(self).decode()


def note_of(mark: str, reason: str, *, cordoned: bool, effect: str) -> Note:
    return Note(mark, clean(reason, _REASON_MAX), cordoned, effect)


def read_note(text: str | None) -> Note | None:
    """None: there is none, or none that we wrote."""
    if text is None:
        return None
    try:
        return msgspec.json.decode(text, type=Note)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return None


def taint_value(mark: str) -> str:
    """The mark itself where a taint may bear it, else what is left of it and a digest."""
    if _TAINT_VALUE.fullmatch(mark):
        return mark
    plain = re.sub(r"[^A-Za-z0-9]+", "-", mark)[:48].strip("-")
    return f"{plain or 'mark'}-{sha256(mark.encode()).hexdigest()[:12]}"
