"""Puts a simulated node on disk: executables, the state they read, sysfs and procfs, and an ordinary configuration.

The executables look at the clock when they are called. The trees are files, so somebody must bring them up to date:
`keep_fresh` in a thread of whoever runs the node (the demo), or `refresh` now and then.
"""

from __future__ import annotations

import json
import shlex
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import npu_watchd
from npu_watchd.simnode import holders, kernel_log, procfs, scenario_file, software
from npu_watchd.simnode.error_log import FILE as ERROR_LOG
from npu_watchd.simnode.installed import NODE_FILE, Installed, read, to_text, wall_clock
from npu_watchd.simnode.scenario import Scenario
from npu_watchd.simnode.silicon import SILICON, Silicon
from npu_watchd.simnode.state import NodeState
from npu_watchd.simnode.sysfs import tree
from npu_watchd.simnode.tools import TOOLS, installed_on
from npu_watchd.simnode.tree_on_disk import TreeOnDisk

NOT_THERE = ("rdma", "scontrol")
"""Tools that no simulated node has; its configuration points where nothing is, not at the host's."""
FRESH_EVERY_S = 1.0
"""The age of the trees at most, in real seconds."""


def install(
    scenario: str | Path,
    directory: Path,
    *,
    speed: float = 1.0,
    start: float | None = None,
    at: float = 0.0,
    listen: Sequence[str] = ("127.0.0.1:18910",),
    alertmanagers: Sequence[str] = (),
) -> Path:
    """Make DIRECTORY a node on which SCENARIO (a name, or a file) runs, and return its config.toml.

    speed: scenario seconds a second; 0 stops it at `at`. start: the Unix second at which it stands at `at`; None: now.
    alertmanagers: URLs of those that the node's daemon shall tell of what it finds.
    Raises ScenarioError for a scenario that cannot be used, OSError where the directory cannot be written.
    """
    loaded = scenario_file.load(scenario)
    directory = directory.resolve()
    for name in ("bin", "sys", "workshop", "proc", "dev", "state", "run", "log"):
        (directory / name).mkdir(parents=True, exist_ok=True)
    installed = Installed(loaded, wall_clock() if start is None else start, at, speed)
    _write(directory, installed)
    (directory / ERROR_LOG).touch()
    for tool in TOOLS:
        (directory / "bin" / tool).unlink(missing_ok=True)
    now = installed.state_at(wall_clock())
    for name, text in software.files(now).items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(text, encoding="utf-8")
    if loaded.real_processes:
        _make_holders(directory, now)
    for tool in installed_on(now):
        script = directory / "bin" / tool
        script.write_text(_script(tool, directory), encoding="utf-8")
        script.chmod(0o755)
    config = directory / "config.toml"
    chips = loaded.cards * SILICON[loaded.generation].chips_per_card
    config.write_text(_config(loaded, chips, directory, listen, alertmanagers), encoding="utf-8")
    refresh(directory)
    return config


def _make_holders(directory: Path, node: NodeState) -> None:
    """In which every user may make a file, as every user may open a chip."""
    for card in node.cards:
        for chip in card.chips:
            folder = Path(holders.folder_of(directory, card.npu, chip.chip))
            folder.mkdir(parents=True, exist_ok=True)
            folder.chmod(0o1777)


def set_clock(directory: Path, at: float, *, speed: float = 0.0) -> None:
    """Move an installed node to the scenario's second `at`, and let it stand there (or run on at `speed`)."""
    directory = directory.resolve()
    _write(directory, Installed(read(directory).scenario, wall_clock(), at, speed))
    refresh(directory)


def _write(directory: Path, node: Installed) -> None:
    """Replaced in one step: a tool that is just starting reads the old or the new."""
    fresh = directory / f".{NODE_FILE}.new"
    fresh.write_text(to_text(node), encoding="utf-8")
    fresh.replace(directory / NODE_FILE)


def refresh(directory: Path) -> None:
    """Make the sysfs and procfs of an installed node those of this second of its scenario."""
    KernelFiles(directory).put_now()


def keep_fresh(directory: Path, stop: threading.Event) -> None:
    """Do that every second until `stop` is set; only what changed is written. For a thread of its own.

    Raises OSError where the directory cannot be written; join the thread before the directory is removed.
    """
    on_disk = KernelFiles(directory)
    while True:
        on_disk.put_now()
        if stop.wait(FRESH_EVERY_S):
            return


class KernelFiles:
    """The sysfs, procfs and kernel log of the node in a directory, as far as they are simulated. Raises OSError."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._sys = TreeOnDisk(directory / "sys", directory / "workshop")
        self._proc = TreeOnDisk(directory / "proc", directory / "workshop" / "proc")

    def put(self, scenario: Scenario, state: NodeState, t_s: float, start_s: float) -> None:
        """Those of that state, at that second of the scenario, which began at the Unix second `start_s`."""
        if not scenario.real_processes:
            self._proc.put(procfs.tree(scenario, t_s, start_s))
        self._sys.put(tree(state))
        log = kernel_log.text(scenario, t_s)
        if log is not None:
            kernel_log.bring_up_to_date(self._directory / "dev" / "kmsg", log)

    def put_now(self) -> None:
        """Those of this second of the installed node."""
        node, wall_s = read(self._directory), wall_clock()
        self.put(node.scenario, node.state_at(wall_s), node.time_at(wall_s), node.start_s - node.at_s)


def _script(tool: str, directory: Path) -> str:
    """No site-packages (`-S -s`), and a file rather than `-m`: the tool starts in a third of the time.

    It carries everything itself, because the daemon gives its tools a bare environment.
    """
    package = Path(npu_watchd.__file__).resolve().parent.parent
    command = [
        sys.executable,
        "-S",
        "-s",
        "-P",
        str(Path(__file__).with_name("__main__.py")),
        "tool",
        tool,
        str(directory),
    ]
    return f'#!/bin/sh\nPYTHONPATH={shlex.quote(str(package))} exec {shlex.join(command)} "$@"\n'


def _config(
    scenario: Scenario, chips: int, directory: Path, listen: Sequence[str], alertmanagers: Sequence[str]
) -> str:
    def text(value: object) -> str:
        # A JSON string is a TOML string.
        return json.dumps(str(value))

    tools = "\n".join(f"{tool.replace('-', '_')} = {text(directory / 'bin' / tool)}" for tool in (*TOOLS, *NOT_THERE))
    silicon = SILICON[scenario.generation]
    expected = ", ".join(text(port) for port in scenario.expected_ports)
    ports = f"\n[fabric]\nexpected_ports = [{expected}]\n" if expected else ""
    told = f"\n[alertmanager]\nurls = [{', '.join(map(text, alertmanagers))}]\n" if alertmanagers else ""
    counted = "\n[probes.pcie_load]\nenabled = true\n" if _host_counts(silicon) else ""
    return f"""\
# An ordinary configuration: only its paths lead to a simulated node.
[node]
name = {text(f"sim-{scenario.name.replace('_', '-')}")}
expected_devices = {chips}

[tools]
{tools}

[paths]
sysfs = {text(directory / "sys")}
procfs = {text("/proc" if scenario.real_processes else directory / "proc")}
dev = {text(directory / "dev")}
state_dir = {text(directory / "state")}
runtime_dir = {text(directory / "run")}
npu_tool_log = {text(directory / ERROR_LOG)}
etc = {text(directory / "etc")}
ascend = {text(directory / "ascend")}
python = [{text(directory / "python/*/site-packages")}]

[web]
listen = [{", ".join(text(address) for address in listen)}]
{ports}{told}{counted}"""


def _host_counts(silicon: Silicon) -> bool:
    """Whether the PCIe load is perf's or pcm-pcie's to say: what a chip's own driver would say is not simulated."""
    return bool(silicon.buses) and not silicon.measures_pcie_load
