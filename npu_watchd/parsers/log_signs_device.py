"""Signs of the device, the runtime, the driver, HCCL and the network.

Facts: CANN's error references (HCCL fault diagnosis, runtime return codes), open driver and runtime sources, the rule
base of MindCluster's fault diagnosis; in our own words.
"""

from __future__ import annotations

from npu_watchd.model.log_event import Family, Role
from npu_watchd.parsers.log_sign import Sign

DEVICE: tuple[Sign, ...] = (
    Sign(
        "device_memory_uncorrectable", Family.DEVICE, Role.FAULT,
        "the device's memory had an error that cannot be corrected",
        (("multi bit ecc error",), ("multi-bit ecc",), ("npu function error: uce error",)),
        ("507053", "507054"),
    ),
    Sign(
        "device_os_memory_error", Family.DEVICE, Role.FAULT,
        "the system on the device reports a hardware error of its memory",
        (("kernel(", "sklogd", "section_type: memory error"),),
    ),
    Sign(
        "device_memory_suspect", Family.DEVICE, Role.FAULT,
        "the device suspects its memory, or that of a peer",
        (),
        ("507055", "507057"),
    ),
    Sign(
        "device_heartbeat_lost", Family.DEVICE, Role.FAULT,
        "the device's task scheduler answers no more",
        (("drv_soft_fault", "heartbeat lost"), ("ts lost heartbeat",)),
        ("507010",),
    ),
    Sign(
        "device_gone", Family.DEVICE, Role.FAULT,
        "the driver no longer reaches the device",
        (("device", "is dead", "pcivnic"), ("devdrv", "device is abnormal"), ("npu is lost",), ("card is lost",)),
        ("207004",),
    ),
    Sign(
        "device_exception", Family.DEVICE, Role.FAULT,
        "the device wrote an exception into its black box; a program can cause one as well as a fault",
        (("system exception code",), ("receive ts exception msg",), ("exception_code=0xb4",)),
    ),
    Sign(
        "host_device_channel", Family.DRIVER, Role.FAULT,
        "the channel between host and device failed: the device, its driver, or a process that ended",
        (("hdc send msg fail",), ("hdc disconnect",), ("hdc send failed",)),
        ("507051", "507901"),
    ),
    Sign(
        "pcie_uncorrected", Family.HOST, Role.FAULT,
        "PCIe had an error that cannot be corrected",
        (("pcie bus error: severity=uncorrect",),),
    ),
    Sign(
        "dma_failed", Family.DEVICE, Role.FAULT,
        "a copy between memories failed: of a link between NPUs, of memory, or because the peer died first",
        (("sdma error",), ("execution_error_sdma",), ("sdma memory copy task exception",)),
        ("EI0012", "507013"),
    ),
    Sign(
        "driver_internal_error", Family.DRIVER, Role.CONSEQUENCE,
        "the driver refused without saying why; the driver's own log does",
        (("driver error:internal error",),),
        ("507899", "507900"),
    ),
)  # fmt: skip

RUNTIME: tuple[Sign, ...] = (
    Sign(
        "core_exception", Family.RUNTIME, Role.FAULT,
        "an operator failed on the cores of the device: in nearly all cases what it was given (an address, a shape)",
        (("aicore kernel execute failed",), ("vector core exception",), ("aicore exception",), ("aicore trap",)),
        ("507015", "507016", "507035", "507036", "507042", "507043", "507044", "507045", "507049", "507050"),
    ),
    Sign(
        "cpu_kernel_exception", Family.RUNTIME, Role.FAULT,
        "an operator failed on the device's CPU: in nearly all cases what it was given",
        (("aicpu exception",), ("aicpu kernel execute failed",)),
        ("507018",),
    ),
    Sign(
        "operator_timeout", Family.RUNTIME, Role.CONSEQUENCE,
        "an operator, or a wait for one, took too long",
        (("ai cpu operator execution time out",), ("hwts timeout exception",)),
        ("507012", "507014", "507017", "507034", "507046", "507047", "507048", "E30008"),
    ),
    Sign(
        "task_failed", Family.RUNTIME, Role.CONSEQUENCE,
        "a task on the device failed; the lines around it say of which kind",
        (("task run failed",), ("task exception!",), ("task fail infos",), ("memory async copy failed",)),
        ("507011", "507001", "507000"),
    ),
    Sign(
        "inner_error", Family.RUNTIME, Role.CONSEQUENCE,
        "an error without a meaning of its own; the lines below it say more",
        (),
        ("EE9999", "EZ9999", "EL9999", "EI9999", "EE8888", "EH9999", "EF9999", "EK9999", "E19999", "E29999", "E39999",
         "E49999", "E59999", "E69999", "E79999", "E89999", "E99999"),
    ),
    Sign(
        "data_queue_failed", Family.RUNTIME, Role.CONSEQUENCE,
        "data could not be handed to the device: usually the training had ended before",
        (("acltdtsendtensor",), ("halqueueenqueuebuff failed",)),
    ),
    Sign(
        "device_not_started", Family.RUNTIME, Role.CONSEQUENCE,
        "the process could not take the device",
        (("device retain error",), ("failed lo starl the device",), ("failed to start the device",)),
        ("507033",),
    ),
)  # fmt: skip

OCCUPIED: tuple[Sign, ...] = (
    Sign(
        "device_occupied", Family.RUNTIME, Role.FAULT,
        "another process has the device, or most of its memory",
        (("other processes occupying this card",),),
    ),
    Sign(
        "too_many_processes", Family.RUNTIME, Role.FAULT,
        "too many processes are on the device, or the last ones had not quite ended",
        (("number of started nn processes exceeds",), ("last training process is running",)),
        ("E30003", "EJ0001"),
    ),
    Sign(
        "device_memory_short", Family.RUNTIME, Role.FAULT,
        "the device's memory does not suffice: for this job alone, or because others are on it",
        (
            ("driver error:out of memory",), ("npu out of memory",), ("memory not enough", "smaller than required"),
            ("malloc device memory failed",), ("halmemalloc failed",),
        ),
        ("207001", "207018"),
    ),
    Sign(
        "communication_memory_short", Family.HCCL, Role.FAULT,
        "HCCL found no room in the device's memory: unneeded processes should be stopped",
        (("insufficient npu memory",),),
        ("EI0011",),
    ),
    Sign(
        "port_taken", Family.HCCL, Role.FAULT,
        "a port that HCCL wants is another process's: a second job on the node, or one that has not ended",
        (
            ("have already been bound",), ("listen on ip", "specific port", "fail"), ("ra socket listen start fail",),
            ("bind fail", "have been bound already"),
        ),
        ("EI0019",),
    ),
    Sign(
        "address_in_use",
        Family.JOB,
        Role.FAULT,
        "a port of the host that the job wants is taken: by a second job, by one that has not ended, or by itself",
        (("address already in use",), ("eaddrinuse",)),
    ),
)  # fmt: skip

NETWORK: tuple[Sign, ...] = (
    Sign(
        "tls_differs", Family.HCCL, Role.FAULT,
        "TLS is switched on for some NPUs and off for others, so that they cannot talk",
        (('config "tls" is invalid',), ("tlsstatus are inconsistent",)),
        ("EI0016",),
    ),
    Sign("tls_on", Family.HCCL, Role.NOTE, "TLS is on for this NPU", (("tls switch (1)",),)),
    Sign("tls_off", Family.HCCL, Role.NOTE, "TLS is off for this NPU", (("tls switch (0)",),)),
    Sign(
        "device_address_wrong", Family.HCCL, Role.FAULT,
        "the address that the rank table, or another rank, has for an NPU is not the one that it has",
        (
            ("in the ranktable is inconsistent with the ip address",), ("devices have same superdeviceid",),
            ("device ip family",),
        ),
        ("EI0014",),
    ),
    Sign(
        "roce_retransmission", Family.HCCL, Role.FAULT,
        "RoCE packets to a peer stayed unanswered after all repeats: network, optics, or the peer is gone",
        (("cqe err status",), ("cqe error status",), ("cqe err occurred",), ("error cqe",)),
        ("EI0013",),
    ),
    Sign(
        "root_unreachable", Family.HCCL, Role.FAULT,
        "the ranks did not all meet at the root: no route, a firewall, or a rank that never started",
        (("get socket timeout!",), ("topoexchangeagent: connect server", "failed")),
        ("EI0015",),
    ),
    Sign(
        "firewall_suspected", Family.HCCL, Role.NOTE,
        "HCCL itself suspects a firewall",
        (("firewall is incorrectly configured",),),
    ),
    Sign(
        "link_not_established", Family.HCCL, Role.FAULT,
        "two ranks could not connect: network, or the peer had not come that far",
        (
            ("wait socket establish timeout",), ("wait links establish completed failed",), ("| no connect |",),
            ("getting socket times out",), ("|  client  | time out |",), ("|  server  | time out |",),
        ),
        ("EI0006",),
    ),
    Sign(
        "peer_not_ready", Family.HCCL, Role.CONSEQUENCE,
        "another device of the same node did not come as far in time: look into its rank's log",
        (("connected p2p timeout",), ("wait timeout for get p2p status",)),
    ),
    Sign(
        "npu_port_down", Family.HCCL, Role.FAULT,
        "the NPU's own port was down before the job began",
        (("ra hdc message process failed ret(-67)",), ("event_id=0x81078603",), ("event id=0x81078603",)),
    ),
    Sign(
        "port_signal_bad", Family.DEVICE, Role.FAULT,
        "the NPU's port has a cable or optics fault on its line",
        (("mac_link", "rf_lf 1"), ("[imp]", "mac_link 0")),
    ),
    Sign(
        "switch_fault", Family.PLATFORM, Role.FAULT,
        "the switch between the node's NPUs reported a fault",
        (("switch subscribe got fault",), ("hwportfail_active",)),
    ),
    Sign(
        "link_error", Family.RUNTIME, Role.FAULT,
        "the link between two devices failed",
        (),
        ("507056", "507904"),
    ),
    Sign(
        "notify_wait", Family.HCCL, Role.CONSEQUENCE,
        "this rank waited for another one in vain: the cause is there, or on the way",
        (
            ("notify register times out",), ("notify wait timeout",), ("type:notify wait",),
            ("notify wait execute failed",),
        ),
        ("EI0002",),
    ),
    Sign(
        "peer_heartbeat_lost", Family.HCCL, Role.CONSEQUENCE,
        "a peer was not heard for 30 s: its process ended, or the network failed",
        (("heartbeat lost occurred",), ("status[lost] by rank",)),
    ),
    Sign(
        "peer_stuck", Family.HCCL, Role.CONSEQUENCE,
        "a peer's process or task is stuck",
        (("stuck occurred",),),
    ),
    Sign(
        "collective_timeout", Family.FRAMEWORK, Role.CONSEQUENCE,
        "a collective operation did not end in time",
        (("process group work", "dispatch timeout"), ("watchdog caught collective operation timeout",)),
    ),
    Sign(
        "rank_placed", Family.HCCL, Role.NOTE,
        "which rank has which device",
        (("setupagent ranknum",), ("hcclcomminitrootinfo:ranks",), ("hcclcomminitinfo:commid",)),
    ),
)  # fmt: skip
