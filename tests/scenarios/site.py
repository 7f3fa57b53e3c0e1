"""A node whose snapshots a case makes; it can be restarted, rebooted and have its clock set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from npu_watchd.decide.cycle import Judged, Judging, Stood
from npu_watchd.limits import Limits
from npu_watchd.memory.history import History
from npu_watchd.model.ids import DeviceKey
from npu_watchd.model.reading import Tick
from npu_watchd.model.snapshot import Snapshot
from npu_watchd.rules import RULES
from tests.rules.world import NOON_S, World
from tests.scenarios.episodes import Watch, after_a_restart

STEP_S = 15.0


class Site(World):
    """`run` makes cycles up to a second; `watch` has what they brought."""

    def __init__(self) -> None:
        super().__init__()
        self.watch = Watch()
        self.boot = "boot 1"
        self.driver = "24.1.rc2"
        self.wall_off_s = 0.0
        self._next_s = 0.0

    def run(self, until_s: float, every_s: float = STEP_S) -> None:
        """Cycles every so often, up to and including that second."""
        while self._next_s <= until_s:
            self.judge(self._next_s)
            self._next_s += every_s

    @property
    def now_s(self) -> float:
        """The second of the next cycle."""
        return self._next_s

    def skip_to(self, second: float) -> None:
        """The next cycle is at that second."""
        self._next_s = second

    def each(self, **changes: Any) -> None:
        """From the next cycle on every device is so."""
        for key in self.devices:
            self.change(key.npu, **changes)

    def identify(self, serials: Mapping[int, str]) -> None:
        for number, serial in serials.items():
            identity = replace(self.devices[DeviceKey(number)].identity, serial_number=serial)
            self.change(number, identity=identity)

    def restart(self, away_s: float = 20.0) -> None:
        """The daemon is gone so long, and knows what it had kept."""
        stood = tuple(self.watch.findings)
        self.history = History.restore(self.history.everything())
        self.judging = Judging(
            self.history, RULES, Limits(), stood=Stood(stood, 1, after_a_restart(self.judging.bench))
        )
        self._next_s += away_s

    def reboot(self, away_s: float = 240.0) -> None:
        """Likewise the node."""
        self.boot = f"{self.boot}1"
        self.restart(away_s)

    def snapshot(self, second: float) -> Snapshot:
        made = super().snapshot(second)
        at = Tick(second, NOON_S + second + self.wall_off_s)
        return replace(made, at=at, boot_id=self.boot, driver_version=self.driver)

    def judge(self, second: float) -> Judged:
        judged = super().judge(second)
        self.watch.see(second, judged)
        return judged
