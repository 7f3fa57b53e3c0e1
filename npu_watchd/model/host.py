"""What the host has left for the jobs' own processes, and whom its kernel killed for want of memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from npu_watchd.model.jobs import JobKey
from npu_watchd.model.reading import Failure

RESOURCES = ("cpu", "memory", "io")
"""As the files of /proc/pressure are called."""


@dataclass(frozen=True, slots=True)
class Stall:
    """Share of time in which work waited for a resource; ratios 0..1."""

    avg10_ratio: float
    """Over the last 10 s, as the kernel averages it."""
    avg60_ratio: float


@dataclass(frozen=True, slots=True)
class Pressure:
    """One file of /proc/pressure (Documentation/accounting/psi.rst of Linux)."""

    some: Stall
    """Some work waited, while other work may have gone on."""
    full: Stall | None
    """All of it waited; None: the kernel does not tell it of the CPU (before 5.13)."""


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """From /proc/meminfo; bytes. None: it has no such line."""

    total_bytes: int | None
    available_bytes: int | None
    """What can be had without swapping, by the kernel's own estimate."""


@dataclass(frozen=True, slots=True)
class TaskLoad:
    """From /proc/loadavg: processes and their threads, which share one space of numbers."""

    runnable: int
    tasks: int


@dataclass(frozen=True, slots=True)
class SharedMemory:
    """The file system of /dev/shm, in which data loaders and HCCL pass their data on; bytes."""

    used_bytes: int
    total_bytes: int


@dataclass(frozen=True, slots=True)
class Host:
    """The host at one look. Each file on its own: `failures` says why a value is not there."""

    pressure: Mapping[str, Pressure] = field(default_factory=dict)
    """By resource."""
    memory: MemoryUse | None = None
    oom_kills: int | None = None
    """Processes that the kernel killed for want of memory since boot, in cgroups too (`oom_kill` of /proc/vmstat)."""
    shared_memory: SharedMemory | None = None
    load: TaskLoad | None = None
    tasks_max: int | None = None
    """No task gets a number from here on: with that many nothing can be started (/proc/sys/kernel/pid_max)."""
    uptime_s: float | None = None
    failures: Mapping[str, Failure] = field(default_factory=dict)
    """File below procfs, or `shm` → why it could not be read."""
    unsupported: Mapping[str, str] = field(default_factory=dict)
    """Likewise of what this kernel does not have: nothing is wrong."""


class OomScope(StrEnum):
    """What was full."""

    NODE = "node"
    """The memory of the whole node, or of one of its NUMA nodes."""
    CGROUP = "cgroup"
    """What one cgroup, as a rule a job's, may have."""
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class OomLine:
    """What one line of the kernel's log says of a process that it killed for want of memory."""

    pid: int | None
    """None: the line names only the cgroup, of the process that a later line names."""
    name: str | None
    """At most 15 characters, which the process chose itself."""
    scope: OomScope
    task_memcg: str | None = None
    """Its memory cgroup, as a path from the root; None: the line does not say, or says it in two ways."""
    uid: int | None = None
    kills: bool = False
    """True: the line that says that it is done; one for each process killed."""
    group: bool = False
    """True: the cgroup is of all that the lines after it name (memory.oom.group)."""


class Belonging(StrEnum):
    """Whether a killed process was a job's."""

    JOB = "job"
    OTHER = "other"
    """It was a service of the system's own."""
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class OomKill:
    """A process that the kernel killed for want of memory."""

    pid: int
    name: str
    scope: OomScope
    since_boot_s: float
    """The log's own stamp."""
    task_memcg: str | None = None
    uid: int | None = None
    belongs: Belonging = Belonging.UNKNOWN
    job: JobKey | None = None
    """None unless `belongs` is JOB."""
    before_start: bool = False
    """It stood in the log before we began to read: evidence, and no news by itself."""
    ago_s: float | None = None
    """Before the snapshot; None: nobody can tell, since the uptime is not known."""
