"""A slow tool runs no more of the time than the config allows, and what is vital comes first."""

from __future__ import annotations

import time

from npu_watchd.simnode.state import NodeState
from tests.e2e.fake_tool import FakeTool, node_at
from tests.e2e.harness import QUICK, command, running, until

ONE_CARD = NodeState("910B", "25.5.1", "25.5.1", node_at("quiet", 0).cards[:1])


def _share_config(share: float) -> str:
    return QUICK.replace("tool_share = 1.0", f"tool_share = {share}")


def test_a_tool_of_a_third_of_a_second_stays_within_its_twentieth_of_the_time(tool: FakeTool) -> None:
    tool.shows(ONE_CARD)
    tool.behaves("sleep 0.3")
    tool.write_config(_share_config(0.05))
    with running(tool.config) as daemon:
        page = daemon.all_read()
        # Ten probes at these periods want a tool that runs all the time; a twentieth is twenty times rarer.
        stretch = page.value("npu_watchd_period_stretch_ratio")
        assert stretch is not None
        assert stretch > 5
        before, began_s = len(tool.calls()), time.monotonic()
        until(lambda: time.monotonic() > began_s + 6, "six seconds", 20)
        calls, took_s = len(tool.calls()) - before, time.monotonic() - began_s
        # 0.3 s a call and 5 % of the time: one call in 6 s; uncapped, there would be 20.
        assert calls * 0.3 / took_s <= 0.05 * 3.1
        assert daemon.page().states() == {"0": "ok"}, "readings age by the stretched period"
        assert command("status", "--config", tool.config).code == 0


def test_what_tells_whether_a_device_is_well_is_asked_first(tool: FakeTool) -> None:
    tool.shows(ONE_CARD)
    tool.behaves("sleep 0.05")
    with running(tool.config) as daemon:
        daemon.all_read()
    order = list(dict.fromkeys(tool.calls()))
    assert order[:2] == ["info -m", "info"]
    assert set(order[2:4]) == {"info -t health -i 0 -c 0", "info -t ecc -i 0"}


def test_a_quick_tool_keeps_its_periods(tool: FakeTool) -> None:
    tool.shows(ONE_CARD)
    with running(tool.config) as daemon:
        page = daemon.all_read()
        assert page.value("npu_watchd_period_stretch_ratio") == 1
        share = page.value("npu_watchd_tool_share_ratio")
        assert share is not None
        assert 0 < share < 0.2
