"""`npu-watchd status` for people, and its exit code for scripts."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from npu_watchd.model.ids import DeviceKey
from npu_watchd.model.jobs import Attribution, DeviceJobs, Job, Scheduler
from npu_watchd.model.reading import NOT_READ_YET, Failure, FailureKind
from npu_watchd.model.snapshot import Identity, Memory, Outcome, Port
from npu_watchd.sinks.terminal import exit_code, rendered
from npu_watchd.sinks.web.api import snapshot_document
from tests.sinks.build import device, outcome, tool_missing
from tests.sinks.fabric import down_port, host_port, missing_port, npu_port, pcie_link, ports, unseen_port

TIMEOUT = Failure(FailureKind.TIMEOUT, "npu-smi info -t ecc: no answer within 10 s")


def screen(shown: Outcome, width: int, age_s: float = 1.0) -> list[str]:
    stream = io.StringIO()
    Console(file=stream, width=width, force_terminal=False).print(rendered(snapshot_document(shown), age_s))
    return [line.rstrip() for line in stream.getvalue().splitlines()]


def code(shown: Outcome, age_s: float = 1.0) -> int:
    return exit_code(snapshot_document(shown), age_s)


@pytest.mark.parametrize("width", [80, 200])
def test_a_quiet_node_fits_its_terminal(width: int) -> None:
    assert screen(outcome([device(0), device(1)]), width) == [
        "node-17  2 of 2 devices present  npu-smi 24.1.rc2  driver 24.1.rc2",
        "device_id NPU name  health °C  W AICore  mem GiB ECC 1/2b procs",
        "0         0.0 910B3 ok     46 94     0% 3.0/64.0      0/0     0",
        "1         1.0 910B3 ok     46 94     0% 3.0/64.0      0/0     0",
    ]


BLIND = outcome(
    [
        device(0, health="critical", error_codes=("80e01801", "80c98008", "8c084e00")),
        device(1, present=False, health="unknown", power_watts=None, temperature_celsius={}, memory={}, processes=None,
               utilization_ratio={}, memory_errors={}, error_codes=None,
               blind={"npu_info": Failure(FailureKind.EXIT, "`npu-smi info` shows no such chip")}),
        device(2, health="unknown", memory_errors={}, vital_blind=True, blind={"npu_ecc": TIMEOUT}),
        device(3, memory_errors={}, vital_blind=True, blind={"npu_ecc": TIMEOUT, "npu_usages": NOT_READ_YET}),
    ],
    warnings=("[WARNING] versions do not fit",),
)  # fmt: skip


@pytest.mark.parametrize("width", [80, 200])
def test_what_cannot_be_seen_is_named_once_a_cause(width: int) -> None:
    assert screen(BLIND, width) == [
        "node-17  3 of 4 devices present  npu-smi 24.1.rc2  driver 24.1.rc2",
        "device_id NPU name  health      °C  W AICore  mem GiB ECC 1/2b procs",
        "0         0.0 910B3 critical    46 94     0% 3.0/64.0      0/0     0",
        "1         1.0 910B3 not present  –  –      –        –        –     –",
        "2         2.0 910B3 unknown     46 94     0% 3.0/64.0        –     0",
        "3         3.0 910B3 ok          46 94     0% 3.0/64.0        –     0",
        "",
        "Active error codes",
        "  device 0: 80e01801 80c98008 8c084e00",
        "",
        "What we cannot see",
        "  npu_ecc of device 2, 3: timeout: npu-smi info -t ecc: no answer within 10 s",
        "  npu_info of device 1: exit: `npu-smi info` shows no such chip",
        "  not read yet, for some devices: npu_usages",
        "! [WARNING] versions do not fit",
    ]


@pytest.mark.parametrize("width", [80, 200])
def test_a_node_without_the_tool_says_what_is_missing(width: int) -> None:
    assert screen(tool_missing(), width) == [
        "node-17  – of – devices present  npu-smi –  driver –",
        "device_id NPU name health °C W AICore mem GiB ECC 1/2b procs",
        "",
        "What we cannot see",
        "  npu_info: missing: npu-smi: not found on PATH",
    ]


@pytest.mark.parametrize("width", [80, 200])
def test_the_hosts_ports_are_a_table_of_their_own(width: int) -> None:
    which = ports(
        host_port("mlx5_0"), down_port("mlx5_1"), missing_port("mlx5_2"), unseen_port("mlx5_3"),
        down_port("mlx5_4", expected=False),
    )  # fmt: skip
    assert screen(outcome([device(0)], ports=which), width)[3:] == [
        "",
        "host port net device state        physical Gb/s downs errors",
        "mlx5_0/1  ens21np0   Active       LinkUp    200     0      0",
        "mlx5_1/1  ens21np0   Down         Disabled    –     0      0",
        "mlx5_2/1  –          missing      –           –     –      –",
        "mlx5_3/1  –          –            –           –     –      –",
        "mlx5_4/1  ens21np0   Down, unused Disabled    –     0      0",
    ]


def test_a_link_that_is_down_or_narrow_has_a_line_and_one_that_nobody_read_has_none() -> None:
    shown = outcome(
        [
            device(0, roce=npu_port(), pcie_link=pcie_link()),
            device(1, roce=npu_port(link_up=False), pcie_link=pcie_link(path_lanes=4)),
            device(2, roce=npu_port(link_up=None), pcie_link=pcie_link(lanes=None, path_lanes=None)),
            device(3, pcie_link=pcie_link(lanes=8, path_lanes=None)),
        ]
    )
    assert screen(shown, 80)[-4:] == [
        "Links",
        "  device 1: its own port is down",
        "  device 1: PCIe is narrow, x4 of x16",
        "  device 3: PCIe is narrow, x8 of x16",
    ]


def test_a_wide_row_keeps_every_column_at_80() -> None:
    wide = device(
        7,
        health="critical",
        identity=Identity(name="Ascend950PR"),
        power_watts=1234.0,
        temperature_celsius={"chip": 105.0},
        utilization_ratio={"npu": 1.0},
        memory={"hbm": Memory(131072 << 20, 131072 << 20)},
    )
    line = screen(outcome([wide]), 80)[-1]
    assert line == "7         7.0 Ascend950PR critical 105 1234   100% 128.0/128.0      0/0     0"


def test_the_tools_words_cannot_steer_the_terminal() -> None:
    evil = "\x1b]0;owned\x07 [bold]x[/bold] \x1b[2J"
    shown = outcome(
        [device(0, identity=Identity(name=evil), blind={"npu_usages": Failure(FailureKind.EXIT, evil)})],
        warnings=(evil,),
        tool_version=evil,
    )
    text = "\n".join(screen(shown, 200))
    assert "\x1b" not in text
    assert "\x07" not in text
    assert text.count("[bold]x[/bold]") == 4


def test_a_stale_snapshot_says_so() -> None:
    assert "STALE: the daemon last wrote this 61 s ago" in screen(outcome([device(0)]), 200, age_s=61.0)[0]
    assert "STALE" not in screen(outcome([device(0)]), 200, age_s=59.0)[0]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, 0),
        ({"health": "warning"}, 1),
        ({"health": "alarm"}, 1),
        ({"health": "critical"}, 2),
        ({"health": "unknown"}, 3),
        ({"vital_blind": True}, 3),
        ({"health": "warning", "vital_blind": True}, 3),
        ({"health": "critical", "vital_blind": True}, 2),
    ],
)
def test_the_exit_code_is_the_worst_devices(changes: dict[str, Any], expected: int) -> None:
    assert code(outcome([device(0), device(1, **changes)])) == expected


@pytest.mark.parametrize(
    ("port", "expected"),
    [
        (host_port(), 0),
        (down_port(), 1),
        (missing_port(), 1),
        (down_port(expected=False), 0),
        (unseen_port(), 0),
    ],
)
def test_a_port_that_should_be_up_and_is_not_is_watched(port: Port, expected: int) -> None:
    assert code(outcome([device(0)], ports=ports(port))) == expected
    assert code(outcome([device(0, health="critical")], ports=ports(port))) == 2
    assert code(outcome([device(0, health="unknown")], ports=ports(port))) == 3


def test_an_npus_link_and_a_narrow_link_change_no_exit_code_until_they_are_judged() -> None:
    assert code(outcome([device(0, roce=npu_port(link_up=False), pcie_link=pcie_link(path_lanes=4))])) == 0


def test_a_device_short_is_unknown() -> None:
    assert code(outcome([device(0), device(1, present=False)])) == 3
    assert code(outcome([device(0)], devices_expected=2)) == 3


def test_nothing_seen_is_unknown_and_never_healthy() -> None:
    assert code(tool_missing()) == 3
    assert code(outcome([device(0)], devices_present=None)) == 3
    assert code(outcome([], devices_expected=None, devices_present=0)) == 3


def test_a_stale_snapshot_is_unknown() -> None:
    assert code(outcome([device(0)]), age_s=61.0) == 3


def test_a_job_is_shown_with_how_long_its_ranks_wait_for_each_other() -> None:
    told = {"HCCL_CONNECT_TIMEOUT": "600", "HCCL_EXEC_TIMEOUT": "7200", "HCCL_IF_BASE_PORT": "60000"}
    ranks = tuple(
        Attribution(DeviceKey(0), pid, "python3", 4 << 30, job=Job(Scheduler.SLURM, "4711", "alice"), variables=mine)
        for pid, mine in ((10, told), (11, {**told, "HCCL_EXEC_TIMEOUT": "1800"}))
    )
    lines = screen(outcome([device(0, jobs=DeviceJobs(ranks))]), 120)
    assert lines[-1] == ("  device 0: slurm 4711 of alice, 8.0 GiB, connect timeout 600, exec timeout 1800/7200")
