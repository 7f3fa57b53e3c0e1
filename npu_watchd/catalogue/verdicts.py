"""The metrics of verdicts."""

from __future__ import annotations

from collections.abc import Iterable

from npu_watchd.catalogue.family import Kind, NodeFamily, Sample, states
from npu_watchd.model.acting import Holder
from npu_watchd.model.ids import NODE, DeviceKey
from npu_watchd.model.snapshot import Outcome
from npu_watchd.model.verdict import State, Verdict

_STATES = tuple(sorted(State))


def _devices(outcome: Outcome) -> Iterable[Verdict]:
    return (verdict for verdict in outcome.verdicts if isinstance(verdict.subject, DeviceKey))


def _device_verdict(outcome: Outcome) -> Iterable[Sample]:
    for verdict in _devices(outcome):
        for labels, value in states("state", _STATES, verdict.state):
            yield {"device_id": verdict.device_id or "", **labels}, value


def _node_verdict(outcome: Outcome) -> Iterable[Sample]:
    for verdict in outcome.verdicts:
        if verdict.subject == NODE:
            yield from states("state", _STATES, verdict.state)


def _since(outcome: Outcome) -> Iterable[Sample]:
    for verdict in _devices(outcome):
        yield {"device_id": verdict.device_id or ""}, verdict.since_s


def _actions(outcome: Outcome) -> Iterable[Sample]:
    for actuator, acting in outcome.engine.acting.items():
        for (action, result), times in sorted(acting.actions.items()):
            yield {"actuator": actuator, "action": action, "result": result}, float(times)


def _blocked(outcome: Outcome) -> Iterable[Sample]:
    for actuator, acting in outcome.engine.acting.items():
        if acting.blocked is not None:
            yield {"actuator": actuator, "reason": acting.blocked}, 1.0


def _hold(outcome: Outcome) -> Iterable[Sample]:
    for actuator, acting in outcome.engine.acting.items():
        if acting.holder is not None:
            for labels, value in states("holder", tuple(Holder), acting.holder):
                yield {"actuator": actuator, **labels}, value


VERDICT_FAMILIES: tuple[NodeFamily, ...] = (
    NodeFamily(
        "npu_watchd_device_verdict",
        Kind.GAUGE,
        "1 for the state of the device's verdict, 0 for the others: healthy watch quarantine probation unknown.",
        ("device_id", "state"),
        _device_verdict,
    ),
    NodeFamily(
        "npu_watchd_node_verdict",
        Kind.GAUGE,
        "The same for the node: the worst of its own and its parts'; [quarantine] node_when says how many count.",
        ("state",),
        _node_verdict,
    ),
    NodeFamily(
        "npu_watchd_verdict_since_timestamp_seconds",
        Kind.GAUGE,
        "When the device came to the state of its verdict.",
        ("device_id",),
        _since,
    ),
    NodeFamily(
        "npu_watchd_actions_total",
        Kind.COUNTER,
        "What was done to a scheduler ([quarantine] act): hold free, or that a person's release there was taken up.",
        ("actuator", "action", "result"),
        _actions,
    ),
    NodeFamily(
        "npu_watchd_action_blocked",
        Kind.GAUGE,
        "1 for what keeps us from what the verdict asks of a scheduler: dry_run budget_spent budget_unknown "
        "held_by_other given_back not_released unknown_mark stale unreachable failed; absent: nothing does.",
        ("actuator", "reason"),
        _blocked,
    ),
    NodeFamily(
        "npu_watchd_actuator_hold",
        Kind.GAUGE,
        "1 for who keeps the node out of use there, 0 for the others: nobody ours other; as last looked, which is "
        "only done while there is reason to. Absent: not asked yet, or no answer.",
        ("actuator", "holder"),
        _hold,
    ),
)
