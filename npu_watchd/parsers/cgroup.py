"""/proc/PID/cgroup: the scheduler's job, the container, the session or the unit that a process was put into.

The kernel writes it and a process cannot change it, except below its own user manager (`user@1000.service`), whose
subtree systemd hands to the user: names there are the user's invention, so no scheduler's job is read from them.
Forms: cgroup v1 (a line a controller), v2 (one line `0::`), and both. Sources: Slurm's cgroup plugins, the kubelet's
and runc's systemd and cgroupfs drivers, iSulad, podman, OpenPBS and LSF as their public sources and users show them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

from npu_watchd.model.jobs import Scheduler
from npu_watchd.parsers.lines import Line, ParseError, lines_of

V = TypeVar("V")

_LINE = re.compile(r"\d{1,10}:[^:]*:(?P<path>/.*)", re.ASCII)
_END = r"(?=[/:]|$)"
_UUID = r"[0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12}|[0-9a-f]{32}"
"""A pod's uid; 32 digits without dashes for a static pod of the kubelet."""
_QOS = "(?:besteffort|burstable|guaranteed)"
_STEP = r"(?:/step_(?P<step>[0-9A-Za-z_.+-]{1,40}))?"

_SCHEDULERS: tuple[tuple[Scheduler, re.Pattern[str]], ...] = (
    (Scheduler.SLURM, re.compile(rf"/(?:[^/]+_)?slurmstepd\.scope/job_(?P<job>[0-9]{{1,10}}){_STEP}{_END}")),
    (
        Scheduler.SLURM,
        re.compile(rf"/slurm(?:_[^/]+)?/uid_(?P<uid>[0-9]{{1,10}})/job_(?P<job>[0-9]{{1,10}}){_STEP}{_END}"),
    ),
    (Scheduler.KUBERNETES, re.compile(rf"/(?:[^/]*-)?kubepods(?:-{_QOS})?-pod(?P<job>{_UUID})\.slice{_END}")),
    (Scheduler.KUBERNETES, re.compile(rf"/kubepods(?:/{_QOS})?/pod(?P<job>{_UUID}){_END}")),
    (Scheduler.LSF, re.compile(rf"/lsf/[^/]+/job\.(?P<job>[0-9]{{1,10}}(?:\[[0-9]+\])?)\.[0-9]+\.[0-9]+{_END}")),
    (
        Scheduler.PBS,
        re.compile(
            rf"/pbs_jobs\.service/(?:jobid|jobs)/(?P<job>[0-9]{{1,10}}(?:\[[0-9]*\])?(?:\.[\w.-]{{1,100}})?){_END}",
            re.ASCII,
        ),
    ),
)
_SLICES = re.compile(r"(?:/[^/]+\.slice)*")

_CONTAINER = re.compile(
    r"[/:](?:(?P<runtime>cri-containerd|nerdctl|crio|docker|libpod-payload|libpod|isulad)[-/:])?"
    rf"(?P<id>[0-9a-f]{{64}})(?:\.scope)?{_END}"
)
_RUNTIMES = {
    "cri-containerd": Scheduler.CONTAINERD,
    "nerdctl": Scheduler.CONTAINERD,
    "crio": Scheduler.CRIO,
    "docker": Scheduler.DOCKER,
    "libpod-payload": Scheduler.PODMAN,
    "libpod": Scheduler.PODMAN,
    "isulad": Scheduler.ISULAD,
}
_USER = re.compile(r"/user-(?P<uid>[0-9]{1,10})\.slice(?=/|$)")
_SESSION = re.compile(r"/user-[0-9]{1,10}\.slice/session-(?P<id>c?[0-9]{1,10})\.scope(?=/|$)")
_MANAGER = re.compile(r"/user-[0-9]{1,10}\.slice/(?P<name>user@[0-9]{1,10}\.service)(?=/|$)")
_UNIT = re.compile(r"/(?P<name>[\w:.@\\-]{1,150}\.(?:service|scope))(?=/|$)", re.ASCII)
"""The characters that systemd.unit(5) allows; a user can make a folder of any name below his manager."""


@dataclass(frozen=True, slots=True)
class CgroupIdentity:
    """Where the kernel has put a process. None: the text does not say; all None is `/`, also of a cgroup namespace."""

    scheduler: Scheduler | None = None
    """slurm, kubernetes, lsf or pbs. Of two around each other the outer one, but Slurm's that runs inside a pod."""
    job: str | None = None
    """The scheduler's id; a pod's uid with dashes."""
    step: str | None = None
    pod: str | None = None
    container: str | None = None
    """The innermost one."""
    runtime: Scheduler | None = None
    """Of the container; None with a container: the path does not name it."""
    session: str | None = None
    unit: str | None = None
    """The outermost service or scope that is neither a container nor a session; `user@N.service/NAME` of a user."""
    uid: int | None = None
    """Of the user's slice."""
    job_uid: int | None = None
    """Of the Slurm job (v1)."""
    delegated: bool = False
    """The path lies below a user manager: the container and the unit's last part are what the user says."""
    conflict: str | None = None
    """Two hierarchies name two different jobs, in words; no job is then named."""


def parse(text: str) -> CgroupIdentity:
    """What all lines together say; where two differ the value is None.

    Raises ParseError where a line is none of a cgroup file. A last line without its end is left out: half a job's
    number is another job's.
    """
    identities = [_identity(path) for path in _paths(text)]
    jobs = {(found.scheduler, found.job) for found in identities if found.job is not None}
    merged = CgroupIdentity(
        scheduler=_only(found.scheduler for found in identities),
        job=_only(found.job for found in identities),
        step=_only(found.step for found in identities),
        pod=_only(found.pod for found in identities),
        container=_only(found.container for found in identities),
        runtime=_only(found.runtime for found in identities),
        session=_only(found.session for found in identities),
        unit=_only(found.unit for found in identities),
        uid=_only(found.uid for found in identities),
        job_uid=_only(found.job_uid for found in identities),
        delegated=any(found.delegated for found in identities),
    )
    if len(jobs) < 2:
        return merged
    words = " and ".join(sorted(f"{scheduler} {job}" for scheduler, job in jobs))
    return replace(
        merged, scheduler=None, job=None, step=None, pod=None, job_uid=None, conflict=f"its cgroups name {words}"
    )


def _paths(text: str) -> Iterator[str]:
    ended = [line for line in lines_of(text) if line.ended]
    if not ended:
        raise ParseError(1, "no whole line: /proc/PID/cgroup ends each with an end of line")
    for line in ended:
        yield _path(line)


def _path(line: Line) -> str:
    match = _LINE.fullmatch(line.text)
    if match is None:
        raise line.refuse("no line of a cgroup file (number:controllers:/path)")
    # A process outside our own cgroup namespace is shown from its root upwards; a cgroup that was removed stays named.
    return re.sub(r"^(?:/\.\.)+(?=/|$)", "", match["path"].removesuffix(" (deleted)"))


def _identity(path: str) -> CgroupIdentity:
    manager = _MANAGER.search(path)
    theirs = path if manager is None else path[: manager.start()]
    containers = list(_CONTAINER.finditer(path))
    innermost = containers[-1] if containers else None
    session, user = _SESSION.search(path), _USER.search(path)
    found = CgroupIdentity(
        container=innermost["id"] if innermost else None,
        runtime=_RUNTIMES.get(innermost["runtime"]) if innermost else None,
        session=session["id"] if session else None,
        unit=_unit(path, manager),
        uid=int(user["uid"]) if user else None,
        delegated=manager is not None,
    )
    return _with_job(found, theirs)


def _with_job(found: CgroupIdentity, path: str) -> CgroupIdentity:
    matches = sorted(
        ((match.start(), scheduler, match) for scheduler, pattern in _SCHEDULERS if (match := pattern.search(path))),
        key=lambda item: item[0],
    )
    matches = [item for item in matches if item[1] is not Scheduler.SLURM or _trusted(path[: item[0]])]
    if not matches:
        return found
    pods = [match["job"].replace("_", "-") for _, scheduler, match in matches if scheduler is Scheduler.KUBERNETES]
    _, scheduler, match = matches[0]
    if scheduler is Scheduler.KUBERNETES:
        # slurmd in a pod: one pod runs many jobs, and only a pod that is root on the node can write cgroups itself.
        slurm = [item for item in matches if item[1] is Scheduler.SLURM]
        _, scheduler, match = slurm[0] if slurm else matches[0]
    groups = match.groupdict()
    return replace(
        found,
        scheduler=scheduler,
        job=pods[0] if scheduler is Scheduler.KUBERNETES else match["job"],
        step=groups.get("step"),
        pod=pods[0] if pods else None,
        job_uid=int(groups["uid"]) if groups.get("uid") else None,
        session=None,
        unit=None,
    )


def _trusted(before: str) -> bool:
    """Slurm's own folders lie below slices only, or in the container that slurmd runs in."""
    if _SLICES.fullmatch(before) or _CONTAINER.search(before):
        return True
    return any(pattern.search(before) for scheduler, pattern in _SCHEDULERS if scheduler is Scheduler.KUBERNETES)


def _unit(path: str, manager: re.Match[str] | None) -> str | None:
    if manager is not None:
        own = _UNIT.search(path, manager.end())
        return manager["name"] + (f"/{own['name']}" if own else "")
    unit = _UNIT.search(path)
    if unit is None or _CONTAINER.match(unit[0]) or _SESSION.search(path):
        return None
    return unit["name"]


def _only(values: Iterator[V | None]) -> V | None:
    """The one value that is there; None where there is none, or more than one."""
    different = {value for value in values if value is not None}
    return different.pop() if len(different) == 1 else None
