"""The procfs of a simulated node: what the host has left, and the processes on its chips, as the kernel shows them.

Only what the daemon reads of a process is here. A process without a name has no folder: the number that npu-smi prints
for it means nothing on the host. One with a host_pid has its folder there, and the printed number within its namespace.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256

from npu_watchd.simnode import host_files, keepers, sockets
from npu_watchd.simnode.chip_story import ChipStory
from npu_watchd.simnode.scenario import Event, Scenario, Started, uid_of
from npu_watchd.simnode.state import START_S, HostCpu
from npu_watchd.simnode.sysfs import Tree

UP_S = 86_400.0
"""How long the node has been up when its scenario begins."""
LOADS_S = 15.0
"""A process is there so long before it holds memory of a chip, as it loads its libraries; so whoever lists it on the
chip finds it here, although these files are a few seconds old."""
TICKS_PER_SECOND = 100
"""The kernel's USER_HZ."""
NOBODY_SAID = "session 3"
"""The job of processes of which a scenario says nothing: somebody is logged in, and started them all."""

_CPUINFO: dict[HostCpu, str] = {
    "kunpeng": "processor\t: 0\nBogoMIPS\t: 200.00\nCPU implementer\t: 0x48\nCPU part\t: 0xd02\n",
    "intel": "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 106\n",
}
"""What a host's CPU says of itself; of one core, as nobody counts them."""
_JOB = re.compile(
    r"slurm [0-9]{1,10}|session c?[0-9]{1,10}|kubernetes [0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII
)


@dataclass(frozen=True, slots=True)
class HostProcess:
    """A process as the host sees it."""

    started: Started
    since_s: float
    """Second of the scenario at which it began; before its chip shows it."""

    @property
    def uid(self) -> int:
        return uid_of(self.started.user)


def is_job(text: str) -> bool:
    """Whether a process can be given this job: `slurm 4711`, `session 12`, or `kubernetes` and a pod's uid."""
    return _JOB.fullmatch(text) is not None


def processes_at(scenario: Scenario, t_s: float) -> tuple[HostProcess, ...]:
    """Those that have a name, by their numbers on the host, each once however many chips it uses."""
    found: dict[int, HostProcess] = {}
    for device in sorted({device for event in scenario.events for device in event.devices}):
        events = [event for event in scenario.events if device in event.devices]
        for process in _of_device(events, max(0.0, t_s)):
            known = found.setdefault(process.started.number, process)
            if process.since_s < known.since_s:
                found[process.started.number] = process
    return tuple(found[pid] for pid in sorted(found))


def _of_device(events: list[Event], t_s: float) -> Iterator[HostProcess]:
    """What is on the chip now, and before it what will be soon."""
    seen: set[int] = set()
    for at_s in (t_s, t_s + LOADS_S):
        for pid, started in ChipStory().tell(events, at_s).processes.items():
            if pid in seen or started.name is None:
                continue
            seen.add(pid)
            began = (event.t_s for event in events if event.t_s <= at_s and started in event.start)
            yield HostProcess(started, max(began) - LOADS_S)


def tree(scenario: Scenario, t_s: float, start_s: float = START_S) -> Tree:
    """All of it at that second of the scenario.

    start_s: the Unix second at which the scenario began.
    """
    up_s = UP_S + max(0.0, t_s)
    files = {
        "cpuinfo": _CPUINFO[scenario.host_cpu],
        "uptime": f"{up_s:.2f} {up_s:.2f}\n",
        **host_files.files(scenario, t_s, up_s),
        "stat": f"cpu  1 0 1 1 0 0 0 0 0 0\nbtime {int(start_s - UP_S)}\nprocesses 1\n",
    }
    lost, processes = keepers.lost_at(scenario, t_s), processes_at(scenario, t_s)
    parents = [keepers.keeper_of(process.started.job, lost) for process in processes]
    files |= dict(keepers.files((keepers.SYSTEMD, *parents), round((UP_S - LOADS_S) * TICKS_PER_SECOND)))
    for process, parent in zip(processes, parents, strict=True):
        for name, text in _files(process, parent.pid).items():
            files[f"{process.started.number}/{name}"] = text
    listens = {process.started.number: process.started.listens for process in processes}
    jobs = {process.started.number: process.started.job or NOBODY_SAID for process in processes}
    pods = {pid: job for pid, job in jobs.items() if job.startswith("kubernetes ")}
    files |= sockets.files(listens, pods)
    # The first PID namespace's number is the kernel's own constant.
    links = {"self/ns/pid": "pid:[4026531836]", **sockets.links(listens, pods)}
    return Tree({name: text.encode() for name, text in files.items()}, links)


def _files(process: HostProcess, parent: int) -> dict[str, str]:
    started, uid = process.started, process.uid
    scheduler, _, id_ = (started.job or NOBODY_SAID).partition(" ")
    inside = started.container_pid if started.host_pid is None else started.pid
    pids = [started.number] + ([] if inside is None else [inside])
    name = _comm(started.name or "")
    ticks = round((UP_S + process.since_s) * TICKS_PER_SECOND)
    return {
        "stat": keepers.stat(started.number, name, parent, ticks),
        "status": f"Name:\t{name}\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\nNSpid:\t" + "\t".join(map(str, pids)) + "\n",
        "cgroup": f"0::{_cgroup(scheduler, id_, uid)}\n",
        "environ": "".join(f"{entry}\0" for entry in _environ(scheduler, id_, process)),
    }


def _comm(name: str) -> str:
    """As the kernel keeps and prints it: at most 15 bytes, an end of line escaped."""
    kept = name.encode()[:15].decode(errors="ignore")
    return kept.replace("\\", "\\\\").replace("\n", "\\n")


def cgroup_of(job: str, uid: int) -> str:
    """The cgroup of a process of that job."""
    scheduler, _, id_ = job.partition(" ")
    return _cgroup(scheduler, id_, uid)


def _cgroup(scheduler: str, id_: str, uid: int) -> str:
    """Cgroup v2: Slurm's plugin, the kubelet's systemd driver with containerd, and systemd-logind."""
    if scheduler == "slurm":
        return f"/system.slice/slurmstepd.scope/job_{id_}/step_0/user/task_0"
    if scheduler == "kubernetes":
        pod, container = id_.replace("-", "_"), sha256(id_.encode()).hexdigest()
        slices = f"kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{pod}.slice"
        return f"/{slices}/cri-containerd-{container}.scope"
    return f"/user.slice/user-{uid}.slice/session-{id_}.scope"


def _environ(scheduler: str, id_: str, process: HostProcess) -> Iterator[str]:
    yield "PATH=/usr/bin:/bin"
    yield from process.started.environ
    if isinstance(process.started.user, str):
        yield f"USER={process.started.user}"
    if scheduler == "slurm":
        yield from (f"SLURM_JOB_ID={id_}", f"SLURM_JOB_UID={process.uid}", "SLURM_STEP_ID=0")
    if scheduler == "kubernetes":
        yield from ("KUBERNETES_SERVICE_HOST=10.96.0.1", f"POD_UID={id_}")
