"""/proc/PID/environ: the few variables that say whose a process is and how it talks to the others of its job.

The process wrote it, and can have written anything: it is a hint beside the cgroup, never against it. Nothing else of
it is kept, since an environment holds passwords.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from npu_watchd.model.hccl import HCCL_VARIABLES
from npu_watchd.model.jobs import JobKey, Scheduler

JOB_VARIABLES = (
    *("SLURM_JOB_ID", "SLURM_JOBID", "SLURM_STEP_ID", "SLURM_JOB_NAME", "SLURM_JOB_UID", "SLURM_PROCID"),
    *("SLURM_ARRAY_JOB_ID", "SLURM_ARRAY_TASK_ID"),
    *("LSB_JOBID", "LSB_JOBINDEX", "LSB_JOBNAME", "PBS_JOBID", "PBS_JOBNAME"),
    *("KUBERNETES_SERVICE_HOST", "HOSTNAME", "POD_UID", "POD_NAME", "POD_NAMESPACE"),
    *("VC_TASK_INDEX", "VK_TASK_INDEX", "MINDX_TASK_ID"),
)
RANK_VARIABLES = (
    *("RANK_TABLE_FILE", "RANK_ID", "RANK_SIZE", "DEVICE_ID", "ASCEND_DEVICE_ID"),
    *("TORCHELASTIC_RUN_ID", "RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"),
    *("MS_ROLE", "MS_SCHED_HOST", "MS_SCHED_PORT", "MS_WORKER_NUM", "MS_NODE_ID"),
    *("ASCEND_RT_VISIBLE_DEVICES", "ASCEND_VISIBLE_DEVICES"),
)
KNOWN = frozenset((*JOB_VARIABLES, *RANK_VARIABLES, *HCCL_VARIABLES))
"""Slurm's, LSF's and PBS's from their manuals; Volcano's from its env and svc plugins; MINDX_TASK_ID from MindCluster;
torchrun's and msrun's from theirs; HCCL's and ASCEND_* from CANN's lists of variables."""

MOST_CHARACTERS = 200
"""Longer values are left out, not cut: half an id is another id. Assumption: no id, port or address is longer."""

_VOLCANO_HOSTS = re.compile(r"VC_[A-Z0-9_]{1,100}_HOSTS")
_VOLCANO_HOST = re.compile(r"(?P<pod>[a-z0-9-]{1,253})\.(?P<job>[a-z0-9-]{1,63})")
_NUMBER = re.compile(r"[0-9]{1,10}")
_PBS = re.compile(r"[0-9]{1,10}(?:\[[0-9]*\])?(?:\.[\w.-]{1,100})?", re.ASCII)
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class Environ:
    """What we know of an environment."""

    variables: Mapping[str, str] = field(default_factory=dict)
    """Of KNOWN; printable, at most 200 characters each."""
    odd: tuple[str, ...] = ()
    """Of KNOWN, by name: set twice to different values, unprintable or too long, and so left out of `variables`."""
    volcano_job: str | None = None
    """From VC_<TASK>_HOSTS of the svc plugin, whose hosts are `pod.job`."""

    @property
    def claim(self) -> JobKey | None:
        """The job that it says it belongs to; None: none, or in no form that a scheduler writes."""
        of = self.variables.get
        slurm, lsf, pbs = of("SLURM_JOB_ID") or of("SLURM_JOBID"), of("LSB_JOBID"), of("PBS_JOBID")
        if slurm and _NUMBER.fullmatch(slurm):
            return JobKey(Scheduler.SLURM, slurm)
        if lsf and _NUMBER.fullmatch(lsf):
            index = of("LSB_JOBINDEX", "0")
            return JobKey(Scheduler.LSF, lsf if not _NUMBER.fullmatch(index) or int(index) == 0 else f"{lsf}[{index}]")
        if pbs and _PBS.fullmatch(pbs):
            return JobKey(Scheduler.PBS, pbs)
        return self._pod()

    def _pod(self) -> JobKey | None:
        of = self.variables.get
        if self.volcano_job is not None:
            return JobKey(Scheduler.VOLCANO, self.volcano_job)
        if "KUBERNETES_SERVICE_HOST" not in self.variables:
            return None
        uid, pod = of("POD_UID", ""), of("POD_NAME") or of("HOSTNAME", "")
        if _UUID.fullmatch(uid):
            return JobKey(Scheduler.KUBERNETES, uid)
        return JobKey(Scheduler.KUBERNETES, pod) if pod and _NAME.fullmatch(pod) else None

    @property
    def job_name(self) -> str | None:
        """What the user or the site calls the job of `claim`."""
        claim, of = self.claim, self.variables.get
        names = {
            Scheduler.SLURM: "SLURM_JOB_NAME",
            Scheduler.LSF: "LSB_JOBNAME",
            Scheduler.PBS: "PBS_JOBNAME",
            Scheduler.VOLCANO: "HOSTNAME",
            Scheduler.KUBERNETES: "HOSTNAME",
        }
        return of(names[claim.scheduler]) if claim else None


def parse(text: str) -> Environ:
    """The file as UTF-8 with replacement characters. Never raises: an entry that is no `NAME=value` is left out.

    So is one without its NUL at the end: it may have been cut, or overwritten by a process that shows its title there.
    """
    variables: dict[str, str] = {}
    odd: set[str] = set()
    jobs: set[str] = set()
    for entry in text.split("\0")[:-1]:
        name, equals, value = entry.partition("=")
        if not equals:
            continue
        if name in KNOWN:
            # An empty variable is as good as none, and does not contradict.
            if variables.get(name, value) != value or not _fit(value):
                odd.add(name)
            elif value:
                variables[name] = value
        elif name.startswith("VC_") and _VOLCANO_HOSTS.fullmatch(name):
            host = _VOLCANO_HOST.match(value.partition(",")[0])
            jobs.add(host["job"] if host else "")
    kept = {name: value for name, value in variables.items() if name not in odd}
    job = jobs.pop() if len(jobs) == 1 else None
    return Environ(kept, tuple(sorted(odd)), job or None)


def _fit(value: str) -> bool:
    return len(value) <= MOST_CHARACTERS and value.isprintable() and "\ufffd" not in value
