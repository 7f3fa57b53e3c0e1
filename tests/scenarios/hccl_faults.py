"""Jobs in each other's way by what they were told: host ports, settings of HCCL, lists of devices."""

from __future__ import annotations

from tests.scenarios.label import WARNING, Case, Text, half, npu

PODS = "3f1c52ce-8a11-4b0e-9d55-0c5be0a7f0d1", "9b7d0f1e-4c33-4f0a-8a55-77aa12e0c9d4"


def rank(job: str, number: int, device: int, *environ: str, at: float = 0, listens: str = "", size: int = 2) -> str:
    """One rank of a program, on a device of its own; two jobs on one node have different pids."""
    world = (f"RANK={number}", f"WORLD_SIZE={size}", "MASTER_ADDR=node7", f"MASTER_PORT={29500 + len(job)}")
    entries = ", ".join(f'"{entry}"' for entry in (*world, *environ))
    pid = 40_000 + 100 * (sum(job.encode()) % 200) + number
    heard = f', listens = ["{listens}"]' if listens else ""
    started = f'{{ pid = {pid}, name = "python3", memory = 9000, job = "{job}", environ = [{entries}]{heard} }}'
    return f"[[at]]\nt = {at}\ndevice = {device}\nstart = [{started}]\n"


BASE = "HCCL_IF_BASE_PORT"
HCCL_FAULTS: tuple[Case, ...] = (
    Case(
        "a base port that reaches into another job's, 910B3",
        "job 4711 waits on port 60002 from the start; job 4712 comes at 60 s and needs it for device 2; over at 240 s",
        Text(
            "910B3",
            330,
            rank("slurm 4711", 0, 0, f"{BASE}=60002", listens="10.0.0.7:60002", size=16)
            + rank("slurm 4711", 1, 1, f"{BASE}=60002", size=16)
            + rank("slurm 4712", 0, 2, f"{BASE}=60000", at=60)
            + rank("slurm 4712", 1, 3, f"{BASE}=60000", at=60)
            + '[[at]]\nt = 240\ndevices = [0, 1]\nstop = "all"\n',
            cards=4,
        ),
        (half("hccl_ports_conflict", npu(2), WARNING, at=60, lasts_s=60, over=(240, 300)),),
    ),
    Case(
        "a list of one port for two jobs, A3",
        "a session listens on the only port that the job on die 1 of NPU 0 may take",
        Text(
            "A3",
            240,
            rank("session 12", 0, 0, "HCCL_HOST_SOCKET_PORT_RANGE=61000", listens="0.0.0.0:61000", size=1)
            + rank("slurm 4712", 0, 1, "HCCL_HOST_SOCKET_PORT_RANGE=61000", at=60, size=1),
            cards=1,
        ),
        (half("hccl_ports_conflict", npu(0, 1), WARNING, at=60, lasts_s=60),),
    ),
    Case(
        "a rank with less patience, 910B3",
        "rank 2 of three has an HCCL_EXEC_TIMEOUT of its own",
        Text(
            "910B3",
            150,
            "".join(
                rank("slurm 4711", at, at, f"HCCL_EXEC_TIMEOUT={1800 if at == 2 else 7200}", size=3, at=30)
                for at in range(3)
            ),
            cards=3,
        ),
        (half("hccl_settings_differ", npu(2), WARNING, at=30, lasts_s=15),),
    ),
    Case(
        "a rank in a pod that goes over RoCE, 910A",
        "one of two ranks has HCCL_INTRA_ROCE_ENABLE=1, the other one leaves it at 0",
        Text(
            "910A",
            150,
            rank(f"kubernetes {PODS[0]}", 0, 0, at=30)
            + rank(f"kubernetes {PODS[0]}", 1, 1, "HCCL_INTRA_ROCE_ENABLE=1", at=30),
        ),
        (half("hccl_settings_differ", npu(1), WARNING, at=30, lasts_s=15),),
    ),
    Case(
        "two lists with one device, 910B3",
        "job 4712 was told to use 1 and 2 and is on 2 only; device 1 is job 4711's, which is on 0 only; over at 180 s",
        Text(
            "910B3",
            270,
            rank("slurm 4711", 0, 0, "ASCEND_RT_VISIBLE_DEVICES=0,1", size=1)
            + rank("slurm 4712", 0, 2, "ASCEND_RT_VISIBLE_DEVICES=1,2", size=1, at=60)
            + '[[at]]\nt = 180\ndevice = 2\nstop = "all"\n',
            cards=3,
        ),
        (half("visible_devices_overlap", npu(1), WARNING, at=60, lasts_s=15, over=(180, 225)),),
    ),
    Case(
        "a list and a DEVICE_ID, A3",
        "a MindSpore process of a session is on die 3 as it was told, which a job on die 2 has in its list",
        Text(
            "A3",
            150,
            rank("slurm 4711", 0, 2, "ASCEND_RT_VISIBLE_DEVICES=2,3", size=1)
            + rank("session 12", 0, 3, "DEVICE_ID=3", size=1, at=30),
        ),
        (half("visible_devices_overlap", npu(1, 1), WARNING, at=30, lasts_s=15),),
    ),
    Case(
        "a job beside its list, 310P3",
        "a process that was given device 0 runs on device 1",
        Text("310P3", 150, rank("slurm 4711", 0, 1, "ASCEND_RT_VISIBLE_DEVICES=0", size=1, at=30)),
        (half("outside_visible_devices", npu(1), WARNING, at=30, lasts_s=15),),
    ),
    Case(
        "a session beside its list, A3",
        "somebody who set his list to 0 and 1 is on die 2 as well, for two minutes",
        Text(
            "A3",
            270,
            rank("session 12", 0, 2, "ASCEND_RT_VISIBLE_DEVICES=0,1", size=1, at=30)
            + '[[at]]\nt = 150\ndevice = 2\nstop = "all"\n',
        ),
        (half("outside_visible_devices", npu(1, 0), WARNING, at=30, lasts_s=15, over=(150, 195)),),
    ),
)

HCCL_UGLY: tuple[Case, ...] = (
    Case(
        "eight ranks on eight ports, 910B3",
        "one job listens for each of its eight devices, as HCCL does",
        Text(
            "910B3",
            150,
            "".join(
                rank("slurm 4711", at, at, f"{BASE}=60000", listens=f"10.0.0.7:{60000 + at}", size=8) for at in range(8)
            ),
            cards=8,
        ),
    ),
    Case(
        "two jobs beside each other, 910B3",
        "two halves of a node: job 4711 has base port 60000, job 4712 60100; both wait, each has devices of its own",
        Text(
            "910B3",
            150,
            "".join(
                rank(
                    f"slurm 471{1 + at // 2}",
                    at % 2,
                    at,
                    f"{BASE}={60000 + at // 2 * 100}",
                    f"ASCEND_RT_VISIBLE_DEVICES={'2,3' if at // 2 else '0,1'}",
                    listens=f"10.0.0.7:{60000 + at // 2 * 100 + at}",
                )
                for at in range(4)
            ),
            cards=4,
        ),
    ),
    Case(
        "two pods with the same ports and numbers, A3",
        "each has a network and devices of its own, and both call theirs 0 and 1",
        Text(
            "A3",
            150,
            "".join(
                rank(
                    f"kubernetes {PODS[at // 2]}",
                    at % 2,
                    at,
                    f"{BASE}=60000",
                    "ASCEND_RT_VISIBLE_DEVICES=0,1",
                    listens=f"10.244.0.{at}:{60000 + (at + 2) % 4}",
                )
                for at in range(4)
            ),
        ),
    ),
    Case(
        "two jobs with nothing set, 910A",
        "both leave all to HCCL, one listens on 60000 and the other one has taken the next",
        Text(
            "910A",
            150,
            rank("slurm 4711", 0, 0, listens="10.0.0.7:60000")
            + rank("slurm 4711", 1, 1)
            + rank("slurm 4712", 0, 2, listens="10.0.0.7:60001")
            + rank("slurm 4712", 1, 3),
            cards=4,
        ),
    ),
)
