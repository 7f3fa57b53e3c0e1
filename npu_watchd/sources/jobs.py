"""From the pids on the chips to jobs, without ever taking one process for another.

A process is known by pid and start. What is read of it is read once while it lives; each later look costs one read of
its stat. A pid is not looked up where that could meet another process: one that started after the tool was asked, one
with another name where that cannot be told, a container's own pid on the host.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from npu_watchd.model.jobs import Attribution, DeviceProcess, ProcessKey, Scheduler
from npu_watchd.model.reading import Failure, FailureKind
from npu_watchd.model.records import ProcessRow
from npu_watchd.parsers import cgroup, environ
from npu_watchd.parsers.lines import ParseError
from npu_watchd.parsers.process_files import ProcessStat
from npu_watchd.sources.claims import ProcessFacts, believed
from npu_watchd.sources.job_life import JobLives, MappedLives
from npu_watchd.sources.mapping_dir import MappingDir
from npu_watchd.sources.process_tree import ProcessTree, user_name
from npu_watchd.sources.sweep import Sweep

V = TypeVar("V")

_SLOW_S = 0.3
"""For what waits on others: environ, on the process's own memory lock; a user's name, on a directory server."""
_COMM = 15
"""Characters of a name that the kernel keeps, and npu-smi prints without its colons."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """The process behind a row, or why there is none."""

    stat: ProcessStat | None = None
    note: str | None = None

    @property
    def key(self) -> ProcessKey | None:
        return ProcessKey(self.stat.pid, self.stat.started_ticks) if self.stat else None


_CONFINED = _Seen(
    note="npu-smi shows the host's numbers, and npu-watchd is in a PID namespace of its own, where they mean other "
    "processes; `hostPID: true` in the pod mends that"
)


class JobFinder:
    """Blocks where procfs does: call it through JobSweep. For one thread at a time."""

    def __init__(
        self,
        procfs: Path,
        mapping_dir: Path | None,
        monotonic: Callable[[], float],
        name_of: Callable[[int], str | None] = user_name,
        ticks_per_second: int = os.sysconf("SC_CLK_TCK"),
    ) -> None:
        """name_of: a uid's user name. monotonic: seconds, only for the words of a hang."""
        self._tree = ProcessTree(procfs)
        self._slow_tree = ProcessTree(procfs)
        self._mapping = MappingDir(mapping_dir) if mapping_dir is not None else None
        self._name_of = name_of
        self._ticks_per_second = ticks_per_second
        self._lives = JobLives(self._tree, monotonic)
        self._facts: dict[ProcessKey, ProcessFacts] = {}
        self._mapped_lives = MappedLives(mapping_dir) if mapping_dir is not None else None
        self._names: dict[int, str] = {}
        self._slurm_places = False
        self._task: Callable[[], object] = lambda: None
        self._slow = Sweep("job environ", self._do_task, monotonic, _SLOW_S, lambda: self._slow_tree.reading)

    @property
    def reading(self) -> str:
        """The file that is read at the moment."""
        return self._tree.reading

    def find(self, listed: Iterable[DeviceProcess], listed_ago_s: float | None = None) -> tuple[Attribution, ...]:
        """In the order of `listed`.

        listed_ago_s: seconds since the tool that listed them was started; a process that is younger is another one.
        None: not known; then a name that differs is taken for another process.
        """
        rows = tuple(listed)
        seen = self._all_seen(rows, listed_ago_s)
        keys = {found.key for found in seen.values() if found.key is not None}
        # /proc/stat is long, and slow to make, where there are many cores.
        boot_s = None if keys <= self._facts.keys() else self._tree.boot_wall_s()
        facts = {key: self._facts_of(key, boot_s) for key in keys}
        # What is incomplete because of a hang, or because the process ended meanwhile, is read again.
        self._facts = {key: known for key, (known, whole) in facts.items() if whole}
        self._slurm_places = self._slurm_places or any(
            known.cgroup is not None and known.cgroup.scheduler is Scheduler.SLURM for known, _ in facts.values()
        )
        self._lives.begin()
        if self._mapped_lives is not None:
            self._mapped_lives.keep(keys)
        mapped = self._mapped({item.device_id for item in rows})
        return tuple(
            self._attribution(item, seen[_row_of(item)], facts, mapped.get(item.device_id, ())) for item in rows
        )

    def _attribution(
        self,
        item: DeviceProcess,
        seen: _Seen,
        facts: Mapping[ProcessKey, tuple[ProcessFacts, bool]],
        mapped: tuple[str, ...] | Failure,
    ) -> Attribution:
        row = item.row
        if seen.key is None:
            return Attribution(item.device, row.pid, row.name, row.memory_bytes, note=seen.note)
        known, _ = facts[seen.key]
        if row.container_pid is not None and known.namespace_pid not in (None, row.container_pid):
            note = f"pid {row.pid} is {known.namespace_pid} in its container, the listed one was {row.container_pid}"
            return Attribution(item.device, row.pid, row.name, row.memory_bytes, note=note)
        no_mapping = mapped.detail if isinstance(mapped, Failure) else None
        claim = believed(known, () if isinstance(mapped, Failure) else mapped, self._slurm_places)
        notes = [seen.note, no_mapping, claim.note]
        life = self._lives.of(known, claim.job, claim.source)
        if life.alive is None and self._mapped_lives is not None and not isinstance(mapped, Failure):
            life = self._mapped_lives.of(known, item.device_id, claim)
        return Attribution(
            item.device,
            row.pid,
            row.name,
            row.memory_bytes,
            process=seen.key,
            started_wall_s=known.started_wall_s,
            user=known.user,
            job=claim.job,
            source=claim.source,
            note="; ".join(note for note in notes if note) or None,
            job_alive=life.alive,
            ended=life.ended,
            variables=known.environ.variables if known.environ else None,
        )

    # Which process a row means

    def _all_seen(self, rows: Iterable[DeviceProcess], ago_s: float | None) -> dict[_Row, _Seen]:
        wanted = {_row_of(item) for item in rows}
        if self._tree.confined():
            return dict.fromkeys(wanted, _CONFINED)
        stats = {pid: self._tree.stat(pid) for pid in {row.pid for row, _ in wanted}}
        uptime_s = self._tree.uptime_s() if ago_s is not None else None
        table_s = uptime_s - ago_s if isinstance(uptime_s, float) and ago_s is not None else None
        listed_s = {key: None if table_s is None else table_s - key[1] for key in wanted}
        seen = {key: self._seen(key[0], stats[key[0].pid], listed_s[key]) for key in wanted}
        inside = [
            key for key, found in seen.items() if found.stat is None and _may_be_inside(key[0], stats[key[0].pid])
        ]
        if inside and self._tree.sees_all():
            seen |= self._inside({key: listed_s[key] for key in inside})
        return seen

    def _seen(self, row: ProcessRow, stat: ProcessStat | Failure, listed_s: float | None) -> _Seen:
        if isinstance(stat, Failure):
            if stat.kind is not FailureKind.MISSING:
                return _Seen(note=stat.detail)
            if row.name is None:
                return _Seen(note=f"pid {row.pid} is not one of this PID namespace")
            return _Seen(note=f"pid {row.pid} has ended since it was listed")
        name = stat.name.replace(":", "").strip()
        if stat.kernel_thread:
            return _Seen(note=f"pid {row.pid} is a kernel thread here, which holds no chip")
        if row.name is None and name:
            return _Seen(note=f"npu-smi could not name pid {row.pid}: the process of that number here may be another")
        if self._younger(stat, listed_s):
            return _Seen(note=f"pid {row.pid} is now another process than the one that was listed")
        if row.name is not None and name[:_COMM] != row.name[:_COMM]:
            if listed_s is None:
                return _Seen(note=f"pid {row.pid} is named {name!r} now: it may be another process")
            return _Seen(stat, f"it calls itself {name!r} now")
        return _Seen(stat)

    def _younger(self, stat: ProcessStat, listed_s: float | None) -> bool:
        return listed_s is not None and stat.started_ticks / self._ticks_per_second > listed_s

    def _inside(self, rows: Mapping[_Row, float | None]) -> dict[_Row, _Seen]:
        """Rows whose pid is a container's own: the one process with that number in a namespace of its own, if any.

        rows: with the second since boot at which each was listed.
        """
        wanted = {key: key[0].pid if key[0].container_pid is None else key[0].container_pid for key in rows}
        found: dict[int, list[ProcessStat]] = {number: [] for number in wanted.values()}
        for pid in self._tree.pids():
            status = self._tree.status(pid)
            if isinstance(status, Failure) or len(status.namespace_pids) < 2:
                continue
            stat = self._tree.stat(pid) if status.namespace_pids[-1] in found else None
            if isinstance(stat, ProcessStat):
                found[status.namespace_pids[-1]].append(stat)
        return {key: self._only(key[0], found[number], rows[key]) for key, number in wanted.items()}

    def _only(self, row: ProcessRow, candidates: list[ProcessStat], listed_s: float | None) -> _Seen:
        where = f"pid {row.pid} is of another PID namespace"
        if len(candidates) != 1:
            return _Seen(note=f"{where}; {len(candidates) or 'no'} processes of this node have that number in theirs")
        if self._younger(candidates[0], listed_s):
            return _Seen(note=f"{where}; the one with that number started after it was listed")
        return _Seen(candidates[0], f"{where}; here it is {candidates[0].pid}")

    # What is read of a process

    def _facts_of(self, key: ProcessKey, boot_s: int | None) -> tuple[ProcessFacts, bool]:
        """The facts, and whether they are all that there will ever be."""
        if key in self._facts:
            return self._facts[key], True
        group, status = self._parsed(key, "cgroup", cgroup.parse), self._tree.status(key.pid)
        text = self._slowly(lambda: self._slow_tree.text(key.pid, "environ"))
        after = self._tree.stat(key.pid)
        if isinstance(after, Failure) or after.started_ticks != key.started_ticks:
            return ProcessFacts(key, note="it ended while it was read"), False
        uid = None if isinstance(status, Failure) else status.uid
        owner = None if isinstance(group, Failure) else group.uid if group.job_uid is None else group.job_uid
        failures = [found for found in (group, status, text) if isinstance(found, Failure)]
        facts = ProcessFacts(
            key,
            cgroup=None if isinstance(group, Failure) else group,
            environ=None if isinstance(text, Failure) else environ.parse(text),
            namespace_pid=None if isinstance(status, Failure) else (status.namespace_pids or (None,))[-1],
            uid=uid,
            user=self._user(uid),
            owner=self._user(owner),
            started_wall_s=None if boot_s is None else boot_s + key.started_ticks / self._ticks_per_second,
            note="; ".join(found.detail for found in failures) or None,
        )
        named = all(number in self._names for number in (uid, owner) if number is not None)
        return facts, named and all(found.kind is FailureKind.DENIED for found in failures)

    def _parsed(self, key: ProcessKey, name: str, parse: Callable[[str], V]) -> V | Failure:
        text = self._tree.text(key.pid, name)
        if isinstance(text, Failure):
            return text
        try:
            return parse(text)
        except ParseError as error:
            return Failure(FailureKind.UNPARSEABLE, f"{self._tree.reading}: {error}")

    def _user(self, uid: int | None) -> str | None:
        """The digits where it has no name, or where the directory server does not answer: then not for good."""
        if uid is None or uid in self._names:
            return None if uid is None else self._names[uid]
        name = self._slowly(lambda: self._name_of(uid))
        if isinstance(name, Failure):
            return str(uid)
        self._names[uid] = name if name and name.isprintable() and len(name) <= 64 else str(uid)
        return self._names[uid]

    def _slowly(self, task: Callable[[], V]) -> V | Failure:
        """WEDGED at once while an earlier one hangs: at most one thread is ever lost."""
        self._task = task
        return self._slow()  # type: ignore[return-value]  # what the task returns

    def _do_task(self) -> object:
        return self._task()

    def _mapped(self, device_ids: set[int | None]) -> dict[int | None, tuple[str, ...] | Failure]:
        if self._mapping is None:
            return {}
        return {number: self._mapping.jobs(number) for number in device_ids if number is not None}


_Row = tuple[ProcessRow, float]
"""A row, and how long before the table it was listed."""


def _row_of(item: DeviceProcess) -> _Row:
    return item.row, item.earlier_s


def _may_be_inside(row: ProcessRow, stat: ProcessStat | Failure) -> bool:
    """The pid may be a container's own: the tool found no process of that number, or one that holds no chip."""
    if isinstance(stat, Failure):
        return row.name is None and stat.kind is FailureKind.MISSING
    return row.name is None or stat.kernel_thread
