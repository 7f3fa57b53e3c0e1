"""Start, stop and death of the real process, and what it leaves behind."""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from npu_watchd.simnode import scenario_file
from tests.e2e.fake_tool import FakeTool, node_at
from tests.e2e.harness import (
    QUICK,
    Daemon,
    Running,
    children_of,
    command,
    launch,
    processes_below,
    running,
    until,
)

QUIET = node_at("quiet", 0)
HANGS = "trap '' TERM INT HUP; while :; do sleep 100; done"


# The demo


def test_the_demo_prints_its_address_and_is_ready_within_half_a_minute(tmp_path: Path) -> None:
    began_s = time.monotonic()
    process = launch("demo", "--port", "0", env={"TMPDIR": str(tmp_path)})
    assert process.stdout is not None
    with Daemon(process) as daemon:
        line = process.stdout.readline().decode()
        assert line.startswith(f"npu-watchd serves a simulated node at {daemon.url} ")
        assert f"{daemon.url}metrics" in line
        daemon.ready(30)
        assert time.monotonic() - began_s < 30
        page = daemon.shows(lambda page: list(page.states().values()) == ["ok"] * 8, "eight devices are ok")
        assert page.value("npu_devices_present") == 8
        code, took_s = daemon.stop()
    assert (code, took_s < 5) == (0, True)
    assert processes_below(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


def test_the_demo_lists_its_scenarios_and_refuses_others() -> None:
    said = command("demo", "--list")
    assert said.code == 0
    assert [line.split()[0] for line in said.out.splitlines()] == list(scenario_file.names())
    refused = command("demo", "--scenario", "no-such", "--port", "0")
    assert (refused.code, refused.out) == (2, "")
    assert "no-such" in refused.err
    assert "Traceback" not in refused.err


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_who_sees_the_address_may_stop_it_at_once(tmp_path: Path, number: signal.Signals) -> None:
    process = launch("demo", "--port", "0", env={"TMPDIR": str(tmp_path)})
    assert process.stdout is not None
    with Running(process) as daemon:
        process.stdout.readline()
        code, took_s = daemon.stop(number)
    assert (code, took_s < 5) == (0, True)
    assert list(tmp_path.iterdir()) == []


# Signals


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_hanging_tool_delays_no_stop_and_does_not_outlive_it(tool: FakeTool, number: signal.Signals) -> None:
    tool.shows(QUIET)
    with running(tool.config) as daemon:
        daemon.shows(lambda page: page.value("npu_devices_present") == 8, "eight devices")
        tool.behaves(HANGS)
        until(
            lambda: any("sleep" in line or "npu-smi" in line for line in processes_below(tool.path)), "the tool hangs"
        )
        code, took_s = daemon.stop(number)
    assert (code, took_s < 5) == (0, True)
    assert processes_below(tool.directory) == []
    assert daemon.events("stopped")


def test_a_second_signal_while_it_stops_changes_nothing(tool: FakeTool) -> None:
    tool.behaves(HANGS)
    with Daemon(launch("run", "--config", tool.config)) as daemon:
        assert daemon.url
        until(lambda: processes_below(tool.path), "the tool runs")
        daemon.process.send_signal(signal.SIGTERM)
        for _ in range(3):
            if daemon.process.poll() is None:
                daemon.process.send_signal(signal.SIGTERM)
            time.sleep(0.1)
        assert daemon.wait() == 0


def test_no_zombie_is_left_while_it_runs(tool: FakeTool) -> None:
    tool.shows(QUIET)
    with running(tool.config) as daemon:
        daemon.all_read()
        pid = daemon.process.pid
        until(lambda: children_of(pid) == [], "between two calls there is no child")
        assert len(tool.calls()) > 40


def test_after_kill_9_a_new_one_starts_on_the_same_port_and_files(tool: FakeTool) -> None:
    tool.shows(QUIET)
    with running(tool.config) as daemon:
        port = daemon.port
        daemon.shows(lambda page: page.value("npu_devices_present") == 8, "eight devices")
        daemon.stop(signal.SIGKILL)
    assert (tool.directory / "run" / "snapshot.json").exists()
    text = tool.config.read_text(encoding="utf-8").replace("127.0.0.1:0", f"127.0.0.1:{port}")
    tool.config.write_text(text, encoding="utf-8")
    with running(tool.config) as daemon:
        assert daemon.port == port
        daemon.shows(lambda page: list(page.states().values()) == ["ok"] * 8, "eight devices are ok")
        assert command("status", "--config", tool.config).code == 0


def test_what_a_dead_daemon_left_is_stale_after_a_minute(tool: FakeTool) -> None:
    tool.shows(QUIET)
    with running(tool.config) as daemon:
        daemon.all_read()
        daemon.shows(lambda page: list(page.states().values()) == ["ok"] * 8, "eight devices are ok")
        assert command("status", "--config", tool.config).code == 0
        daemon.stop(signal.SIGKILL)
    file = tool.directory / "run" / "snapshot.json"
    at, rest = file.read_text(encoding="utf-8").split(",", 1)
    assert at.startswith('{"at":')
    file.write_text(f'{{"at":{time.time() - 61},{rest}', encoding="utf-8")
    said = command("status", "--config", tool.config)
    assert said.code == 3
    assert "STALE: the daemon last wrote this 6" in " ".join(said.out.split())


# Ports


def test_a_port_that_is_taken_is_refused_with_its_holder(tool: FakeTool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as holder:
        port = holder.getsockname()[1]
        text = tool.config.read_text(encoding="utf-8").replace("127.0.0.1:0", f"127.0.0.1:{port}")
        tool.config.write_text(text, encoding="utf-8")
        said = command("run", "--config", tool.config)
    assert (said.code, said.out) == (1, "")
    assert f"127.0.0.1:{port}" in said.err
    assert str(os.getpid()) in said.err
    assert tool.calls() == [], "nothing was asked"


# systemd


@pytest.fixture
def notify_socket() -> Iterator[socket.socket]:
    """A path of its own: a socket's is at most 107 bytes long."""
    with (
        tempfile.TemporaryDirectory() as directory,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener,
    ):
        listener.bind(f"{directory}/notify")
        listener.settimeout(15)
        yield listener


def test_systemd_is_told_ready_alive_and_stopping(tool: FakeTool, notify_socket: socket.socket) -> None:
    tool.shows(QUIET)
    with Daemon(launch("run", "--config", tool.config, env={"NOTIFY_SOCKET": notify_socket.getsockname()})) as daemon:
        first = notify_socket.recv(4096).decode().splitlines()
        assert "READY=1" in first
        assert daemon.get("/-/ready").status == 200, "ready is said when it is true"
        fed = 0
        while fed < 3:
            lines = notify_socket.recv(4096).decode().splitlines()
            assert "READY=1" not in lines
            fed += "WATCHDOG=1" in lines
        daemon.process.send_signal(signal.SIGTERM)
        until(lambda: "STOPPING=1" in notify_socket.recv(4096).decode().splitlines() or None, "STOPPING=1")
        assert daemon.wait() == 0


def test_the_watchdog_is_fed_while_the_tool_hangs(tool: FakeTool, notify_socket: socket.socket) -> None:
    """The daemon is well when the driver is not: to restart it would help nobody."""
    tool.shows(QUIET)
    with Daemon(launch("run", "--config", tool.config, env={"NOTIFY_SOCKET": notify_socket.getsockname()})) as daemon:
        notify_socket.recv(4096)
        tool.behaves(HANGS)
        until(lambda: any("npu-smi" in line for line in processes_below(tool.path)), "the tool hangs")
        longest_s, since_s = 0.0, time.monotonic()
        for _ in range(15):
            assert "WATCHDOG=1" in notify_socket.recv(4096).decode().splitlines()
            longest_s, since_s = max(longest_s, time.monotonic() - since_s), time.monotonic()
        assert longest_s < 5
        assert daemon.process.poll() is None


# Disk


def test_a_runtime_directory_that_cannot_be_made_costs_the_file_and_one_line(tool: FakeTool) -> None:
    tool.shows(QUIET)
    (tool.directory / "run").rmdir()
    (tool.directory / "run").write_text("in the way", encoding="utf-8")
    with running(tool.config) as daemon:
        daemon.shows(lambda page: page.value("npu_devices_present") == 8, "eight devices")
        event = daemon.event("snapshot_file_failed", level="warning")
        assert str(tool.directory / "run") in event["error"]
        at = daemon.snapshot()["at"]
        until(lambda: daemon.snapshot()["at"] > at + 1, "some more cycles")
        assert len(daemon.events("snapshot_file_failed")) == 1
        assert command("status", "--config", tool.config).code == 3
        (tool.directory / "run").unlink()
        daemon.event("snapshot_file_back")
        assert command("status", "--config", tool.config).code in (0, 3)
        code, _ = daemon.stop()
    assert code == 0


def test_a_full_disk_costs_the_file_and_one_line_and_leaves_the_last_good_one_whole(tool: FakeTool) -> None:
    """A limit on file sizes fails as a full disk does: in the middle of a write."""
    tool.shows(QUIET)
    file = tool.directory / "run" / "snapshot.json"
    with running(tool.config) as daemon:
        daemon.all_read()
        _, hard = resource.prlimit(daemon.process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(daemon.process.pid, resource.RLIMIT_FSIZE, (1000, hard))
        daemon.event("snapshot_file_failed", level="warning")
        whole = file.read_text(encoding="utf-8")
        assert whole.startswith('{"at":')
        assert whole.endswith("}")
        daemon.page()
        resource.prlimit(daemon.process.pid, resource.RLIMIT_FSIZE, (hard, hard))
        daemon.event("snapshot_file_back")
        assert len(daemon.events("snapshot_file_failed")) == 1
        until(lambda: file.read_text(encoding="utf-8") != whole, "it is written again")


# Quiet


def test_on_a_quiet_node_there_is_not_one_line_after_the_first(tool: FakeTool) -> None:
    tool.shows(QUIET)
    with running(tool.config) as daemon:
        daemon.all_read()
        daemon.shows(lambda page: list(page.states().values()) == ["ok"] * 8, "eight devices are ok")
        lines = len(daemon.lines)
        at = daemon.snapshot()["at"]
        until(lambda: daemon.snapshot()["at"] > at + 2, "ten more cycles")
        assert daemon.lines[lines:] == []


# The cycle


def test_a_count_that_climbs_is_judged_at_once_however_long_the_cycle(tool: FakeTool) -> None:
    tool.shows(QUIET)
    tool.write_config(QUICK.replace('cycle = "200ms"', 'cycle = "10m"'))
    with running(tool.config) as daemon:
        until(lambda: tool.calls().count("info -t ecc -i 7") >= 2, "all counts were read")
        tool.shows(node_at("double_bit_then_reset", 130))

        def found() -> bool:
            findings = json.loads(daemon.get("/api/v1/findings").body)["findings"]
            return ("hbm_double_bit", "3") in {(finding["rule"], finding["device_id"]) for finding in findings}

        until(found, "the error is found")
