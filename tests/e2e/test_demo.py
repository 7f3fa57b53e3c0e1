"""The demo tells a person where to look, and an Alertmanager what it finds."""

from __future__ import annotations

from pathlib import Path

from tests.e2e.harness import Daemon, command, launch, until
from tests.sinks.alertmanager.debian import alertmanager

ILL = """
title = "Ill from the beginning"
description = "Device 1 has had errors that could not be corrected."
generation = "910B3"
tool_version = "25.5.1"
cards = 2

[[at]]
t = 0
device = 1
hbm.double_bit = 3
"""


def test_the_demo_says_where_findings_are_and_sends_them_to_alertmanager(tmp_path: Path) -> None:
    scenario = tmp_path / "ill.toml"
    scenario.write_text(ILL, encoding="utf-8")
    with alertmanager(tmp_path / "alertmanager") as server:
        process = launch("demo", "--scenario", scenario, "--port", "0", "--alertmanager", server.url)
        assert process.stdout is not None
        with Daemon(process) as daemon:
            said = [process.stdout.readline().decode().rstrip() for _ in range(3)]
            assert said[1:] == [
                f"What is found wrong stands on that page, and at {daemon.url}api/v1/findings",
                f"Alerts go to {server.url}",
            ]

            def alerted() -> bool:
                return ("NpuMemoryUncorrectableErrors", "1") in {
                    (labels["alertname"], labels.get("device_id")) for labels in server.labels()
                }

            until(alerted, "Alertmanager knows of device 1")
            assert b"3 uncorrectable HBM errors" in daemon.get("/api/v1/findings").body


def test_the_demo_refuses_what_is_no_address_of_an_alertmanager() -> None:
    refused = command("demo", "--port", "0", "--alertmanager", "am1:9093/api/v2/alerts")
    assert (refused.code, refused.out) == (2, "")
    assert "alertmanager.urls" in refused.err
    assert "http://am1:9093" in refused.err
