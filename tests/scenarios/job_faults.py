"""Jobs that meet on a chip, and memory that a job leaves on one."""

from __future__ import annotations

from tests.scenarios.label import WARNING, Case, Text, half, info, minute, npu

POD, OTHER_POD = "3f1c52ce-8a11-4b0e-9d55-0c5be0a7f0d1", "7e2d19b4-41c7-4a5f-8d1e-5a0b9c3d2e1f"


def slurm(job: int, pid: int, devices: str, *, at: int, user: str) -> str:
    started = f'{{ pid = {pid}, name = "python3", memory = 12000, job = "slurm {job}", user = "{user}" }}'
    return f"[[at]]\nt = {at}\ndevices = {devices}\nstart = [{started}]\n"


def inside(pid: int, host_pid: int, device: int, *, at: int, pod: str = POD) -> str:
    """A pod's process of which npu-smi knows the container's own number only, and no name."""
    job = f'name = "python3", memory = 9000, job = "kubernetes {pod}", user = 0'
    return f"[[at]]\nt = {at}\ndevice = {device}\nstart = [{{ pid = {pid}, host_pid = {host_pid}, {job} }}]\n"


def crowd(first: int, job: int, devices: str, *, at: int, processes: int = 8) -> str:
    """So many processes of one Slurm job on each of the devices."""
    some = ", ".join(
        f'{{ pid = {first + one}, name = "VLLM::Worker_TP{one}", memory = 900, job = "slurm {job}", user = "alice" }}'
        for one in range(processes)
    )
    return f"[[at]]\nt = {at}\ndevices = {devices}\nstart = [{some}]\n"


JOB_FAULTS: tuple[Case, ...] = (
    Case(
        "the ninth process is another job's, 910B3",
        "job 4711 has eight processes on device 1, all that the table lists; from 60 s to 300 s job 4712 has one there",
        Text(
            "910B3",
            420,
            crowd(61001, 4711, "[1]", at=0)
            + slurm(4712, 62001, "[1, 2]", at=60, user="bob")
            + "[[at]]\nt = 300\ndevices = [1, 2]\nstop = [62001]\n",
            cards=3,
        ),
        # It is asked once a minute, and who it is up to 15 s later.
        (minute("jobs_share_device", npu(1), WARNING, at=60, lasts_s=30, over=(300, 345)),),
    ),
    Case(
        "the ninth process is another job's, A3",
        "the same on die 1 of NPU 0, of which the daemon sees all from its start",
        Text("A3", 150, crowd(61001, 4711, "[1]", at=0) + slurm(4712, 62001, "[1]", at=0, user="bob"), cards=1),
        (minute("jobs_share_device", npu(0, 1), WARNING, at=0, lasts_s=15),),
    ),
    Case(
        "two Slurm jobs on one device, 910B3",
        "job 4712 of bob runs from 60 s to 240 s also on device 1, which job 4711 of alice has; 0 and 2 have one each",
        Text(
            "910B3",
            330,
            slurm(4711, 61001, "[0, 1]", at=0, user="alice")
            + slurm(4712, 62001, "[1, 2]", at=60, user="bob")
            + "[[at]]\nt = 240\ndevices = [1, 2]\nstop = [62001]\n",
            cards=3,
        ),
        # The table is read every 15 s, and who is on it up to 15 s later; it must be so in two looks.
        (half("jobs_share_device", npu(1), WARNING, at=60, lasts_s=15, over=(240, 285)),),
    ),
    Case(
        "a pod on a device of a session, A3",
        "somebody who is logged in tries something on die 1 of NPU 0, on which a pod serves",
        Text(
            "A3",
            180,
            '[[at]]\nt = 0\ndevices = "all"\n'
            f'start = [{{ pid = 61001, name = "vllm", memory = 20000, job = "kubernetes {POD}", user = 0 }}]\n'
            "[[at]]\nt = 60\ndevice = 1\n"
            'start = [{ pid = 62001, name = "python3", memory = 900, job = "session 12" }]\n',
            cards=1,
        ),
        (half("jobs_share_device", npu(0, 1), WARNING, at=60, lasts_s=15),),
    ),
    Case(
        "two pods known by their own pids only, 910B3 with 26.0.0",
        "from 60 s to 180 s a second pod is on device 1; both processes are found by their numbers inside",
        Text(
            "910B3",
            240,
            'tool_version = "26.0.0"\n'
            + inside(87, 71001, 1, at=0)
            + inside(1412, 72001, 1, at=60, pod=OTHER_POD)
            + "[[at]]\nt = 180\ndevice = 1\nstop = [1412]\n",
        ),
        (half("jobs_share_device", npu(1), WARNING, at=60, lasts_s=15, over=(180, 225)),),
    ),
    Case(
        "a job dies and its memory stays, 910B3",
        "the job ends at 60 s, and 30 GiB of device 1 stay in use without a process until 480 s",
        Text(
            "910B3",
            540,
            slurm(4711, 61001, "[0, 1]", at=0, user="alice")
            + '[[at]]\nt = 60\ndevices = [0, 1]\nstop = "all"\n'
            + "[[at]]\nt = 60\nlasts = 420\ndevice = 1\nhbm.used = 34113\n",
        ),
        (info("leftover", npu(1), WARNING, at=60, lasts_s=300, over=(480, 503)),),
    ),
    Case(
        "a job whose slurmstepd is gone, 910B3",
        "job 4711 has devices 0 and 1; its slurmstepd is gone at 60 s, and a process stays on 1 until 480 s",
        Text(
            "910B3",
            540,
            slurm(4711, 61001, "[1]", at=0, user="alice")
            + slurm(4711, 61002, "[0]", at=0, user="alice")
            + '[[at]]\nt = 60\nlost_jobs = ["slurm 4711"]\n[[at]]\nt = 60\ndevice = 0\nstop = [61002]\n'
            + "[[at]]\nt = 480\ndevice = 1\nstop = [61001]\n",
        ),
        # All of /proc is searched once a minute.
        (minute("leftover", npu(1), WARNING, at=60, lasts_s=300, over=(480, 503)),),
    ),
    Case(
        "a pod whose shim is gone, A3",
        "the shim of a pod on both dies is gone before the daemon starts; its processes have the dies all the time",
        Text(
            "A3",
            390,
            f'[[at]]\nt = 0\nlost_jobs = ["kubernetes {POD}"]\n[[at]]\nt = 0\ndevices = "all"\n'
            f'start = [{{ pid = 61001, name = "vllm", memory = 20000, job = "kubernetes {POD}", user = 0 }}]\n',
            cards=1,
        ),
        tuple(half("leftover", npu(0, chip), WARNING, at=0, lasts_s=300) for chip in (0, 1)),
    ),
    Case(
        "memory of nobody from before, 950PR",
        "40 GB of device 0 have been in use without a process since before the daemon was started",
        Text("950PR", 390, "[[at]]\nt = 0\ndevice = 0\nhbm.used = 40960\n"),
        (info("leftover", npu(0), WARNING, at=0, lasts_s=300),),
    ),
)
