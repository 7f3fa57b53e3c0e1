"""What a scheduler is told of a quarantine: a line for people, and JSON for a hook."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from npu_watchd.model.acting import Intention
from npu_watchd.model.ids import NODE
from npu_watchd.model.verdict import State, Verdict
from npu_watchd.sinks.plaintext import clean

_REASON_MAX = 200


def intention_of(mark: str, node: str, verdicts: Iterable[Verdict]) -> Intention:
    """verdicts: the node's first. The reason is that of the quarantine, the worst first."""
    own, *parts = verdicts
    reason = own.reasons[0].text if own.reasons else "quarantine"
    more = f" (and {len(own.reasons) - 1} more)" if len(own.reasons) > 1 else ""
    document = {
        "mark": mark,
        "node": node,
        **_told(own),
        "parts": [_told(part) for part in parts if part.state is State.QUARANTINE],
    }
    return Intention(mark, clean(reason, _REASON_MAX - len(more)) + more, msgspec.json.encode(document))


def _told(verdict: Verdict) -> dict[str, Any]:
    """As the config's docs have it: `since` in Unix seconds, `device_id` null of a port and of the node."""
    return {
        "subject": "node" if verdict.subject == NODE else clean(str(verdict.subject), 100),
        "device_id": verdict.device_id,
        "state": verdict.state.value,
        "since": verdict.since_s,
        "held": verdict.held,
        "action": None if verdict.action is None else verdict.action.value,
        "reasons": [{"text": clean(reason.text, 1000), "rule": reason.rule} for reason in verdict.reasons[:20]],
    }
