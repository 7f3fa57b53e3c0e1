"""A Node as the API server shows it, who holds it, and the patches that hold it and give it back. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from npu_watchd.sinks.actuators.actuator import Hold, Holder, Intention
from npu_watchd.sinks.actuators.kube_note import KEY, Note, note_of, read_note
from npu_watchd.sinks.plaintext import clean

CONDITION = "NpuQuarantined"
MANAGER = "npu-watchd"
"""Under this name the API server books the fields that we set (`metadata.managedFields`)."""
_UNTOLD = "before-first-apply"
"""Whom the API server books what was set before it began to keep books of an object (up to Kubernetes 1.21)."""
_TEXT_MAX = 300

Patch = dict[str, Any]


class NotANodeError(Exception):
    """The document is not what a Node looks like."""


@dataclass(frozen=True, slots=True)
class KubeNode:
    """What we read of a Node."""

    resource_version: str
    unschedulable: bool
    taints: tuple[Mapping[str, Any], ...]
    """All of them, as they stand: a patch replaces the whole list."""
    annotation: str | None
    cordoned_by: frozenset[str]
    """Who set or also applied `spec.unschedulable`, by `metadata.managedFields`; empty: the server does not say."""
    condition: Mapping[str, Any] | None
    """Ours."""

    @property
    def note(self) -> Note | None:
        return read_note(self.annotation)

    @property
    def our_taints(self) -> tuple[Mapping[str, Any], ...]:
        """Those with our key, whoever set them."""
        return tuple(taint for taint in self.taints if taint.get("key") == KEY)

    def bears_taint(self, note: Note) -> bool:
        return [_core(taint) for taint in self.our_taints] == [note.taint]

    def bears_cordon(self, note: Note) -> bool:
        """True: the cordon that we made stands, and nobody has lifted it and set it again, or wants it too."""
        return note.cordoned and self.unschedulable and self.cordoned_by <= {MANAGER}

    def is_whole(self, note: Note) -> bool:
        """Everything that the note says of us is still so."""
        return self.bears_taint(note) and (self.bears_cordon(note) or not note.cordoned)


def node_of(document: Any) -> KubeNode:
    """From the API's JSON. Raises NotANodeError."""
    try:
        if document["kind"] != "Node":
            raise NotANodeError
        metadata, spec = document["metadata"], document.get("spec") or {}
        annotations = metadata.get("annotations") or {}
        conditions = (document.get("status") or {}).get("conditions") or ()
        return KubeNode(
            resource_version=str(metadata["resourceVersion"]),
            unschedulable=spec.get("unschedulable") is True,
            taints=tuple(dict(taint) for taint in spec.get("taints") or ()),
            annotation=annotations.get(KEY),
            cordoned_by=_owners(metadata.get("managedFields") or ()),
            condition=next((each for each in conditions if each["type"] == CONDITION), None),
        )
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise NotANodeError from error


def hold_of(node: KubeNode) -> Hold:
    """Who keeps the node out of use; the text says what was seen, a person's change of our mark too."""
    note, text = node.note, _shown(node)
    if note is None:
        if node.our_taints:
            return Hold(Holder.OTHER, f"{text}: a taint with our key, but no annotation of ours")
        if node.unschedulable:
            return Hold(Holder.OTHER, f"{text}, not by us")
        return Hold(Holder.NOBODY, text)
    if node.is_whole(note):
        return Hold(Holder.OURS, f"{text}: {clean(note.reason, _TEXT_MAX)}", note.mark)
    changed = f"{text}: somebody {_change(node, note)} after our mark {clean(note.mark, 64)}"
    if note.cordoned and not node.unschedulable:
        return Hold(Holder.NOBODY, changed)
    holds = node.unschedulable or node.our_taints
    return Hold(Holder.OTHER if holds else Holder.NOBODY, changed)


def holding(node: KubeNode, intention: Intention, effect: str) -> Patch | None:
    """The merge patch that makes the node ours; None: it is, or is somebody else's, or they undid this mark."""
    note = node.note
    if note is not None and note.mark == intention.mark:
        return None
    before = note if note is not None and node.bears_taint(note) else None
    others = [taint for taint in node.taints if before is None or _core(taint) != before.taint]
    if any(taint.get("key") == KEY for taint in others):
        return None
    # A cordon that was there before is inherited only with a hold of ours that nobody has touched.
    cordoned = not node.unschedulable or (note is not None and note.cordoned and node.is_whole(note))
    mine = note_of(intention.mark, intention.reason, cordoned=cordoned, effect=effect)
    spec: Patch = {"taints": [*others, mine.taint]}
    if not node.unschedulable:
        spec["unschedulable"] = True
    return _patch(node, spec, mine.text())


def freeing(node: KubeNode, mark: str) -> Patch | None:
    """The merge patch that takes our mark off and, where the cordon is still ours, lifts it; None: nothing is ours."""
    note = node.note
    if note is None or note.mark != mark:
        return None
    spec: Patch = {}
    others = [taint for taint in node.taints if _core(taint) != note.taint]
    if len(others) < len(node.taints):
        # An empty list would stay in the object; null takes the field away.
        spec["taints"] = others or None
    if node.is_whole(note) and note.cordoned:
        spec["unschedulable"] = None
    return _patch(node, spec, None)


def condition_for(node: KubeNode, note: Note | None, mark: str, wall_s: float) -> Patch | None:
    """The strategic patch of the status that says so in a condition; None: it says so already.

    note: what holds the node; None: nothing of this mark does any longer.
    """
    now = datetime.fromtimestamp(wall_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    seen = node.condition or {}
    if note is not None:
        wanted = {"status": "True", "reason": "NpuWatchdQuarantine", "message": f"{note.reason} [{note.mark}]"}
    elif seen.get("status") == "True" and str(seen.get("message", "")).endswith(f"[{mark}]"):
        wanted = {"status": "False", "reason": "NpuWatchdReleased", "message": f"released [{mark}]"}
    else:
        return None
    if all(seen.get(key) == value for key, value in wanted.items()):
        return None
    since = now if seen.get("status") != wanted["status"] else seen.get("lastTransitionTime", now)
    condition = {"type": CONDITION, **wanted, "lastHeartbeatTime": now, "lastTransitionTime": since}
    return {"status": {"conditions": [condition]}}


def _patch(node: KubeNode, spec: Patch, annotation: str | None) -> Patch:
    # With the version, a change that came between our reading and this is a conflict, and not overwritten.
    metadata = {"resourceVersion": node.resource_version, "annotations": {KEY: annotation}}
    return {"metadata": metadata, **({"spec": spec} if spec else {})}


def _core(taint: Mapping[str, Any]) -> dict[str, Any]:
    """Without `timeAdded`, which the server adds to NoExecute."""
    return {"key": taint.get("key"), "value": taint.get("value", ""), "effect": taint.get("effect")}


def _change(node: KubeNode, note: Note) -> str:
    changes = []
    if note.cordoned and not node.unschedulable:
        changes.append("uncordoned it")
    elif note.cordoned and not node.bears_cordon(note):
        others = ", ".join(sorted(node.cordoned_by - {MANAGER}))
        changes.append(f"({clean(others, 64)}) cordoned it too")
    if not node.our_taints:
        changes.append("took our taint away")
    elif not node.bears_taint(note):
        changes.append("changed our taint")
    return " and ".join(changes)


def _shown(node: KubeNode) -> str:
    parts = ["cordoned" if node.unschedulable else "schedulable"]
    parts += [f"taint {taint.get('key')}={taint.get('value', '')}:{taint.get('effect')}" for taint in node.our_taints]
    return clean(", ".join(parts), _TEXT_MAX)


def _owners(managed: Any) -> frozenset[str]:
    return frozenset(
        str(entry.get("manager", ""))
        for entry in managed
        if "f:unschedulable" in ((entry.get("fieldsV1") or {}).get("f:spec") or {})
    ) - {_UNTOLD}
