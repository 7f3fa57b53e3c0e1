"""deploy/prometheus/npu-watchd.rules.test.yml: unit tests for promtool."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from npu_watchd import chinese
from npu_watchd.reference.fleet_alerts import JOB
from npu_watchd.reference.prometheus_rules import VALUES, in_chinese, quoted
from npu_watchd.reference.telling import DEVICE, PORT, SUBJECTS
from npu_watchd.rules.rule import Rule

_FLEET_TESTS = Path(__file__).with_name("fleet_tests.yml")
"""Written by hand."""
_TARGET = f'instance="10.0.0.17:18910", job="{JOB}"'
_NODE_INFO = f'npu_node_info{{node="node17", driver="25.2.2", npu_smi="25.2.2", {_TARGET}}}'
_OF = {DEVICE: {"device_id": "3"}, PORT: {"rdma_device": "mlx5_0", "port": "1"}}
_WHOM = {DEVICE: "node17, device 3", PORT: "node17, RDMA port mlx5_0/1"}
_WHOM_ZH = {DEVICE: "node17 设备 3", PORT: "node17 RDMA 端口 mlx5_0/1"}

_HEAD = """\
# Made by `npu-watchd reference`: one test a rule of the daemon from npu_watchd/rules/, and the tests of
# npu_watchd/reference/fleet_tests.yml as they are. Run: promtool test rules npu-watchd.rules.test.yml
rule_files:
  - npu-watchd.rules.yml
evaluation_interval: 1m
tests:
"""


def tests_file(rules: Iterable[Rule]) -> str:
    """Each rule fires for each kind of subject with exactly these labels, and ends with its series."""
    lines = [line for rule in rules for subject in SUBJECTS[rule.id] for line in _test(rule, subject)]
    return _HEAD + "\n".join(lines) + "\n" + _FLEET_TESTS.read_text(encoding="utf-8")


def _test(rule: Rule, subject: str) -> Iterator[str]:
    own = _OF.get(subject, {})
    severity = rule.severity.value
    labels = ", ".join(f'{key}="{text}"' for key, text in {"rule": rule.id, "severity": severity, **own}.items())
    yield f"  # {rule.id}, of a {subject}."
    yield "  - interval: 1m"
    yield "    input_series:"
    yield from _series(f"up{{{_TARGET}}}", "1x8")
    yield from _series(_NODE_INFO, "1x8")
    yield from _series(f"npu_watchd_finding_active{{{labels}, {_TARGET}}}", "_ 1x3 stale")
    yield "    alert_rule_test:"
    yield from _expected(rule.alert, "0s", None)
    yield from _expected(rule.alert, "3m", _fired(rule, subject, {"node": "node17", "severity": severity, **own}))
    yield from _expected(rule.alert, "5m", None)


def _series(name: str, values: str) -> Iterator[str]:
    yield f"      - series: {quoted(name)}"
    yield f"        values: {quoted(values)}"


def _fired(rule: Rule, subject: str, labels: Mapping[str, str]) -> tuple[Mapping[str, str], Mapping[str, str]]:
    annotations = {
        "summary": f"{_WHOM.get(subject, 'node17')}: {rule.summary}",
        **in_chinese(_WHOM_ZH.get(subject, "node17"), chinese.RULES.get(rule.id)),
        "action": rule.action.value,
        "values": VALUES,
        "runbook_url": f"docs/runbooks/{rule.alert}.md",
    }
    return labels, annotations


def _expected(alert: str, at: str, fired: tuple[Mapping[str, str], Mapping[str, str]] | None) -> Iterator[str]:
    if fired is None:
        yield f"      - {{ eval_time: {at}, alertname: {alert}, exp_alerts: [] }}"
        return
    labels, annotations = fired
    yield f"      - eval_time: {at}"
    yield f"        alertname: {alert}"
    yield "        exp_alerts:"
    yield "          - exp_labels:"
    yield from (f"              {key}: {quoted(text)}" for key, text in labels.items())
    yield "            exp_annotations:"
    yield from (f"              {key}: {quoted(text)}" for key, text in annotations.items())
