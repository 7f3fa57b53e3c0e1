"""A runbook for every alert: four headings, a command to type, its limits as they are, no dead links."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from npu_watchd.config.limit_text import written
from npu_watchd.limits import BY_NAME, LIMITS
from npu_watchd.model.finding import Action
from npu_watchd.reference.fleet_alerts import FLEET_ALERTS, FleetAlert
from npu_watchd.reference.telling import SUBJECTS, VARIES
from npu_watchd.rules import RULES
from npu_watchd.rules.rule import Rule

ROOT = Path(__file__).parents[1]
RUNBOOKS = ROOT / "docs" / "runbooks"
HEADINGS = ["What it means", "Check it yourself", "What to do", "When it ends"]
ALERTS: dict[str, Rule | FleetAlert] = {
    **{rule.alert: rule for rule in RULES},
    **{alert.alert: alert for alert in FLEET_ALERTS},
}

# Of each rule's evidence, what a person types first; the tools' names are those of [tools].
COMMANDS = {
    "NpuDeviceMissing": "npu-smi info -l",
    "NpuDeviceUnhealthy": "npu-smi info -t health -i N",
    "NpuDeviceErrorCode": "npu-smi info -t health -i N -c M",
    "NpuDeviceErrorCodeRepeats": "npu-watchd events --since 24h",
    "NpuMemoryUncorrectableErrors": "npu-smi info -t ecc -i N",
    "NpuMemoryErrorsClimbing": "npu-smi info -t ecc -i N",
    "NpuMemoryPagesIsolated": "npu-smi info -t ecc -i N",
    "NpuDeviceOverheating": "npu-smi info -t memory -i N",
    "NpuPcieLinkDegraded": "cat /sys/bus/pci/devices/0000:c1:00.0/current_link_width",
    "NpuPcieErrorsClimbing": "cat /sys/bus/pci/devices/0000:c1:00.0/aer_dev_fatal",
    "NpuPcieSaturated": "npu-smi info -t proc-mem -i N",
    "RocePortDown": "ibstat mlx5_8 1",
    "RocePortFlapping": "hccn_tool -i 3 -link_stat -g",
    "RocePortSlow": "hccn_tool -i 3 -speed -g",
    "RocePortErrorsClimbing": "hccn_tool -i 3 -stat -g",
    "NpuOpticsDegraded": "hccn_tool -i 3 -optical -g",
    "NpuJobsContending": "cat /proc/PID/cgroup",
    "NpuLeftoverProcess": "fuser -v /dev/davinci3",
    "NpuHcclPortsConflict": "nsenter -t PID -n ss -ltnp 'sport = :60004'",
    "NpuHcclSettingsDiffer": "tr '\\0' '\\n' </proc/PID/environ | grep HCCL_",
    "NpuVisibleDevicesOverlap": "tr '\\0' '\\n' </proc/PID/environ | grep DEVICE",
    "NpuOutsideVisibleDevices": "tr '\\0' '\\n' </proc/PID/environ | grep DEVICE",
    "NpuHostContention": "cat /proc/pressure/cpu",
    "NpuHostOutOfMemory": "grep oom_kill /proc/vmstat",
    "NpuVersionMismatch": "cat /usr/local/Ascend/driver/version.info",
    "NpuToolWedged": "ps -eo pid,stat,wchan:32,args",
    "NpuProbeBlind": "npu-smi info",
    "NpuQuarantineRecommended": "npu-watchd explain device N",
    "NpuWatchdDown": "systemctl status npu-watchd",
    "NpuWatchdAbsent": "curl -s http://PROMETHEUS:9090/api/v1/targets?state=active",
    "NpuWatchdStale": "systemctl status npu-watchd",
    "NpuWatchdClockSkew": "timedatectl",
    "NpuWatchdConfigReloadFailed": "npu-watchd config check",
    "NpuWatchdNotificationsFailing": "journalctl -u npu-watchd -n 20",
    "NpuFleetQuarantineShare": "npu_watchd:quarantine_candidates:share",
}


def page(alert: str) -> str:
    return (RUNBOOKS / f"{alert}.md").read_text(encoding="utf-8")


def section(alert: str, heading: str) -> str:
    return page(alert).partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def action(of: Rule | FleetAlert) -> str:
    return of.action.value if isinstance(of.action, Action) else of.action


def limits(of: Rule | FleetAlert) -> list[str]:
    return [
        written(limit) for limit in (map(BY_NAME.__getitem__, of.limits) if isinstance(of, Rule) else of.all_limits)
    ]


def test_there_is_a_runbook_for_each_alert_and_for_nothing_else() -> None:
    assert {path.stem for path in RUNBOOKS.iterdir()} == ALERTS.keys()


def test_no_two_alerts_have_one_name() -> None:
    assert len(ALERTS) == len(RULES) + len(FLEET_ALERTS)


@pytest.mark.parametrize("alert", ALERTS)
def test_a_runbook_has_its_name_and_four_headings_in_order(alert: str) -> None:
    assert re.findall(r"^#+ (.+)$", page(alert), re.MULTILINE) == [alert, *HEADINGS]


@pytest.mark.parametrize("alert", ALERTS)
def test_a_runbook_has_a_command_and_what_it_may_answer(alert: str) -> None:
    blocks = re.findall(r"^```\n(.*?)\n```$", section(alert, "Check it yourself"), re.MULTILINE | re.DOTALL)
    assert len(blocks) == 2, "the commands, then an excerpt of what they say"
    assert COMMANDS[alert] in blocks[0]
    assert re.search(r"\bKeys?:", section(alert, "Check it yourself"))


@pytest.mark.parametrize("alert", ALERTS)
def test_a_runbook_has_numbered_steps(alert: str) -> None:
    numbers = re.findall(r"^(\d)\. ", section(alert, "What to do"), re.MULTILINE)
    assert numbers == [str(number) for number in range(1, len(numbers) + 1)]
    assert len(numbers) >= 3


@pytest.mark.parametrize("alert", ALERTS)
def test_a_runbook_names_its_action_and_how_bad_it_is(alert: str) -> None:
    head = page(alert).partition("\n## ")[0]
    assert f"`{action(ALERTS[alert])}`" in head
    of = ALERTS[alert]
    assert (of.severity.value if isinstance(of, Rule) else of.severity) in head.lower() or (
        isinstance(of, Rule) and of.id in VARIES
    )


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_a_runbook_says_whether_the_alert_quarantines(rule: Rule) -> None:
    assert ("does not quarantine" in page(rule.alert).partition("\n## ")[0]) != rule.quarantines


@pytest.mark.parametrize("alert", ALERTS)
def test_a_runbook_names_its_limits_as_they_are_and_no_others(alert: str) -> None:
    names = [*BY_NAME, *(limit.name for of in FLEET_ALERTS for limit in of.all_limits)]
    told = re.findall(rf"`((?:{'|'.join(names)}) = [^`]+)`", section(alert, "When it ends"))
    assert sorted(told) == sorted(limits(ALERTS[alert]))


@pytest.mark.parametrize("alert", ALERTS)
def test_a_runbook_says_how_to_silence_just_this(alert: str) -> None:
    assert f"amtool silence add alertname={alert}" in section(alert, "When it ends")


@pytest.mark.parametrize("file", sorted((ROOT / "docs").rglob("*.md")), ids=lambda file: file.stem)
def test_no_link_of_the_docs_is_dead(file: Path) -> None:
    links = re.findall(r"\]\((?!https?://)([^)#]+)", file.read_text(encoding="utf-8"))
    assert [link for link in links if not (file.parent / link).exists()] == []


def test_every_limit_is_some_rules() -> None:
    assert {limit.name for limit in LIMITS} == {name for rule in RULES for name in rule.limits}


def test_every_rule_has_a_subject() -> None:
    assert SUBJECTS.keys() == {rule.id for rule in RULES}
    assert VARIES.keys() <= SUBJECTS.keys()
