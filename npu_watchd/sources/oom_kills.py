"""Whom the kernel killed for want of memory: from the lines of its log to processes and their jobs.

The process is dead, so its files are gone; but the log names its cgroup, which is what the kernel vouches for a job by.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from npu_watchd.model.host import Belonging, OomKill, OomLine
from npu_watchd.model.jobs import Job, ProcessKey, Scheduler
from npu_watchd.parsers import cgroup
from npu_watchd.parsers.lines import ParseError
from npu_watchd.parsers.oom import oom_line
from npu_watchd.sources.claims import ProcessFacts, believed
from npu_watchd.sources.kernel_log import KernelMessage

_TOGETHER_S = 60.0
"""Lines about one kill come within milliseconds; a pid that is used again takes longer (assumption)."""


class OomReader:
    """Puts together what several lines say of one kill; for the one thread that follows the log."""

    def __init__(self) -> None:
        self._newest: OomKill | None = None
        """By a line that names cgroup and process: the line that says that it is done follows."""
        self._cgroup: tuple[float, OomLine] | None = None
        """Of the process that is named next, and when that was said."""

    def take(self, messages: Iterable[KernelMessage]) -> tuple[OomKill, ...]:
        """The kills that these messages tell; what a program wrote into the log is none."""
        return tuple(kill for message in messages if message.by_kernel for kill in self._read(message))

    def _read(self, message: KernelMessage) -> Iterator[OomKill]:
        line, at_s = oom_line(message.text), message.since_boot_s
        if line is None:
            return
        if line.pid is None:
            self._cgroup = (at_s, line)
        elif not line.kills:
            self._cgroup = None
            self._newest = _kill(line, line.pid, at_s)
            yield self._newest
        elif not self._is_known(line.pid, at_s):
            yield _kill(self._placed(line, at_s), line.pid, at_s)

    def _is_known(self, pid: int, at_s: float) -> bool:
        newest, self._newest = self._newest, None
        return newest is not None and newest.pid == pid and at_s - newest.since_boot_s < _TOGETHER_S

    def _placed(self, line: OomLine, at_s: float) -> OomLine:
        """With the cgroup that a line before it named, if one did."""
        if self._cgroup is None:
            return line
        said_s, place = self._cgroup
        if not place.group:
            self._cgroup = None
        if at_s - said_s >= _TOGETHER_S:
            return line
        return replace(line, task_memcg=place.task_memcg, scope=place.scope)


def _kill(line: OomLine, pid: int, at_s: float) -> OomKill:
    job = _job(line)
    own = job is not None and job.scheduler is Scheduler.UNIT and not job.id.startswith("user@")
    belongs = Belonging.UNKNOWN if job is None else Belonging.OTHER if own else Belonging.JOB
    return OomKill(
        pid=pid,
        name="".join(char if char.isprintable() else "�" for char in line.name or ""),
        scope=line.scope,
        since_boot_s=at_s,
        task_memcg=line.task_memcg,
        uid=line.uid,
        belongs=belongs,
        job=job.key if job is not None and belongs is Belonging.JOB else None,
    )


def _job(line: OomLine) -> Job | None:
    """A unit of systemd counts as one here; None: the cgroup is not known, or places nobody."""
    if line.pid is None or line.task_memcg is None:
        return None
    try:
        place = cgroup.parse(f"0::{line.task_memcg}\n")
    except ParseError:
        return None
    return believed(ProcessFacts(ProcessKey(line.pid, 0), cgroup=place)).job
