"""SIGHUP: a good config is taken, a bad one changes nothing but what is said of it."""

from __future__ import annotations

import signal

from tests.e2e.fake_tool import FakeTool, fake_tool, node_at
from tests.e2e.harness import QUICK, running, until

QUIET = node_at("quiet", 0)


def test_sighup_takes_a_good_config(tool: FakeTool) -> None:
    tool.shows(QUIET)
    (tool.directory / "other").mkdir()
    other = fake_tool(tool.directory / "other")
    other.shows(node_at("duo_310p", 0))
    with running(tool.config) as daemon:
        daemon.all_read()
        tool.write_config(QUICK, npu_smi=other.path, node="renamed")
        daemon.process.send_signal(signal.SIGHUP)
        page = daemon.shows(
            lambda page: any(dict(labels)["node"] == "renamed" for labels in page.samples["npu_node_info"]), "the name"
        )
        assert page.value("npu_watchd_config_reload_success") == 1
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
