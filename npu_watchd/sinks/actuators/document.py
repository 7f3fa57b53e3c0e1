"""What a scheduler is told of a quarantine: a line for people, and JSON for a hook."""

from __future__ import annotations

from collections.abc import Iterable

from npu_watchd.model.acting import Intention
from npu_watchd.model.verdict import State, Verdict
from npu_watchd.sinks.plaintext import clean
from npu_watchd.sinks.web.api import encoded
from npu_watchd.sinks.web.verdicts import verdict_document

_REASON_MAX = 200


def intention_of(mark: str, node: str, verdicts: Iterable[Verdict]) -> Intention:
    """verdicts: the node's first. The reason is the worst of its own; the document is that of docs/acting.md."""
    own, *parts = verdicts
    reason = own.reasons[0].text if own.reasons else "quarantine"
    more = f" (and {len(own.reasons) - 1} more)" if len(own.reasons) > 1 else ""
    guilty = [own, *(part for part in parts if part.state is State.QUARANTINE)]
    document = {"mark": mark, "node": node, "verdicts": [verdict_document(verdict) for verdict in guilty]}
    return Intention(mark, clean(reason, _REASON_MAX - len(more)) + more, encoded(document))
