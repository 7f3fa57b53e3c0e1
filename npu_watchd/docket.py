"""From a snapshot to what stands, what is remembered and who is told: the part of a cycle that judges."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

from npu_watchd import config, gate
from npu_watchd.archive import Archive, Log, first_number
from npu_watchd.codes.overrides import NO_OVERRIDES, Overrides, load_overrides
from npu_watchd.codes.table import lookup
from npu_watchd.decide import memo
from npu_watchd.decide.bench import Bench
from npu_watchd.decide.case import Case
from npu_watchd.decide.cycle import Judged, Judging, Stood
from npu_watchd.lanes import node_name
from npu_watchd.memory.backlog import Batch
from npu_watchd.memory.history import History
from npu_watchd.memory.store import Loaded
from npu_watchd.model.finding import Event, Finding
from npu_watchd.model.ids import Subject
from npu_watchd.model.reading import Failure, Tick
from npu_watchd.model.snapshot import Notifications, Snapshot
from npu_watchd.model.verdict import Answer, Decision, Verdict
from npu_watchd.rules import RULES
from npu_watchd.rules.rule import Sharing, Site
from npu_watchd.sinks.alertmanager.pusher import Pusher

RECALL_S = 10.0
"""How long the start waits for the database: a disk that does not answer must not keep the daemon from watching."""
_LAST_WRITE_S = 2.0
_JUMP_S = 5.0
"""The clock is behind what was kept by more than this: it was set back while the daemon was away."""


class Docket:
    """`open` once, then `judge` from the cycle's thread; `note` and `take` may come from others."""

    def __init__(self, settings: config.Config, clock: Callable[[], Tick], log: Log) -> None:
        """Raises OverridesError for a bad [codes] file."""
        self._settings = settings
        self._clock = clock
        self._log = log
        self._overrides = overrides_of(settings)
        self._archive = Archive(settings.paths.state_dir, log, lambda: clock().mono_s)
        self._pusher: Pusher | None = None
        self._history = History()
        self._judging = Judging(self._history, RULES, config.limits_of(settings), settings.rules.off)
        self._turn = threading.Lock()
        """Held while a cycle judges: the end must not come in its middle."""
        self._lock = threading.Lock()
        self._notes: list[Event] = []
        self._ahead_s = 0.0
        """History time is the monotonic clock and this."""
        self._kept: tuple[Finding, ...] = ()
        """Findings of the newest cycle."""
        self._lasting: frozenset[object] | None = None
        """What of them the archive was last handed; None: nothing yet."""
        self._meta: Mapping[str, str] = {}

    def open(self, version: str) -> None:
        """Take up what was kept when the daemon last ran, and begin to tell."""
        loaded = self._archive.recall(RECALL_S)
        last_s = 0.0
        if loaded is not None:
            self._meta = loaded.meta
            self._history = History.restore(loaded.history)
            last_s = self._history.now_s
        now = self._clock()
        self._ahead_s = max(now.wall_s, last_s) - now.mono_s
        self._judging = Judging(
            self._history,
            RULES,
            config.limits_of(self._settings),
            self._settings.rules.off,
            _site(self._settings, self._overrides),
            Stood(loaded.findings if loaded else (), first_number(loaded, now.wall_s), self._bench(loaded)),
        )
        self._judging.recall(loaded.events if loaded else ())
        self._note_start(version, loaded, last_s, now)
        alertmanager, node = self._settings.alertmanager, self._settings.node
        self._pusher = Pusher(alertmanager, node_name(self._settings), self._clock, self._log, node.language)

    def note(self, kind: str, text: str, wall_s: float, **facts: str | float | bool) -> None:
        """A line for the journal; the next cycle writes it."""
        with self._lock:
            self._notes.append(Event(0, wall_s, kind, text, facts=facts))

    def kept(self, name: str) -> str | None:
        """What `keep` was last handed under this name, before the daemon was started."""
        return self._meta.get(name)

    def keep(self, name: str, text: str) -> None:
        """Have this found again after a restart."""
        self._archive.keep(Batch(meta={name: text}), self._clock().wall_s)

    def judge(self, snapshot: Snapshot, abandoned: Mapping[str, int]) -> Judged:
        """Judge, remember, and tell Alertmanager; waits for none of them."""
        with self._turn:
            return self._judge(snapshot, abandoned)

    def decide(self, decision: Decision) -> Answer:
        """Carry out a person's decision at once; the next cycle shows what it leads to."""
        with self._turn:
            answer, events = self._judging.decide(decision)
            for event in events:
                self._log(event.kind, device_id=event.device_id, text=event.text)
            if events:
                self._archive.keep(self._batch(events, self._judging.findings), decision.at_s)
            return answer

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """As they stand now, also between two cycles."""
        with self._turn:
            return self._judging.bench.verdicts

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Likewise."""
        with self._turn:
            return self._judging.findings

    def _judge(self, snapshot: Snapshot, abandoned: Mapping[str, int]) -> Judged:
        with self._lock:
            notes, self._notes = self._notes, []
        noted = tuple(self._judging.note(one.kind, one.text, one.at_s, **one.facts) for one in notes)
        judged = self._judging.step(snapshot, snapshot.at.mono_s + self._ahead_s, abandoned)
        self._archive.keep(self._batch((*noted, *judged.events), judged.findings), snapshot.at.wall_s)
        if self._pusher is not None:
            self._pusher.publish(judged.findings, snapshot.at)
        return judged

    @property
    def journal(self) -> tuple[Event, ...]:
        """The newest lines, oldest first."""
        return self._judging.journal

    @property
    def problem(self) -> Failure | None:
        """Why nothing can be remembered at the moment."""
        return self._archive.problem

    def code_tier(self, code: str) -> str:
        """How bad an error code is, by the vendor's table and the site's."""
        return lookup(code, self._overrides).tier.value

    def tally(self) -> Mapping[str, Notifications]:
        """Target → what became of the notifications to it."""
        return self._pusher.tally() if self._pusher else {}

    def take(self, settings: config.Config) -> None:
        """Go on with a new config. Raises OverridesError, and then nothing has changed."""
        overrides = overrides_of(settings)
        self._settings, self._overrides = settings, overrides
        self._judging.bench.node_when = settings.quarantine.node_when
        self._judging.take(config.limits_of(settings), settings.rules.off, _site(settings, overrides))
        if self._pusher is not None:
            self._pusher.take(settings.alertmanager, node_name(settings), settings.node.language)

    def close(self) -> None:
        """Write what is left; what stands goes on standing, since a daemon that ends has seen nothing heal."""
        with self._turn:
            last = self._judging.note("daemon_stopped", "npu-watchd was stopped", self._clock().wall_s)
            batch = self._batch((last,), self._kept)
        self._archive.close(batch, _LAST_WRITE_S)
        if self._pusher is not None:
            self._pusher.close(_LAST_WRITE_S)

    def _batch(self, events: tuple[Event, ...], findings: tuple[Finding, ...]) -> Batch:
        # Values move with every cycle; what a restart must find again does not.
        lasting = frozenset((one.key, one.severity, one.held, one.since_s) for one in findings)
        changed, self._lasting = lasting != self._lasting, lasting
        self._kept = findings
        cases = self._judging.bench.text(self._history.now_s)
        meta = {} if cases is None else {memo.NAME: cases}
        return Batch(self._history.changes(), events, findings if changed else None, meta)

    def _bench(self, loaded: Loaded | None) -> Bench:
        """The cases as they were. One that cannot be read costs all: unknown, until what is vital has been seen."""
        node_when = self._settings.quarantine.node_when
        text = (loaded.meta if loaded else {}).get(memo.NAME)
        if text is None:
            return Bench(self._published_cases() if loaded is None or self._archive.begun_anew else {}, {}, node_when)
        try:
            return Bench(*memo.cases_of(text), node_when)
        except ValueError as error:
            self._log("verdicts_unreadable", error=str(error), costs="who was in quarantine is judged anew")
            return Bench({}, {}, node_when)

    def _published_cases(self) -> Mapping[Subject, Case]:
        """What state.db should have said and cannot: who was in quarantine when verdict.json was last written."""
        try:
            found = memo.cases_of_document(gate.read(self._settings.paths.runtime_dir / gate.NAME))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, KeyError, TypeError) as error:
            self._log("verdicts_unreadable", error=str(error), costs="who was in quarantine is judged anew")
            return {}
        if found:
            self._log("verdicts_from_file", count=len(found), detail="state.db could not tell who was in quarantine")
        return found

    def _note_start(self, version: str, loaded: Loaded | None, last_s: float, now: Tick) -> None:
        standing = len(loaded.findings) if loaded else 0
        self.note("daemon_started", f"npu-watchd {version} was started; {standing} findings stood", now.wall_s)
        if self._archive.begun_anew is not None:
            self.note("history_begun_anew", self._archive.begun_anew, now.wall_s)
        if loaded is None:
            self.note("history_unknown", "what was before could not be read: counts begin as inventory", now.wall_s)
        elif last_s - now.wall_s > _JUMP_S:
            behind_s = last_s - now.wall_s
            text = f"the clock is {behind_s:.0f} s behind the newest reading that was kept: it was set back"
            self.note("clock_jumped", text, now.wall_s, seconds=-behind_s)


def _site(settings: config.Config, overrides: Overrides) -> Site:
    chosen = settings.contention
    return Site(overrides, Sharing(chosen.share, tuple(chosen.services), config.shares_of(settings)))


def overrides_of(settings: config.Config) -> Overrides:
    """What the file of [codes] says. Raises OverridesError."""
    return load_overrides(settings.codes.file) if settings.codes.file is not None else NO_OVERRIDES
