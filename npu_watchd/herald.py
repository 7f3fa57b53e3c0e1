"""What the log says of each cycle: one line a change, silence on a quiet node."""

from __future__ import annotations

from typing import TYPE_CHECKING

from npu_watchd.decide.cycle import Judged
from npu_watchd.model.verdict import State

if TYPE_CHECKING:
    import structlog

_GOOD = frozenset({"finding_resolved", "finding_seen_again"})
_VERDICTS = frozenset({"verdict_changed", "node_verdict_changed"})


class Herald:
    """For the one thread that makes cycles."""

    def __init__(self, log: structlog.typing.FilteringBoundLogger) -> None:
        self._log = log
        self._faulty: frozenset[str] = frozenset()
        """Rules that could not judge in the last cycle."""
        self._left_out: frozenset[str] = frozenset()
        """What the page that somebody last asked for had to leave out."""
        self._file_problem: str | None = None

    def tell(self, judged: Judged) -> None:
        """A line for each thing that is news."""
        for change in judged.changes:
            (self._log.info if change.good else self._log.warning)(change.event, **change.facts)
        for event in judged.events:
            if event.rule is not None:
                say = self._log.info if event.kind in _GOOD else self._log.warning
                say(event.kind, rule=event.rule, device_id=event.device_id, text=event.text)
            elif event.kind in _VERDICTS:
                say = self._log.info if event.facts["state"] == State.HEALTHY else self._log.warning
                say(event.kind, device_id=event.device_id, text=event.text)
        for rule, fault in judged.faults.items():
            if rule not in self._faulty:
                self._log.error("rule_failed", rule=rule, error=fault, costs="its findings are held, the others go on")
        self._faulty = frozenset(judged.faults)

    def tell_left_out(self, met: tuple[str, ...] | None) -> None:
        """What a page had to leave out: once, for as long as page after page does; None of one nobody asked for."""
        if met is not None:
            for problem in sorted(set(met) - self._left_out):
                self._log.warning("metric_left_out", problem=problem)
            self._left_out = frozenset(met)

    def tell_file(self, problem: str | None) -> None:
        """Why the snapshot's file could not be written; None: it was."""
        if problem != self._file_problem:
            if problem is None:
                self._log.info("snapshot_file_back")
            else:
                self._log.warning("snapshot_file_failed", error=problem, costs="`npu-watchd status` sees no daemon")
        self._file_problem = problem
