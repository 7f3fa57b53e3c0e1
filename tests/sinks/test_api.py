"""The snapshot as JSON: the document of docs/api.md, null for what nobody knows, and no NaN."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from npu_watchd.model.fabric import NpuPortStatistics, PortCounters, PortKey
from npu_watchd.model.finding import Action
from npu_watchd.model.host import Belonging, Host, MemoryUse, OomKill, OomScope, Pressure, Stall, TaskLoad
from npu_watchd.model.ids import NODE, DeviceKey
from npu_watchd.model.jobs import JobKey, Scheduler
from npu_watchd.model.pcie import PcieErrors, PcieLoad, SocketPcieLoad
from npu_watchd.model.reading import Failure, FailureKind
from npu_watchd.model.records import Hccs, MemoryErrors, PcieLinkErrors
from npu_watchd.model.snapshot import Identity, Memory, NpuPort, Outcome, ProbeState, ProbeTally
from npu_watchd.model.verdict import Reason, State, Verdict
from npu_watchd.model.versions import Installed, Packages, VersionFile, VersionSpan
from npu_watchd.sinks.web.api import snapshot_json
from npu_watchd.sinks.web.app import PATHS
from tests.sinks.build import AT, TIMEOUT, device, outcome, process, tool_missing
from tests.sinks.fabric import (
    NPU,
    ROOT_PORT,
    down_port,
    host_port,
    lane,
    missing_port,
    module,
    npu_port,
    pcie_errors,
    pcie_link,
    ports,
    unseen_port,
)

SLURM = JobKey(Scheduler.SLURM, "4711")
API_DOC = (Path(__file__).parents[2] / "docs" / "api.md").read_text(encoding="utf-8")


def example() -> Outcome:
    """The node of the example in docs/api.md: one device in use, one whose ECC query hangs."""
    shown = outcome(
        [
            device(
                0,
                key=DeviceKey(npu=1, chip=0),
                identity=Identity("910B3", 4, 0, "0000:c1:00.0", "7.1.0.3.220", "0F4E"),
                utilization_ratio={"aicore": 0.87},
                memory={"hbm": Memory(used_bytes=61_203_283_968, total_bytes=68_719_476_736)},
                memory_bandwidth_utilization_ratio={"hbm": 0.4},
                memory_errors={"hbm": MemoryErrors(2, 0, 5, 0, 0, 0, 0, 0)},
                processes=(process("python3"),),
                roce=npu_port(
                    statistics=NpuPortStatistics(
                        packets={"receive": 9001, "transmit": 8002},
                        errors={"receive_fcs": 0},
                        retries=21,
                        congestion_notifications={"receive": 4, "transmit": 5},
                        pause_frames={"receive": 0, "transmit": 0},
                        pfc_frames={"receive": 3, "transmit": 0},
                    ),
                    optical=module(lane(0), vendor_name="LumaWorks", voltage_volts=3.3),
                ),
                pcie_link=pcie_link(lanes=8, path_lanes=8),
                pcie_errors=replace(pcie_errors(4, at_far_end=3), counts={"correctable": {"BadTLP": 4}}),
                pcie_load=PcieLoad(12.6e9, 6.3e9, 0.2, "dcmi", receive_ratio=0.8, transmit_ratio=0.4),
                hccs=Hccs(healthy=True, error_counts=(0, 0), retry_counts=(0, 3), first_error_lane=None),
                pcie_link_errors=PcieLinkErrors({"tx_err_cnt": 0}),
            ),
            device(
                1,
                key=DeviceKey(npu=1, chip=1),
                identity=Identity("910B3", 5, 1, "0000:c2:00.0"),
                health="unknown",
                error_codes=None,
                power_watts=None,
                temperature_celsius={},
                utilization_ratio={},
                clock_hertz=None,
                clock_max_hertz=None,
                memory={"hbm": Memory(None, None)},
                memory_errors={},
                processes=None,
                blind={"npu_ecc": TIMEOUT},
                unsupported={"npu_pcie_err": "This device does not support querying pcie-err."},
                vital_blind=True,
            ),
        ],
        ports=ports(host_port("mlx5_0"), missing_port("mlx5_1")),
        warnings=("[WARNING] The driver is older than the firmware.",),
        probes=(ProbeState("npu_info", None, True, None), ProbeState("npu_ecc", "1", False, TIMEOUT)),
        tallies=(ProbeTally("npu_ecc", 0.9, AT.wall_s - 33, {"timeout": 2}, 0),),
        tool_log_events={"-8005": 1},
        pcie_log_events={("correctable", "0"): 4},
        pcie_log_events_before={("correctable", "0"): 3},
        kernel_log_lost=0,
        pcie_sockets=(SocketPcieLoad(0, 12_009_876_544.0, None, 1.0),),
        host=Host(
            pressure={"cpu": Pressure(Stall(0.02, 0.015), None)},
            memory=MemoryUse(1 << 40, 1 << 39),
            oom_kills=1,
            load=TaskLoad(9, 3120),
            tasks_max=4_194_304,
            uptime_s=86_400.0,
        ),
        installed=Installed(
            driver=VersionFile(
                "version.info", version="24.1.rc2", compatible_firmware=(VersionSpan("7.0.0", "7.9.99"),)
            ),
            packages=(Packages("/usr/lib/python3.9/site-packages", {"mindspore": "2.4.1"}),),
        ),
        oom_kills=(
            OomKill(61201, "ccec", OomScope.CGROUP, 86_000.0, "/job_4711", 1007, Belonging.JOB, SLURM, ago_s=60.0),
        ),
    )
    words = f"cannot be seen: {TIMEOUT.detail}"
    unseen = Verdict(
        DeviceKey(1, 1),
        "1",
        State.UNKNOWN,
        AT.wall_s - 33,
        (Reason(words),),
        Action.CHECK_DRIVER,
        blind=True,
        revision=7,
    )
    reasons = (Reason(f"device 1: {words}"),)
    node = replace(unseen, subject=NODE, device_id=None, own_state=State.UNKNOWN, reasons=reasons)
    return replace(shown, verdicts=(node, unseen))


def _document(shown: Outcome) -> dict[str, Any]:
    document = json.loads(snapshot_json(shown), parse_constant=lambda name: (_ for _ in ()).throw(ValueError(name)))
    assert isinstance(document, dict)
    return document


def test_the_example_of_the_docs_is_what_the_server_says() -> None:
    documented = re.search(r"```json\n(.*?)```", API_DOC, re.DOTALL)
    assert documented is not None
    assert json.loads(documented[1]) == _document(example())


def test_every_key_of_the_document_is_explained() -> None:
    def keys(value: object) -> set[str]:
        if isinstance(value, dict):
            return {*value, *(key for item in value.values() for key in keys(item))}
        return {key for item in value for key in keys(item)} if isinstance(value, list) else set()

    explained = set(re.findall(r"`([a-z_0-9]+)`", API_DOC.split("```json")[0] + API_DOC.split("```")[-1]))
    data = {"hbm", "chip", "aicore", "tx_err_cnt", "npu_ecc", "npu_pcie_err", "timeout", "-8005"}
    data |= {"symbol_error", "out_of_sequence", "receive_fcs", "BadTLP"}
    assert keys(_document(example())) - data - explained == set()


def test_every_path_is_documented() -> None:
    assert [path for path in PATHS if f"`{path}`" not in API_DOC] == []


def test_devices_come_in_the_order_of_their_keys() -> None:
    devices = [device(n, key=DeviceKey(n)) for n in (10, 2)]
    assert [one["npu"] for one in _document(outcome(devices))["devices"]] == [2, 10]


def test_without_the_tool_nothing_is_invented() -> None:
    document = _document(tool_missing())
    assert document["devices"] == []
    assert document["devices_expected"] is None
    assert document["devices_present"] is None
    assert document["blind"] == {"npu_info": {"kind": "missing", "detail": "npu-smi: not found on PATH"}}


def test_of_a_fabric_that_nobody_read_nothing_is_invented() -> None:
    document = _document(outcome([device(0), device(1, roce=NpuPort(link_up=True))], ports=ports(unseen_port())))
    silent = document["devices"][0]
    assert [silent[key] for key in ("roce", "pcie_link", "pcie_errors", "pcie_load")] == [None, None, None, None]
    assert document["devices"][1]["roce"] == {
        "link_up": True,
        "link_downs": None,
        "bits_per_second": None,
        "reachability": None,
        "statistics": None,
        "optical": None,
    }
    (port,) = document["ports"]
    assert (port["present"], port["up"], port["errors"], port["bytes"]) == (None, None, None, None)


def test_a_counter_that_was_not_read_is_absent_and_says_why() -> None:
    counters = PortCounters(PortKey("mlx5_0", 1), failures={"counters/port_rcv_errors": "Invalid argument"})
    (port,) = _document(outcome(ports=ports(replace(host_port(), counters=counters))))["ports"]
    assert (port["errors"], port["link_downs"]) == ({}, None)
    assert port["failures"] == {"counters/port_rcv_errors": "Invalid argument"}


def test_ports_come_in_the_order_of_their_names_and_a_missing_one_is_not_up() -> None:
    which = ports(host_port("mlx5_1"), missing_port("mlx5_0"), down_port("mlx5_2", expected=False))
    shown = [(port["rdma_device"], port["up"], port["expected"]) for port in _document(outcome(ports=which))["ports"]]
    assert shown == [("mlx5_0", False, True), ("mlx5_1", True, True), ("mlx5_2", False, False)]


def test_an_error_of_a_port_that_several_share_is_no_devices() -> None:
    before = {("fatal", ""): 1}
    document = _document(outcome(pcie_log_events={("fatal", "3"): 1, ("fatal", ""): 2}, pcie_log_events_before=before))
    assert document["pcie_log_events"] == [
        {"severity": "fatal", "device_id": None, "count": 2, "before_start": 1},
        {"severity": "fatal", "device_id": "3", "count": 1, "before_start": 0},
    ]


def test_a_kernel_log_that_nobody_read_lost_nothing_that_anybody_knows_of() -> None:
    assert _document(outcome())["kernel_log_lost"] is None


def test_what_of_pcie_could_not_be_read_says_why() -> None:
    broken = {f"{NPU}/current_link_width": Failure(FailureKind.EXIT, "Input/output error")}
    link = pcie_link(lanes=None, path_lanes=None, failures=broken)
    errors = PcieErrors(NPU, 1, 0, 0, far_end=ROOT_PORT, failures={ROOT_PORT: TIMEOUT})
    shown = _document(outcome([device(0, pcie_link=link, pcie_errors=errors)]))["devices"][0]
    assert (shown["pcie_link"]["lanes"], shown["pcie_link"]["narrow"]) == (None, None)
    assert shown["pcie_link"]["failures"] == {
        f"{NPU}/current_link_width": {"kind": "exit", "detail": "Input/output error"}
    }
    assert list(shown["pcie_errors"]["failures"]) == [ROOT_PORT]


def test_what_is_no_number_is_null() -> None:
    nan = float("nan")
    document = _document(outcome([device(0, power_watts=nan, temperature_celsius={"chip": float("inf")})]))
    assert document["devices"][0]["power_watts"] is None
    assert document["devices"][0]["temperature_celsius"] == {"chip": None}


def test_hostile_names_stay_text() -> None:
    name = '"}{\n\0\x1b\ud800\u2028</script>'
    broken = Failure(FailureKind.EXIT, name)
    document = _document(
        outcome([device(0, processes=(process(name), process("x" * 4096)), blind={"npu_ecc": broken})])
    )
    names = [one["name"] for one in document["devices"][0]["processes"]]
    assert names == ['"}{\n\0\x1b?\u2028</script>', "x" * 4096]
