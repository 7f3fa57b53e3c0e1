"""The host under several jobs: contention for it, and processes that its kernel kills; and what is neither."""

from __future__ import annotations

from tests.scenarios.job_faults import POD, slurm
from tests.scenarios.label import NODE, WARNING, Case, Text, half, info, npu

_TWO = slurm(4711, 61001, "[0]", at=0, user="alice") + slurm(4712, 62001, "[1]", at=0, user="bob")
_ALONE = slurm(4711, 61001, "[0, 1]", at=0, user="alice")


def _killed(at: float, pid: int, more: str = 'job = "slurm 4711", user = "alice"') -> str:
    return f'[[at]]\nt = {at}\noom = [{{ pid = {pid}, name = "ccec"{", " if more else ""}{more} }}]\n'


def _pressure(at: float, lasts: float, what: str) -> str:
    return f"[[at]]\nt = {at}\nlasts = {lasts}\n{what}\n"


HOST_FAULTS: tuple[Case, ...] = (
    Case(
        "two jobs wait for the CPUs, 910B3",
        "a job on each device; from 60 s to 300 s work waits for a CPU 80 % of the time",
        Text("910B3", 450, _TWO + _pressure(60, 240, "host.cpu_pressure = 80")),
        (info("host_contention", NODE, WARNING, at=60, lasts_s=60, over=(360, 390)),),
    ),
    Case(
        "two jobs, one of them on full PCIe links, A3",
        "job 4712 comes at 60 s to devices 2 and 3 and fills their links; job 4711 works beside it",
        Text(
            "A3",
            240,
            slurm(4711, 61001, "[0, 1]", at=0, user="alice")
            + slurm(4712, 62001, "[2, 3]", at=60, user="bob")
            + "[[at]]\nt = 60\ndevices = [2, 3]\npcie_load.receive = 28.6\n",
        ),
        (
            half("pcie_load", npu(1, 0), WARNING, at=60, lasts_s=60),
            half("pcie_load", npu(1, 1), WARNING, at=60, lasts_s=60),
            half("host_contention", NODE, WARNING, at=60, lasts_s=60),
        ),
    ),
    Case(
        "two jobs short of memory over a restart, 950PR",
        "work waits for memory from 30 s on; the daemon is restarted at 180 s",
        Text("950PR", 330, _TWO + "[[at]]\nt = 30\nhost.memory_pressure = 35\n", restarts=(180,)),
        (info("host_contention", NODE, WARNING, at=30, lasts_s=60, live=(325,)),),
    ),
    Case(
        "compile processes are killed, 910B3",
        "at 60 s the kernel kills a process of job 4711, at 200 s another; the daemon is restarted at 150 s",
        Text("910B3", 300, _ALONE + _killed(60, 61201) + _killed(200, 61202), restarts=(150,)),
        (info("host_oom", NODE, WARNING, at=60, live=(295,)),),
    ),
    Case(
        "the node runs out of memory, A3",
        "a process of a pod is killed at 60 s",
        Text("A3", 150, _killed(60, 61201, f'job = "kubernetes {POD}", user = 0, limit = "node"'), cards=1),
        (info("host_oom", NODE, WARNING, at=60),),
    ),
    Case(
        "killed while nobody looked, 310P3",
        "the daemon is away from 120 s to 130 s; the kernel kills a process of job 4711 at 125 s",
        Text("310P3", 210, _ALONE + _killed(125, 61201), restarts=(120,)),
        (info("host_oom", NODE, WARNING, at=130),),
    ),
)
HOST_UGLY: tuple[Case, ...] = (
    Case(
        "one job that works the host hard, 910B3",
        "it has the node alone, and work waits for CPUs and memory nearly all of the time",
        Text("910B3", 210, f"{_ALONE}[[at]]\nt = 30\nhost.cpu_pressure = 97\nhost.memory_pressure = 60\n"),
    ),
    Case(
        "two jobs with room for both, A3",
        "work waits for a CPU 45 % of the time; for 40 s, as a job compiles, nearly always",
        Text(
            "A3",
            220,
            f"{_TWO}[[at]]\nt = 0\nhost.cpu_pressure = 45\n" + _pressure(120, 40, "host.cpu_pressure = 95"),
            cards=1,
        ),
    ),
    Case(
        "old kills, 910A",
        "a job's process and a service were killed before the daemon was started, which is started anew at 90 s",
        Text("910A", 180, _ALONE + _killed(0, 61201) + _killed(0, 2201, ""), restarts=(90,)),
    ),
    Case(
        "a service of the system is killed, 950PR",
        "at its own limit at 60 s, and again at 120 s; no job loses anything",
        Text("950PR", 180, _ALONE + _killed(60, 2201, "") + _killed(120, 2207, "")),
    ),
)
