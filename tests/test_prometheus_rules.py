"""deploy/prometheus and deploy/alertmanager, by the programs that will read them."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from npu_watchd.catalogue import CATALOGUE
from npu_watchd.limits import LIMITS
from npu_watchd.reference.fleet_alerts import FLEET_ALERTS
from npu_watchd.reference.prometheus_rules import LABELS, rule_expression
from npu_watchd.rules import RULES

DEPLOY = Path(__file__).parents[1] / "deploy"
RULES_FILE = DEPLOY / "prometheus" / "npu-watchd.rules.yml"
TESTS_FILE = DEPLOY / "prometheus" / "npu-watchd.rules.test.yml"
ALERTMANAGER = DEPLOY / "alertmanager" / "alertmanager.yml"
SCRAPES = sorted((DEPLOY / "prometheus").glob("scrape-*.yml"))


def tool(name: str, *arguments: str | Path) -> tuple[int, str]:
    """Exit code, and all that it said."""
    program = shutil.which(name)
    if program is None:
        pytest.skip(f"{name} is not installed: Debian's prometheus has promtool, prometheus-alertmanager has amtool")
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False, timeout=100)
    return done.returncode, done.stdout + done.stderr


def document(file: Path) -> Any:
    return yaml.safe_load(file.read_text(encoding="utf-8"))


def alerts() -> dict[str, Any]:
    return {one["alert"]: one for group in document(RULES_FILE)["groups"] for one in group["rules"] if "alert" in one}


def test_promtool_finds_nothing_wrong_with_the_rules() -> None:
    code, said = tool("promtool", "check", "rules", "--lint=all", "--lint-fatal", RULES_FILE)
    assert code == 0, said


def test_the_unit_tests_of_the_rules_pass() -> None:
    code, said = tool("promtool", "test", "rules", TESTS_FILE)
    assert code == 0, said


def test_every_alert_has_a_unit_test_that_fires_it_and_one_that_does_not() -> None:
    fired: set[str] = set()
    quiet: set[str] = set()
    for test in document(TESTS_FILE)["tests"]:
        for one in test.get("alert_rule_test", ()):
            (fired if one["exp_alerts"] else quiet).add(one["alertname"])
    assert fired == quiet == alerts().keys()


def test_each_rule_is_one_alert_on_one_line() -> None:
    assert list(alerts()) == [*(rule.alert for rule in RULES), *(one.alert for one in FLEET_ALERTS)]
    for rule in RULES:
        assert f'npu_watchd_finding_active{{rule="{rule.id}"}}' in rule_expression(rule)
        assert f"        expr: '{rule_expression(rule)}'" in RULES_FILE.read_text().splitlines()


def test_an_alert_of_a_rule_has_the_labels_of_the_push_and_takes_severity_from_the_series() -> None:
    assert LABELS == ("node", "severity", "device_id", "rdma_device", "port")
    for rule in RULES:
        assert alerts()[rule.alert]["expr"].startswith("max by (node, severity, device_id, rdma_device, port) (")
        assert "labels" not in alerts()[rule.alert]


def test_the_daemon_exports_what_the_rules_read() -> None:
    labels = {family.name: family.labels for family in CATALOGUE}
    assert labels["npu_watchd_finding_active"] == ("rule", *(label for label in LABELS if label != "node"))
    assert "node" in labels["npu_node_info"]
    named = set(re.findall(r"\bnpu_(?:node|watchd)_\w+(?!\w*:)", RULES_FILE.read_text().partition("groups:")[2]))
    to_come = {"npu_watchd_notification_failures_total", "npu_watchd_runbooks"}
    assert named - to_come <= labels.keys()


def test_no_threshold_of_the_daemon_is_in_the_rules_of_its_findings() -> None:
    for rule in RULES:
        bare = re.sub(r'"[^"]*"', "", alerts()[rule.alert]["expr"])
        assert re.findall(r"\d", bare) == []
        assert "for" not in alerts()[rule.alert]


def test_the_limits_of_prometheus_own_alerts_are_those_that_stand_in_its_rules() -> None:
    for one in FLEET_ALERTS:
        text = str(alerts()[one.alert])
        assert {limit.name for limit in one.limits if f"{limit.default:g}" not in text} == set()
        assert not {limit.name for limit in one.all_limits} & {limit.name for limit in LIMITS}


@pytest.mark.parametrize("file", SCRAPES, ids=lambda file: file.stem)
def test_an_example_of_scraping_is_a_config_that_prometheus_takes(file: Path, tmp_path: Path) -> None:
    config = {"rule_files": [str(RULES_FILE)], **document(file)}
    assert [job["job_name"] for job in config["scrape_configs"]] == ["npu-watchd"]
    whole = tmp_path / "prometheus.yml"
    whole.write_text(yaml.safe_dump(config))
    code, said = tool("promtool", "check", "config", whole)
    if "field kubernetes_sd_configs not found" in said:
        # Debian builds Prometheus without Kubernetes: the rest of the job is checked without it.
        config["scrape_configs"][0].pop("kubernetes_sd_configs")
        whole.write_text(yaml.safe_dump(config))
        code, said = tool("promtool", "check", "config", whole)
    assert code == 0, said


def test_amtool_takes_the_example_of_alertmanager() -> None:
    code, said = tool("amtool", "check-config", ALERTMANAGER)
    assert code == 0, said


@pytest.mark.parametrize(
    ("labels", "receiver"),
    [
        ("alertname=NpuDeviceMissing severity=critical node=node17 device_id=3", "pager"),
        ("alertname=NpuToolWedged severity=critical node=node17", "pager"),
        ("alertname=NpuWatchdDown severity=critical node=node17 instance=10.0.0.17:18910", "pager"),
        ("alertname=NpuFleetQuarantineShare severity=critical", "pager"),
        ("alertname=NpuDeviceOverheating severity=warning node=node17 device_id=3", "tickets"),
        ("alertname=RocePortFlapping severity=warning node=node17 rdma_device=mlx5_0 port=1", "tickets"),
        ("alertname=NpuWatchdNotificationsFailing severity=warning target=http://am1:9093", "tickets"),
        ("alertname=NpuPcieSaturated severity=warning node=node17 device_id=3", "scheduler-ops"),
        ("alertname=NpuJobsContending severity=warning node=node17 device_id=3", "scheduler-ops"),
        ("alertname=NpuHostOutOfMemory severity=critical node=node17", "scheduler-ops"),
    ],
)
def test_an_alert_reaches_who_can_do_something(labels: str, receiver: str) -> None:
    code, said = tool("amtool", "config", "routes", "test", "--config.file", ALERTMANAGER, *labels.split())
    assert (code, said.replace("Warning: --config.file flag overrides the --alertmanager.url.", "").strip()) == (
        0,
        receiver,
    )


def test_the_example_of_alertmanager_names_only_alerts_that_exist_or_that_the_design_promises() -> None:
    promised = {
        "NpuJobsContending",
        "NpuLeftoverProcess",
        "NpuHostContention",
        "NpuHostOutOfMemory",
        "NpuJobDied",
        "NpuVersionMismatch",
    }
    named = set(re.findall(r"\b(?:Npu|Roce)[A-Z]\w+", ALERTMANAGER.read_text()))
    assert named <= alerts().keys() | promised


def test_a_verdict_mutes_the_pages_of_just_those_rules_that_can_quarantine() -> None:
    rules = document(ALERTMANAGER)["inhibit_rules"]
    (one,) = [rule for rule in rules if 'alertname = "NpuQuarantineRecommended"' in rule["source_matchers"]]
    muted = re.findall(r"\b(?:Npu|Roce)\w+", one["target_matchers"][0])
    assert muted == [rule.alert for rule in RULES if rule.quarantines]
    assert one["equal"] == ["node", "device_id"]


def test_every_recorded_series_is_read_by_an_alert_by_the_ranking_or_by_a_test() -> None:
    recorded = [one["record"] for group in document(RULES_FILE)["groups"] for one in group["rules"] if "record" in one]
    readers = "".join(str(one) for group in document(RULES_FILE)["groups"] for one in group["rules"])
    tested = TESTS_FILE.read_text()
    assert [name for name in recorded if readers.count(name) < 2 and name not in tested] == []


def test_every_address_of_the_example_leads_nowhere() -> None:
    addresses = re.findall(r"https?://([^/\s]+)", ALERTMANAGER.read_text())
    assert addresses
    assert all(address.endswith(".example.invalid") for address in addresses)
