"""People decide over the unix socket, the gate follows at once, and neither kill -9 nor a lost disk forgets it."""

from __future__ import annotations

import json
import signal
import socket
import sqlite3
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from npu_watchd import control
from tests.e2e.fake_tool import FakeTool
from tests.e2e.harness import Daemon, command, running, until
from tests.e2e.small_node import HURRIED, ILL, SMALL, database, with_errors


@pytest.fixture
def ill(tool: FakeTool) -> Iterator[tuple[FakeTool, Daemon]]:
    """Device 1 has two uncorrectable errors, and is in quarantine for them."""
    tool.write_config(HURRIED)
    tool.shows(with_errors(double_bit=2))
    with running(tool.config) as daemon:
        until(lambda: _state(daemon, ILL) == "quarantine", "the verdict")
        yield tool, daemon


def _verdict(daemon: Daemon, whom: str) -> dict[str, Any]:
    verdicts = json.loads(daemon.get("/api/v1/verdicts").body)["verdicts"]
    return next(one for one in verdicts if whom in (one["device_id"], one["subject"]))


def _state(daemon: Daemon, whom: str) -> str:
    return str(_verdict(daemon, whom)["state"])


def _checked(tool: FakeTool, *words: str) -> tuple[int, str]:
    said = command("check", "--config", tool.config, *words)
    return said.code, said.out.strip()


def test_a_device_is_released_once_it_is_mended_and_the_gate_follows_at_once(ill: tuple[FakeTool, Daemon]) -> None:
    tool, daemon = ill
    assert _checked(tool) == (2, "quarantine: device 1: 2 uncorrectable HBM errors since its last reset")
    assert _checked(tool, "--device", "0") == (0, "healthy")
    assert daemon.page().value("npu_watchd_device_verdict", device_id=ILL, state="quarantine") == 1
    refused = command("release", "device", ILL, "--reason", "hope", "--config", tool.config)
    assert refused.code == 1
    assert refused.err.startswith("refused: what quarantined it is there: device 1: 2 uncorrectable HBM errors")
    tool.shows(SMALL)
    until(lambda: daemon.finding("hbm_double_bit") is None, "the errors are gone")
    assert _checked(tool)[0] == 2
    assert _verdict(daemon, ILL)["held"]
    done = command("release", "device", ILL, "--reason", "reset, two hours of tests", "--config", tool.config)
    assert (done.code, done.out) == (0, "device 1: released, now on probation\n")
    until(lambda: _checked(tool)[0] == 1, "the gate")
    assert _checked(tool, "--gate", "quarantine")[0] == 0
    line = daemon.journal("decided_release")[0]
    assert line["text"] == "device 1: released, now on probation, by root: reset, two hours of tests"
    until(lambda: daemon.finding("quarantine") is None, "the alert is over")


def test_a_decision_and_a_quarantine_outlive_kill_9_and_a_lost_database(ill: tuple[FakeTool, Daemon]) -> None:
    tool, daemon = ill
    forced = command("release", "device", ILL, "--reason", "known", "--force", "--config", tool.config)
    assert forced.out == (
        "device 1: released, now on probation\n"
        "  in spite of: device 1: 2 uncorrectable HBM errors since its last reset\n"
    )
    command("quarantine", "device", "2", "--reason", "smells of smoke", "--config", tool.config)
    until(lambda: _state(daemon, "2") == "quarantine", "a person's word")
    until(lambda: _kept(tool, "smells of smoke"), "it is on the disk")
    daemon.process.kill()
    daemon.wait()
    assert _checked(tool)[0] == 2, "the gate answers while the daemon is being started anew"
    with running(tool.config) as second:
        second.shows(lambda page: page.value("npu_devices_present") == 3, "it watches again")
        assert [_state(second, whom) for whom in (ILL, "2")] == ["probation", "quarantine"]
        second.stop(signal.SIGKILL)
    database(tool).write_bytes(b"rubbish" * 1000)
    for ending in ("-wal", "-shm"):
        Path(f"{database(tool)}{ending}").unlink(missing_ok=True)
    with running(tool.config) as third:
        third.shows(lambda page: page.value("npu_devices_present") == 3, "it watches again")
        assert [_state(third, whom) for whom in (ILL, "2")] == ["probation", "quarantine"]
        assert third.event("verdicts_from_file")["count"] == 2


def _kept(tool: FakeTool, words: str) -> bool:
    db = sqlite3.connect(f"file:{database(tool)}?mode=ro", uri=True)
    try:
        rows = db.execute("SELECT value FROM meta WHERE key = 'verdicts'").fetchall()
    finally:
        db.close()
    return any(words in row[0] for row in rows)


def test_the_socket_is_for_its_group_and_a_bad_client_costs_nobody_else(ill: tuple[FakeTool, Daemon]) -> None:
    tool, daemon = ill
    run = tool.directory / "run"
    assert stat.S_IMODE((run / control.NAME).stat().st_mode) == 0o660
    idle = [socket.socket(socket.AF_UNIX) for _ in range(20)]
    for client in idle:
        client.connect(str(run / control.NAME))
        client.close()
    with socket.socket(socket.AF_UNIX) as slow:
        slow.connect(str(run / control.NAME))
        answer = control.ask(run, {"order": "look", "subject": "node"})
        assert answer["verdict"]["state"] == "quarantine"
    for rubbish in (b"\n", b"{}\n", b'{"order": "release", "nonsense": 1}\n', b"\xff" * 60_000 + b"\n"):
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(10)
            client.connect(str(run / control.NAME))
            client.sendall(rubbish)
            client.shutdown(socket.SHUT_WR)
            said = b"".join(iter(lambda client=client: client.recv(65536), b""))  # type: ignore[misc]
        assert json.loads(said)["accepted"] is False
    refused = control.ask(run, {"order": "release", "subject": "77", "reason": "x"})
    assert refused["text"].startswith("'77' is not known here; known are node, 0, 1, 2")
    assert "a reason is needed" in control.ask(run, {"order": "release", "subject": ILL})["text"]
    stale = control.ask(run, {"order": "release", "subject": ILL, "reason": "x", "force": True, "seen": 1})
    assert stale["text"].startswith("the state has changed since you looked: device 1 is quarantine")
    assert daemon.events("control_request_failed") == []


def test_an_ack_and_a_maintenance_say_who_and_until_when(ill: tuple[FakeTool, Daemon]) -> None:
    tool, daemon = ill
    unknown = command("ack", "NpuOpticsDegraded", "--for", "4h", "--reason", "x", "--config", tool.config)
    assert unknown.code == 1
    assert "there is NpuMemoryUncorrectableErrors/1, NpuQuarantineRecommended/1" in unknown.err
    done = command(
        "ack", "NpuMemoryUncorrectableErrors", "--for", "4h", "--reason", "ticket 7", "--config", tool.config
    )
    assert (done.code, done.out) == (
        0,
        "NpuMemoryUncorrectableErrors of device 1: acknowledged; it stands until it is mended\n",
    )
    assert "amtool silence add alertname=NpuMemoryUncorrectableErrors node=e2e device_id=1 -d 4h" in done.err
    until(
        lambda: (daemon.finding("hbm_double_bit") or {})["acknowledged"] == "by root: ticket 7", "who has taken it on"
    )
    done = command("maintenance", "device", "0", "--for", "2h", "--reason", "fan", "--config", tool.config)
    assert done.code == 0
    until(lambda: _state(daemon, "0") == "unknown", "nobody may rely on it")
    assert " by root: fan" in _verdict(daemon, "0")["reasons"][0]["text"]
    command("maintenance", "device", "0", "--over", "--config", tool.config)
    until(lambda: _state(daemon, "0") == "healthy", "it is over")


def test_a_second_daemon_does_not_start_and_the_first_goes_on(ill: tuple[FakeTool, Daemon]) -> None:
    tool, daemon = ill
    second = command("run", "--config", tool.config)
    assert second.code == 1
    assert f"another npu-watchd (pid {daemon.process.pid}) is at work; stop it first" in second.err
    assert _state(daemon, ILL) == "quarantine"


def test_without_a_daemon_the_commands_say_so_and_check_can_look_for_itself(tool: FakeTool) -> None:
    tool.write_config(HURRIED)
    tool.shows(with_errors(double_bit=2))
    refused = command("release", "device", ILL, "--reason", "x", "--config", tool.config)
    assert refused.code == 1
    assert "no daemon listens at" in refused.err
    assert _checked(tool) == (3, "unknown: no daemon runs here; start it with: systemctl start npu-watchd")
    assert _checked(tool, "--live") == (2, "quarantine: device 1: 2 uncorrectable HBM errors since its last reset")
    assert _checked(tool, "--live", "--device", "0") == (0, "healthy")
