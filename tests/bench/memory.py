"""The daemon's parts over an hour that passes in seconds, in a process of their own: python -m tests.bench.memory S."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

import npu_watchd.daemon  # noqa: F401  # all that the daemon imports is to be in memory
from npu_watchd import config
from npu_watchd.catalogue import CATALOGUE
from npu_watchd.chips import profile_of
from npu_watchd.docket import Docket
from npu_watchd.memory.board import Board, Watch
from npu_watchd.memory.store import NAME, Store
from npu_watchd.model.reading import Failure, Tick
from npu_watchd.model.snapshot import Engine, Outcome
from npu_watchd.rules import RULE_IDS
from npu_watchd.simnode import scenario_file
from npu_watchd.simnode.run import simulated_run
from npu_watchd.sinks.metrics import Exposition
from npu_watchd.sinks.web.api import snapshot_json
from npu_watchd.sinks.web.publication import Published
from npu_watchd.sinks.web.server import WebServer
from npu_watchd.sources.agenda import Agenda
from npu_watchd.sources.lane import Lane, Orders
from npu_watchd.sources.npu_smi_probes import NPU_SMI_PROBES
from npu_watchd.sources.probes import DEFAULTS
from tests.bench.scraper import PLAIN, PROMETHEUS, Scraper
from tests.bench.sixteen_dies import PACES, SCENARIO
from tests.bench.verdict import Row
from tests.memory import month

CYCLE_S = 5.0
CALL_S = 0.05
WARM_S = 120.0
"""By then each probe has answered, and every form of every document was made."""
EARLY_S = 600.0
"""From here on nothing may grow."""
WALL_S = 1.7e9
ROUND_S = 230.0
"""The scenario begins anew before it loses a die."""


class SimulatedNode:
    """One daemon's parts on a clock that the bench moves."""

    def __init__(self, directory: Path) -> None:
        """directory: for state.db; what is there already is taken up."""
        self._now_s = 0.0
        run = simulated_run(scenario_file.load(SCENARIO), lambda: self._now_s % ROUND_S)
        self._board = Board("node", "boot", 16, _watch)
        orders = Orders("npu-smi", PACES, lambda name: profile_of(name).probes)
        agenda = Agenda(0.2, 30.0, random.Random(1).random)
        self._lane = Lane(NPU_SMI_PROBES, run, agenda, self._board, self._clock, orders, lambda _seconds: None)
        file = directory / "config.toml"
        file.write_text(f'[paths]\nstate_dir = "{directory}"\n', encoding="utf-8")
        self._docket = Docket(config.load(file, defaults=DEFAULTS, rules=RULE_IDS), self._clock, _complain)
        self._docket.open("bench")
        self.published: Published | None = None

    def server(self) -> WebServer:
        """A server that shows what was published last; what it logs is a fault, and goes to stderr."""
        return WebServer(("127.0.0.1:0",), None, lambda: self.published, _complain, monotonic=time.monotonic)

    def _clock(self) -> Tick:
        return Tick(self._now_s, WALL_S + self._now_s)

    def pass_cycle(self) -> None:
        """A cycle's time with the calls that are due in it, and the cycle at its end."""
        ends_s = self._now_s + CYCLE_S
        while self._now_s < ends_s:
            self._now_s += CALL_S if self._lane.turn() else 0.5
        share, stretch = self._lane.load(self._clock())
        snapshot = self._board.snapshot(self._clock(), self._lane.periods_s().get)
        judged = self._docket.judge(snapshot, {})
        assert not judged.faults, judged.faults
        engine = Engine("bench", 0.01, True, WALL_S, share, stretch, history_written=self._docket.problem is None)
        outcome = Outcome(snapshot, engine, judged.findings, self._docket.journal)
        before, self.published = self.published, Published(outcome, Exposition(outcome, CATALOGUE))
        assert snapshot_json(outcome)
        assert before is None or snapshot.devices_present == 16

    def close(self) -> None:
        """Write what is left to be remembered."""
        self._docket.close()

    def live(self, port: int, until_s: float) -> float:
        """Cycles until then, each scraped in both forms, its page and its API asked for; returns MiB of RSS."""
        scrapers = [Scraper(port, headers) for headers in (PLAIN, PROMETHEUS)]
        others = [
            Scraper(port, PLAIN, path) for path in ("/", "/api/v1/snapshot", "/api/v1/findings", "/api/v1/events")
        ]
        while self._now_s < until_s:
            self.pass_cycle()
            for scraper in scrapers + others:
                scraper.scrape()
        for scraper in scrapers + others:
            scraper.close()
        return float(psutil.Process().memory_info().rss) / 2**20


def _watch(name: str | None) -> Watch:
    profile = profile_of(name)
    return Watch(profile.name, profile.probes, profile.vital, frozenset())


def _complain(event: str, /, **facts: object) -> None:
    print(event, facts, file=sys.stderr)


def main(directory: Path, until_s: float) -> None:
    """Prints MiB of RSS when warm, at the tenth minute, and at the end, as JSON; not beyond the end."""
    simulated = SimulatedNode(directory)
    server = simulated.server()
    server.start()
    port = int(server.addresses[0].rpartition(":")[2])
    print(json.dumps([simulated.live(port, at) for at in (WARM_S, EARLY_S, until_s) if at <= until_s]))
    server.stop()
    simulated.close()


def rows(*, quick: bool) -> Iterator[Row]:
    until_s = 900.0 if quick else 3600.0
    with tempfile.TemporaryDirectory(prefix="npu-watchd-bench-") as directory:
        warm, early, late = _rss_mib(Path(directory), until_s)
    minutes = f"{until_s / 60:.0f} simulated min"
    yield Row(f"RSS after {WARM_S / 60:.0f} simulated min", warm, "MiB")
    yield Row(f"RSS after {minutes}, the simulator in the same process", late, "MiB", 60.0)
    growth = f"RSS growth from min {EARLY_S / 60:.0f} to {until_s / 60:.0f} (1 MiB: the allocator's noise)"
    yield Row(growth, late - early, "MiB", 1.0)
    if not quick:
        yield _with_a_past(30)


def _with_a_past(days: int) -> Row:
    """What a restart takes up: the history and the journal of a node on which nothing kept quiet."""
    with tempfile.TemporaryDirectory(prefix="npu-watchd-bench-") as directory:
        store = Store.open(Path(directory) / NAME)
        assert not isinstance(store, Failure), store
        month.live(store, days, WALL_S - days * 86_400.0)
        store.close()
        warm, *_ = _rss_mib(Path(directory), WARM_S)
    return Row(f"RSS after {WARM_S / 60:.0f} simulated min, with {days} days of a noisy node behind it", warm, "MiB")


def _rss_mib(directory: Path, until_s: float) -> list[float]:
    command = [sys.executable, "-m", "tests.bench.memory", str(directory), str(until_s)]
    found: list[float] = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
    return found


if __name__ == "__main__":
    main(Path(sys.argv[1]), float(sys.argv[2]))
