"""The daemon: schedule, threads, clock, signals, wiring; nothing else in the program reads a clock."""

from __future__ import annotations

import random
import select
import signal
import socket
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from types import FrameType

import structlog
from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.schedulers.background import BackgroundScheduler

from npu_watchd import __version__, config
from npu_watchd.catalogue import CATALOGUE
from npu_watchd.chips import profile_of
from npu_watchd.decide.changes import changes
from npu_watchd.memory.board import Board, Watch
from npu_watchd.model.reading import Failure, Tick
from npu_watchd.model.snapshot import Engine, Outcome
from npu_watchd.parsers.tool_log import failures_in
from npu_watchd.sinks.metrics import Exposition
from npu_watchd.sinks.snapshot_file import SnapshotFile
from npu_watchd.sinks.systemd import Notifier
from npu_watchd.sinks.web.api import snapshot_json
from npu_watchd.sinks.web.publication import Published
from npu_watchd.sinks.web.server import WebServer
from npu_watchd.sources.agenda import Agenda
from npu_watchd.sources.files import Root
from npu_watchd.sources.lane import Lane, Orders
from npu_watchd.sources.probes import PROBES
from npu_watchd.sources.rounds import Pace
from npu_watchd.sources.runner import ToolRunner
from npu_watchd.sources.tool_log import ToolLog

Log = structlog.typing.FilteringBoundLogger

_LANE_S = 1.0
"""How often a tool's lane looks for a call that is due."""
_WATCH_S = 2.0
"""How often the main thread looks at the clocks; a signal wakes it at once."""
_BURST_S = 30.0
"""Tool seconds that may be spent at once: the first round of a 16-die node at 0.3 s a call (assumption)."""
_JUMP_S = 2.0
"""Wall and monotonic clock further apart than this between two looks: somebody set the clock."""
_TOOL_LOG_S = 5.0
_FIRST_CYCLE_S = 12.0
"""How long the first cycle waits for the first table: the deadline of `npu-smi info`, and some."""


def clock() -> Tick:
    """Now."""
    return Tick(time.monotonic(), time.time())


class Daemon:
    """One node's daemon."""

    def __init__(self, settings: config.Config, log: Log, notifier: Notifier) -> None:
        """Raises WebConfigError for a bad [web] config_file, before anything is started."""
        self._settings = settings
        self._log = log
        self._notifier = notifier
        self._reload_ok = True
        self._stop = threading.Event()
        self._told: set[int] = set()
        """Signals that came and that the main thread has not yet acted on."""
        self._started = clock()
        self._cycle_duration_s: float | None = None
        self._clock_jumps = 0
        self._published: Published | None = None
        self._runner = ToolRunner(clock=time.monotonic)
        self._board = Board(_node(settings), _boot_id(settings), _expected(settings), self._watch)
        agenda = Agenda(settings.engine.tool_share, _BURST_S, random.random)
        self._lane = Lane(self._runner.run, agenda, self._board, clock, _orders(settings))
        self._tool_log = ToolLog(settings.paths.npu_tool_log)
        self._snapshot_file = SnapshotFile(settings.paths.runtime_dir)
        self._file_problem: str | None = None
        self._web = WebServer(
            tuple(settings.web.listen),
            settings.web.config_file,
            lambda: self._published,
            self._warn,
            monotonic=time.monotonic,
        )
        self._scheduler = BackgroundScheduler(
            executors={name: ThreadPoolExecutor(1) for name in ("engine", "files")},
            job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": None},
            timezone=UTC,
        )

    def _warn(self, event: str, /, **facts: object) -> None:
        self._log.warning(event, **facts)

    @property
    def urls(self) -> tuple[str, ...]:
        """Where the page is, once the ports are open."""
        return self._web.urls

    def open(self) -> None:
        """Open the ports. Raises ListenError."""
        self._web.start()

    def run(self, announce: Callable[[], None] = lambda: None) -> None:
        """Serve until SIGTERM or SIGINT; `open` comes first. `announce` is called when signals are heeded already."""
        # No handler may take a lock: the thread that it interrupts may be holding just that one.
        woken, waker = socket.socketpair()
        with woken, waker:
            for end in (woken, waker):
                end.setblocking(False)
            signal.set_wakeup_fd(waker.fileno(), warn_on_full_buffer=False)
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                signal.signal(number, self._on_signal)
            announce()
            self._log.info("started", version=__version__, urls=list(self.urls), node=_node(self._settings))
            self._schedule()
            try:
                self._keep_watch(woken)
            finally:
                self._shut_down()
                signal.set_wakeup_fd(-1)

    def _schedule(self) -> None:
        every = self._scheduler.add_job
        every(self._read_tool_log, "interval", seconds=_TOOL_LOG_S, executor="files", next_run_time=_now())
        cycle_s = self._settings.engine.cycle_s
        # The first cycle comes with the first table, so that what is served has something to say; or without it.
        first = _now() + timedelta(seconds=_FIRST_CYCLE_S)
        every(self._cycle_or_report, "interval", seconds=cycle_s, executor="engine", next_run_time=first, id="cycle")
        self._scheduler.start()
        # Not a job: a look costs some ten microseconds, and APScheduler's planning of one half a millisecond.
        threading.Thread(target=self._look_for_work, name="lane", daemon=True).start()

    def _keep_watch(self, woken: socket.socket) -> None:
        """Until told to stop: see the clock jump, and take a new config."""
        before = clock()
        while not self._told & {signal.SIGTERM, signal.SIGINT}:
            if select.select([woken], [], [], _WATCH_S)[0]:
                woken.recv(64)
            now = clock()
            jump_s = (now.wall_s - before.wall_s) - (now.mono_s - before.mono_s)
            if abs(jump_s) > _JUMP_S:
                self._clock_jumps += 1
                self._log.warning("clock_jumped", seconds=round(jump_s, 1))
                # APScheduler plans by the wall clock: after a jump back it would sleep until then.
                for job in self._scheduler.get_jobs():
                    job.modify(next_run_time=_now())
            before = now
            if signal.SIGHUP in self._told:
                self._told.discard(signal.SIGHUP)
                self._take_new_config()

    def _shut_down(self) -> None:
        self._stop.set()
        self._notifier.send("STOPPING=1")
        self._runner.close()
        self._scheduler.shutdown(wait=False)
        self._web.stop()
        self._snapshot_file.remove()
        self._log.info("stopped")

    def _look_for_work(self) -> None:
        while not self._stop.is_set():
            self._work()
            self._stop.wait(_LANE_S)

    def _work(self) -> None:
        try:
            while not self._stop.is_set():
                probe = self._lane.turn()
                if probe is None:
                    return
                if probe == "npu_info" and self._published is None:
                    self._hurry_cycle()
        except Exception as error:  # a fault of ours must not end the lane: it is logged and the next turn comes
            self._log.exception("lane_failed", error=str(error))

    def _hurry_cycle(self) -> None:
        self._scheduler.modify_job("cycle", next_run_time=_now())

    def _read_tool_log(self) -> None:
        found = self._tool_log.poll()
        if not isinstance(found, Failure):
            events = (failures_in(line) for line in found.lines)
            self._board.count_log_events(str(event.code) for event in events if event is not None)

    def _cycle_or_report(self) -> None:
        """A fault of ours costs one cycle; if it stays, systemd's watchdog is no longer fed and starts us anew."""
        try:
            self._cycle()
        except Exception as error:
            self._log.exception("cycle_failed", error=str(error))

    def _cycle(self) -> None:
        began = clock()
        share, stretch = self._lane.load(began)
        snapshot = self._board.snapshot(began, self._lane.periods_s().get)
        engine = Engine(
            version=__version__,
            cycle_duration_s=self._cycle_duration_s,
            config_reload_ok=self._reload_ok,
            started_wall_s=self._started.wall_s,
            tool_share_ratio=share,
            period_stretch_ratio=stretch,
            clock_jumps=self._clock_jumps,
            abandoned_processes={tool: max(1, len(it.processes)) for tool, it in self._runner.abandoned().items()},
        )
        outcome = Outcome(snapshot, engine)
        exposition = Exposition(outcome, CATALOGUE)
        before, self._published = self._published, Published(outcome, exposition)
        self._write_file(outcome)
        for problem in exposition.problems:
            if before is None or problem not in before.exposition.problems:
                self._log.warning("metric_left_out", problem=problem)
        for change in changes(before.outcome.snapshot if before else None, snapshot):
            (self._log.info if change.good else self._log.warning)(change.event, **change.facts)
        seen = f"STATUS={_count(snapshot.devices_present)} of {_count(snapshot.devices_expected)} devices present"
        self._notifier.send(*(("READY=1",) if before is None else ()), "WATCHDOG=1", seen)
        self._cycle_duration_s = clock().mono_s - began.mono_s

    def _write_file(self, outcome: Outcome) -> None:
        problem = self._snapshot_file.write(snapshot_json(outcome))
        if problem != self._file_problem:
            if problem is None:
                self._log.info("snapshot_file_back")
            else:
                self._log.warning("snapshot_file_failed", error=problem, costs="`npu-watchd status` sees no daemon")
        self._file_problem = problem

    def _watch(self, name: str | None) -> Watch:
        profile = profile_of(name)
        paces = _paces(self._settings)
        probes = frozenset(probe for probe in profile.probes if probe in paces)
        off = frozenset(probe for probe in profile.vital & profile.probes if probe not in paces)
        return Watch(profile.name, probes, profile.vital, off)

    def _take_new_config(self) -> None:
        """SIGHUP: a bad file changes nothing but what /metrics says of it."""
        try:
            settings = config.load(self._settings.file, defaults=PROBE_DEFAULTS)
        except config.ConfigError as error:
            self._reload_ok = False
            self._log.error("config_reload_failed", error=str(error))
            return
        for key in ("web.listen", "web.config_file", "engine.tool_share", "paths.runtime_dir", "paths.npu_tool_log"):
            if attrgetter(key)(settings) != attrgetter(key)(self._settings):
                self._log.warning("config_needs_restart", key=key)
        self._settings, self._reload_ok = settings, True
        self._board.configure(_node(settings), _expected(settings))
        self._lane.take(_orders(settings))
        self._scheduler.reschedule_job("cycle", trigger="interval", seconds=settings.engine.cycle_s)
        self._log.info("config_reloaded", file=str(settings.file))

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        self._told.add(number)


PROBE_DEFAULTS = {probe.name: probe for probe in PROBES}


def _paces(settings: config.Config) -> dict[str, Pace]:
    """The probes that are switched on, with the config's periods and deadlines where it has some."""
    paces: dict[str, Pace] = {}
    for probe in PROBES:
        if settings.probe(probe.name).enabled is not False:
            every_s, timeout_s = config.probe_times(settings, PROBE_DEFAULTS, probe.name)
            paces[probe.name] = Pace(float(every_s or probe.every_s), float(timeout_s or probe.timeout_s))
    return paces


def _orders(settings: config.Config) -> Orders:
    return Orders(str(settings.tools.npu_smi), _paces(settings), lambda name: profile_of(name).probes)


def _node(settings: config.Config) -> str:
    return str(settings.node.name or socket.gethostname())


def _expected(settings: config.Config) -> int | None:
    return None if settings.node.expected_devices is None else int(settings.node.expected_devices)


def _boot_id(settings: config.Config) -> str | None:
    found = Root(settings.paths.procfs).read_text("sys/kernel/random/boot_id")
    return None if isinstance(found, Failure) else found.strip() or None


def _count(number: int | None) -> str:
    return "?" if number is None else str(number)


def _now() -> datetime:
    return datetime.now(UTC)
