"""An npu-smi that is a shell script: it says what files beside it hold, and writes down each call."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from npu_watchd.simnode import scenario_file
from npu_watchd.simnode.npu_smi import answer
from npu_watchd.simnode.state import NodeState
from npu_watchd.simnode.timeline import state_at
from tests.e2e.harness import QUICK

_SCRIPT = """#!/bin/sh
cd {directory} || exit 99
echo "$*" >> calls
if [ -f mood ]; then . ./mood; fi
answer="answers/$*"
if [ -f "$answer" ]; then cat "$answer"; else echo "This device does not support querying."; fi
"""


@dataclass(frozen=True)
class FakeTool:
    """DIRECTORY/npu-smi, and the config of a node that has no other tool."""

    directory: Path

    @property
    def path(self) -> Path:
        return self.directory / "npu-smi"

    @property
    def config(self) -> Path:
        return self.directory / "config.toml"

    def says(self, arguments: str, text: str) -> None:
        """From now on the answer to `npu-smi ARGUMENTS`; replaced in one step."""
        fresh = self.directory / "fresh"
        fresh.write_text(text, encoding="utf-8", errors="surrogateescape")
        fresh.replace(self.directory / "answers" / arguments)

    def forgets(self, arguments: str) -> None:
        """From now on this query is not supported."""
        (self.directory / "answers" / arguments).unlink()

    def behaves(self, shell: str) -> None:
        """From now on each call runs this first: `sleep 1`, `exit 3`, ..."""
        fresh = self.directory / "fresh"
        fresh.write_text(shell + "\n", encoding="utf-8")
        fresh.replace(self.directory / "mood")

    def behaves_well(self) -> None:
        (self.directory / "mood").unlink(missing_ok=True)

    def shows(self, node: NodeState) -> None:
        """Answer as npu-smi does on this node, whatever may be asked of it."""
        for arguments in questions(node):
            self.says(" ".join(arguments), answer(node, arguments).text)

    def calls(self) -> list[str]:
        """Arguments of all calls until now."""
        log = self.directory / "calls"
        return log.read_text(encoding="utf-8").splitlines() if log.exists() else []

    def write_config(self, more: str = QUICK, *, npu_smi: Path | None = None, node: str = "e2e") -> Path:
        """`more`: the sections beside [node], [tools], [paths] and [web]."""
        for name in ("run", "state", "sys"):
            (self.directory / name).mkdir(exist_ok=True)
        fresh = self.directory / "config.fresh"
        fresh.write_text(
            f'[node]\nname = "{node}"\n\n[tools]\nnpu_smi = "{npu_smi or self.path}"\n'
            + "".join(f'{tool} = "{self.directory / "nowhere" / tool}"\n' for tool in ("hccn_tool", "ibstat", "perf"))
            + f'\n[paths]\nsysfs = "{self.directory / "sys"}"\nstate_dir = "{self.directory / "state"}"\n'
            f'runtime_dir = "{self.directory / "run"}"\nnpu_tool_log = "{self.directory / "nputools.log"}"\n\n'
            f'[web]\nlisten = ["127.0.0.1:0"]\n{more}',
            encoding="utf-8",
        )
        fresh.replace(self.config)
        return self.config


def fake_tool(directory: Path) -> FakeTool:
    """A tool that supports nothing yet, and its config."""
    tool = FakeTool(directory)
    (directory / "answers").mkdir()
    tool.path.write_text(_SCRIPT.format(directory=shlex.quote(str(directory))), encoding="utf-8")
    tool.path.chmod(0o755)
    tool.write_config()
    return tool


def node_at(scenario: str, t_s: float) -> NodeState:
    return state_at(scenario_file.load(scenario), t_s)


def questions(node: NodeState) -> list[tuple[str, ...]]:
    """All that the daemon may ask about these cards and chips."""
    asked: list[tuple[str, ...]] = [("info",), ("info", "-m"), ("info", "-l")]
    for card in node.cards:
        for kind in ("ecc", "health", "usages", "common", "memory", "board", "hccs", "pcie-err"):
            of_card = ("info", "-t", kind, "-i", str(card.npu))
            asked.append(of_card)
            asked += [(*of_card, "-c", str(chip.chip)) for chip in card.chips]
    return asked
