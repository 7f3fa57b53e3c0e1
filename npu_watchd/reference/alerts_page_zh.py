"""docs/alerts.zh-CN.md: the same alerts in Chinese, a sentence each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from npu_watchd import chinese
from npu_watchd.reference.fleet_alerts import FleetAlert
from npu_watchd.reference.markdown import made, table
from npu_watchd.reference.telling import DEVICE, NODE, PORT, SUBJECTS
from npu_watchd.rules.rule import Rule

_SUBJECTS: Mapping[str, str] = {DEVICE: "设备", PORT: "端口", NODE: "节点", "fleet": "集群"}
_SEVERITIES = {"warning": "警告", "critical": "严重"}

_HEAD = """
# 告警

一条规则，一个告警，一份处置手册（英文）。由守护进程判断；告警可以由它直接推送到 Alertmanager，
也可以由 Prometheus 依据 `deploy/prometheus/npu-watchd.rules.yml` 发出，两种方式的名称和标签相同，请只选其一。
实测值与阈值在推送告警的注解、节点页面和 `/api/v1/findings` 中。

配置 `[node] language = "zh"` 后，守护进程推送的 `summary` 先写中文，括号内是带数值的英文原文，`action_zh` 是下一步；
`deploy/prometheus/npu-watchd.rules.yml` 的中文在注解 `summary_zh` 中。节点页面、命令行和事件日志是英文。

数据来源读不到时，告警**保持**原状，不会当作已恢复。`npu-watchd explain 告警名` 打印某个告警的全部说明（英文）；
各阈值及其来源见 [limits.md](limits.md)，英文的完整表格见 [alerts.md](alerts.md)。

## 守护进程的规则"""
_FLEET = """
## 只有 Prometheus 才能判断的告警"""


def alerts_page_zh(rules: Iterable[Rule], fleet: Iterable[FleetAlert]) -> str:
    lines = [
        made("npu_watchd/chinese.py"),
        _HEAD,
        *table(("告警", "规则", "对象", "级别", "隔离", "下一步", "含义"), (_rule_row(rule) for rule in rules)),
        _FLEET,
        *table(("告警", "对象", "级别", "下一步", "含义"), (_fleet_row(alert) for alert in fleet)),
    ]
    return "\n".join(lines) + "\n"


def _rule_row(rule: Rule) -> tuple[str, ...]:
    return (
        _runbook(rule.alert),
        f"`{rule.id}`",
        "、".join(_SUBJECTS[subject] for subject in SUBJECTS[rule.id]),
        _SEVERITIES[rule.severity.value],
        "是" if rule.quarantines else "否",
        _action(rule.action.value),
        chinese.RULES.get(rule.id, rule.summary),
    )


def _fleet_row(alert: FleetAlert) -> tuple[str, ...]:
    sentence = chinese.FLEET.get(alert.alert, alert.summary)
    severity = _SEVERITIES[alert.severity]
    return _runbook(alert.alert), _SUBJECTS[alert.subject], severity, _action(alert.action), sentence


def _action(action: str) -> str:
    return f"{chinese.ACTIONS.get(action, '')}（`{action}`）"


def _runbook(alert: str) -> str:
    return f"[{alert}](runbooks/{alert}.md)"
