"""deploy/prometheus/npu-watchd.rules.yml."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from npu_watchd import chinese
from npu_watchd.config.values import Seconds
from npu_watchd.reference.fleet_alerts import JOB, NAMED, FleetAlert
from npu_watchd.reference.recordings import FOR_DASHBOARDS, RANKING, RECORDINGS, Recording
from npu_watchd.rules.rule import Rule

LABELS = ("node", "severity", "device_id", "rdma_device", "port")
"""Of an alert of one of the daemon's rules, beside alertname: the same as in the daemon's own push."""
_ONLY = ", ".join(LABELS)
_WHOM = (
    "{{ $labels.node }}{{ with $labels.device_id }}, device {{ . }}{{ end }}"
    "{{ with $labels.rdma_device }}, RDMA port {{ . }}/{{ $labels.port }}{{ end }}"
)
_WHOM_ZH = (
    "{{ $labels.node }}{{ with $labels.device_id }} 设备 {{ . }}{{ end }}"
    "{{ with $labels.rdma_device }} RDMA 端口 {{ . }}/{{ $labels.port }}{{ end }}"
)
_RUNBOOKS = "{{ with $externalLabels.npu_watchd_runbooks }}{{ . }}/{{ end }}"
VALUES = "`npu-watchd status` on the node; its page and `/api/v1/findings`, port 18910"

_HEAD = f"""\
# Made by `npu-watchd reference`; change the tables in npu_watchd/rules/ and npu_watchd/reference/ instead.
#
# One alert a rule of the daemon, on npu_watchd_finding_active: the daemon judges, its limits are in docs/limits.md, and
# none of them is here. Names and labels are those of the daemon's own push to Alertmanager; use one of the two ways.
# Values and limits are not labels: the node's page has them, `/api/v1/findings`, and the daemon's own push.
#
# The scrape job must be named `{JOB}`; evaluation and scrapes at most a minute apart. The external label
# npu_watchd_runbooks, where it is set, is put before the path in runbook_url: "https://git.example.org/npu-watchd".
# It then is a label of every alert too; `alert_relabel_configs` with the action labeldrop takes it off again.
"""


def rules_file(rules: Iterable[Rule], fleet: Iterable[FleetAlert]) -> str:
    lines = [
        _HEAD.rstrip(),
        "groups:",
        "  - name: npu-watchd",
        "    rules:",
        *_recordings(RECORDINGS),
        "      # The daemon's rules.",
    ]
    for rule in rules:
        lines += _alert(rule.alert, rule_expression(rule), None, {}, rule_annotations(rule))
    lines.append("      # What only Prometheus can hold; the numbers are explained in docs/alerts.md.")
    for alert in fleet:
        lasts = None if alert.lasts is None else str(Seconds(alert.lasts.default))
        lines += _alert(alert.alert, alert.expr, lasts, {"severity": alert.severity}, fleet_annotations(alert))
    lines += ["  - name: npu-watchd-dashboards", "    rules:", *_recordings(FOR_DASHBOARDS)]
    lines += ["  - name: npu-watchd-ranking", "    interval: 1h", "    rules:", *_recordings(RANKING)]
    return "\n".join(lines) + "\n"


def rule_expression(rule: Rule) -> str:
    """What stands now, and what stood when the node's daemon was last heard."""
    chosen = f'{{rule="{rule.id}"}}'
    return (
        f"max by ({_ONLY}) (npu_watchd_finding_active{chosen} {NAMED} npu_node_info"
        f" or npu_watchd:finding_active:node{chosen})"
    )


def rule_annotations(rule: Rule) -> dict[str, str]:
    return {
        "summary": f"{_WHOM}: {rule.summary}",
        **in_chinese(_WHOM_ZH, chinese.RULES.get(rule.id)),
        "action": rule.action.value,
        "values": VALUES,
        "runbook_url": runbook_url(rule.alert),
    }


def fleet_annotations(alert: FleetAlert) -> dict[str, str]:
    return {
        "summary": f"{alert.title}: {alert.summary}",
        **in_chinese(alert.title_zh, chinese.FLEET.get(alert.alert)),
        "action": alert.action,
        "runbook_url": runbook_url(alert.alert),
    }


def in_chinese(whom: str, sentence: str | None) -> dict[str, str]:
    """The annotation summary_zh; none where there is no text."""
    return {} if sentence is None else {"summary_zh": f"{whom}：{sentence}"}


def runbook_url(alert: str) -> str:
    return f"{_RUNBOOKS}docs/runbooks/{alert}.md"


def quoted(text: str) -> str:
    """A scalar of YAML in single quotes, where nothing but the quote itself needs care."""
    return "'" + text.replace("'", "''") + "'"


def _recordings(recordings: Iterable[Recording]) -> Iterator[str]:
    for one in recordings:
        yield f"      # {one.what}"
        yield f"      - record: {one.record}"
        yield f"        expr: {quoted(one.expr)}"


def _alert(
    name: str, expression: str, lasts: str | None, labels: Mapping[str, str], annotations: Mapping[str, str]
) -> Iterator[str]:
    yield f"      - alert: {name}"
    yield f"        expr: {quoted(expression)}"
    if lasts is not None:
        yield f"        for: {lasts}"
    if labels:
        yield "        labels:"
        yield from (f"          {key}: {quoted(text)}" for key, text in labels.items())
    yield "        annotations:"
    yield from (f"          {key}: {quoted(text)}" for key, text in annotations.items())
