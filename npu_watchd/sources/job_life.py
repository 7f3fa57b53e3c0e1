"""Whether a process's job still runs: whether whoever keeps it for the scheduler still lives.

A step of Slurm has a slurmstepd, which outlives its tasks and ends with them; a container has a process outside of it
(containerd's shim, conmon, iSulad's) from which its own descend. Once that is gone nobody will clean up behind the job.
A parent of 1 alone says nothing: so do services, and what somebody started with nohup. Nor does a login session that
is over: who uses nohup or tmux means just that.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from npu_watchd.model.jobs import EndedJob, Job, JobKey, ProcessKey, Scheduler, Source
from npu_watchd.model.reading import Failure, FailureKind
from npu_watchd.parsers import cgroup
from npu_watchd.parsers.lines import ParseError
from npu_watchd.parsers.process_files import ProcessStat
from npu_watchd.sources.claims import Claim, ProcessFacts, own_job
from npu_watchd.sources.process_tree import ProcessTree

_SEARCH_S = 60.0
"""How often all of /proc is searched at most: of 2000 processes that takes 0.1 s of CPU (tests/bench/jobs.py)."""
_DEEPEST = 64
"""Ancestors that are walked up."""
_STEPD = "slurmstepd"
_TITLE = re.compile(rf"{_STEPD}: \[(?P<job>[0-9]{{1,10}})(?:\.[A-Za-z0-9]{{1,20}})?\] *")
"""As slurmstepd shows itself: `slurmstepd: [12.batch]`. A part of a heterogeneous job (`[12+1.0]`) is none of these."""
_KEEPS_SCOPE = "infinity"
"""The one slurmstepd that keeps Slurm's scope alive, and no job."""
_OF_SLURM = frozenset({"slurmd.service", "slurmstepd.scope"})
_INIT = 1


@dataclass(frozen=True, slots=True)
class Life:
    """What can be told of one process's job."""

    alive: bool | None = None
    """None: nobody can tell."""
    ended: EndedJob | None = None
    """With `alive` False."""


UNKNOWN = Life()
_Unit = tuple[str, str]
"""`slurm` and a job's number, or `container` and its id."""


class JobLives:
    """Blocks where procfs does. `begin` each look, then `of` each process; for one thread at a time.

    Who keeps a job is found once, and from then on costs one read of its stat a look.
    """

    def __init__(self, tree: ProcessTree, monotonic: Callable[[], float]) -> None:
        self._tree = tree
        self._monotonic = monotonic
        self._keepers: dict[_Unit, ProcessKey] = {}
        self._steps: dict[str, ProcessKey] | None = None
        """Job → a slurmstepd of it, of the newest search; None: it could not see all."""
        self._missed: set[str] = set()
        """Jobs of which that search found none, though a process of theirs had been seen before."""
        self._searched_s: float | None = None
        self._below: dict[ProcessKey, bool] = {}
        """Processes of which only the environment says whose they are: whether a slurmstepd of that job was above."""
        self._begin()

    def begin(self) -> None:
        """A new look: what was read of any process in the one before no longer counts."""
        self._keepers = {unit: keeper for unit, keeper in self._keepers.items() if unit in self._told}
        self._below = {key: below for key, below in self._below.items() if key in self._asked}
        self._begin()

    def _begin(self) -> None:
        self._stats: dict[int, ProcessStat | Failure] = {}
        self._told: dict[_Unit, Life] = {}
        self._asked: set[ProcessKey] = set()
        self._all: bool | None = None
        self._fresh = False
        """The newest search was made in this look."""

    def of(self, facts: ProcessFacts, job: Job | None, source: Source | None) -> Life:
        """job, source: what is believed of the process."""
        if job is None:
            return UNKNOWN
        placed = facts.cgroup
        number = placed.job if placed is not None and placed.scheduler is Scheduler.SLURM else None
        if number is not None:
            return self._once(("slurm", number), lambda: self._of_step(number))
        if placed is not None and placed.container is not None and not placed.delegated:
            container = placed.container
            return self._once(("container", container), lambda: self._of_container(facts.key, job.key, container))
        said = facts.environ.claim if facts.environ else None
        of_slurm = said is not None and said.scheduler is Scheduler.SLURM and source in (Source.ENVIRON, Source.MAPPING)
        if said is None or not of_slurm:
            return UNKNOWN
        # mpirun over ssh hands the same variables on, without any slurmstepd on this node. What Slurm itself has
        # started was seen below a slurmstepd of the job, or lies in the cgroup of slurmd.
        stepped = self._was_below_step(facts.key, said.id)
        if not stepped and (placed is None or placed.unit not in _OF_SLURM):
            return UNKNOWN
        life = self._once(("slurm", said.id), lambda: self._of_step(said.id))
        # A prolog has the job's variables, and slurmd above it in place of a slurmstepd.
        return life if stepped or life.alive is not False or self._is_orphan(facts.key) else UNKNOWN

    def _once(self, unit: _Unit, tell: Callable[[], Life]) -> Life:
        """One answer a look for all the processes of a job, and no search while its keeper lives."""
        if unit not in self._told:
            keeper = self._keepers.get(unit)
            self._told[unit] = Life(True) if keeper is not None and self._lives(keeper) else tell()
        return self._told[unit]

    def _lives(self, key: ProcessKey) -> bool:
        stat = self._stat(key.pid)
        return isinstance(stat, ProcessStat) and stat.started_ticks == key.started_ticks

    def _stat(self, pid: int) -> ProcessStat | Failure:
        if pid not in self._stats:
            self._stats[pid] = self._tree.stat(pid)
        return self._stats[pid]

    # Slurm

    def _of_step(self, number: str) -> Life:
        now_s = self._monotonic()
        if self._searched_s is None or now_s - self._searched_s >= _SEARCH_S:
            self._steps, self._searched_s = self._search(), now_s
            self._fresh, self._missed = True, set()
        keeper = self._steps.get(number) if self._steps is not None else None
        if keeper is not None:
            self._keepers["slurm", number] = keeper
            return Life(True) if self._lives(keeper) else UNKNOWN
        if self._steps is not None and self._fresh:
            self._missed.add(number)
        # A search from before its process was seen is no evidence: the job may have begun since.
        if number not in self._missed:
            return UNKNOWN
        check = rf"pgrep -af 'slurmstepd: \[{number}[].]' (prints nothing); squeue -j {number}"
        return Life(False, EndedJob(JobKey(Scheduler.SLURM, number), "no slurmstepd of it is left", check))

    def _search(self) -> dict[str, ProcessKey] | None:
        """Every slurmstepd by its job; None where one may be out of sight, or does not say whose it is."""
        if not self._sees_all():
            return None
        found: dict[str, ProcessKey] = {}
        init = False
        for pid in self._tree.pids():
            stat = self._stat(pid)
            if isinstance(stat, Failure):
                if stat.kind is FailureKind.MISSING:
                    continue
                return None
            init |= pid == _INIT
            if stat.name == _STEPD:
                words = self._title(pid)
                match = _TITLE.match(words)
                if match is not None:
                    found[match["job"]] = ProcessKey(pid, stat.started_ticks)
                elif _KEEPS_SCOPE not in words.split():
                    return None
        # Without init this is a procfs that hides the processes of others (hidepid).
        return found if init else None

    def _title(self, pid: int) -> str:
        """What a process shows as its command line; "" where it cannot be read."""
        text = self._tree.text(pid, "cmdline")
        return "" if isinstance(text, Failure) else text.replace("\0", " ")

    def _was_below_step(self, key: ProcessKey, number: str) -> bool:
        """Whether a slurmstepd of the job was an ancestor of the process when it was first looked at."""
        if key not in self._below:
            titles = (_TITLE.match(self._title(stat.pid)) for stat in self._line(key) if stat.name == _STEPD)
            self._below[key] = any(title is not None and title["job"] == number for title in titles)
        self._asked.add(key)
        return self._below[key]

    def _is_orphan(self, key: ProcessKey) -> bool:
        return (top := self._top(key)) is not None and not any(
            stat.name in ("slurmd", _STEPD) for stat in (top, *self._line(key))
        )

    # Containers

    def _of_container(self, key: ProcessKey, job: JobKey, container: str) -> Life:
        top = self._top(key)
        if top is None or not self._sees_all():
            return UNKNOWN
        text = self._tree.text(top.pid, "cgroup")
        try:
            placed = None if isinstance(text, Failure) else cgroup.parse(text)
        except ParseError:
            placed = None
        if placed is None:
            return UNKNOWN
        if placed.container != container:
            self._keepers["container", container] = ProcessKey(top.pid, top.started_ticks)
            return Life(True)
        why = f"its container {container[:12]} has lost its shim: pid {top.pid}, its first process, is a child of init"
        return Life(False, EndedJob(job, why, f"ps -o pid,ppid,lstart,args -p {top.pid}; cat /proc/{top.pid}/cgroup"))

    # Ancestors

    def _line(self, key: ProcessKey) -> Iterator[ProcessStat]:
        """The process and its ancestors up to the last before init, as far as they can be read."""
        pid = key.pid
        for _ in range(_DEEPEST):
            stat = self._stat(pid)
            if isinstance(stat, Failure):
                return
            yield stat
            if stat.parent_pid in (0, _INIT):
                return
            pid = stat.parent_pid

    def _top(self, key: ProcessKey) -> ProcessStat | None:
        """The one of them that is a child of init; None: not to be seen."""
        line = list(self._line(key))
        # A procfs of the first PID namespace has init at the end of every line.
        return line[-1] if line and line[-1].parent_pid == _INIT and self._lives(key) else None

    def _sees_all(self) -> bool:
        if self._all is None:
            self._all = self._tree.sees_all()
        return self._all


class MappedLives:
    """The site's word on the jobs of which a process says the same: over once its folder no longer names them.

    Assumption: the site takes a job out of a device's file when it ends, and not before. Nothing is known of a job that
    the folder has not named since the daemon was started.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._named: dict[tuple[ProcessKey, int | None], JobKey] = {}

    def keep(self, living: Collection[ProcessKey]) -> None:
        """Forget who is gone."""
        self._named = {key: job for key, job in self._named.items() if key[0] in living}

    def of(self, facts: ProcessFacts, device_id: int | None, claim: Claim) -> Life:
        """claim: what is believed of the process with the device's file as it is now, which could be read."""
        if claim.source is Source.MAPPING and claim.job is not None:
            # A job that a process is in by the mapping's word alone may be another's: it says who should be there.
            if own_job(facts) is not None:
                self._named[facts.key, device_id] = claim.job.key
            return UNKNOWN
        was = self._named.get((facts.key, device_id))
        if was is None:
            return UNKNOWN
        file = self._folder / str(device_id)
        return Life(False, EndedJob(was, f"{file} named it while it ran, and no longer does", f"cat {file}"))
