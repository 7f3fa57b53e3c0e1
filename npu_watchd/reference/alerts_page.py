"""docs/alerts.md."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from npu_watchd.config.limit_text import number, written
from npu_watchd.limits import BY_NAME
from npu_watchd.reference.fleet_alerts import JOB, FleetAlert
from npu_watchd.reference.markdown import made, table
from npu_watchd.reference.recordings import FOR_DASHBOARDS, RANKING, RECORDINGS
from npu_watchd.reference.telling import SUBJECTS, VARIES
from npu_watchd.rules.rule import Rule

_RULE_HEAD = ("alert", "rule", "about a", "severity", "quarantines", "action", "needs", "limits", "when it fires")
_FLEET_HEAD = ("alert", "about a", "severity", "action", "when it fires")

_HEAD = """
# Alerts

One rule, one alert, one runbook. The daemon judges; the alert reaches Alertmanager by the daemon's own push or by
Prometheus and `deploy/prometheus/npu-watchd.rules.yml`, with the same name and labels either way: `alertname`,
`severity`, `node`, and `device_id`, or `rdma_device` and `port`. Use one way, not both. Values and limits are in the
push's annotations, on the node's page and in `/api/v1/findings`; what Prometheus sends speaks in general words.

A finding whose source cannot be read is **held**: it stays active. While a daemon does not answer at all, Prometheus
keeps its alerts too. `npu-watchd explain ALERT` prints all of this for one alert.

## The daemon's rules"""
_VARYING = """
Where a rule's findings differ, the table has the worst:
"""
_FLEET = f"""
[limits.md](limits.md) says why each limit is what it is, and whose advice that is.

## What only Prometheus can hold

They rest on the scrape job's name, `{JOB}`. Their limits are not in the config: change them in a copy of the file."""
_RECORDED = """
`NpuFleetQuarantineShare` counts nodes whose verdict is quarantine (`npu_watchd_node_verdict{state="quarantine"}`),
whether a finding or a person put them there; `[quarantine] node_when` says how many quarantined devices make a node one
of them. A node counts until it is released, also while its daemon does not answer.

## What Prometheus records"""
_RANKED = """
`topk(20, npu_watchd:node_bad_days:28d)` ranks the nodes that fail again and again. A day counts once, whatever happened
on it, and a fault that stands for a week counts on the day on which it began; today counts from midnight on. The
ranking needs 29 days of data: Prometheus keeps 15 unless `--storage.tsdb.retention.time` says otherwise."""


def alerts_page(rules: Iterable[Rule], fleet: Iterable[FleetAlert]) -> str:
    rules, fleet = tuple(rules), tuple(fleet)
    lines = [
        made("npu_watchd/rules/ and npu_watchd/reference/fleet_alerts.py"),
        _HEAD,
        *table(_RULE_HEAD, (_rule_row(rule) for rule in rules)),
        _VARYING,
        *(f"* `{rule.id}`: {VARIES[rule.id]}" for rule in rules if rule.id in VARIES),
        _FLEET,
        *table(_FLEET_HEAD, (_fleet_row(alert) for alert in fleet)),
        *table(("alert", "limit", "unit", "why", "source"), _fleet_limits(fleet)),
        _RECORDED,
        *table(("series", "what"), ((f"`{one.record}`", one.what) for one in (*RECORDINGS, *FOR_DASHBOARDS, *RANKING))),
        _RANKED,
    ]
    return "\n".join(lines) + "\n"


def _runbook(alert: str) -> str:
    return f"[{alert}](runbooks/{alert}.md)"


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names) or "–"


def _rule_row(rule: Rule) -> tuple[str, ...]:
    return (
        _runbook(rule.alert),
        f"`{rule.id}`",
        " or ".join(SUBJECTS[rule.id]),
        rule.severity.value,
        "yes" if rule.quarantines else "no",
        rule.action.value,
        _names(rule.needs),
        _names(written(BY_NAME[name]) for name in rule.limits),
        rule.summary,
    )


def _fleet_row(alert: FleetAlert) -> tuple[str, ...]:
    return _runbook(alert.alert), alert.subject, alert.severity, alert.action, alert.summary


def _fleet_limits(fleet: Iterable[FleetAlert]) -> Iterator[tuple[str, ...]]:
    for alert in fleet:
        for limit in alert.all_limits:
            yield alert.alert, f"`{limit.name} = {number(limit)}`", limit.unit, limit.why, limit.source
