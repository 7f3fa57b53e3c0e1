"""What tells a kind of line from others: words that stand in it, or a code."""

from __future__ import annotations

from dataclasses import dataclass

from npu_watchd.model.log_event import Family, Role


@dataclass(frozen=True, slots=True)
class Sign:
    """One kind of line. Words are looked for as they are, in lower case, so that no line can make it slow."""

    kind: str
    family: Family
    role: Role
    says: str
    words: tuple[tuple[str, ...], ...] = ()
    """Any of these, all words of it."""
    codes: tuple[str, ...] = ()
    """Or any of these codes."""
    within: str = ""
    """Only after a line that has this word: what it says is too common elsewhere."""
