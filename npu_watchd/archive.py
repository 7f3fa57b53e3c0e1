"""What survives a restart, kept by a thread of its own: a disk that is full, slow or hung costs a cycle nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from npu_watchd.memory.backlog import Backlog, Batch
from npu_watchd.memory.rows import Changes
from npu_watchd.memory.store import NAME, Loaded, Store
from npu_watchd.model.reading import Failure, FailureKind

_RETRY_S = 30.0
"""After a write that failed, or a database that would not open (assumption: a person needs minutes to make room)."""
_PRUNE_S = 3600.0
_TIME_S = 300.0
"""How often the time is written although nothing happened: so long a spell may be taken for unwatched (assumption)."""
_FAR_AHEAD = 1_000_000_000
"""Where the numbers of the journal cannot be read, they go on from here and the wall clock: none may come twice."""


class Log(Protocol):
    """structlog's `warning`: an event and its facts."""

    def __call__(self, event: str, /, **facts: object) -> None: ...


class Archive:
    """`recall` once at the start, then `keep` from the cycle; neither waits for a disk that does not answer."""

    def __init__(self, state_dir: Path, warn: Log, monotonic: Callable[[], float]) -> None:
        self._path = state_dir / NAME
        self._warn = warn
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._backlog = Backlog()
        self._wake = threading.Event()
        self._recalled = threading.Event()
        self._loaded: Loaded | None = None
        self._late = False
        """The start did not wait for the database any longer: what is in it is no longer asked for."""
        self._stopped = False
        self._store: Store | None = None
        self._begun_anew: str | None = None
        self._problem: Failure | None = None
        self._prune_at_s = 0.0
        self._newest_s = 0.0
        self._time_due_s = 0.0
        self._thread = threading.Thread(target=self._work, name="archive", daemon=True)

    @property
    def problem(self) -> Failure | None:
        """Why nothing is written at the moment; None: all that was handed in is on disk, or on its way."""
        return self._problem

    @property
    def begun_anew(self) -> str | None:
        """That a database which was of no use was moved aside, where to, and why; None: it was not."""
        return self._begun_anew

    def recall(self, within_s: float) -> Loaded | None:
        """Open the database and return what was kept; None where that fails or takes longer than this."""
        self._thread.start()
        self._recalled.wait(within_s)
        with self._lock:
            # Not kept here as well: a month of a noisy node is 20 MB as rows, and 4 MB in the history.
            loaded, self._loaded = self._loaded, None
            self._late = loaded is None
            return loaded

    def keep(self, batch: Batch, wall_s: float) -> None:
        """Take what is new in a cycle. wall_s: by which the journal's old lines are dropped."""
        now_s = self._monotonic()
        with self._lock:
            self._newest_s = min(batch.changes.standing.now_s or wall_s, wall_s)
            # The time alone is worth a write only now and then: on a quiet node the disk may sleep.
            if batch.empty and now_s < self._time_due_s:
                return
            self._time_due_s = now_s + _TIME_S
            self._backlog.put(batch)
        self._wake.set()

    def close(self, last: Batch, within_s: float) -> None:
        """Write what is left, the time included, and end; gives up after `within_s`."""
        with self._lock:
            self._backlog.put(last)
            self._stopped = True
        self._wake.set()
        self._thread.join(within_s)

    def _work(self) -> None:
        while True:
            stopping = self._stopped
            try:
                self._turn()
            except Exception as error:  # a fault of ours costs this turn; the cycles go on in memory
                self._tell(Failure(FailureKind.EXIT, f"{self._path}: a fault of npu-watchd: {error!r}"))
            self._recalled.set()
            if stopping:
                break
            self._wake.wait(_RETRY_S if self._problem else _PRUNE_S)
            self._wake.clear()
        if self._store is not None:
            self._store.close()

    def _turn(self) -> None:
        if self._store is None and not self._open():
            return
        self._write()
        # A prune that succeeds does not say that what waits was written.
        if self._problem is not None or self._store is None:
            return
        if self._monotonic() >= self._prune_at_s and self._newest_s > 0:
            self._prune_at_s = self._monotonic() + _PRUNE_S
            self._tell(self._store.prune(self._newest_s))

    def _open(self) -> bool:
        opened = Store.open(self._path)
        if isinstance(opened, Failure):
            self._tell(opened)
            return False
        self._begun_anew = opened.said
        if opened.said is not None:
            self._warn("history_begun_anew", detail=opened.said)
        loaded = opened.load()
        if isinstance(loaded, Failure):
            opened.close()
            self._tell(loaded)
            return False
        for trouble in loaded.troubles[:5]:
            self._warn("history_row_unreadable", detail=trouble)
        with self._lock:
            if not self._late:
                self._loaded = loaded
        # Two histories cannot be one: the numbers of their series mean other things.
        failure = opened.write(Batch(changes=_all_gone(loaded.history))) if self._late else None
        if failure is not None:
            opened.close()
            self._tell(failure)
            return False
        self._store = opened
        return True

    def _write(self) -> None:
        with self._lock:
            waiting = self._backlog.waiting
            self._backlog.written()
        if waiting is None or self._store is None:
            return
        try:
            failure = self._store.write(waiting)
        except Exception as error:  # whatever it is, it must be seen that nothing is written, and nothing be lost
            failure = Failure(FailureKind.EXIT, f"{self._path}: a fault of npu-watchd: {error!r}")
        if failure is not None:
            with self._lock:
                newer = self._backlog.waiting
                self._backlog.written()
                self._backlog.put(waiting)
                if newer is not None:
                    self._backlog.put(newer)
        self._tell(failure)

    def _tell(self, failure: Failure | None) -> None:
        """One line when it begins to fail, when it fails otherwise, and when it is well again."""
        before, self._problem = self._problem, failure
        if failure is not None and failure != before:
            costs = "a restart now would forget what is new; the daemon goes on in memory and tries again"
            self._warn("history_not_written", error=failure.detail, costs=costs)
        elif failure is None and before is not None:
            self._warn("history_written_again", after=before.detail)


def first_number(loaded: Loaded | None, wall_s: float) -> int:
    """The journal's next number."""
    return loaded.next_event if loaded is not None else _FAR_AHEAD + int(wall_s)


def _all_gone(history: Changes) -> Changes:
    return Changes(
        dropped=frozenset(history.series),
        dropped_states=frozenset(history.states),
        dropped_peaks=frozenset(history.peaks),
        witnesses=dict.fromkeys(history.witnesses, ()),
    )
