"""The metrics of verdicts."""

from __future__ import annotations

from collections.abc import Iterable

from npu_watchd.catalogue.family import Kind, NodeFamily, Sample, states
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
)
