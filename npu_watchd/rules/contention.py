"""Who is on a chip beside whom, and what was left on it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from npu_watchd.model.finding import Action, Evidence, Severity
from npu_watchd.model.ids import DeviceKey, Subject
from npu_watchd.model.jobs import Attribution, JobKey, JobOnDevice, Scheduler
from npu_watchd.model.reading import Failure, FailureKind
from npu_watchd.model.snapshot import Device, Snapshot
from npu_watchd.rules.rule import Judgement, Polls, Rule, Sharing, Unseen, Verified, View
from npu_watchd.rules.sight import blind, unread

_TABLE = "npu-smi info: Process id"
_CUT = Failure(FailureKind.UNSUPPORTED, "the table lists eight processes of a chip at most, and here it does")


def _sharing(view: View) -> Iterable[Judgement]:
    for key, device in view.devices():
        because = blind(device, "npu_info", "processes")
        if because is not None:
            yield Unseen(key, because)
        elif device.jobs is not None:
            jobs = contending(device, view.site.sharing)
            if jobs:
                yield _shared(view, key, device, jobs)
            elif device.processes_cut and not _may_share(device, view.site.sharing):
                yield Unseen(key, device.blind.get("npu_proc_mem", _CUT))


def contending(device: Device, sharing: Sharing) -> Mapping[JobKey, JobOnDevice]:
    """The jobs that are in each other's way on the device; none where it may be shared, or one has it alone.

    Processes of unknown jobs are nobody's rivals: they may be any job's own.
    """
    if device.jobs is None or _may_share(device, sharing):
        return {}
    jobs = {key: job for key, job in device.jobs.by_job.items() if not sharing.serves(str(job.job.key), *job.names)}
    users = {job.job.user for job in jobs.values()}
    if sharing.of(device.device_id) == "same_user" and len(users) == 1 and None not in users:
        return {}
    return jobs if len(jobs) > 1 else {}


def tenants(snapshot: Snapshot, sharing: Sharing) -> dict[Subject, frozenset[str]]:
    """The jobs on each device, without services that may be on any, and without what is known by its user alone."""
    return {
        key: frozenset(
            str(job)
            for job, found in device.jobs.by_job.items()
            if job.scheduler is not Scheduler.USER and not sharing.serves(str(found.job.key), *found.names)
        )
        for key, device in snapshot.devices.items()
        if device.jobs is not None
    }


def _may_share(device: Device, sharing: Sharing) -> bool:
    share = sharing.of(device.device_id)
    return share == "allowed" or (share == "vnpu" and "vir" in (device.identity.name or ""))


def _shared(view: View, key: DeviceKey, device: Device, jobs: Mapping[JobKey, JobOnDevice]) -> Verified:
    evidence = [Evidence("npu_device_jobs", len(jobs), 1, "", None, f"{_TABLE}; cat /proc/PID/cgroup")]
    for name, found in jobs.items():
        pids = " ".join(str(pid) for pid in found.pids[:8])
        user = f" of {found.job.user}" if found.job.user else ""
        metric = f'npu_device_job_memory_bytes{{scheduler="{name.scheduler}",job="{name.id}"}}'
        check = f"ps -o pid,user,lstart,args -p {pids.replace(' ', ',')}"
        size = "unknown" if found.memory_bytes is None else found.memory_bytes
        evidence.append(Evidence(f"{metric}{user}, pids {pids}", size, None, "bytes", None, check))
    names = ", ".join(str(name) for name in jobs)
    summary = f"device {device.device_id}: {len(jobs)} jobs share it: {names}"
    return Verified(key, summary, tuple(evidence), for_polls=Polls("processes", int(view.limits["shared_polls"])))


def _leftover(view: View) -> Iterable[Judgement]:
    for key, device in view.devices():
        because = blind(device, "npu_info")
        if because is None and device.processes:
            because = blind(device, "processes") or unread(device, "processes", device.jobs)
        if because is not None:
            yield Unseen(key, because)
        elif (found := _outlived(view, key, device) or _unowned(view, key, device)) is not None:
            yield found


def _outlived(view: View, key: DeviceKey, device: Device) -> Verified | None:
    """Processes that their job has left behind."""
    left: dict[JobKey, list[Attribution]] = {}
    for one in device.jobs.attributions if device.jobs is not None else ():
        if one.ended is not None:
            left.setdefault(one.ended.job, []).append(one)
    if not left:
        return None
    evidence = tuple(_of_ended(job, some) for job, some in sorted(left.items()))
    words = "; ".join(f"{len(some)} process(es) of {job}: {_why(some)}" for job, some in sorted(left.items()))
    summary = f"device {device.device_id}: left over: {words}"
    return Verified(key, summary, evidence, for_s=view.limit("leftover_s", device))


def _of_ended(job: JobKey, some: list[Attribution]) -> Evidence:
    pids = " ".join(str(one.process.pid if one.process else one.pid) for one in some[:8])
    user = f" of {some[0].user}" if some[0].user else ""
    metric = f"processes of {job}{user}, pids {pids}: {_why(some)}"
    check = next(one.ended.check for one in some if one.ended is not None)
    return Evidence(metric, len(some), 0, "", None, check)


def _why(some: list[Attribution]) -> str:
    return next(one.ended.why for one in some if one.ended is not None)


def _unowned(view: View, key: DeviceKey, device: Device) -> Verified | None:
    """Memory in use although no process is listed: never of a list that is cut, which has eight."""
    memory = device.memory.get("hbm")
    if device.processes != () or memory is None or memory.used_bytes is None:
        return None
    limit = view.limit("leftover_bytes", device)
    if memory.used_bytes <= limit:
        return None
    gib = 1 << 30
    metric = 'npu_device_memory_used_bytes{memory="hbm"}'
    source = f"npu-smi info: HBM-Usage, and no process; fuser -v /dev/davinci{device.device_id}"
    evidence = (Evidence(metric, memory.used_bytes, limit, "bytes", None, source),)
    summary = (
        f"device {device.device_id}: {memory.used_bytes / gib:.1f} GiB of its memory are in use and no process "
        f"is listed (limit {limit / gib:.1f} GiB)"
    )
    return Verified(key, summary, evidence, for_s=view.limit("leftover_s", device))


CONTENTION: tuple[Rule, ...] = (
    Rule(
        "jobs_share_device",
        "NpuJobsContending",
        Severity.WARNING,
        False,
        Action.MOVE_JOB,
        ("npu_info", "processes"),
        ("shared_polls",),
        "Processes of two or more jobs are on one device that the site does not share.",
        _sharing,
    ),
    Rule(
        "leftover",
        "NpuLeftoverProcess",
        Severity.WARNING,
        False,
        Action.CLEAN_UP,
        ("npu_info", "processes"),
        ("leftover_bytes", "leftover_s"),
        "For five minutes a process has been on the device that its job left behind, or memory with no process listed.",
        _leftover,
    ),
)
