"""Pieces of PromQL that both dashboards are made of, and the words and colours of states."""

from __future__ import annotations

from collections.abc import Iterable

from npu_watchd.model.verdict import State
from npu_watchd.reference.grafana.panel import Query, Shown

FLEET_SCOPE = 'cluster=~"$cluster", job=~"$job"'
NODE_SCOPE = f'{FLEET_SCOPE}, instance="$instance"'
DEVICE_SCOPE = f'{NODE_SCOPE}, device_id=~"$device_id"'
NAME_OF = "npu_watchd:node_info:last"
"""Each target's node, also while its daemon does not answer."""
TO_NODE = (
    "The node's dashboard",
    "/d/npu-watchd-node?${datasource:queryparam}&${cluster:queryparam}&${job:queryparam}&var-instance=%s&${__url_time_range}",
)

_COLOURS = {
    State.HEALTHY: "green",
    State.WATCH: "yellow",
    State.PROBATION: "blue",
    State.UNKNOWN: "purple",
    State.QUARANTINE: "red",
}
VERDICTS = tuple(Shown(at, state.value, _COLOURS[state]) for at, state in enumerate(reversed(State), 1))
"""From 1, so that no state looks like a 0 that nobody measured; the worst is the highest."""
HEALTHS = (
    Shown(1, "ok", "green"),
    Shown(2, "warning", "yellow"),
    Shown(3, "alarm", "orange"),
    Shown(4, "critical", "red"),
    Shown(5, "unknown", "purple"),
)
LINKS = (Shown(0, "down", "red"), Shown(1, "up", "green"))
ANSWERS = (Shown(0, "does not answer", "red"), Shown(1, "answers", "green"))
READS = (Shown(0, "failed", "red"), Shown(1, "read", "green"))
ONE_IS_BAD = ((None, "green"), (1, "red"))
YES = (Shown(0, "no", "red"), Shown(1, "yes", "green"))


def of_device(metric: str, *more: str) -> str:
    """The chosen node's and devices' series. more: further matchers."""
    return f"{metric}{{{', '.join((DEVICE_SCOPE, *more))}}}"


def of_node(metric: str, *more: str) -> str:
    return f"{metric}{{{', '.join((NODE_SCOPE, *more))}}}"


def of_fleet(metric: str, *more: str) -> str:
    return f"{metric}{{{', '.join((FLEET_SCOPE, *more))}}}"


def coded(metric: str, scope: str, states: Iterable[Shown], by: str) -> str:
    """A state set as one series whose value is the state's number; absent where the set is."""
    terms = (f'{metric}{{{scope}, state="{one.text}"}} * {one.value}' for one in states)
    return f"sum by ({by}) ({' or '.join(terms)})"


def by_device(expr: str) -> tuple[Query, ...]:
    return (Query(expr, "{{device_id}}"),)


def to_node(instance: str) -> tuple[str, str]:
    """A link to the dashboard of this node. instance: how Grafana knows its address."""
    return TO_NODE[0], TO_NODE[1] % instance
