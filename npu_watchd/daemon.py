"""The daemon: schedule, threads, clock, signals, wiring; nothing else in the program reads a clock."""

from __future__ import annotations

import select
import signal
import socket
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from operator import attrgetter
from types import FrameType
from typing import TYPE_CHECKING

from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.schedulers.background import BackgroundScheduler

from npu_watchd import __version__, config
from npu_watchd.catalogue import exported
from npu_watchd.codes.overrides import OverridesError
from npu_watchd.control import ControlSocket
from npu_watchd.docket import Docket
from npu_watchd.herald import Herald
from npu_watchd.incidents import IncidentSocket
from npu_watchd.lanes import Lanes, boot_id_of, node_name
from npu_watchd.lease import Lease
from npu_watchd.log_look import LogLook
from npu_watchd.memory import ledger, store
from npu_watchd.memory.counters import FOLLOWED
from npu_watchd.model.reading import Tick
from npu_watchd.model.snapshot import Engine, Outcome
from npu_watchd.rules import RULE_IDS
from npu_watchd.sinks.metrics import Exposition
from npu_watchd.sinks.runtime_files import RuntimeFiles
from npu_watchd.sinks.systemd import Notifier
from npu_watchd.sinks.web.history import CounterHistory
from npu_watchd.sinks.web.publication import Published
from npu_watchd.sinks.web.server import WebServer
from npu_watchd.sources.probes import DEFAULTS
from npu_watchd.sources.runner import ToolRunner
from npu_watchd.warden import Warden

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger as Log

_WATCH_S = 2.0
"""How often the main thread looks at the clocks; a signal wakes it at once."""
_JUMP_S = 2.0
"""Wall and monotonic clock further apart than this between two looks: somebody set the clock."""
_TOOL_LOG_S = 5.0
_NEWS_S = 0.5
"""How soon the cycle comes after news: until then the rest of a round may bring more, and a cycle that runs is over."""
_NEED_RESTART = (
    *("web.listen", "web.config_file", "engine.tool_share", "fabric.exclude_devices"),
    *("paths.state_dir", "paths.runtime_dir", "paths.npu_tool_log", "paths.sysfs", "paths.procfs"),
    *("paths.etc", "paths.ascend", "paths.python"),
)
"""Keys that are read once, at the start."""
_LAST_ACT_S = 2.0
"""How long the end waits for what is being done to a scheduler; the runner has ended its program by then."""
_FIRST_CYCLE_S = 12.0
"""How long the first cycle waits for the first table: the deadline of `npu-smi info`, and some."""


def clock() -> Tick:
    """Now."""
    return Tick(time.monotonic(), time.time())


class Daemon:
    """One node's daemon."""

    def __init__(
        self, settings: config.Config, log: Log, notifier: Notifier, *, tools_through: tuple[str, ...] = ()
    ) -> None:
        """`tools_through`: the command that starts each tool, see ToolRunner.

        Raises WebConfigError or OverridesError for a bad file of the config, before anything is started.
        """
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
        self._heard = 0
        """Of the board's news, what a cycle was hurried for."""
        self._runner = ToolRunner(clock=time.monotonic, through=tools_through)
        self._docket = Docket(settings, clock, self._warn)
        self._warden = Warden(settings, self._docket, self._runner.run, clock, self._warn)
        self._lanes = Lanes(
            settings, boot_id_of(settings), self._runner.run, clock, self._stop, code_tier=self._docket.code_tier
        )
        self._board = self._lanes.board
        self._log_look = LogLook(settings, self._lanes, clock)
        self._files = RuntimeFiles(settings.paths.runtime_dir)
        self._lease = Lease((settings.paths.state_dir, settings.paths.runtime_dir))
        self._control = ControlSocket(settings.paths.runtime_dir, self._docket, clock, self._warn, self._hurry_cycle)
        self._incidents = IncidentSocket(settings.paths.runtime_dir, self._docket.note, clock, self._warn)
        self._herald = Herald(log)
        self._web = WebServer(
            tuple(settings.web.listen),
            settings.web.config_file,
            lambda: self._published,
            self._warn,
            monotonic=time.monotonic,
            counters=CounterHistory(FOLLOWED, partial(ledger.read, settings.paths.state_dir / store.NAME)),
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
        """Open the ports, and take up what was kept. Raises ListenError, and OccupiedError for a second daemon."""
        for trouble in self._lease.take():
            self._warn("lease_failed", error=trouble, costs="a second daemon would not be kept from starting")
        self._web.start()
        self._docket.open(__version__)
        self._warden.open()

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
            self._log.info("started", version=__version__, urls=list(self.urls), node=node_name(self._settings))
            self._schedule()
            try:
                self._keep_watch(woken)
            finally:
                self._shut_down()
                signal.set_wakeup_fd(-1)

    def _schedule(self) -> None:
        every = self._scheduler.add_job
        every(self._log_look.take, "interval", seconds=_TOOL_LOG_S, executor="files", next_run_time=_now())
        cycle_s = self._settings.engine.cycle_s
        # The first cycle comes with the first table, so that what is served has something to say; or without it.
        first = _now() + timedelta(seconds=_FIRST_CYCLE_S)
        every(self._cycle_or_report, "interval", seconds=cycle_s, executor="engine", next_run_time=first, id="cycle")
        self._scheduler.start()
        # Not jobs: a lane's look costs some ten microseconds, and APScheduler's planning of one half a millisecond.
        self._lanes.start(self._worked, self._lane_failed)
        self._control.open()
        self._incidents.open()

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
                text = f"the wall clock was set {'forward' if jump_s > 0 else 'back'} by {abs(jump_s):.0f} s"
                self._docket.note("clock_jumped", text, now.wall_s, seconds=round(jump_s, 1))
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
        self._warden.stop()
        self._runner.close()
        self._scheduler.shutdown(wait=False)
        self._warden.join(_LAST_ACT_S)
        self._web.stop()
        self._control.close()
        self._incidents.close()
        self._docket.close()
        self._files.remove()
        self._log.info("stopped")

    def _worked(self, probe: str) -> None:
        if self._published is None:
            if probe == "npu_info":
                self._hurry_cycle()
        elif (news := self._board.news()) != self._heard:
            self._heard = news
            self._hurry_cycle(_NEWS_S)

    def _lane_failed(self, error: Exception) -> None:
        """A fault of ours must not end a lane: it is logged, and the next turn comes."""
        self._log.error("lane_failed", error=str(error), exc_info=error)

    def _hurry_cycle(self, within_s: float = 0.0) -> None:
        """Never later than it would come anyway, so that news upon news cannot put it off."""
        soon = _now() + timedelta(seconds=within_s)
        if self._scheduler.get_job("cycle").next_run_time > soon:
            self._scheduler.modify_job("cycle", next_run_time=soon)

    def _cycle_or_report(self) -> None:
        """A fault of ours costs one cycle; if it stays, systemd's watchdog is no longer fed and starts us anew."""
        try:
            self._cycle()
        except Exception as error:
            self._log.exception("cycle_failed", error=str(error))

    def _cycle(self) -> None:
        began = clock()
        share, stretch = self._lanes.load(began)
        snapshot = self._board.snapshot(began, self._lanes.periods_s().get)
        abandoned = {tool: max(1, len(it.processes)) for tool, it in self._runner.abandoned().items()}
        judged = self._docket.judge(snapshot, abandoned)
        engine = Engine(
            version=__version__,
            cycle_duration_s=self._cycle_duration_s,
            config_reload_ok=self._reload_ok,
            started_wall_s=self._started.wall_s,
            tool_share_ratio=share,
            period_stretch_ratio=stretch,
            clock_jumps=self._clock_jumps,
            abandoned_processes=abandoned,
            notifications=self._docket.tally(),
            history_written=self._docket.problem is None,
            acting=self._warden.tally(),
        )
        outcome = Outcome(snapshot, engine, judged.findings, self._docket.journal, judged.verdicts)
        names = exported(npu_exporter_names=self._settings.metrics.npu_exporter_names)
        exposition = Exposition(outcome, names)
        before, self._published = self._published, Published(outcome, exposition)
        self._herald.tell_file(self._files.write(outcome, self._settings.engine.cycle_s))
        if before is not None:
            self._herald.tell_left_out(before.exposition.problems_met)
        self._herald.tell(judged)
        self._warden.judged(snapshot.at)
        seen = f"STATUS={_count(snapshot.devices_present)} of {_count(snapshot.devices_expected)} devices present"
        ready = ("READY=1", *self._patience()) if before is None else ()
        self._notifier.send(*ready, "WATCHDOG=1", seen)
        self._cycle_duration_s = clock().mono_s - began.mono_s

    def _take_new_config(self) -> None:
        """SIGHUP: a bad file changes nothing but what /metrics says of it."""
        try:
            settings = config.load(self._settings.file, defaults=DEFAULTS, rules=RULE_IDS)
            self._docket.take(settings)
        except (config.ConfigError, OverridesError) as error:
            self._reload_ok = False
            self._log.error("config_reload_failed", error=str(error))
            return
        for key in _NEED_RESTART:
            if attrgetter(key)(settings) != attrgetter(key)(self._settings):
                self._log.warning("config_needs_restart", key=key)
        self._settings, self._reload_ok = settings, True
        self._lanes.take(settings)
        self._warden.take(settings)
        self._scheduler.reschedule_job("cycle", trigger="interval", seconds=settings.engine.cycle_s)
        self._notifier.send(*self._patience())
        self._log.info("config_reloaded", file=str(settings.file))

    def _patience(self) -> tuple[str, ...]:
        return self._notifier.patience(self._settings.engine.cycle_s)

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        self._told.add(number)


def _count(number: int | None) -> str:
    return "?" if number is None else str(number)


def _now() -> datetime:
    return datetime.now(UTC)
