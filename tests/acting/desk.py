"""The warden without its thread: a node that a person puts into quarantine, and a clock that the test moves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from npu_watchd import config
from npu_watchd.docket import Docket
from npu_watchd.model.ids import NODE, Subject
from npu_watchd.model.reading import Tick
from npu_watchd.model.verdict import Answer, Decision, Order, State
from npu_watchd.sinks.actuators.command import Start
from npu_watchd.warden import Warden
from tests.sinks.build import device, outcome

BEGAN_S = 1_790_000_000.0


@dataclass
class Desk:
    """Three chips, all well until somebody says otherwise."""

    start: Start
    folder: Path
    more: str
    """Of the config."""
    now_s: float = 1000.0
    logged: list[tuple[str, Mapping[str, object]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.open()

    def open(self) -> None:
        """As the daemon does at its start."""
        self.docket = Docket(self.settings(), self.clock, self.log)
        self.docket.open("0")
        self.warden = Warden(self.settings(), self.docket, self.start, self.clock, self.log)
        self.judge()

    def restart(self) -> None:
        """Ended, and started anew."""
        self.docket.close()
        self.now_s += 5
        self.open()

    def settings(self) -> config.Config:
        file = self.folder / "config.toml"
        file.write_text(f'[node]\nname = "node-17"\n[paths]\nstate_dir = "{self.folder}/state"\n{self.more}')
        return config.load(file)

    def configure(self, more: str) -> None:
        self.more = more
        self.warden.take(self.settings())

    def clock(self) -> Tick:
        return Tick(self.now_s, BEGAN_S + self.now_s)

    def log(self, event: str, /, **facts: object) -> None:
        self.logged.append((event, facts))

    def judge(self) -> None:
        made = outcome([device(number) for number in range(3)], at=self.clock())
        self.docket.judge(made.snapshot, {})
        self.warden.judged(self.clock())

    def pass_s(self, seconds: float = 60.0) -> float:
        """Judge and act; the seconds until there is something to do again."""
        self.now_s += seconds
        self.judge()
        idle_s = self.warden.turn()
        self.judge()
        return idle_s

    def says(self, order: Order, subject: Subject = NODE) -> Answer:
        return self.docket.decide(Decision(order, subject, "alice", "smoke", self.clock().wall_s))

    @property
    def state(self) -> State:
        return self.docket.verdicts[0].state

    def journal(self, *kinds: str) -> list[str]:
        return [event.text for event in self.docket.journal if event.kind in kinds]

    def blocked(self, actuator: str) -> str | None:
        return self.warden.tally()[actuator].blocked

    def holder(self, actuator: str) -> str | None:
        return self.warden.tally()[actuator].holder


@contextmanager
def desk(start: Start, folder: Path, more: str) -> Iterator[Desk]:
    made = Desk(start, folder, more)
    try:
        yield made
    finally:
        made.docket.close()
