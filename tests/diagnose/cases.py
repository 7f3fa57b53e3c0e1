"""Incidents with the cause that a person gave them: real logs, our own, and composed ones."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from npu_watchd.diagnose.cause import Cause
from npu_watchd.diagnose.clue import Clue, Origin, of_document, of_log
from npu_watchd.diagnose.incident import Incident, incident_of
from npu_watchd.parsers import ascend_log
from tests.parsers.log_texts import OWN_FOLDER, SHARED_FOLDER

V, H, C, N, M, S, U = (
    Cause.VERSION_MISMATCH,
    Cause.HARDWARE,
    Cause.CONTENTION,
    Cause.NETWORK,
    Cause.HOST_MEMORY,
    Cause.SOFTWARE,
    Cause.NOT_ENOUGH_EVIDENCE,
)
ENDED_S = 1_796_000_000.0
HOUR_S = 3600.0

SHARED: Mapping[str, Cause] = {
    "ascend_device_plugin_switch_fault": N,
    "bbox_history": U,
    "device_imp_mac_link": N,
    "device_log_tls_switch_differs": N,
    "device_os_ts_exception_and_apei_memory_error": H,
    "device_tsch_hwts_timeout": U,
    "hccl_EI0001_env_value_msg": S,
    "hccl_EI0011_qp_memory_msg": C,
    "hccl_EI0012_sdma_msg": U,
    "hccl_EI0019_bind_ip_port_msg": C,
    "lcne_switch_port_fail": N,
    "messages_oom_conntrack_ext4_ras": M,
    "mindspore_EE8888_stream_flags_version": V,
    "mindspore_EZ9999_aicore_execute_failed": S,
    "mindspore_aicpu_exception_E39999_mindact": S,
    "mindspore_cann_case_2_EE9999": C,
    "mindspore_cann_case_3_EE9999": S,
    "mindspore_cann_case_5_EI0002": U,
    "mindspore_cann_case_6_EI0004": S,
    "mindspore_malloc_device_memory_occupied": C,
    "mindspore_memasync_copy_failed": U,
    "mindspore_response_is_empty_pytest": U,
    "mindspore_tbe_compile_failed_EB0000": S,
    "msmodelslim_faq_killed_tbe": U,
    "npu_exporter_libdcmi_invalid": U,
    "plog_hccl_EI0001_ifname": S,
    "plog_hccl_EI0001_ip_family": N,
    "plog_hccl_EI0004_ranktable_path": S,
    "plog_hccl_EI0005_cmd_check_fail": S,
    "plog_hccl_EI0014_superdeviceid": N,
    "plog_hccl_EI0015_agent_timeout": N,
    "plog_hccl_EI0015_server_timeout_4_of_8": U,
    "plog_hccl_EI0016_tls_inconsistent": N,
    "plog_hccl_EI0019_socket_type2_60000": C,
    "plog_hccl_aicpu_notify_wait_rank1": U,
    "plog_hccl_cqe_err_status12": N,
    "plog_hccl_heartbeat_lost_cluster_exception": U,
    "plog_hccl_link_error_info_server_noconnect": N,
    "plog_hccl_link_error_info_timeout_ports": N,
    "plog_hccl_p2p_timeout": U,
    "plog_hccl_root_topo_timeout_and_heartbeat": N,
    "plog_hccl_stuck_cluster_exception": U,
    "plog_hccp_EI0014_device_ip_mismatch": N,
    "plog_run_setupagent_rank0": U,
    "plog_runtime_fftsplus_sdma_error": U,
    "plog_runtime_taskfail_sq_sw_status_pta_dispatch_timeout": U,
    "runtime_EE1015_driver_version_insufficient": V,
    "runtime_faq_task_failed_vector_core": S,
    "sysmonitor_irqbalance": U,
    "train_507033_too_many_processes_E30003": C,
    "train_EL9999_halQueueEnQueueBuff_hdc": U,
    "train_modelarts_sidecar_pta_err00002": S,
    "train_tbe_subprocess_main_process_disappeared": U,
    "vllm_rtGetMemUceInfo_507899_partial": U,
    "vmcore_hard_lockup": U,
}
"""By the manifest of the collection and the vendor's documents, where these name a cause; U where they name several, or
say that the line follows from another."""

OWN: Mapping[str, Cause] = {
    "oom_then_response_is_empty": M,
    "pids_limit_then_response_is_empty": M,
    "te_missing_then_response_is_empty": V,
    "symbol_of_another_cann": V,
    "torch_npu_multi_bit_ecc": H,
    "torch_npu_out_of_memory": U,
    "torch_npu_collective_timeout": U,
    "vllm_engine_port_taken": C,
    "mindformers_second_start": C,
    "mindformers_wrong_shape": S,
    "roce_flap_qp": N,
    "npu_port_was_down": N,
    "task_scheduler_gone": U,
    "shm_full": M,
    "quiet_end": U,
    "rank3_first": S,
    "rank0_waits": U,
}

EMPTY = "mindspore/ccsrc/backend/common/session/kernel_build_client.h:100 Response\n"
WAITS = "[ERROR] HCCL(500,python):{at} [a.cc:1] [9]EI0002: The Notify register times out, device_id=3, stream_id=1\n"
CORE = "[ERROR] RUNTIME(500,python):{at} [a.cc:1] 9 Aicore kernel execute failed, device_id=2, stream_id=1\n"
VALUE = "ValueError: For 'MatMul', the input shapes must fit, device_id=3\n"
SHORT = "RuntimeError: NPU out of memory. Tried to allocate 8.00 GiB (device 3)\n"
LOST = "[ERROR] HCCL(500,python):{at} [a.cc:1] [9] serverId[10.0.0.2], deviceId[3], Heartbeat Lost Occurred\n"
ROOT = "[ERROR] HCCL(500,python):{at} [a.cc:1] [9] topo exchange agent get socket timeout! timeout[120]\n"
WARNED = (
    "[WARNING] ME(500:1,MainProcess):x MindSpore version 2.2 and Ascend AI software package version 7 does not match\n"
)
AT = "2026-11-30-00:53:20.000.000"


@dataclass(frozen=True)
class Case:
    name: str
    cause: Cause
    incident: Incident
    device_ids: tuple[str, ...] = ()
    """Whose hardware, where that is the cause."""


def log(text: str, name: str = "train.log") -> list[Clue]:
    return list(of_log(name, ascend_log.parse(text.replace("{at}", AT)).events, 0.0))


def finding(
    rule: str,
    device_id: str | None = None,
    *,
    since_s: float = -30.0,
    until_s: float | None = None,
    critical: bool = False,
) -> Clue:
    """since_s, until_s: from the job's end."""
    ended = None if until_s is None else ENDED_S + until_s
    text, where = f"{rule} of {device_id}", "npu-watchd status"
    return Clue(
        Origin.FINDING,
        rule,
        text,
        where,
        ENDED_S + since_s,
        device_id=device_id,
        critical=critical,
        until_s=ended,
    )


def device(device_id: str, *, pid: int = 500, jobs: int = 1, health: str = "ok", up: bool = True) -> dict[str, Any]:
    return {
        "device_id": device_id,
        "health": health,
        "blind": {},
        "processes": [{"pid": pid, "name": "python", "memory_bytes": 1, "container_pid": None}],
        "roce": {"link_up": up},
        "jobs": {"known": [{"scheduler": "slurm", "job": str(number)} for number in range(jobs)], "unknown": []},
    }


def document(*devices: dict[str, Any], findings: Iterable[dict[str, Any]] = ()) -> dict[str, Any]:
    return {
        "at": ENDED_S + 20.0,
        "engine": {"started_at": ENDED_S - 90_000.0},
        "devices": list(devices),
        "findings": list(findings),
        "kernel_log_lost": 0,
        "driver_version": "24.1.rc2",
        "tool_version": "24.1.rc2",
    }


def sick_findings(shown: dict[str, Any]) -> dict[str, Any]:
    """As the daemon publishes it just now: the memory of device 3 failed."""
    now_s = time.time()
    summary = "device 3: 2 uncorrectable HBM errors since its last reset"
    double = {
        "rule": "hbm_double_bit",
        "device_id": "3",
        "severity": "critical",
        "since": now_s - 30,
        "summary": summary,
    }
    rest = {
        "node": "n1",
        "devices_expected": 8,
        "devices_present": 8,
        "ports": [],
        "blind": {},
        "warnings": [],
        "verdicts": [],
    }
    return {**shown, **rest, "at": now_s, "findings": [double]}


def composed(
    name: str, cause: Cause, text: str, *findings: Clue, shown: dict[str, Any] | None = None, ids: tuple[str, ...] = ()
) -> Case:
    now = of_document(shown) if shown else ()
    return Case(name, cause, incident_of(log(text), findings, shown, ENDED_S, now), ids)


def composed_cases() -> Iterator[Case]:
    yield composed("a warning of versions, then the compile child", V, WARNED + EMPTY)
    yield composed("versions found not to fit, and the compile child", V, EMPTY, finding("version_mismatch"))
    yield composed("the driver is too old", V, "Reason: The driver version capacity is insufficient. x\n" + WAITS)
    yield composed("runtime and driver differ", V, "EE1015: Incorrect driver version.\n" + CORE)

    double = finding("hbm_double_bit", "3")
    yield composed("a wait on the device whose memory failed", H, WAITS, double, ids=("3",))
    yield composed(
        "a device that vanished", H, "ts lost heartbeat, device_id=6, x\n", finding("device_missing", "6"), ids=("6",)
    )
    yield composed(
        "an operator failed as the chip reported a fault",
        H,
        CORE,
        finding("error_code", "2", critical=True),
        ids=("2",),
    )
    sick = document(device("4", health="critical"))
    dying = finding("device_unhealthy", "4", critical=True)
    yield composed("the compile child, and the job's device critical", H, LOST + EMPTY, dying, shown=sick, ids=("4",))
    yield composed("a code that comes again", H, WAITS, finding("error_code_repeats", "3"), ids=("3",))
    yield composed(
        "pages isolated up to the limit", H, WAITS, finding("isolated_pages", "3", critical=True), ids=("3",)
    )
    yield composed("the job's own line of multi-bit ECC", H, "hbm Multi-bit ECC error, device_id=1, x\n", ids=("1",))

    share = finding("jobs_share_device", "3")
    yield composed("memory short, and two jobs on the device", C, SHORT, share)
    yield composed("memory short, and a leftover", C, SHORT, finding("leftover", "3"))
    yield composed(
        "the compile child, and the host overrun by jobs", C, EMPTY, finding("host_contention"), finding("pcie_load")
    )
    yield composed("ports of two jobs, and no root", C, ROOT, finding("hccl_ports_conflict"))
    yield composed("a wait, and somebody else's devices", C, WAITS, finding("visible_devices_overlap", "3"))
    yield composed("two jobs for hours", C, WAITS, finding("jobs_share_device", "3", since_s=-9 * HOUR_S))

    yield composed("a wait, and the port down", N, WAITS, finding("roce_down", "3"))
    yield composed("a peer lost, and the port flaps", N, LOST, finding("roce_flap", "3", until_s=-60.0))
    yield composed("a peer lost, and dim optics and errors", N, LOST, finding("optics"), finding("roce_errors"))
    yield composed("no root, everything here well", N, ROOT, shown=document(device("0")))
    yield composed("a host port down", N, LOST, finding("roce_down"))

    yield composed("the compile child, and the kernel killed", M, EMPTY, finding("host_oom"))
    yield composed("SIGKILL, and the compile child", M, "import mindspore\nKilled\n" + EMPTY)
    yield composed("no fork, and the compile child", M, "cgroup: fork rejected by pids controller\n" + EMPTY)
    yield composed("no memory on the host", M, "OSError: [Errno 12] Cannot allocate memory\n" + EMPTY)

    elsewhere = finding("hbm_double_bit", "7")
    yield composed("its own error, and a sick device of others", S, VALUE, elsewhere)
    yield composed("its own error, and two jobs on the device", S, VALUE, share)
    yield composed(
        "its own error, on a device bad for days", S, VALUE, finding("hbm_double_bit", "3", since_s=-72 * HOUR_S)
    )
    yield composed("its own error, and a flap before", S, VALUE, finding("roce_slow", "3"))
    yield composed("memory short, and alone", S, SHORT, shown=document(device("3")))
    yield composed("ranks that differ", S, "EI0005: The arguments are inconsistent. tag check fail, x\n" + LOST)
    yield composed(
        "an operator first, a lost link later", S, CORE + ROOT.replace("{at}", "2026-11-30-01:23:20.000.000")
    )

    yield composed("the compile child, everything well", U, EMPTY, shown=document(device("0")))
    yield composed("the compile child, a sick device, and no telling whose", U, EMPTY, elsewhere)
    yield composed("a wait, and a sick device of others", U, WAITS, elsewhere)
    yield composed("a wait, and corrected errors", U, WAITS, finding("hbm_single_bit", "3"))
    yield composed("a wait, and a fault long mended", U, WAITS, finding("roce_down", "3", since_s=-9000, until_s=-7200))
    yield composed("a wait, and a fault that came later", U, WAITS, finding("hbm_double_bit", "3", since_s=3600))
    yield composed("SIGKILL by somebody", U, "train.sh: line 3: 500 Killed   python train.py\n")
    yield composed("a scheduler gone silent, and a loose cable", U, "retCode is 507010\n", finding("pcie_link", "3"))
    yield composed("ended by the platform", U, "[sidecar] SIGTERM signal is received, waiting\n")
    yield composed("nothing at all", U, "step 1 loss 2.0\n")
    old = finding("hbm_double_bit", "3", since_s=-72 * HOUR_S)
    yield composed("a wait, on a device bad for days", U, WAITS, old)


def own_cases() -> Iterator[Case]:
    for name, cause in OWN.items():
        clues = log((OWN_FOLDER / f"{name}.log").read_text(encoding="utf-8"), f"{name}.log")
        ids = ("5",) if name == "torch_npu_multi_bit_ecc" else ()
        yield Case(name, cause, incident_of(clues, (), None, None), ids)
    both = [
        clue
        for name in ("rank0_waits", "rank3_first")
        for clue in log((OWN_FOLDER / f"{name}.log").read_text(encoding="utf-8"), f"{name}.log")
    ]
    yield Case("rank0_waits and rank3_first", S, incident_of(both, (), None, None))


def shared_cases() -> Iterator[Case]:
    """None where no folder of real logs is named."""
    for name, cause in SHARED.items():
        path = SHARED_FOLDER / f"{name}.log"
        if path.is_file():
            yield Case(name, cause, incident_of(log(path.read_text("utf-8", "replace"), path.name), (), None, None))


def all_cases() -> tuple[Case, ...]:
    return (*composed_cases(), *own_cases(), *shared_cases())
