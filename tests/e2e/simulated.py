"""The simulated node itself under the real daemon: its executables, its sysfs tree, and a clock that the test sets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from npu_watchd.simnode import node, scenario_file
from npu_watchd.simnode.state import NodeState
from npu_watchd.simnode.timeline import state_at
from npu_watchd.sources.probes import DEFAULTS, OPT_IN

_LOGGED = """#!/bin/sh
mkdir {directory}/asking 2> /dev/null || echo "a second one: $*" >> {directory}/asked
trap 'rmdir {directory}/asking; exit 143' TERM
echo "$*" >> {directory}/asked
{real} "$@"
code=$?
rmdir {directory}/asking
exit $code
"""


@dataclass(frozen=True)
class SimulatedNode:
    """DIRECTORY as simnode made it, standing still at a second of its scenario."""

    scenario: str
    directory: Path

    @property
    def config(self) -> Path:
        return self.directory / "config.toml"

    def stand_at(self, second: float) -> NodeState:
        """Move it there; the state is what its tools and files say from now on."""
        node.set_clock(self.directory, second)
        return state_at(scenario_file.load(self.scenario), second)

    def log_calls(self, tool: str) -> None:
        """From now on `asked` tells what this tool was asked, and when two of it ran at once."""
        installed = self.directory / "bin" / tool
        real = installed.rename(self.directory / f"real-{tool}")
        installed.write_text(_LOGGED.format(directory=self.directory, real=real), encoding="utf-8")
        installed.chmod(0o755)

    def asked(self) -> list[str]:
        return (self.directory / "asked").read_text(encoding="utf-8").splitlines()


def simulated(
    scenario: str, directory: Path, at: float, every: Mapping[str, str], timeouts: Mapping[str, str] | None = None
) -> SimulatedNode:
    """A node whose daemon asks the table, and of the rest what `every` gives a period: each call is a Python."""
    config = node.install(scenario, directory, speed=0, at=at, listen=("127.0.0.1:0",))
    lines = ["[engine]", 'cycle = "250ms"', "tool_share = 1.0", "[probes]", 'npu_info = { every = "3s" }']
    for probe in DEFAULTS:
        if probe in every:
            timeout = f', timeout = "{timeouts[probe]}"' if timeouts and probe in timeouts else ""
            lines.append(f'{probe} = {{ every = "{every[probe]}"{timeout} }}')
        elif probe not in {"npu_info", "npu_map", *OPT_IN}:
            lines.append(f"{probe} = {{ enabled = false }}")
    config.write_text(config.read_text(encoding="utf-8") + "\n".join(lines) + "\n", encoding="utf-8")
    return SimulatedNode(scenario, directory)
