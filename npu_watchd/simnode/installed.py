"""A simulated node on disk as its executables find it: node.json says which scenario runs, and since when."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from os import PathLike

from npu_watchd.simnode.scenario import Scenario, from_json, to_json
from npu_watchd.simnode.state import NodeState
from npu_watchd.simnode.timeline import state_at

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

    def state_at(self, wall_s: float) -> NodeState:
        """The node then. Its own clock goes as fast as the scenario, and was right when it was last set."""
        t_s = max(0.0, self.time_at(wall_s))
        return state_at(self.scenario, t_s, self.start_s - self.at_s)


def to_text(node: Installed) -> str:
    """What node.json holds of it: the inverse of `read`."""
    times = {"start_s": node.start_s, "at_s": node.at_s, "speed": node.speed}
    return json.dumps({"scenario": to_json(node.scenario), **times}, indent=1)


def wall_clock() -> float:
    """Unix seconds."""
    return datetime.now(UTC).timestamp()


def read(directory: str | PathLike[str]) -> Installed:
    """The node in that directory."""
    with open(f"{directory}/{NODE_FILE}", encoding="utf-8") as file:
        data = json.load(file)
    return Installed(from_json(data["scenario"]), data["start_s"], data["at_s"], data["speed"])
