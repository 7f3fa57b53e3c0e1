"""The Chinese texts: every rule, alert and action has one, and an alert in Chinese loses nothing of the English one."""

from __future__ import annotations

import re

import pytest

from npu_watchd import chinese
from npu_watchd.model.fabric import PortKey
from npu_watchd.model.finding import Action
from npu_watchd.model.ids import NODE
from npu_watchd.reference.alerts_page_zh import alerts_page_zh
from npu_watchd.reference.fleet_alerts import FLEET_ALERTS
from npu_watchd.reference.prometheus_rules import fleet_annotations, rule_annotations
from npu_watchd.rules import RULES
from npu_watchd.sinks.alertmanager.alert import alert_of
from tests.sinks.alertmanager.build import finding

TO_COME = {"job_died", "version_mismatch"}
"""Rules of DESIGN section 8 whose text is there before them."""
TEXTS = {**chinese.RULES, **chinese.FLEET}
HAN = re.compile(r"[\u4e00-\u9fff]")


@pytest.mark.parametrize("rule", [rule.id for rule in RULES])
def test_every_rule_has_its_chinese_text(rule: str) -> None:
    assert rule in chinese.RULES, f"write what {rule} says into npu_watchd/chinese.py"


def test_there_is_no_text_for_a_rule_that_does_not_exist() -> None:
    assert chinese.RULES.keys() - {rule.id for rule in RULES} <= TO_COME


def test_every_alert_of_the_fleet_has_its_text_and_there_is_no_other() -> None:
    assert chinese.FLEET.keys() == {alert.alert for alert in FLEET_ALERTS}


def test_every_action_has_its_text_and_there_is_no_other() -> None:
    assert chinese.ACTIONS.keys() == {action.value for action in Action} | {alert.action for alert in FLEET_ALERTS}


@pytest.mark.parametrize("name", TEXTS)
def test_a_text_is_one_chinese_sentence(name: str) -> None:
    text = TEXTS[name]
    assert text.endswith("。")
    assert text.count("。") == 1
    assert len(HAN.findall(text)) >= 7
    assert not re.search(r"[,;!?]|\. ", text), "punctuation is Chinese too"


def test_an_alert_in_chinese_has_the_sentence_before_the_english_summary_and_the_same_labels() -> None:
    english, told = alert_of(finding(), "node17"), alert_of(finding(), "node17", language="zh")
    assert told.labels == english.labels
    assert told.annotations == {
        **english.annotations,
        "summary": (
            "设备 3：自上次复位以来，设备内存出现过不可纠正的错误。"
            "（3 uncorrectable memory errors on device 3, limit 1）"
        ),
        "action_zh": "复位设备",
    }


def test_a_port_and_the_node_are_named_in_chinese() -> None:
    down = finding(rule="roce_down", subject=PortKey("mlx5_0", 1), device_id=None, summary="x")
    assert alert_of(down, "n", language="zh").annotations["summary"] == (
        "端口 mlx5_0/1：曾经连通的端口，或配置中应当连通的端口，已断开四分钟。（x）"
    )
    killed = finding(rule="host_oom", subject=NODE, device_id=None, summary="x")
    assert alert_of(killed, "n", language="zh").annotations["summary"].startswith("节点：内核因内存不足")


def test_a_rule_without_a_text_is_told_in_english() -> None:
    assert alert_of(finding(rule="brand_new", summary="x"), "n", language="zh").annotations["summary"] == "x"


def test_the_rules_of_prometheus_have_both_languages() -> None:
    rule = next(rule for rule in RULES if rule.id == "hbm_double_bit")
    assert rule_annotations(rule)["summary_zh"] == (
        "{{ $labels.node }}{{ with $labels.device_id }} 设备 {{ . }}{{ end }}"
        "{{ with $labels.rdma_device }} RDMA 端口 {{ . }}/{{ $labels.port }}{{ end }}"
        "：自上次复位以来，设备内存出现过不可纠正的错误。"
    )
    assert all("summary_zh" in fleet_annotations(alert) for alert in FLEET_ALERTS)


def test_the_chinese_page_has_a_row_an_alert() -> None:
    page = alerts_page_zh(RULES, FLEET_ALERTS)
    assert (
        "| [NpuMemoryUncorrectableErrors](runbooks/NpuMemoryUncorrectableErrors.md) | `hbm_double_bit` | 设备 | 严重 "
        "| 是 | 复位设备（`reset_device`） | 自上次复位以来，设备内存出现过不可纠正的错误。 |"
    ) in page.splitlines()
    alerts = [rule.alert for rule in RULES] + [alert.alert for alert in FLEET_ALERTS]
    assert [alert for alert in alerts if f"[{alert}]" not in page] == []
