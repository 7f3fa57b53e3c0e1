"""`verdict.json` in the runtime directory: what the gate reads (npu_watchd/gate.py), and anybody's prolog may."""

from __future__ import annotations

from npu_watchd.model.snapshot import Outcome
from npu_watchd.sinks.web.api import encoded
from npu_watchd.sinks.web.verdicts import verdict_document

NAME = "verdict.json"


def verdict_json(outcome: Outcome, stale_after_s: float) -> bytes:
    """The document of docs/api.md, UTF-8. stale_after_s: how old it may be before nobody may go by it.

    `monotonic` tells its age whatever becomes of the wall clock, within the boot that `boot_id` names.
    """
    snapshot = outcome.snapshot
    return encoded(
        {
            "at": snapshot.at.wall_s,
            "monotonic": snapshot.at.mono_s,
            "boot_id": snapshot.boot_id,
            "node": snapshot.node,
            "version": outcome.engine.version,
            "stale_after_seconds": stale_after_s,
            "verdicts": [verdict_document(verdict) for verdict in outcome.verdicts],
        }
    )
