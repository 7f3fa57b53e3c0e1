"""SIGHUP: a good config is taken, a bad one changes nothing but what is said of it."""

from __future__ import annotations

import signal
from dataclasses import replace
from typing import Any

from npu_watchd.simnode.state import ErrorCode, NodeState
from tests.e2e.fake_tool import FakeTool, fake_tool, node_at
from tests.e2e.harness import QUICK, Daemon, command, running, until
from tests.e2e.small_node import HURRIED, ILL, SMALL, with_errors

QUIET = node_at("quiet", 0)


def test_sighup_takes_a_good_config(tool: FakeTool) -> None:
    tool.shows(QUIET)
    (tool.directory / "other").mkdir()
    other = fake_tool(tool.directory / "other")
    other.shows(node_at("duo_310p", 0))
    with running(tool.config) as daemon:
        daemon.all_read()
        assert "machine_npu_nums" not in daemon.page().samples
        tool.write_config(f"{QUICK}[metrics]\nnpu_exporter_names = true\n", npu_smi=other.path, node="renamed")
        daemon.process.send_signal(signal.SIGHUP)
        page = daemon.shows(
            lambda page: any(dict(labels)["node"] == "renamed" for labels in page.samples["npu_node_info"]), "the name"
        )
        assert page.value("npu_watchd_config_reload_success") == 1
        assert page.value("machine_npu_nums") in (8, 4), "of the tool before, or of the other one already"
        assert daemon.event("config_reloaded")["file"] == str(tool.config)
        until(other.calls, "the other tool is asked")
        assert daemon.get("/-/ready").status == 200


def test_sighup_with_a_bad_config_keeps_the_last_good_one_and_says_so(tool: FakeTool) -> None:
    tool.shows(QUIET)
    with running(tool.config) as daemon:
        daemon.shows(lambda page: page.value("npu_devices_present") == 8, "eight devices")
        tool.write_config('[engine]\ncicle = "1s"\n', node="renamed")
        daemon.process.send_signal(signal.SIGHUP)
        page = daemon.shows(lambda page: page.value("npu_watchd_config_reload_success") == 0, "it says so")
        assert [dict(labels)["node"] for labels in page.samples["npu_node_info"]] == ["e2e"]
        event = daemon.event("config_reload_failed", level="error")
        assert event["error"].startswith(f"{tool.config}: engine.cicle: unknown key")
        assert daemon.snapshot()["engine"]["config_reload_ok"] is False
        tool.config.unlink()
        daemon.process.send_signal(signal.SIGHUP)
        until(lambda: len(daemon.events("config_reload_failed")) == 2, "a config that is gone is bad too")
        calls = len(tool.calls())
        until(lambda: len(tool.calls()) > calls + 5, "it goes on")
        tool.write_config(QUICK, node="renamed")
        daemon.process.send_signal(signal.SIGHUP)
        page = daemon.shows(lambda page: page.value("npu_watchd_config_reload_success") == 1, "and takes a good one")
        assert daemon.event("config_reloaded")


def test_a_probe_is_switched_off_and_on_by_reload(tool: FakeTool) -> None:
    tool.shows(QUIET)
    with running(tool.config) as daemon:
        daemon.all_read()
        tool.write_config(QUICK.replace('npu_ecc = { every = "1s" }', "npu_ecc = { enabled = false }"))
        daemon.process.send_signal(signal.SIGHUP)
        page = daemon.shows(lambda page: "npu_device_memory_errors_total" not in page.samples, "the counts are gone")
        assert page.by_device("npu_watchd_probe_up", probe="npu_ecc") == {}
        device = daemon.device("0")
        assert device["vital_blind"] is True, "nobody may call it healthy without"
        assert "enabled = false" in device["blind"]["npu_ecc"]["detail"]
        tool.write_config(QUICK)
        daemon.process.send_signal(signal.SIGHUP)
        daemon.shows(lambda page: "npu_device_memory_errors_total" in page.samples, "the counts are back")


def test_what_a_reload_cannot_change_is_named(tool: FakeTool) -> None:
    tool.shows(QUIET)
    with running(tool.config) as daemon:
        tool.write_config(QUICK.replace("tool_share = 1.0", "tool_share = 0.5"))
        daemon.process.send_signal(signal.SIGHUP)
        assert daemon.event("config_needs_restart", level="warning")["key"] == "engine.tool_share"


# Rules


def reload(daemon: Daemon, tool: FakeTool, more: str, event: str) -> dict[str, Any]:
    """Take this config beside the periods; the line of the log that this makes."""
    before = len(daemon.events(event))
    tool.write_config(HURRIED + more)
    daemon.process.send_signal(signal.SIGHUP)
    until(lambda: len(daemon.events(event)) > before, f"{event}; the log: {daemon.lines[-5:]}")
    return daemon.events(event)[-1]


def test_a_limit_that_is_lowered_makes_a_finding_and_one_that_is_bad_changes_nothing(tool: FakeTool) -> None:
    tool.write_config(HURRIED)
    tool.shows(with_errors(single_bit=4))
    with running(tool.config) as daemon:
        daemon.shows(lambda page: "npu_device_memory_errors_total" in page.samples, "the errors are read")
        tool.shows(with_errors(single_bit=14))
        daemon.shows(
            lambda page: page.by_device("npu_device_memory_errors_total", memory="hbm", kind="single_bit")[ILL] == 14,
            "ten more, of twenty that are allowed",
        )
        assert daemon.findings() == []
        reload(daemon, tool, "\n[limits]\nsingle_bit_errors_per_hour = 8\n", "config_reloaded")
        until(lambda: daemon.finding("hbm_single_bit"), "ten are more than eight")
        for bad, said in (
            ("single_bit_errors_per_hour = 0", "limits.single_bit_errors_per_hour: is 0; write a number above 0"),
            ("single_bit_errors_per_hours = 50", 'is no limit; did you mean "single_bit_errors_per_hour"?'),
            ('port_down_s = "soon"', 'limits.port_down_s: "soon" is no duration'),
            ("chip_warning_celsius = 120", "chip_warning_celsius must be below chip_critical_celsius"),
        ):
            event = reload(daemon, tool, f"\n[limits]\n{bad}\n", "config_reload_failed")
            assert said in event["error"]
            daemon.shows(lambda page: page.value("npu_watchd_config_reload_success") == 0, "it says so")
            finding = daemon.finding("hbm_single_bit")
            assert finding is not None
            assert finding["evidence"][0]["limit"] == 4, "half of eight, since it stands"
        reload(daemon, tool, "\n[limits]\nsingle_bit_errors_per_hour = 50\n", "config_reloaded")
        until(lambda: daemon.findings() == [], "ten are less than half of fifty")
        daemon.shows(lambda page: page.value("npu_watchd_config_reload_success") == 1, "it is well")


def test_a_rule_that_is_switched_off_is_over_and_comes_back(tool: FakeTool) -> None:
    tool.write_config(HURRIED)
    tool.shows(with_errors(double_bit=2))
    with running(tool.config) as daemon:
        until(lambda: daemon.finding("hbm_double_bit"), "a finding")
        reload(daemon, tool, '\n[rules]\noff = ["hbm_double_bit"]\n', "config_reloaded")
        until(lambda: daemon.finding("hbm_double_bit") is None, "it is over")
        assert [line["rule"] for line in daemon.journal("finding_resolved")] == ["hbm_double_bit"]
        event = reload(daemon, tool, '\n[rules]\noff = ["hbm_double_bits"]\n', "config_reload_failed")
        assert "hbm_double_bits" in event["error"]
        assert [one["rule"] for one in daemon.findings()] == ["quarantine"], "no switch releases a device"
        reload(daemon, tool, "", "config_reloaded")
        until(lambda: daemon.finding("hbm_double_bit"), "it is back")


def _with_code(code: str) -> NodeState:
    first, second, third = SMALL.cards
    chip = replace(second.chips[0], codes=(ErrorCode(code, "a text"),))
    return replace(SMALL, cards=(first, replace(second, chips=(chip,)), third))


def test_a_bad_file_of_error_codes_keeps_the_last_good_one(tool: FakeTool) -> None:
    codes = tool.directory / "codes.toml"
    more = f'\n[codes]\nfile = "{codes}"\n'
    codes.write_text('[80E01801]\ntier = "separate"\n', encoding="utf-8")
    tool.write_config(HURRIED + more)
    tool.shows(_with_code("80E01801"))
    with running(tool.config) as daemon:
        until(lambda: daemon.finding("error_code"), "a code")
        before = daemon.finding("error_code")
        assert before is not None
        assert (before["severity"], before["quarantines"]) == ("critical", True), "as the site says"
        for bad, said in (
            ('[80E01801]\ntier = "sepparate"\n', "tier"),
            ("[80E01801\n", "no TOML"),
            ("[hello]\nsilent = true\n", "hello"),
        ):
            codes.write_text(bad, encoding="utf-8")
            event = reload(daemon, tool, more, "config_reload_failed")
            assert str(codes) in event["error"]
            assert said in event["error"]
            daemon.shows(lambda page: page.value("npu_watchd_config_reload_success") == 0, "it says so")
            assert daemon.finding("error_code") == before
        codes.write_text("[80E01801]\nsilent = true\n", encoding="utf-8")
        reload(daemon, tool, more, "config_reloaded")
        until(lambda: daemon.finding("error_code") is None, "silent, as the site wants it")
    codes.unlink()
    for asked in (("run",), ("config", "check")):
        said_of_it = command(*asked, "--config", tool.config)
        assert (said_of_it.code, said_of_it.out) == (2, "")
        assert said_of_it.err.startswith(f"npu-watchd: {codes}: cannot be read (No such file or directory)")
