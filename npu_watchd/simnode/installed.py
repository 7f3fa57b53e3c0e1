"""A simulated node on disk as its executables find it: node.json says which scenario runs, and since when."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from npu_watchd.simnode.scenario import Scenario, from_json, to_json

NODE_FILE = "node.json"


@dataclass(frozen=True, slots=True)
class Installed:
    """What node.json holds."""

    scenario: Scenario
    start_s: float
    """The wall clock, in Unix seconds, at which the scenario stood at `at_s`."""
    at_s: float
    speed: float
    """Scenario seconds a second; 0: the scenario stands still at `at_s`."""

    def time_at(self, wall_s: float) -> float:
        """How far the scenario has come."""
        return self.at_s + (wall_s - self.start_s) * self.speed


def wall_clock() -> float:
    """Unix seconds."""
    return datetime.now(UTC).timestamp()


def read(directory: Path) -> Installed:
    """The node in that directory."""
    data = json.loads((directory / NODE_FILE).read_text(encoding="utf-8"))
    return Installed(from_json(data["scenario"]), data["start_s"], data["at_s"], data["speed"])


def write(directory: Path, node: Installed) -> None:
    """Replaced in one step: a tool that is just starting reads the old or the new."""
    text = json.dumps(
        {
            "scenario": to_json(node.scenario),
            "start_s": node.start_s,
            "at_s": node.at_s,
            "speed": node.speed,
        },
        indent=1,
    )
    fresh = directory / f".{NODE_FILE}.new"
    fresh.write_text(text, encoding="utf-8")
    fresh.replace(directory / NODE_FILE)
