"""Alertmanagers in trouble, and the daemon that goes on beside them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e.fake_tool import FakeTool, fake_tool
from tests.e2e.harness import Daemon, running, until
from tests.e2e.small_node import HURRIED, with_errors
from tests.sinks.alertmanager.servers import answers, closed_port, hangs, serving


@pytest.fixture
def tool(tmp_path: Path) -> FakeTool:
    """A small node's npu-smi."""
    small = fake_tool(tmp_path)
    small.write_config(HURRIED)
    return small


def test_alertmanagers_that_are_dead_slow_broken_or_elsewhere_cost_no_cycle_anything(tool: FakeTool) -> None:
    with (
        serving(answers()) as good,
        serving(hangs) as slow,
        serving(answers("503 Service Unavailable")) as broken,
        serving(answers()) as elsewhere,
        serving(answers("302 Found", Location=f"{elsewhere.url}/api/v2/alerts")) as moved,
    ):
        dead = f"http://127.0.0.1:{closed_port()}"
        urls = {"good": good.url, "slow": slow.url, "broken": broken.url, "moved": moved.url, "dead": dead}
        tool.write_config(f"{HURRIED}\n[alertmanager]\nurls = {json.dumps(list(urls.values()))}\n")
        tool.shows(with_errors(double_bit=2))
        with running(tool.config) as daemon:
            slow.wait_for(bool)
            paces = [pace(daemon)]

            def cycled() -> bool:
                newest = pace(daemon)
                if newest != paces[-1]:
                    paces.append(newest)
                return len(paces) > 12

            until(cycled, "cycle after cycle passes while one of them keeps us waiting")
            assert len(slow.requests) == 1, "and it has not answered in all that time"
            assert max(duration for _, duration in paces) < 1.0
            for name in ("slow", "broken", "moved", "dead"):
                target = urls[name].removeprefix("http://")
                daemon.shows(
                    lambda page, target=target: (
                        (  # type: ignore[misc]
                            page.value("npu_watchd_notification_failures_total", target=target) or 0
                        )
                        >= 1
                    ),
                    f"failures of the one that is {name}",
                )
                assert daemon.event("alertmanager_failing", level="warning", target=target)["detail"]
            page = daemon.page()
            assert page.value("npu_watchd_notification_failures_total", target=good.url.removeprefix("http://")) == 0
            assert good.requests[0].alerts[0]["labels"]["alertname"] == "NpuMemoryUncorrectableErrors"
            assert elsewhere.requests == [], "nobody is sent our alerts but those in the config"


def pace(daemon: Daemon) -> tuple[float, float]:
    """When the newest cycle was, and how long the one before took."""
    page = daemon.page()
    at = page.value("npu_watchd_cycle_timestamp_seconds")
    assert at is not None
    return at, page.value("npu_watchd_cycle_duration_seconds") or 0.0
