"""What a section of the config is made of: keys, each with a word on what it does."""

from __future__ import annotations

import msgspec


def about(what: str, *, unset: str = "", example: object = None, used: bool = True) -> msgspec.Meta:
    """Describe a key: what it does, what its absence means, what to show where there is no default.

    `used=False`: read and checked, but no part of this version acts on it.
    """
    return msgspec.Meta(description=what, extra={"unset": unset, "example": example, "used": used})


class Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A table of the file."""
