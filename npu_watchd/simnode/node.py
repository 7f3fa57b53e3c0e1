"""Puts a simulated node on disk: executables, the state they read, and an ordinary configuration that names them."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

import npu_watchd
from npu_watchd.simnode import scenario_file
from npu_watchd.simnode.error_log import FILE as ERROR_LOG
from npu_watchd.simnode.installed import Installed, read, wall_clock, write
from npu_watchd.simnode.silicon import SILICON
from npu_watchd.simnode.tools import TOOLS

NOT_THERE = ("hccn_tool", "ibstat", "rdma", "perf", "pcm_pcie", "scontrol")
"""Tools that the simulated node does not have; its configuration points where nothing is, not at the host's."""


def install(
    scenario: str | Path,
    directory: Path,
    *,
    speed: float = 1.0,
    start: float | None = None,
    at: float = 0.0,
    listen: Sequence[str] = ("127.0.0.1:18910",),
) -> Path:
    """Make DIRECTORY a node on which SCENARIO (a name, or a file) runs, and return its config.toml.

    speed: scenario seconds a second; 0 stops it at `at`. start: the Unix second at which it stands at `at`; None: now.
    Raises ScenarioError for a scenario that cannot be used, OSError where the directory cannot be written.
    """
    loaded = scenario_file.load(scenario)
    directory = directory.resolve()
    for name in ("bin", "sys", "proc", "dev", "state", "run", "log"):
        (directory / name).mkdir(parents=True, exist_ok=True)
    write(directory, Installed(loaded, wall_clock() if start is None else start, at, speed))
    (directory / ERROR_LOG).touch()
    for tool in TOOLS:
        script = directory / "bin" / tool
        script.write_text(_script(tool, directory), encoding="utf-8")
        script.chmod(0o755)
    config = directory / "config.toml"
    chips = loaded.cards * SILICON[loaded.generation].chips_per_card
    config.write_text(_config(loaded.name, chips, directory, listen), encoding="utf-8")
    return config


def set_clock(directory: Path, at: float, *, speed: float = 0.0) -> None:
    """Move an installed node to the scenario's second `at`, and let it stand there (or run on at `speed`)."""
    directory = directory.resolve()
    write(directory, Installed(read(directory).scenario, wall_clock(), at, speed))


def _script(tool: str, directory: Path) -> str:
    """No site-packages (`-S -s`): the tool needs the standard library alone, and starts in a third of the time.

    It carries everything itself, because the daemon gives its tools a bare environment.
    """
    package = Path(npu_watchd.__file__).resolve().parent.parent
    command = [sys.executable, "-S", "-s", "-P", "-m", "npu_watchd.simnode", "tool", tool, str(directory)]
    return f'#!/bin/sh\nPYTHONPATH={shlex.quote(str(package))} exec {shlex.join(command)} "$@"\n'


def _config(name: str, chips: int, directory: Path, listen: Sequence[str]) -> str:
    def text(value: object) -> str:
        # A JSON string is a TOML string.
        return json.dumps(str(value))

    absent = "\n".join(f"{tool} = {text(directory / 'bin' / tool)}" for tool in NOT_THERE)
    return f"""\
# An ordinary configuration: only its paths lead to a simulated node.
[node]
name = {text(f"sim-{name.replace('_', '-')}")}
expected_devices = {chips}

[tools]
npu_smi = {text(directory / "bin" / "npu-smi")}
{absent}

[paths]
sysfs = {text(directory / "sys")}
procfs = {text(directory / "proc")}
dev = {text(directory / "dev")}
state_dir = {text(directory / "state")}
runtime_dir = {text(directory / "run")}
npu_tool_log = {text(directory / ERROR_LOG)}

[web]
listen = [{", ".join(text(address) for address in listen)}]
"""
