"""From cases to verdicts: what is told of each subject, of the node as a whole, and which of it is news."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from npu_watchd.decide.case import Case
from npu_watchd.model.finding import Action
from npu_watchd.model.ids import NODE, DeviceKey, Subject
from npu_watchd.model.verdict import Reason, State, Verdict, worst

NodeWhen = str | int
"""`any`, `all`, or how many quarantined devices quarantine the node."""


def verdicts_of(cases: Mapping[Subject, Case], node_when: NodeWhen) -> tuple[Verdict, ...]:
    """The node's first, then devices and ports by number."""
    parts = {subject: verdict_of(subject, case) for subject, case in cases.items() if subject != NODE}
    own = verdict_of(NODE, cases[NODE]) if NODE in cases else Verdict(NODE, None, State.UNKNOWN, 0.0, (), blind=True)
    order = sorted(parts, key=lambda subject: (not isinstance(subject, DeviceKey), subject))
    return (node_verdict(own, [parts[subject] for subject in order], node_when), *(parts[subject] for subject in order))


def verdict_of(subject: Subject, case: Case) -> Verdict:
    """What is told of a subject for itself."""
    return Verdict(
        subject=subject,
        device_id=case.device_id,
        state=State.UNKNOWN if case.unread else case.state,
        since_s=case.since_wall_s,
        reasons=case.reasons,
        action=case.action,
        held=case.held,
        blind=case.blind,
        revision=case.revision,
    )


def node_verdict(own: Verdict, parts: Iterable[Verdict], node_when: NodeWhen) -> Verdict:
    """The worst of the node's own and its parts'; of quarantined devices only as many as `node_when` says count."""
    parts = tuple(parts)
    told = {part.subject: _counted(part, _enough(parts, node_when)) for part in parts}
    state = worst((own.state, *told.values()))
    guilty = [part for part in parts if told[part.subject] is state and state is not State.HEALTHY]
    if own.state is state:
        reasons = own.reasons + tuple(_of_part(part) for part in guilty)
        since_s, action = min([own.since_s, *(part.since_s for part in guilty)]), own.action
    else:
        reasons = tuple(_of_part(part) for part in guilty)
        since_s, action = min(part.since_s for part in guilty), None
    return Verdict(
        subject=NODE,
        device_id=None,
        state=state,
        since_s=since_s,
        reasons=reasons,
        action=action or next((part.action for part in guilty if part.action), None),
        held=state is State.QUARANTINE and all(one.held for one in (*guilty, own) if one.state is State.QUARANTINE),
        blind=own.blind or any(part.blind for part in parts),
        own_state=own.state,
        revision=max([own.revision, *(part.revision for part in parts)]),
    )


def _enough(parts: tuple[Verdict, ...], node_when: NodeWhen) -> bool:
    devices = [part for part in parts if isinstance(part.subject, DeviceKey)]
    quarantined = sum(part.state is State.QUARANTINE for part in devices)
    needed = {"any": 1, "all": len(devices)}.get(str(node_when)) if isinstance(node_when, str) else node_when
    return quarantined >= max(1, needed or 1)


def _counted(part: Verdict, enough: bool) -> State:
    """A quarantined device of too few is something to watch, for the node."""
    alone = part.state is State.QUARANTINE and isinstance(part.subject, DeviceKey) and not enough
    return State.WATCH if alone else part.state


def _of_part(part: Verdict) -> Reason:
    name = f"device {part.device_id}" if part.device_id is not None else f"{part.subject}"
    first = next(iter(part.reasons), None)
    # A finding's summary names its device already.
    text = first.text if first is not None and first.text.startswith(name) else f"{name}: {first.text if first else ''}"
    return Reason(text if first else f"{name}: {part.state}", first.rule if first else None)


def is_news(before: Case | None, after: Case) -> bool:
    """Whether the journal has a line of it: that a subject is well when first seen, or unread, is none."""
    if after.unread:
        return False
    if before is None or (before.unread and before.state is State.UNKNOWN):
        return after.state is not State.HEALTHY
    hopeless = after.state is State.QUARANTINE and after.action is Action.REPLACE is not before.action
    return after.state is not before.state or hopeless


def change_text(subject: Subject, before: Case | None, after: Case) -> str:
    """The journal's line."""
    name = f"device {after.device_id}" if after.device_id is not None else f"{subject}"
    was = f"{before.state} is now " if before is not None and before.state is not after.state else ""
    why = f": {after.reasons[0].text}" if after.reasons else ""
    what = f"; next: {after.action.value.replace('_', ' ')}" if after.action is not None else ""
    return f"{name}: {was}{after.state}{why}{what}"
