"""The host that several jobs share, and whom its kernel killed for want of memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from npu_watchd.model.finding import Action, Evidence, Severity
from npu_watchd.model.host import Belonging, OomKill, OomScope
from npu_watchd.model.ids import NODE
from npu_watchd.model.jobs import JobKey, JobOnDevice
from npu_watchd.model.reading import NOT_READ_YET, Failure, FailureKind
from npu_watchd.model.snapshot import Device, Snapshot
from npu_watchd.rules.rule import Judgement, Rule, Sharing, Unseen, Verified, View
from npu_watchd.rules.sight import blind
from npu_watchd.rules.window import span

_OOM = "npu_node_oom_kills_total"
_LOG = "dmesg -T | grep -E 'oom-kill:|Killed process'"
_SHOWN = 8
"""Processes that are named one by one."""
_PRESSURES = {"cpu": "host_cpu_pressure_ratio", "memory": "host_memory_pressure_ratio"}
"""Resource → its limit."""
_NO_COUNT = Failure(FailureKind.UNSUPPORTED, "this kernel does not count oom_kill")


def _contention(view: View) -> Iterable[Judgement]:
    jobs, nobody_can_tell = jobs_on_node(view.snapshot, view.site.sharing)
    if len(jobs) < 2 and nobody_can_tell is None:
        return
    high, unseen = list(_high(view)), _unseen(view)
    if len(jobs) > 1 and high:
        names = ", ".join(str(name) for name in jobs)
        summary = f"{len(jobs)} jobs share the node ({names}) and {'; '.join(words for _, words in high)}"
        who = Evidence(
            "jobs on the node's devices", names, None, "", None, "npu-smi info: Process id; cat /proc/PID/cgroup"
        )
        evidence = (*(one for one, _ in high), who)
        lasting_s = view.limits["host_contention_s"]
        yield Verified(NODE, summary, evidence, for_s=lasting_s, jobs=tuple(str(name) for name in jobs))
    elif high or unseen is not None:
        because = nobody_can_tell if len(jobs) < 2 else unseen
        if because is not None:
            yield Unseen(NODE, because)


def jobs_on_node(snapshot: Snapshot, sharing: Sharing) -> tuple[Mapping[JobKey, JobOnDevice], Failure | None]:
    """The jobs on all devices together, services left out; and why there may be more, None where there are not.

    Processes of unknown jobs are nobody's rivals: they may be any job's own.
    """
    found: dict[JobKey, JobOnDevice] = {}
    because: Failure | None = None
    for _, device in sorted(snapshot.devices.items()):
        if device.present is False:
            continue
        because = because or blind(device, "npu_info", "processes")
        if device.jobs is not None:
            for key, job in device.jobs.by_job.items():
                if not sharing.serves(str(job.job.key), *job.names):
                    found.setdefault(key, job)
    return dict(sorted(found.items())), because


def _high(view: View) -> Iterator[tuple[Evidence, str]]:
    """What is above its limit, as evidence and in words."""
    host = view.snapshot.host
    for resource, name in _PRESSURES.items():
        found = host.pressure.get(resource) if host else None
        limit = view.limits[name]
        if found is not None and found.some.avg60_ratio > limit:
            ratio = found.some.avg60_ratio
            metric = f'npu_node_pressure_ratio{{resource="{resource}",kind="some"}}'
            source = f"cat /proc/pressure/{resource}: some avg60"
            words = f"work waits for {_WAITED[resource]} {ratio:.0%} of the time (limit {limit:.0%})"
            yield Evidence(metric, ratio, limit, "ratio", None, source), words
    full = [one for _, device in view.devices() if (one := _full_link(view, device)) is not None]
    if full:
        yield _fullest(full)


_WAITED = {"cpu": "a CPU", "memory": "memory"}
_Link = tuple[float, float, str, Device]
"""Load and limit as ratios, direction, device."""


def _fullest(full: list[_Link]) -> tuple[Evidence, str]:
    ratio, limit, way, device = max(full, key=lambda one: one[0])
    metric = f'npu_device_pcie_load_ratio{{device_id="{device.device_id}",direction="{way}"}}'
    source = f"[probes.pcie_load], by {device.pcie_load.source}" if device.pcie_load else ""
    many = f"{len(full)} PCIe links are full, that of device {device.device_id} to {ratio:.0%}"
    words = many if len(full) > 1 else f"the PCIe link of device {device.device_id} is {ratio:.0%} full"
    return Evidence(metric, ratio, limit, "ratio", None, source), f"{words} ({way}, limit {limit:.0%})"


def _full_link(view: View, device: Device) -> _Link | None:
    if device.pcie_load is None or blind(device, "pcie_load") is not None:
        return None
    limit = view.limit("pcie_load_ratio", device)
    ratios = (("receive", device.pcie_load.receive_ratio), ("transmit", device.pcie_load.transmit_ratio))
    ratio, way = max(((ratio, way) for way, ratio in ratios if ratio is not None), default=(0.0, ""))
    return (ratio, limit, way, device) if ratio > limit else None


def _unseen(view: View) -> Failure | None:
    """Why a pressure cannot be seen that this node could tell.

    A probe that is switched off, and load that nobody could ever measure here, are not missed: nothing rests on them.
    """
    host = view.snapshot.host
    if host is None:
        return view.snapshot.blind.get("host")
    failed = (host.failures.get(f"pressure/{resource}") for resource in _PRESSURES)
    loads = (
        device.blind.get("pcie_load")
        for key, device in view.devices()
        if device.present and view.history.ever("probe_up:pcie_load", key)
    )
    return next((failure for failure in (*failed, *loads) if failure is not None), None)


def _out_of_memory(view: View) -> Iterable[Judgement]:
    if ("host_oom", NODE) in view.active and view.snapshot.blind.get("host") is NOT_READ_YET:
        # Without the uptime nobody knows which old line of the log is of which kill.
        yield Unseen(NODE, NOT_READ_YET)
        return
    window_s, limit = view.limits["oom_window_s"], view.limits["oom_kills"]
    counted, killed = _killed(view, window_s)
    of_jobs = [kill for kill in killed if kill.belongs is Belonging.JOB]
    unknown = [kill for kill in killed if kill.belongs is Belonging.UNKNOWN]
    nameless = max(0, counted - len(killed))
    suspects = len(of_jobs) + len(unknown) + nameless
    if suspects >= limit:
        told = [*_of_jobs(of_jobs), *_of_nobody(unknown, nameless, view.snapshot)]
        summary = (
            f"{_processes(suspects)} killed for want of memory in {span(window_s)} (limit {limit:g}): {'; '.join(told)}"
        )
        evidence = [Evidence(f"increase of {_OOM}", counted, limit, "", window_s, "grep oom_kill /proc/vmstat")]
        evidence += [_evidence(kill) for kill in (*of_jobs, *unknown)[:_SHOWN]]
        jobs = dict.fromkeys(str(kill.job) for kill in of_jobs)
        yield Verified(NODE, summary, tuple(evidence), jobs=tuple(jobs))
    elif (because := _uncounted(view.snapshot)) is not None:
        yield Unseen(NODE, because)


def _killed(view: View, window_s: float) -> tuple[int, list[OomKill]]:
    """How many were killed in the window, and those of them that the kernel's log names, oldest first.

    The kernel's counter says how many, over restarts of ours as well. What stood in the log before we started is no
    news by itself: it only names those that the counter has since grown by.
    """
    grown = view.history.increase(_OOM, NODE, (), window_s)
    counted = int(grown.count) if grown else 0
    reach_s = window_s
    if grown is not None and grown.after_s is not None:
        reach_s = max(reach_s, view.history.now_s - grown.after_s)
    candidates = [kill for kill in view.snapshot.oom_kills if kill.ago_s is not None and kill.ago_s <= reach_s]
    new = sum(1 for kill in candidates if not kill.before_start and (kill.ago_s or 0.0) <= window_s)
    # The log is read more often than the counter.
    total = max(counted, new)
    return total, candidates[-total:] if total else []


def _uncounted(snapshot: Snapshot) -> Failure | None:
    """Why kills cannot be counted; a probe that is switched off is not missed."""
    host = snapshot.host
    if host is None:
        return snapshot.blind.get("host")
    if "vmstat" in host.unsupported and snapshot.kernel_log_lost is None:
        return _NO_COUNT
    return host.failures.get("vmstat")


def _processes(count: int) -> str:
    return "a process was" if count == 1 else f"{count} processes were"


def _of_jobs(kills: list[OomKill]) -> Iterator[str]:
    by_job: dict[JobKey | None, list[OomKill]] = {}
    for kill in kills:
        by_job.setdefault(kill.job, []).append(kill)
    for job, some in by_job.items():
        yield f"{_names(some)} of {job}, as {_full(some)}"


def _full(kills: list[OomKill]) -> str:
    scopes = {kill.scope for kill in kills}
    words = {OomScope.CGROUP: "what it may have was used up", OomScope.NODE: "the node had no memory left"}
    return words.get(scopes.pop(), "memory ran out") if len(scopes) == 1 else "memory ran out"


def _names(kills: list[OomKill]) -> str:
    names = [f"{kill.name} (pid {kill.pid})" for kill in kills[:3]]
    return ", ".join(names) + (f" and {len(kills) - 3} more" if len(kills) > 3 else "")


def _of_nobody(unknown: list[OomKill], nameless: int, snapshot: Snapshot) -> Iterator[str]:
    """A counter does not say whose the process was: it may have been no job's at all."""
    if unknown:
        yield f"{_names(unknown)}, whose job the kernel's log does not tell"
    if nameless:
        why = "cannot be read" if snapshot.kernel_log_lost is None else "does not name it"
        yield f"{nameless} that may or may not have been a job's, as the kernel's log {why}"


def _evidence(kill: OomKill) -> Evidence:
    whose = f"killed process of {kill.job}" if kill.job else "killed process of an unknown job"
    where = f", in {kill.task_memcg}" if kill.task_memcg else ""
    return Evidence(whose, f"{kill.name}, pid {kill.pid}{where}", None, "", None, _LOG)


HOST: tuple[Rule, ...] = (
    Rule(
        "host_contention",
        "NpuHostContention",
        Severity.WARNING,
        False,
        Action.MOVE_JOB,
        ("npu_info", "processes", "host", "pcie_load"),
        ("host_contention_s", "host_cpu_pressure_ratio", "host_memory_pressure_ratio", "pcie_load_ratio"),
        "Two or more jobs are on the node, and a PCIe link is all but full, or work waits for a CPU or for memory.",
        _contention,
        calm_s=60.0,
    ),
    Rule(
        "host_oom",
        "NpuHostOutOfMemory",
        Severity.WARNING,
        False,
        Action.CHECK_JOB,
        ("host", "kernel_log"),
        ("oom_kills", "oom_window_s"),
        "The kernel killed a process of a job for want of memory, or one that may have been a job's.",
        _out_of_memory,
    ),
)
