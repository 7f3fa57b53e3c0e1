"""A whole day of a scenario that comes with the package, in seconds: coarse, and honest about it.

The node's tools are asked for real text, by the real lanes, as often as at SPEED times the usual pace: a table every
half hour, ECC and ports every two hours, a snapshot every ten minutes. Each snapshot then stands for the ten minutes
until the next one, and rules and history judge it every minute, as if every probe had been asked anew and had said the
same: so a condition that is there at all is judged for at least ten steps.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from npu_watchd.decide.cycle import Judging
from npu_watchd.limits import Limits
from npu_watchd.memory.history import History
from npu_watchd.model.reading import Tick
from npu_watchd.model.snapshot import Snapshot
from npu_watchd.rules import RULES
from tests.scenarios.episodes import Watch
from tests.scenarios.label import Text
from tests.scenarios.stagehand import CYCLE_S, play_file

DAY_S = 86_400.0
SPEED = 120
STEP_S = 60.0
_COUNTED = frozenset({"npu_info", "pcie_link", "ibstat", "hccn_speed", "hccn_optical"})
"""Probes whose calls some rule counts."""


class Day:
    """The finer judge: told of a snapshot, it judges the time until the next."""

    def __init__(self) -> None:
        self.watch = Watch()
        self.steps = 0
        self._judging = Judging(History(), RULES, Limits())

    def see(self, second: float, snapshot: Snapshot, _history: History) -> None:
        every = round(CYCLE_S * SPEED / STEP_S)
        began_s = snapshot.at.wall_s - second
        for step in range(every):
            at_s = second + step * STEP_S
            probes = tuple(
                replace(probe, successes=every * probe.successes + step) if probe.probe in _COUNTED else probe
                for probe in snapshot.probes
            )
            shown = replace(snapshot, at=Tick(at_s, began_s + at_s), probes=probes)
            judged = self._judging.step(shown, began_s + at_s, {})
            assert not judged.faults, judged.faults
            self.watch.see(at_s, judged)
            self.steps += 1


def played(scenario: str, directory: Path) -> tuple[Watch, Day]:
    """What the lanes' own cycles found, and what the finer ones did."""
    day = Day()
    coarse = play_file(scenario, Text("", DAY_S, "", speed=SPEED), directory, day.see)
    return coarse, day
