"""The simulated node itself under the real daemon: its executables, its sysfs tree, and a clock that the test sets."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from npu_watchd.simnode import node, scenario_file, tools
from npu_watchd.simnode.answer import Answer
from npu_watchd.simnode.state import NodeState
from npu_watchd.simnode.timeline import state_at
from npu_watchd.sources.probes import DEFAULTS, OPT_IN
from tests.e2e.fake_tool import questions

_LOGGED = """#!/bin/sh
mkdir {directory}/asking 2> /dev/null || echo "a second one: $*" >> {directory}/asked
trap 'rmdir {directory}/asking; exit 143' TERM
echo "$*" >> {directory}/asked
{real} "$@"
code=$?
rmdir {directory}/asking
exit $code
"""


_REPLAYED = """#!/bin/sh
cd {directory}/said || exit 99
if [ -f "{tool} $*" ]; then exec cat "{tool} $*"; fi
exec {real} "$@"
"""
_OF_A_PORT = ("link", "link_stat", "stat", "net_health", "optical", "speed")


@dataclass(frozen=True)
class SimulatedNode:
    """DIRECTORY as simnode made it, standing still at a second of its scenario."""

    scenario: str | Path
    """Its name, or its file."""
    directory: Path

    @property
    def config(self) -> Path:
        return self.directory / "config.toml"

    def stand_at(self, second: float) -> NodeState:
        """Move it there; the state is what its tools and files say from now on."""
        node.set_clock(self.directory, second)
        state = state_at(scenario_file.load(self.scenario), second)
        if (self.directory / "said").exists():
            self._say(state)
        return state

    def replay(self, second: float) -> None:
        """From now on its tools say from a file what they would say, where that is no more than text.

        A shell script instead of a Python a call: several such nodes can be watched at once.
        """
        state = self.stand_at(second)
        for tool in ("npu-smi", "hccn_tool", "ibstat"):
            installed = self.directory / "bin" / tool
            real = installed.rename(self.directory / f"real-{tool}")
            installed.write_text(_REPLAYED.format(directory=self.directory, tool=tool, real=real), encoding="utf-8")
            installed.chmod(0o755)
        self._say(state)

    def _say(self, state: NodeState) -> None:
        """In one step: a tool that is just being called answers of the old second or of the new."""
        said = Path(tempfile.mkdtemp(dir=self.directory, prefix="said-"))
        for tool, arguments in _questions(state):
            spoken = tools.answer(tool, state, arguments)
            if spoken == Answer(spoken.text):
                (said / f"{tool} {' '.join(arguments)}").write_text(spoken.text, encoding="utf-8")
        link = self.directory / "said.new"
        link.symlink_to(said)
        link.replace(self.directory / "said")

    def log_calls(self, tool: str) -> None:
        """From now on `asked` tells what this tool was asked, and when two of it ran at once."""
        installed = self.directory / "bin" / tool
        real = installed.rename(self.directory / f"real-{tool}")
        installed.write_text(_LOGGED.format(directory=self.directory, real=real), encoding="utf-8")
        installed.chmod(0o755)

    def asked(self) -> list[str]:
        return (self.directory / "asked").read_text(encoding="utf-8").splitlines()


def _questions(state: NodeState) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Tool and arguments of all that the daemon may ask."""
    yield from (("npu-smi", arguments) for arguments in questions(state))
    yield "ibstat", ()
    for chip in state.chips:
        yield from (("hccn_tool", ("-i", str(chip.logic_id), f"-{what}", "-g")) for what in _OF_A_PORT)


def simulated(
    scenario: str | Path,
    directory: Path,
    at: float,
    every: Mapping[str, str],
    timeouts: Mapping[str, str] | None = None,
    *,
    speed: float = 0.0,
) -> SimulatedNode:
    """A node whose daemon asks the table, and of the rest what `every` gives a period: each call is a Python."""
    config = node.install(scenario, directory, speed=speed, at=at, listen=("127.0.0.1:0",))
    lines = ["[engine]", 'cycle = "250ms"', "tool_share = 1.0", "[probes]"]
    every = {"npu_info": "3s", **every}
    for probe in DEFAULTS:
        if probe in every:
            timeout = f', timeout = "{timeouts[probe]}"' if timeouts and probe in timeouts else ""
            lines.append(f'{probe} = {{ every = "{every[probe]}"{timeout} }}')
        elif probe not in {"npu_map", *OPT_IN}:
            lines.append(f"{probe} = {{ enabled = false }}")
    config.write_text(config.read_text(encoding="utf-8") + "\n".join(lines) + "\n", encoding="utf-8")
    return SimulatedNode(scenario, directory)
