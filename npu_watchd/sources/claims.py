"""Which job a process belongs to, from all that was read of it: who is believed when they disagree.

The kernel (cgroup) before the site (mapping folder) before the process (environ), because only the last can be forged
by the one it speaks of. A mapping says who should be on a chip, not who is: it never takes a process that the kernel
places elsewhere, nor one whose environment names another job; of such a process only session, unit or user are known.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from npu_watchd.model.jobs import Job, JobKey, ProcessKey, Scheduler, Source
from npu_watchd.parsers.cgroup import CgroupIdentity
from npu_watchd.parsers.environ import Environ

_STARTERS = frozenset(
    {"slurmd.service", "slurmstepd.scope", "pbs.service", "lsfd.service", "docker.service", "containerd.service"}
    | {"isulad.service", "crio.service", "ssh.service", "sshd.service", "cron.service", "crond.service", "atd.service"}
)
"""Services whose children are anybody's: that a process lies in one says nothing of whose it is."""


@dataclass(frozen=True, slots=True)
class ProcessFacts:
    """All that is read of one process, once."""

    key: ProcessKey
    cgroup: CgroupIdentity | None = None
    """None: not readable."""
    environ: Environ | None = None
    """None: not readable, which is usual for another user's process when we are not root."""
    namespace_pid: int | None = None
    """Its number in its own PID namespace; None: not known."""
    uid: int | None = None
    user: str | None = None
    """Of `uid`; its digits where it has no name."""
    owner: str | None = None
    """Likewise of the cgroup's uid."""
    started_wall_s: float | None = None
    note: str | None = None
    """What could not be read, and why."""


@dataclass(frozen=True, slots=True)
class Claim:
    """The job that is believed, whom, and what a person should know of it."""

    job: Job | None = None
    source: Source | None = None
    note: str | None = None


def believed(facts: ProcessFacts, mapped: tuple[str, ...] = (), slurm_places: bool = False) -> Claim:
    """mapped: the jobs that the site says are on this chip. slurm_places: this node's Slurm puts jobs into cgroups."""
    cgroup, environ = facts.cgroup or CgroupIdentity(), facts.environ or Environ()
    placed, said = _placed(cgroup), environ.claim
    doubts = [facts.note, cgroup.conflict, _unset(environ), _forged(placed, said)]
    if placed is None and said is not None and not _among(mapped, said):
        doubt = _disbelief(said, environ, facts, slurm_places)
        if mapped:
            doubt = doubt or f"its environment says {said}, the mapping says {_list(mapped)}: neither is used"
        doubts.append(doubt)
        if doubt:
            said, mapped = None, ()
    key, source = _choice(placed, said, mapped, cgroup)
    if placed is not None and mapped and source is Source.CGROUP:
        doubts.append(f"the mapping says {_list(mapped)}, the cgroup says {placed}")
    if key is None:
        key, source = _whereabouts(cgroup, facts)
    note = "; ".join(doubt for doubt in doubts if doubt) or None
    return Claim(_job(key, facts, cgroup, environ) if key else None, source, note)


def _placed(cgroup: CgroupIdentity) -> JobKey | None:
    """The job or container that the kernel vouches for."""
    if cgroup.scheduler is not None and cgroup.job is not None:
        return JobKey(cgroup.scheduler, cgroup.job)
    if cgroup.container is not None and not cgroup.delegated and cgroup.conflict is None:
        return JobKey(cgroup.runtime or Scheduler.CONTAINER, cgroup.container)
    return None


def own_job(facts: ProcessFacts) -> JobKey | None:
    """The scheduler's job that the process is of by its cgroup, else by its own word; None: it names none."""
    placed = _placed(facts.cgroup) if facts.cgroup is not None else None
    if placed is not None and placed.scheduler in _SCHEDULERS:
        return placed
    return facts.environ.claim if facts.environ is not None else None


def _forged(placed: JobKey | None, said: JobKey | None) -> str | None:
    """A pod is told names beside its uid, which do not contradict what the kernel says of it."""
    if placed is None or said is None:
        return None
    if said.scheduler in _CLUSTERS and (placed.scheduler is not said.scheduler or not _is_uid(said.id)):
        return None
    if placed.scheduler is said.scheduler and _number(placed.id) == _number(said.id):
        return None
    return f"its environment says {said}, which it can write itself; the cgroup says {placed}"


def _disbelief(said: JobKey, environ: Environ, facts: ProcessFacts, slurm_places: bool) -> str | None:
    if said.scheduler is not Scheduler.SLURM:
        return None
    uid = environ.variables.get("SLURM_JOB_UID")
    if uid is not None and facts.uid is not None and uid != str(facts.uid):
        return f"its environment says {said} of uid {uid}, but it is a process of uid {facts.uid}: not believed"
    if slurm_places and facts.cgroup is not None and _elsewhere(facts.cgroup):
        return (
            f"its environment says {said}, but Slurm puts the jobs of this node into cgroups of its own: not believed"
        )
    return None


def _choice(
    placed: JobKey | None, said: JobKey | None, mapped: tuple[str, ...], cgroup: CgroupIdentity
) -> tuple[JobKey | None, Source | None]:
    known = placed if placed is not None and placed.scheduler in _SCHEDULERS else said
    if mapped and known is not None and (id_ := _among(mapped, known)):
        return JobKey(Scheduler.MAPPING, id_), Source.MAPPING
    if placed is not None and placed.scheduler in _SCHEDULERS:
        return placed, Source.CGROUP
    if len(mapped) == 1 and said is None and not _elsewhere(cgroup):
        return JobKey(Scheduler.MAPPING, mapped[0]), Source.MAPPING
    if placed is not None:
        return placed, Source.CGROUP
    return (said, Source.ENVIRON) if said is not None and cgroup.conflict is None else (None, None)


def _elsewhere(cgroup: CgroupIdentity) -> bool:
    """The kernel places the process where no scheduler starts one: in a session, or in a service of its own."""
    own_unit = cgroup.unit is not None and cgroup.unit not in _STARTERS
    return bool(cgroup.session or cgroup.delegated or own_unit or cgroup.conflict)


_CLUSTERS = frozenset({Scheduler.KUBERNETES, Scheduler.VOLCANO})
_SCHEDULERS = frozenset({Scheduler.SLURM, Scheduler.KUBERNETES, Scheduler.LSF, Scheduler.PBS})


def _whereabouts(cgroup: CgroupIdentity, facts: ProcessFacts) -> tuple[JobKey | None, Source | None]:
    if cgroup.session is not None:
        return JobKey(Scheduler.SESSION, cgroup.session), Source.SESSION
    if cgroup.unit is not None and cgroup.unit not in _STARTERS:
        return JobKey(Scheduler.UNIT, cgroup.unit), Source.UNIT
    if facts.user is not None:
        return JobKey(Scheduler.USER, facts.user), Source.USER
    return None, None


def _job(key: JobKey, facts: ProcessFacts, cgroup: CgroupIdentity, environ: Environ) -> Job:
    job = Job(key.scheduler, key.id, facts.owner or facts.user, pod=cgroup.pod, container=cgroup.container)
    said = environ.claim
    agreed = said is not None and (said == key or (key.scheduler in _NAMED and _number(said.id) == _number(key.id)))
    if key.scheduler is Scheduler.KUBERNETES and said is not None:
        agreed = said.scheduler in _CLUSTERS
    step = cgroup.step or (environ.variables.get("SLURM_STEP_ID") if agreed else None)
    return replace(job, step=step, name=environ.job_name if agreed else None)


_NAMED = frozenset({Scheduler.SLURM, Scheduler.LSF, Scheduler.PBS, Scheduler.MAPPING})


def _unset(environ: Environ) -> str | None:
    return f"not used, since no such value can be meant: {', '.join(environ.odd)}" if environ.odd else None


def _among(mapped: tuple[str, ...], job: JobKey) -> str | None:
    """The id of the mapping that means this job: `12` means `12.server` of PBS, but not `12[1]` of an array."""
    if job.id in mapped:
        return job.id
    if job.scheduler in _CLUSTERS:
        return None
    alike = [id_ for id_ in mapped if id_.partition(".")[0] == job.id.partition(".")[0]]
    return alike[0] if len(alike) == 1 else None


def _number(id_: str) -> str:
    """The digits that an id begins with; all of it where it begins with none."""
    match = re.match(r"[0-9]+(?=[.\[_]|$)", id_)
    return match[0] if match else id_


def _is_uid(id_: str) -> bool:
    return re.fullmatch(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", id_) is not None


def _list(ids: tuple[str, ...]) -> str:
    return " and ".join(ids[:3]) + (f" and {len(ids) - 3} more" if len(ids) > 3 else "")
