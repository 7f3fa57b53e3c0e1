"""What every table of a scenario file has in common."""

from __future__ import annotations

import msgspec


class Strict(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A key that is not named here is an error."""
