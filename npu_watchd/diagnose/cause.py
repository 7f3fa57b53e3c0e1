"""The causes between which we decide, and what a person does about each."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Cause(StrEnum):
    """Why a job died."""

    VERSION_MISMATCH = "version_mismatch"
    HARDWARE = "hardware"
    CONTENTION = "contention"
    NETWORK = "network"
    HOST_MEMORY = "host_memory_or_compile_children"
    SOFTWARE = "software"
    NOT_ENOUGH_EVIDENCE = "not_enough_evidence"


@dataclass(frozen=True, slots=True)
class Advice:
    """What a cause means, what to do, and how to see that it was that."""

    title: str
    do: tuple[str, ...]
    verify: tuple[str, ...]


ADVICE: dict[Cause, Advice] = {
    Cause.VERSION_MISMATCH: Advice(
        "driver, CANN and framework do not belong together",
        (
            "Choose one row of the framework's compatibility table; install driver, firmware, CANN, framework and the "
            "te and hccl wheels of that row.",
            "Install te and hccl from the CANN in use: pip install $ASCEND_HOME_PATH/lib64/te-*.whl hccl-*.whl",
        ),
        (
            "npu-smi info    # its title row: the driver's version",
            "cat /usr/local/Ascend/driver/version.info",
            "cat /usr/local/Ascend/ascend-toolkit/latest/*/ascend_toolkit_install.info",
            'python -c "import mindspore; mindspore.run_check()"',
        ),
    ),
    Cause.HARDWARE: Advice(
        "a fault of the device itself",
        (
            "Take the device out of use (npu-watchd quarantine device N --reason ...), and start the job on others.",
            "Reset or replace it as the runbook of its alert says.",
        ),
        (
            "npu-watchd explain device N    # its error counts and their history",
            "npu-smi info -t ecc -i NPU; npu-smi info -t health -i NPU",
            "Run a stress test on that device alone and read the same counts again: they climb, or it was not this.",
        ),
    ),
    Cause.CONTENTION: Advice(
        "several jobs, or the remains of one, on the same device or port",
        (
            "Let one job have the device: end the others or the leftover process, or ask for exclusive devices.",
            "Of two jobs on one node, give each its own HCCL_HOST_SOCKET_PORT_RANGE and HCCL_NPU_SOCKET_PORT_RANGE.",
        ),
        (
            "npu-smi info    # the processes of the device",
            "npu-watchd status    # which job has which device; leftovers",
            "Start the job alone: it runs, or it was not this.",
        ),
    ),
    Cause.NETWORK: Advice(
        "the network between the ranks, or how it is set up",
        (
            "Check link, address and TLS of the NPU ports on both ends, and the switch between them.",
            "Check that a firewall lets the HCCL ports through (60000-60031 by default), on every node.",
            "Look whether the peer's process had not ended first: then this is only its consequence.",
        ),
        (
            "for i in 0 1 2 3 4 5 6 7; do hccn_tool -i $i -link -g; hccn_tool -i $i -net_health -g; done",
            "hccn_tool -i N -tls -g    # the same on all; and: ibstat",
            "hccn_tool -i N -ping -g address PEER",
        ),
    ),
    Cause.HOST_MEMORY: Advice(
        "the host's memory or limits, or its compile processes",
        (
            "Fewer compile processes a job: MS_BUILD_PROCESS_NUM (1 to 24); count jobs x processes.",
            "More memory, pids or shared memory for the container; fewer data workers.",
        ),
        (
            "dmesg -T | grep -iE 'killed process|oom-kill|fork rejected'",
            "cat /sys/fs/cgroup/.../memory.events /sys/fs/cgroup/.../pids.events    # of the job's cgroup",
            "df -h /dev/shm; free -g; ulimit -u",
        ),
    ),
    Cause.SOFTWARE: Advice(
        "the job's own program, data or settings",
        (
            "Read the first error that the log has, with the file and line that it names.",
            "Settings: correct the variable or the rank table that the message names.",
        ),
        (
            "Start it on another, healthy device with the same input: it fails in the same way, or it was not this.",
            "Operators: ASCEND_LAUNCH_BLOCKING=1 (torch_npu) or pynative mode (MindSpore) give the true stack.",
        ),
    ),
    Cause.NOT_ENOUGH_EVIDENCE: Advice(
        "what there is does not suffice to name a cause",
        (
            "Hand in the logs of all ranks: npu-watchd diagnose LOG LOG ...; the first rank to fail has the cause.",
            "Look for earlier lines, for ~/ascend/log/debug/plog of the same pid, and into the kernel's log.",
        ),
        ("dmesg -T | grep -iE 'killed process|oom-kill'", "npu-watchd events --since 24h; npu-watchd status"),
    ),
}
"""After the remedies of the field; the commands are those of the tools' own help."""
