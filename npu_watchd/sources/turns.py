"""Who may start which tool when: one run of a tool at a time, and none while an earlier one cannot be ended."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf

from npu_watchd.model.reading import Failure, FailureKind
from npu_watchd.sources import strays
from npu_watchd.sources.strays import Process

_LONGEST_REST_S = 600.0


@dataclass(frozen=True, slots=True)
class Abandoned:
    """A run that could not be ended. Its tool is not started again until all of it is gone."""

    command: str
    pid: int | None
    """None: it has not become a process, since the file system that holds the tool does not answer."""
    processes: tuple[Process, ...]
    """What lives on: the process itself, children of its, or both."""
    since_s: float
    """When we gave up, on the runner's clock."""

    def describe(self, now_s: float) -> str:
        """For a person, with what to check; `now_s` on the same clock."""
        tool = self.command.split(" ", 1)[0]
        ago = f"{now_s - self.since_s:.0f} s ago"
        if self.pid is None:
            return (
                f"`{self.command}` could not be started, given up {ago}: the file system that holds {tool} does not "
                f"answer; no second {tool} is started until it does; check `df` and `dmesg`"
            )
        pid = self.processes[0].pid if self.processes else self.pid
        who = strays.describe(self.processes) or f"pid {pid}"
        return (
            f"`{self.command}` was killed {ago} and is still there, out of reach of SIGKILL: {who}; no second {tool} "
            f"is started until it is gone; check `cat /proc/{pid}/stack` and `dmesg` for a call that never returns"
        )


@dataclass(frozen=True, slots=True)
class Stuck:
    """What stands in the way of a tool's next start, and the question whether it still does."""

    report: Abandoned
    gone: Callable[[], bool]
    """Reaps where there is something to reap. Never blocks."""


@dataclass(slots=True)
class _Tool:
    running: str | None = None
    """The command that has the tool now."""
    stuck: Stuck | None = None
    strikes: int = 0
    """Runs abandoned since one last ended."""
    rests_until_s: float = -inf
    rests_because: str = ""


class Turns:
    """The state of every tool by name, shared by the threads that want to run one."""

    def __init__(self, clock: Callable[[], float], backoff_s: float) -> None:
        self._clock = clock
        self._backoff_s = backoff_s
        self._changed = threading.Condition()
        self._tools: dict[str, _Tool] = {}
        self._closed = False

    def claim(self, name: str, command: str, give_up_s: float) -> Failure | None:
        """Wait for the tool until `give_up_s`. None: it is yours until `release`. A Failure says what has it."""
        asked_at_s = self._clock()
        with self._changed:
            tool = self._tools.setdefault(name, _Tool())
            while True:
                self._look_after(tool)
                now_s = self._clock()
                refusal = self._refusal(tool, now_s)
                if refusal is not None:
                    return Failure(refusal.kind, f"{command}: not started. {refusal.detail}")
                if tool.running is None:
                    tool.running = command
                    return None
                if now_s >= give_up_s:
                    detail = f"`{tool.running}` still ran after {now_s - asked_at_s:.1f} s; one {name} runs at a time"
                    return Failure(FailureKind.TIMEOUT, f"{command}: not started. {detail}")
                self._changed.wait(give_up_s - now_s)

    def _refusal(self, tool: _Tool, now_s: float) -> Failure | None:
        if self._closed:
            return Failure(FailureKind.TIMEOUT, "npu-watchd is stopping")
        if tool.stuck is not None:
            return Failure(FailureKind.WEDGED, tool.stuck.report.describe(now_s))
        if now_s < tool.rests_until_s:
            rest_s = tool.rests_until_s - now_s
            return Failure(FailureKind.WEDGED, f"{tool.rests_because}; the next start is in {rest_s:.0f} s")
        return None

    def release(self, name: str, stuck: Stuck | None) -> None:
        """The run is over; `stuck` is what it left that cannot be ended."""
        with self._changed:
            tool = self._tools[name]
            tool.running = None
            tool.stuck = stuck
            if stuck is None:
                tool.strikes = 0
            self._changed.notify_all()

    def abandoned(self) -> Mapping[str, Abandoned]:
        with self._changed:
            for tool in self._tools.values():
                self._look_after(tool)
            return {name: tool.stuck.report for name, tool in self._tools.items() if tool.stuck is not None}

    def _look_after(self, tool: _Tool) -> None:
        if tool.stuck is None or not tool.stuck.gone():
            return
        now_s = self._clock()
        report = tool.stuck.report
        tool.stuck = None
        tool.rests_until_s = now_s + min(self._backoff_s * 2.0**tool.strikes, _LONGEST_REST_S)
        tool.rests_because = f"`{report.command}` could not be ended for {now_s - report.since_s:.0f} s and is gone now"
        tool.strikes = min(tool.strikes + 1, 30)

    def close(self, timeout_s: float) -> bool:
        """Refuse every claim from now on, and wait for the runs under way. False: one is still not over."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
            return self._changed.wait_for(
                lambda: not any(tool.running for tool in self._tools.values()), timeout=timeout_s
            )
