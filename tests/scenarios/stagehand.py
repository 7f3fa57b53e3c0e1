"""A node of real tool text, played on a clock that a test moves: the daemon's lanes, board, history and rules.

As tests/golden/play.py, and besides: the daemon may be killed and started again, the node rebooted, the clock set.
What ran before a restart is gone but for what the daemon keeps on disk: its history and its findings.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path, PurePath

from npu_watchd import config
from npu_watchd.decide.bench import Bench
from npu_watchd.decide.cycle import Judging, Stood
from npu_watchd.lanes import Lanes
from npu_watchd.memory.history import History
from npu_watchd.model.reading import Failure, FailureKind, Output, Tick
from npu_watchd.model.snapshot import Snapshot
from npu_watchd.rules import RULES
from npu_watchd.simnode import error_log, node, scenario_file
from npu_watchd.simnode.scenario import Scenario
from npu_watchd.simnode.state import NodeState
from npu_watchd.simnode.timeline import state_at
from npu_watchd.simnode.tools import answer, installed_on
from npu_watchd.sources.probes import DEFAULTS
from tests.golden.play import Logs
from tests.golden.stage import NOON_S, Stage
from tests.scenarios.episodes import Watch, after_a_restart
from tests.scenarios.label import Text

CYCLE_S = 5
FIRST_CYCLE_S = 1
CALL_S = 1 / 16
KERNEL_S = 5.0
"""How often sysfs and procfs are brought up to date."""
RESTART_AWAY_S, REBOOT_AWAY_S = 10.0, 180.0

See = Callable[[float, Snapshot, History], None]


@dataclass(frozen=True, slots=True)
class _Life:
    """The daemon from one start to the end; scenario seconds."""

    from_s: float
    to_s: float
    boot_id: str


class _Node:
    """The scenario's node, at the time of the life that runs."""

    def __init__(self, text: Text, scenario: Scenario, directory: Path) -> None:
        self.directory = directory
        self.speed = text.speed
        self.stage = Stage()
        self.life = _Life(0.0, 0.0, "")
        self._text = text
        self._scenario = scenario
        # Nothing in a scenario happens between two seconds, and a second's state serves some twenty calls.
        self._state_at = lru_cache(2)(lambda second: _altered(text, state_at(scenario, second), second))

    def begin(self, life: _Life) -> None:
        self.stage, self.life = Stage(), life

    def second(self) -> float:
        """Of the scenario."""
        return self.life.from_s + self.stage.clock().mono_s * self.speed

    def clock(self) -> Tick:
        """The daemon's: monotonic since this life began, and the wall clock with whatever is wrong about it."""
        off_s = [by_s for since_s, by_s in self._text.jumps if since_s <= self.second()]
        return Tick(self.stage.clock().mono_s, NOON_S + self.second() + (off_s[-1] if off_s else 0.0))

    def state(self) -> NodeState:
        return self._state_at(float(int(self.second())))

    def run(self, argv: tuple[str, ...], timeout_s: float) -> Output | Failure:
        """As the node's executables: text, exit code, and the time that it takes."""
        tool, state = PurePath(argv[0]).name, self.state()
        mood = {"npu-smi": state.tool.mood, "hccn_tool": state.hccn}.get(tool)
        if tool not in installed_on(state) or mood == "missing":
            return Failure(FailureKind.MISSING, f"{argv[0]}: not found")
        said = answer(tool, state, argv[1:])
        takes_s = timeout_s if said.hangs else CALL_S + said.delay_s
        self.stage.wait(min(takes_s, timeout_s))
        if takes_s >= timeout_s:
            return Failure(FailureKind.TIMEOUT, f"`{tool} {' '.join(argv[1:])}` did not answer within {timeout_s:g} s")
        if tool == "npu-smi":
            error_log.append(str(self.directory), state, argv[1:])
        return Output(said.text, said.stderr, said.exit_code)

    def keep_tree(self) -> None:
        """As the kernel does; for a thread of its own."""
        on_disk = node.KernelFiles(self.directory)
        while not self.stage.is_set():
            on_disk.put(self._scenario, self.state(), float(int(self.second())), NOON_S)
            self.stage.wait(KERNEL_S)


def play(text: Text, name: str, directory: Path, see: See | None = None) -> Watch:
    """The case from its start to its end. see: told of every snapshot after it was judged."""
    file = directory / f"{name}.toml"
    file.write_text(_toml(text, name), encoding="utf-8")
    return play_file(file, text, directory, see)


def play_file(file: Path | str, text: Text, directory: Path, see: See | None = None) -> Watch:
    """Likewise a scenario file, or one that comes with the package by its name; of `text` its times hold."""
    scenario = scenario_file.load(file)
    settings = config.load(node.install(file, directory / "node", speed=0), defaults=DEFAULTS)
    acted = _Node(text, scenario, directory / "node")
    watch, history, bench = Watch(), History(), Bench({}, {}, "any")
    for life in _lives(text):
        acted.begin(life)
        history = History.restore(history.everything())
        _live(acted, settings, history, watch, Stood(watch.findings, 1, bench), see)
        bench = after_a_restart(bench)
    return watch


def _altered(text: Text, state: NodeState, second: float) -> NodeState:
    """What a scenario file cannot say: versions and cards that are changed."""
    for since_s, version in text.versions:
        if second >= since_s:
            state = replace(state, tool_version=version, driver_version=version)
    swapped = {at for since_s, at in text.swaps if second >= since_s}
    cards = tuple(
        replace(card, serial_number=f"NEW{at:09d}") if at in swapped else card for at, card in enumerate(state.cards)
    )
    return replace(state, cards=cards) if swapped else state


def _toml(text: Text, name: str) -> str:
    head = f'title = "{name}"\ndescription = ""\ngeneration = "{text.generation}"\ncards = {text.cards}\n'
    version = "" if "tool_version" in text.events else 'tool_version = "25.5.1"\n'
    return f"{head}{version}{text.events}"


def _lives(text: Text) -> Iterator[_Life]:
    ends = sorted([(at, RESTART_AWAY_S, 0) for at in text.restarts] + [(at, REBOOT_AWAY_S, 1) for at in text.reboots])
    from_s, boots = 0.0, 1
    for at_s, away_s, booted in ends:
        yield _Life(from_s, at_s, f"boot {boots}")
        from_s, boots = at_s + away_s, boots + booted
    yield _Life(from_s, text.until_s, f"boot {boots}")


def _live(
    acted: _Node,
    settings: config.Config,
    history: History,
    watch: Watch,
    stood: Stood,
    see: See | None,
) -> None:
    stage, speed, life = acted.stage, acted.speed, acted.life
    lanes = Lanes(settings, life.boot_id, acted.run, acted.clock, stage, jitter=lambda: 0.5)
    judging = Judging(history, RULES, config.limits_of(settings), stood=stood)
    logs = Logs(settings)
    faults: list[Exception] = []
    kernel = threading.Thread(target=acted.keep_tree, name="kernel", daemon=True)
    kernel.start()
    lanes.start(lambda _: None, faults.append)
    stage.gather(4)
    # History time never runs backwards, as in npu_watchd/docket.py.
    ahead_s = max(acted.clock().wall_s, history.now_s)
    try:
        at_s = float(FIRST_CYCLE_S)
        while life.from_s + at_s * speed <= life.to_s:
            stage.pass_until(at_s)
            assert not faults, faults
            logs.read(lanes, acted.clock())
            snapshot = lanes.board.snapshot(acted.clock(), lanes.periods_s().get)
            judged = judging.step(snapshot, ahead_s + at_s * speed, {})
            assert not judged.faults, judged.faults
            watch.see(acted.second(), judged)
            if see is not None:
                see(acted.second(), snapshot, history)
            at_s = CYCLE_S * (at_s // CYCLE_S + 1)
    finally:
        stage.end()
        kernel.join()
        logs.close()
