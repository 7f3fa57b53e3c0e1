"""What HCCL writes: CANN's error code references, in our words."""

from __future__ import annotations

from npu_watchd.codes.log_code import BUSY, LINK, NEXT, LogCode

HCCL_CODES: tuple[LogCode, ...] = (
    LogCode(
        "EI0001",
        "Config_Error_Invalid_Environment_Variable",
        "An environment variable of HCCL has a value that cannot be. The message names it.",
        "software",
        "env | grep HCCL",
    ),
    LogCode(
        "EI0002",
        "A rank waited in vain",
        "This rank waited for another one, and heard nothing within HCCL_EXEC_TIMEOUT (1836 s by "
        "default). It is a consequence: the rank that failed, hung or was too slow is another one. Look "
        "for the rank whose log ends first.",
        "-",
        "npu-watchd diagnose LOG LOG ...    # of all ranks",
    ),
    LogCode(
        "EI0003",
        "Wrong argument",
        "An argument of a collective operation is wrong.",
        "software",
        NEXT,
    ),
    LogCode(
        "EI0004",
        "Wrong rank table",
        "The rank table is wrong, or its file cannot be read.",
        "software",
        "cat $RANK_TABLE_FILE",
    ),
    LogCode(
        "EI0005",
        "Ranks differ",
        "Two ranks called different operations, or the same with other sizes.",
        "software",
        NEXT,
    ),
    LogCode(
        "EI0006",
        "Ranks not connected",
        "Two ranks could not connect within HCCL_CONNECT_TIMEOUT (120 s by default): the network, or the "
        "peer had not come that far.",
        "network",
        LINK,
    ),
    LogCode(
        "EI0008",
        "Versions of HCCL differ",
        "Ranks have different versions of HCCL.",
        "version_mismatch",
        "pip list | grep -i hccl",
    ),
    LogCode(
        "EI0011",
        "Resource_Error_Insufficient_Device_Memory",
        "HCCL found no room in the device's memory: other processes hold it, or the job leaves none.",
        "contention",
        BUSY,
    ),
    LogCode(
        "EI0012",
        "Execution_Error_SDMA",
        "A copy between two devices failed: the link between them, an uncorrectable memory error at an "
        "end, or a peer that died first.",
        "-",
        "npu-smi info -t ecc -i NPU; npu-smi info -t hccs -i NPU -c 0",
    ),
    LogCode(
        "EI0013",
        "Execution_Error_ROCE_CQE",
        "RoCE packets to a peer stayed unanswered after all repeats (HCCL_RDMA_TIMEOUT, "
        "HCCL_RDMA_RETRY_CNT): network, optics, or the peer's process is gone.",
        "network",
        LINK,
    ),
    LogCode(
        "EI0014",
        "Wrong address",
        "The address that the rank table has for an NPU is not the one it has, or two devices have one identity.",
        "network",
        "hccn_tool -i N -ip -g    # against the rank table",
    ),
    LogCode(
        "EI0015",
        "Root not reached",
        "The ranks did not all meet at the root: no route, a firewall, or a rank that never started.",
        "network",
        "nc -vz ROOT 60000    # from the other nodes; and: did every rank start?",
    ),
    LogCode(
        "EI0016",
        "TLS differs",
        "TLS is on for some NPUs and off for others.",
        "network",
        "hccn_tool -i N -tls -g    # the same on all",
    ),
    LogCode(
        "EI0019",
        "Communication_Error_Bind_IP_Port",
        "A port that HCCL wants is another process's: a second job on the node, or one that has not ended.",
        "contention",
        "ss -ltnp | grep -E ':6000[0-9]|:600[123][0-9]'",
    ),
    LogCode(
        "EJ0001",
        "Process of HCCL not started",
        "The process that HCCL needs on the device could not start: usually an earlier job has not quite ended.",
        "contention",
        BUSY,
    ),
)
