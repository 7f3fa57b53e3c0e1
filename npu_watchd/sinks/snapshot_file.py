"""The newest snapshot as `npu-watchd status` reads it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

NAME = "snapshot.json"
_SHOWN = frozenset(
    {
        "at",
        "node",
        "tool_version",
        "driver_version",
        "devices_expected",
        "devices_present",
        "devices",
        "ports",
        "blind",
        "warnings",
        "findings",
        "verdicts",
    }
)
"""Keys without which there is nothing to show."""


def read(runtime_dir: Path) -> tuple[bytes, dict[str, Any]]:
    """The file as it is, and as the document that it holds.

    Raises FileNotFoundError where no daemon runs, OSError, and ValueError for what no daemon of ours has written.
    """
    path = runtime_dir / NAME
    raw = path.read_bytes()
    try:
        document = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: {error}") from error
    if not isinstance(document, dict) or not document.keys() >= _SHOWN or not isinstance(document["at"], float | int):
        raise ValueError(f"{path}: is no snapshot of this version of npu-watchd; restart the daemon")
    return raw, document
