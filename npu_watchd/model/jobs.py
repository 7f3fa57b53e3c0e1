"""Who is on a chip: a process that cannot be mistaken for another, and the job that it belongs to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from npu_watchd.model.hccl import HCCL_VARIABLES, Listener, ProcessPlace, values
from npu_watchd.model.ids import DeviceKey
from npu_watchd.model.records import ProcessRow


class Scheduler(StrEnum):
    """Who gave the job its id; two ids are only comparable within one of these."""

    SLURM = "slurm"
    KUBERNETES = "kubernetes"
    """The id is the pod's uid; the pod's name where only the environment speaks."""
    VOLCANO = "volcano"
    """A Volcano job by its name: only the environment tells it."""
    LSF = "lsf"
    PBS = "pbs"
    MAPPING = "mapping"
    """The site's own mapping folder; its ids are the site's."""
    DOCKER = "docker"
    CONTAINERD = "containerd"
    CRIO = "crio"
    PODMAN = "podman"
    ISULAD = "isulad"
    CONTAINER = "container"
    """A container whose runtime left no name in the path."""
    SESSION = "session"
    """A login session of systemd, by its number since boot."""
    UNIT = "unit"
    """A service or scope of systemd; `user@1000.service/NAME` where it is a user's own."""
    USER = "user"
    """All that is known is whose process it is."""


class Source(StrEnum):
    """What the job was read from. The kernel vouches for all but `mapping` (the site) and `environ` (the process)."""

    MAPPING = "mapping"
    CGROUP = "cgroup"
    ENVIRON = "environ"
    SESSION = "session"
    UNIT = "unit"
    USER = "user"


@dataclass(frozen=True, slots=True, order=True)
class ProcessKey:
    """One process for as long as the node is up: a pid that is used again has another start."""

    pid: int
    """As the procfs that we read numbers it."""
    started_ticks: int
    """Clock ticks since boot: field 22 of /proc/PID/stat."""


@dataclass(frozen=True, slots=True, order=True)
class JobKey:
    """What makes two processes the same job; ids of different schedulers never do."""

    scheduler: Scheduler
    id: str

    def __str__(self) -> str:
        return f"{self.scheduler} {self.id}"


@dataclass(frozen=True, slots=True)
class Job:
    """A job as one of its processes shows it. Compare jobs by `key`: the rest may differ from process to process."""

    scheduler: Scheduler
    id: str
    """Printable, without blanks, at most 200 characters."""
    user: str | None = None
    """Name, or the uid in digits where it has no name; None: not known."""
    name: str | None = None
    """What the user calls it; None: not told, or told by an environment that contradicts the cgroup."""
    step: str | None = None
    """Slurm's step: a number, `batch`, `extern` or `interactive`."""
    pod: str | None = None
    """The Kubernetes pod's uid, where the job runs in one."""
    container: str | None = None
    """The innermost container's id, 64 hexadecimal digits."""

    @property
    def key(self) -> JobKey:
        return JobKey(self.scheduler, self.id)


@dataclass(frozen=True, slots=True)
class EndedJob:
    """A job that is over although a process of it is still there."""

    job: JobKey
    why: str
    """What shows it, in words."""
    check: str
    """What a person types to see the same."""


@dataclass(frozen=True, slots=True)
class DeviceProcess:
    """A process on a chip, as the tool lists it."""

    device: DeviceKey
    device_id: int | None
    """The chip's logic id, which names its file in a mapping folder; None: not known yet."""
    row: ProcessRow
    earlier_s: float = 0.0
    """How long before the table `-t proc-mem` was asked, which alone lists it; negative: after. 0: the table does."""


@dataclass(frozen=True, slots=True)
class Attribution:
    """What is known of one process on one chip."""

    device: DeviceKey
    pid: int
    """As the tool printed it: in a container's numbering where `process.pid` differs."""
    name: str | None
    memory_bytes: int | None
    process: ProcessKey | None = None
    """None: gone, unreadable, or not ours to see."""
    started_wall_s: float | None = None
    """Unix seconds."""
    user: str | None = None
    """The process's real user."""
    job: Job | None = None
    """None: unknown, which is never the same job as another unknown."""
    source: Source | None = None
    """None with `job`."""
    note: str | None = None
    """What a person should know: why nothing is known, or who says otherwise."""
    job_alive: bool | None = None
    """Whether the job still runs; None: nobody can tell, which is usual of sessions, services and users."""
    ended: EndedJob | None = None
    """With `job_alive` False: which job, and how that is known."""
    variables: Mapping[str, str] | None = None
    """The variables of parsers/environ.py that the process was started with; None: its environ could not be read."""
    place: ProcessPlace | None = None
    """None: not looked up yet, or not readable."""


@dataclass(frozen=True, slots=True)
class JobOnDevice:
    """One job and what it has on one chip."""

    job: Job
    pids: tuple[int, ...]
    memory_bytes: int | None
    """Of all its processes; None where the tool does not tell it of one of them."""
    since_wall_s: float | None
    """Unix seconds at which its oldest process here was started; None where that is known of none."""
    names: tuple[str, ...]
    notes: tuple[str, ...]
    settings: Mapping[str, tuple[str, ...]]
    """Variable of HCCL → the values that its processes here were started with; without those that none has."""
    listening: tuple[Listener, ...] | None
    """Where its processes here listen for HCCL; None where that is known of none."""
    alive: bool | None = None
    """Whether it still runs; None: nobody can tell of all its processes here, and of none that it does."""


@dataclass(frozen=True, slots=True)
class DeviceJobs:
    """Who is on one chip. `()`: the tool lists no process."""

    attributions: tuple[Attribution, ...]

    @property
    def by_job(self) -> Mapping[JobKey, JobOnDevice]:
        """The jobs that could be told, in the order of their keys; processes of unknown jobs are in none."""
        found: dict[JobKey, list[Attribution]] = {}
        for one in self.attributions:
            if one.job is not None:
                found.setdefault(one.job.key, []).append(one)
        return {key: _together(some) for key, some in sorted(found.items())}

    @property
    def unknown(self) -> tuple[Attribution, ...]:
        """Processes whose job nobody can tell."""
        return tuple(one for one in self.attributions if one.job is None)


def _together(some: list[Attribution]) -> JobOnDevice:
    jobs = [one.job for one in some if one.job is not None]
    lives = {one.job_alive for one in some}
    sizes = [one.memory_bytes for one in some]
    known = [size for size in sizes if size is not None]
    starts = [one.started_wall_s for one in some if one.started_wall_s is not None]
    heard = [one.place.listening for one in some if one.place is not None and one.place.listening is not None]
    return JobOnDevice(
        job=next((job for job in jobs if job.name is not None), jobs[0]),
        pids=tuple(one.pid for one in some),
        memory_bytes=sum(known) if len(known) == len(sizes) else None,
        since_wall_s=min(starts, default=None),
        names=tuple(dict.fromkeys(one.name for one in some if one.name)),
        notes=tuple(dict.fromkeys(one.note for one in some if one.note)),
        settings=values((one.variables for one in some), HCCL_VARIABLES),
        listening=tuple(sorted({one for these in heard for one in these})) if heard else None,
        alive=True if True in lives else False if lives == {False} else None,
    )
