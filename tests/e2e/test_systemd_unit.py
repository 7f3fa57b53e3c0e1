"""The unit of deploy/systemd under a real systemd, on a node that has lost a device."""

from __future__ import annotations

import json
import re
import shutil
import signal
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.container import Container, container
from tests.e2e.harness import until
from tests.e2e.simulated import SimulatedNode, simulated

ROOT = Path(__file__).parents[2]
UNITS = ROOT / "deploy" / "systemd"
UNIT = "npu-watchd"
PROGRAM = "/opt/npu-watchd/bin/npu-watchd"
LIBRARIES = "/opt/npu-watchd/site"
HERE = "[Service]\nWatchdogSec=5\nRestartSec=100ms\nBindReadOnlyPaths={node}\n"
"""Beside the unit: less patience, and sight of a node that lies in /tmp, of which the unit has its own."""
LOST_S = 300.0
"""A second of the scenario at which device 5 has been gone for long."""

_NOTES_WHERE = """#!/bin/sh
readlink /proc/self/ns/mnt > {directory}/where
exec {real} "$@"
"""


@pytest.fixture
def node(tmp_path: Path) -> SimulatedNode:
    """Its npu-smi notes in which mount namespace it was started."""
    node = simulated("device_lost", tmp_path / "node", LOST_S, {"npu_info": "1s"})
    installed = node.directory / "bin" / "npu-smi"
    real = installed.rename(node.directory / "real-npu-smi")
    installed.write_text(_NOTES_WHERE.format(directory=node.directory, real=real))
    installed.chmod(0o755)
    return node


@pytest.fixture
def machine(tmp_path: Path, node: SimulatedNode) -> Iterator[Container]:
    """The unit is installed on it, not started."""
    # Under their own names, whatever the container mounts over /tmp: what the node's tools run on.
    read = [f"--bind-ro={path}" for path in (ROOT, sys.prefix, sys.base_prefix)]
    libraries = f"--bind-ro={sysconfig.get_path('purelib')}:{LIBRARIES}"
    with container(tmp_path, [*read, libraries, f"--bind={node.directory}"]) as machine:
        install(machine.root, node)
        machine.run("systemd-sysusers", "/usr/lib/sysusers.d/npu-watchd.conf")
        machine.run("systemd-tmpfiles", "--create", "npu-watchd.conf")
        machine.run("systemctl", "daemon-reload")
        yield machine


def install(root: Path, node: SimulatedNode) -> None:
    units = root / "etc/systemd/system"
    shutil.copy(UNITS / "npu-watchd.service", units)
    (units / "npu-watchd.service.d").mkdir()
    (units / "npu-watchd.service.d/here.conf").write_text(HERE.format(node=node.directory))
    for kind in ("sysusers", "tmpfiles"):
        shutil.copy(UNITS / f"npu-watchd.{kind}.conf", root / f"usr/lib/{kind}.d/npu-watchd.conf")
    # Not where they are: the unit has a /tmp of its own, and a checkout may lie in the machine's.
    program = root / PROGRAM.lstrip("/")
    program.parent.mkdir(parents=True)
    shutil.copytree(ROOT / "npu_watchd", program.parents[1] / "lib" / "npu_watchd")
    python = Path(sys.executable).resolve()
    program.write_text(f'#!/bin/sh\nPYTHONPATH=/opt/npu-watchd/lib:{LIBRARIES} exec {python} -m npu_watchd "$@"\n')
    program.chmod(0o755)
    # The unit's own folders instead of the node's.
    config = re.sub(r"^(state|runtime)_dir = .*\n", "", node.config.read_text(), flags=re.MULTILINE)
    (root / "etc/npu-watchd").mkdir()
    (root / "etc/npu-watchd/config.toml").write_text(f"{config}\n[limits]\nmissing_polls = 1\n")


def journal(machine: Container) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = json.loads(machine.run(PROGRAM, "events", "--json"))["events"]
    return events


def test_a_stuck_daemon_is_started_again_and_remembers(machine: Container, node: SimulatedNode) -> None:
    machine.run("systemctl", "start", UNIT, check=False)  # comes back when the daemon says that it is ready
    assert machine.property_of(UNIT, "ActiveState") == "active", machine.log_of(UNIT)
    assert machine.property_of(UNIT, "StatusText") == "7 of 8 devices present"
    first = machine.property_of(UNIT, "MainPID")

    # Where it lives, what it may write to there, and where its tools live.
    machine.run("nsenter", "-t", first, "-m", "--", "touch", "/etc/written", check=False)
    assert not (machine.root / "etc/written").exists()
    hosts = machine.run("readlink", "/proc/1/ns/mnt")
    assert machine.run("readlink", f"/proc/{first}/ns/mnt") != hosts
    assert (node.directory / "where").read_text() == hosts
    assert machine.run("stat", "--format=%U:%G %a", "/run/npu-watchd/snapshot.json") == "root:npu-watchd 644\n"

    raised = until(lambda: [event for event in journal(machine) if event["kind"] == "finding_opened"], "a finding")
    assert {event["rule"] for event in raised} == {"device_missing", "quarantine"}
    known = journal(machine)

    machine.run("kill", f"-{signal.SIGSTOP.value}", first)
    until(lambda: machine.property_of(UNIT, "NRestarts") != "0", "systemd loses patience")
    until(lambda: machine.property_of(UNIT, "ActiveState") == "active", "it is ready again")
    log = machine.log_of(UNIT)
    assert "Watchdog timeout" in log
    assert "Fatal Python error: Aborted" in log, "where it stood is in the journal"
    assert machine.property_of(UNIT, "MainPID") != first

    now = journal(machine)
    assert now[: len(known)] == known
    again = [event for event in now[len(known) :] if event["kind"] == "finding_opened"]
    assert again == [], "a finding that was known is not raised a second time"
    assert "device_missing" in machine.run(PROGRAM, "status", "--json", check=False)

    machine.run("systemctl", "stop", UNIT)
    assert machine.property_of(UNIT, "Result") == "success"
    assert machine.run("ls", "/var/lib/npu-watchd").split() == ["daemon.lock", "state.db"]
    left = machine.run("ls", "/run/npu-watchd").split()
    assert "verdict.json" in left, "the gate goes by it while the daemon is started anew"
    assert not {"snapshot.json", "control.sock"} & set(left)
