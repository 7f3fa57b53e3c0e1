"""Signs of the job, its framework, the compile children, the host and the platform.

Facts: vendor error references (CANN maintenance guide, torch_npu), MindSpore's sources and error guide, the rule
base of MindCluster's fault diagnosis; in our own words.
"""

from __future__ import annotations

from npu_watchd.model.log_event import Family, Role
from npu_watchd.parsers.log_sign import Sign

COMPILER: tuple[Sign, ...] = (
    Sign(
        "compile_child_silent", Family.COMPILER, Role.CONSEQUENCE,
        "the compile child of this process on the host ended, or closed its pipe, without an answer; no device, port or"
        " link takes part in this message",
        (("kernel_build_client.h:", " response"),),
    ),
    Sign(
        "compile_child_silent", Family.COMPILER, Role.CONSEQUENCE,
        "the compile child of this process on the host ended, or closed its pipe, without an answer; no device, port or"
        " link takes part in this message",
        (("runtimeerror: response is empty",),),
        within="mindspore",
    ),
    Sign(
        "compile_pipe_broken", Family.COMPILER, Role.CONSEQUENCE,
        "the pipe to the compile child broke; errno 104 or 32: the child is gone",
        (("[duplexpipe]", "failed"), ("read from pipe failed",), ("time out when read from pipe",)),
    ),
    Sign(
        "compile_client_closed", Family.COMPILER, Role.CONSEQUENCE,
        "the client of the compile child had been closed before: look further up",
        (
            ("try to send request before open()",),
            ("try to get response before open()",),
            ("response seems incorrect, res",),
        ),
    ),
    Sign(
        "tbe_main_process_gone", Family.COMPILER, Role.CONSEQUENCE,
        "the compile workers noticed that the training process is gone: it was killed or crashed",
        (("tbe subprocess", "main process disappeared"),),
    ),
    Sign(
        "compile_failed", Family.COMPILER, Role.FAULT,
        "the compiler answered that an operator of this job cannot be built",
        (("tbeexception",), ("task compile failed",), ("compile operator failed",), ("op compile failed",)),
        ("EB0000", "EB0001", "EB0002", "EB0003", "EB0004", "EB0005", "EB0006", "EB0007", "EB0008"),
    ),
    Sign(
        "compiler_not_importable", Family.COMPILER, Role.FAULT,
        "the compiler's Python packages (te, tbe, hccl) cannot be imported: not installed, or of another CANN",
        (
            ("no module named 'te'",),
            ("no module named 'te.",),
            ("no module named 'tbe",),
            ("no module named 'topi",),
            ("no module named 'hccl",),
            ("no module named 'te_fusion",),
            ("relies on whl packages of", "te"),
        ),
    ),
)  # fmt: skip

VERSIONS: tuple[Sign, ...] = (
    Sign(
        "versions_do_not_fit", Family.FRAMEWORK, Role.FAULT,
        "the software itself says that two versions do not belong together",
        (
            ("driver version capacity is insufficient",),
            ("ascend ai software package", "not match"),
            ("mindspore version", "not match"),
            ("please upgrade the driver",),
            ("torch_npu", " version mismatch"),
            ("package version", "not compatible"),
            ("cann version", "not match"),
        ),
        ("EE1015", "EI0008", "107010"),
    ),
    Sign(
        "feature_unsupported", Family.RUNTIME, Role.FAULT,
        "the runtime or the driver does not know what the framework asked for: usually an older CANN or driver",
        (("feature not support",), ("unsupport flags",)),
        ("207000", "507008", "507009"),
    ),
    Sign(
        "symbol_missing", Family.FRAMEWORK, Role.FAULT,
        "a library of another CANN version is loaded: a function that is called is not in it",
        (
            ("undefined symbol", "acl"), ("undefined symbol", "hccl"), ("undefined symbol", "libge"),
            ("undefined symbol", "libruntime"), ("undefined symbol", "rt", "ascend"),
            ("libascendcl.so", "cannot open shared object"), ("libhccl.so", "cannot open shared object"),
            ("libge_runner.so", "cannot open shared object"), ("hcclsetconfig", "from libhccl.so failed"),
        ),
    ),
    Sign(
        "operators_missing", Family.FRAMEWORK, Role.FAULT,
        "the operator package of CANN is not where the environment says",
        (("opp_path", "is invalid"), ("ascend_opp_path", "invalid"), ("ascend_opp_path", "not set")),
    ),
    Sign(
        "driver_library_unusable", Family.DRIVER, Role.FAULT,
        "the driver's library cannot be used: not installed, or not readable for this user",
        (("libdcmi.so", "failed"), ("libascend_hal.so", "cannot open"), ("libascend_hal.so", "failed")),
    ),
)  # fmt: skip

HOST: tuple[Sign, ...] = (
    Sign(
        "oom_kill", Family.HOST, Role.FAULT,
        "the kernel killed a process for want of host memory",
        (("out of memory: kill",), ("oom-kill:constraint",)),
    ),
    Sign(
        "killed", Family.HOST, Role.CONSEQUENCE,
        "somebody sent SIGKILL: the kernel's OOM killer, a limit of the container, the scheduler, or a person",
        (
            ("exit code -9",), ("exitcode: -9",), ("exitcode : -9",), ("exitstatus=137",), ("exit code 137",),
            ("exit code: 137",), ("signals.sigkill",), ("signal 9 (sigkill)",), ("killed by signal 9",),
            ("oomkilled",),
        ),
    ),
    Sign(
        "host_memory_short", Family.HOST, Role.FAULT,
        "an allocation in the host's memory failed",
        (("cannot allocate memory",), ("std::bad_alloc",), ("page allocation failure",), ("memoryerror:",)),
    ),
    Sign(
        "process_limit", Family.HOST, Role.FAULT,
        "no further process or thread could be started: the pids limit of the cgroup, or ulimit -u",
        (
            ("cgroup: fork rejected",), ("alloc pid failed",), ("can't start new thread",),
            ("fork", "resource temporarily unavailable"), ("pthread_create", "resource temporarily unavailable"),
        ),
    ),
    Sign(
        "shared_memory_short", Family.HOST, Role.FAULT,
        "the shared memory of the host or container is full, or smaller than the job needs",
        (("no space left on device", "shm"), ("insufficient shared memory",), ("shared memory not enough",)),
    ),
    Sign(
        "disk_full", Family.HOST, Role.FAULT,
        "a file system is full",
        (("no space left on device",),),
    ),
    Sign(
        "conntrack_full", Family.HOST, Role.FAULT,
        "the host drops packets: its table of connections is full",
        (("nf_conntrack: table full",), ("nf_conntrack", "table full, dropping packet")),
    ),
    Sign(
        "host_memory_hardware", Family.HOST, Role.FAULT,
        "the kernel had a hardware error of the host's own memory, or isolated a page of it; no NPU is meant",
        (("ready to call notify chain to isolate page",), ("edac mc", "ue memory")),
    ),
    Sign(
        "host_lockup", Family.HOST, Role.FAULT,
        "a CPU of the host hung in the kernel",
        (("watchdog detected hard lockup",), ("soft lockup",), ("self-detected stall on cpu",)),
    ),
    Sign(
        "process_stuck_in_kernel", Family.HOST, Role.CONSEQUENCE,
        "a process waits in the kernel, for a disk, a file server or the driver",
        (("blocked for more than", "seconds"),),
    ),
    Sign(
        "filesystem_error", Family.HOST, Role.FAULT,
        "a file system of the host is damaged",
        (("ext4-fs error",), ("xfs", "corruption detected"), ("buffer i/o error",)),
    ),
)  # fmt: skip

JOB: tuple[Sign, ...] = (
    Sign(
        "setting_invalid", Family.JOB, Role.FAULT,
        "an environment variable of the job has a value that cannot be",
        (("for environment variable", "is invalid"), ("but not found in the environment", "ifname")),
        ("EI0001", "EE1001"),
    ),
    Sign(
        "rank_table_invalid", Family.JOB, Role.FAULT,
        "the job's rank table is wrong, or not where it should be",
        (
            ("ranktable is invalid",), ("ranktable or rank is invalid",), ("ranktable", "is not a valid real path"),
            ("json", "is not a valid real path"), ("get hccl rank_table_file failed",),
        ),
        ("EI0004",),
    ),
    Sign(
        "ranks_differ", Family.JOB, Role.FAULT,
        "two ranks called different operations, or the same with other sizes",
        (("tag check fail",), ("arguments for collective communication are inconsistent",), ("datatype check fail",)),
        ("EI0005",),
    ),
    Sign(
        "data_type_unsupported", Family.JOB, Role.FAULT,
        "the data pipeline hands over a type that the device has not",
        (("got unsupported acl datatype",),),
    ),
    Sign(
        "dataset_failed", Family.JOB, Role.FAULT,
        "the job's data pipeline raised",
        (("exception thrown from dataset pipeline",), ("exception thrown from user defined python function",),
         ("map operation:", "failed"), ("image decode failed",)),
    ),
    Sign(
        "framework_misused", Family.FRAMEWORK, Role.FAULT,
        "torch_npu refuses what the job's code passed (a type, a value, a shape, a null)",
        (("pta invalid",),),
        ("ERR00001", "ERR00002", "ERR00003", "ERR00004", "ERR00005", "ERR00006", "ERR00007", "ERR00008"),
    ),
    Sign(
        "framework_call_failed", Family.FRAMEWORK, Role.CONSEQUENCE,
        "torch_npu tells that a call into CANN failed; the CANN lines around it say why",
        (),
        ("ERR00100", "ERR01100", "ERR02100", "ERR02200", "ERR99999"),
    ),
    Sign(
        "python_error",
        Family.JOB,
        Role.FAULT,
        "Python code of the job raised, and nothing caught it",
    ),
    Sign(
        "worker_died", Family.PLATFORM, Role.CONSEQUENCE,
        "a worker process ended without a word; its own log, or the kernel's, says why",
        (("the actor died unexpectedly",), ("worker unexpectedly exits",), ("died unexpectedly", "worker"),
         ("enginecore", "died"), ("engine core", "died")),
    ),
    Sign(
        "crashed", Family.JOB, Role.CONSEQUENCE,
        "a process of the job crashed in native code",
        (("segmentation fault",), ("sigsegv", "received"), ("malloc_consolidate():",), ("double free or corruption",)),
    ),
    Sign(
        "platform_stopped_job", Family.PLATFORM, Role.CONSEQUENCE,
        "the platform told the job to end; it, or a person, had a reason of its own",
        (("sigterm signal is received",), ("slurmstepd: error", "cancelled at"), ("received sigterm",)),
    ),
    Sign(
        "dead_service", Family.HOST, Role.NOTE,
        "a service of the host is not well",
        (("irqbalance is abnormal",), ("main process exited, code=killed",)),
    ),
)  # fmt: skip
