"""`npu-watchd status` for people, and its exit code for scripts."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from npu_watchd.model.fabric import PortKey
from npu_watchd.model.finding import Action, Finding, Severity
from npu_watchd.model.ids import DeviceKey
from npu_watchd.model.jobs import Attribution, DeviceJobs, Job, Scheduler
from npu_watchd.model.reading import NOT_READ_YET, Failure, FailureKind
from npu_watchd.model.snapshot import Identity, Memory, Outcome
from npu_watchd.model.verdict import Reason, State, Verdict
from npu_watchd.sinks.terminal import exit_code, rendered
from npu_watchd.sinks.web.api import snapshot_document
from tests.sinks.build import AT, device, outcome, tool_missing
from tests.sinks.fabric import down_port, host_port, missing_port, npu_port, pcie_link, ports, unseen_port
from tests.sinks.judged import BROKEN, PROGRESS, UNSEEN, judged, of_device, of_node, quarantined

TIMEOUT = Failure(FailureKind.TIMEOUT, "npu-smi info -t ecc: no answer within 10 s")


def screen(shown: Outcome, width: int, age_s: float = 1.0) -> list[str]:
    stream = io.StringIO()
    Console(file=stream, width=width, force_terminal=False).print(rendered(snapshot_document(shown), age_s))
    return [line.rstrip() for line in stream.getvalue().splitlines()]


def code(shown: Outcome, age_s: float = 1.0) -> int:
    return exit_code(snapshot_document(shown), age_s)


@pytest.mark.parametrize("width", [80, 200])
def test_a_quiet_node_fits_its_terminal(width: int) -> None:
    assert screen(judged(outcome([device(0), device(1)]), of_node(), of_device(0), of_device(1)), width) == [
        "node-17  healthy since 2026-09-21 12:13:20Z",
        "2 of 2 devices present  npu-smi 24.1.rc2  driver 24.1.rc2",
        "id NPU name  health verdict °C  W AICore  mem GiB 1b/2b procs",
        "0  0.0 910B3 ok     healthy 46 94     0% 3.0/64.0   0/0     0",
        "1  1.0 910B3 ok     healthy 46 94     0% 3.0/64.0   0/0     0",
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
        "node-17  no verdict yet",
        "3 of 4 devices present  npu-smi 24.1.rc2  driver 24.1.rc2",
        "id NPU name  health      verdict °C  W AICore  mem GiB 1b/2b procs",
        "0  0.0 910B3 critical    –       46 94     0% 3.0/64.0   0/0     0",
        "1  1.0 910B3 not present –        –  –      –        –     –     –",
        "2  2.0 910B3 unknown     –       46 94     0% 3.0/64.0     –     0",
        "3  3.0 910B3 ok          –       46 94     0% 3.0/64.0     –     0",
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
        "node-17  no verdict yet",
        "– of – devices present  npu-smi –  driver –",
        "id NPU name health verdict °C W AICore mem GiB 1b/2b procs",
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
    down = Verdict(PortKey("mlx5_1", 1), None, State.WATCH, AT.wall_s, (Reason("it is down"),))
    assert screen(judged(outcome([device(0)], ports=which), of_node(State.WATCH), down), width)[-7:] == [
        "",
        "host port net device state        physical verdict Gb/s downs errors",
        "mlx5_0/1  ens21np0   Active       LinkUp   –        200     0      0",
        "mlx5_1/1  ens21np0   Down         Disabled watch      –     0      0",
        "mlx5_2/1  –          missing      –        –          –     –      –",
        "mlx5_3/1  –          –            –        –          –     –      –",
        "mlx5_4/1  ens21np0   Down, unused Disabled –          –     0      0",
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
    shown = judged(outcome([wide]), of_node(), quarantined(7))
    line = next(line for line in screen(shown, 80) if line.startswith("7 "))
    assert line == "7  7.0 Ascend950PR critical quarantine 105 1234   100% 128.0/128.0   0/0     0"


ACKED = replace(
    Finding(
        rule="hbm_double_bit",
        alert="NpuMemoryUncorrectableErrors",
        subject=DeviceKey(3),
        device_id="3",
        severity=Severity.CRITICAL,
        quarantines=True,
        action=Action.RESET_DEVICE,
        since_s=AT.wall_s - 7200,
        summary=BROKEN.text,
        evidence=(),
    ),
    acknowledged="by alice: ticket 123",
)
OUT = of_node(State.QUARANTINE, BROKEN, action=Action.RESET_DEVICE)


@pytest.mark.parametrize("width", [80, 200])
def test_the_headline_is_the_nodes_verdict_and_a_finding_that_explains_a_device_is_told_once(width: int) -> None:
    shown = replace(judged(outcome([device(3)]), OUT, quarantined(3)), findings=(ACKED,))
    assert screen(shown, width) == [
        "node-17  quarantine since 2026-09-21 12:13:20Z; next: reset device",
        "  device 3: 2 uncorrectable HBM errors since its last reset",
        "1 of 1 devices present  npu-smi 24.1.rc2  driver 24.1.rc2",
        "id NPU name  health verdict    °C  W AICore  mem GiB 1b/2b procs",
        "3  3.0 910B3 ok     quarantine 46 94     0% 3.0/64.0   0/0     0",
        "",
        "What is wrong",
        "  device 3: 2 uncorrectable HBM errors since its last reset",
        "    NpuMemoryUncorrectableErrors (critical, quarantine); next: reset device",
        "    acknowledged by alice: ticket 123",
    ]


def test_what_is_held_on_probation_or_unseen_says_why_and_the_same_is_told_once() -> None:
    shown = judged(
        outcome([device(n) for n in range(5)]),
        OUT,
        of_device(0, State.UNKNOWN, UNSEEN, blind=True),
        of_device(1, State.UNKNOWN, UNSEEN, blind=True),
        of_device(2),
        quarantined(3, held=True),
        of_device(4, State.PROBATION, PROGRESS),
    )
    lines = screen(shown, 120)
    assert lines[lines.index("What no finding explains") + 1 :] == [
        "  devices 0, 1: unknown since 2026-09-21 12:13:20Z",
        "    cannot be seen: npu-smi info -t ecc -i 1: no answer within 10 s",
        "    blind: something without which nobody may call it healthy cannot be seen now",
        "  device 3: quarantine since 2026-09-21 12:13:20Z; next: reset device",
        "    device 3: 2 uncorrectable HBM errors since its last reset",
        "    held: nothing of it is seen any longer; only a release ends it",
        "  device 4: probation since 2026-09-21 12:13:20Z",
        "    on probation: 3.5 h of 24 h without a fault, 0.5 h of 1 h at work; released by alice: reset",
    ]


def test_the_headline_names_three_reasons_and_counts_the_rest() -> None:
    many = tuple(Reason(f"device {number}: ill") for number in range(16))
    assert screen(judged(outcome(), of_node(State.UNKNOWN, *many)), 80)[1:5] == [
        "  device 0: ill",
        "  device 1: ill",
        "  device 2: ill",
        "  and 13 more",
    ]


def test_the_tools_words_cannot_steer_the_terminal() -> None:
    evil = "\x1b]0;owned\x07 [bold]x[/bold] \x1b[2J"
    shown = outcome(
        [device(0, identity=Identity(name=evil), blind={"npu_usages": Failure(FailureKind.EXIT, evil)})],
        warnings=(evil,),
        tool_version=evil,
    )
    shown = judged(shown, of_node(State.WATCH, Reason(evil)), of_device(0, State.WATCH, Reason(evil)))
    text = "\n".join(screen(shown, 200))
    assert "\x1b" not in text
    assert "\x07" not in text
    assert text.count("[bold]x[/bold]") == 6


def test_a_stale_snapshot_says_so() -> None:
    assert "STALE: the daemon last wrote this 61 s ago" in screen(outcome([device(0)]), 200, age_s=61.0)[0]
    assert "STALE" not in screen(outcome([device(0)]), 200, age_s=59.0)[0]


def of(state: State, **changes: Any) -> Outcome:
    return judged(outcome([device(0)]), of_node(state, **changes), of_device(0, state))


@pytest.mark.parametrize(
    ("state", "blind", "expected"),
    [
        (State.HEALTHY, False, 0),
        (State.WATCH, False, 1),
        (State.PROBATION, False, 1),
        (State.QUARANTINE, False, 2),
        (State.UNKNOWN, True, 3),
        (State.UNKNOWN, False, 3),
        (State.WATCH, True, 3),
        (State.PROBATION, True, 3),
        (State.QUARANTINE, True, 2),
        (State.HEALTHY, True, 3),
    ],
)
def test_the_exit_code_is_the_nodes_verdict_and_what_is_vital_and_not_seen_is_unknown(
    state: State, blind: bool, expected: int
) -> None:
    assert code(of(state, blind=blind)) == expected


def test_a_healthy_device_does_not_make_up_for_the_node() -> None:
    shown = judged(outcome([device(0)]), of_node(State.QUARANTINE), of_device(0))
    assert code(shown) == 2


def test_what_was_never_judged_is_unknown_and_never_healthy() -> None:
    assert code(outcome([device(0)])) == 3
    assert code(tool_missing()) == 3
    document = dict(snapshot_document(of(State.HEALTHY)))
    document["verdicts"][0]["state"] = "of a later version"
    assert exit_code(document, 1.0) == 3


def test_a_stale_snapshot_is_unknown_whatever_it_says() -> None:
    assert [code(of(state), age_s=61.0) for state in State] == [3, 3, 3, 3, 3]
    assert exit_code(snapshot_document(of(State.HEALTHY)), 61.0, stale_s=90.0) == 0


def test_a_job_is_shown_with_how_long_its_ranks_wait_for_each_other() -> None:
    told = {"HCCL_CONNECT_TIMEOUT": "600", "HCCL_EXEC_TIMEOUT": "7200", "HCCL_IF_BASE_PORT": "60000"}
    ranks = tuple(
        Attribution(DeviceKey(0), pid, "python3", 4 << 30, job=Job(Scheduler.SLURM, "4711", "alice"), variables=mine)
        for pid, mine in ((10, told), (11, {**told, "HCCL_EXEC_TIMEOUT": "1800"}))
    )
    lines = screen(outcome([device(0, jobs=DeviceJobs(ranks))]), 120)
    assert lines[-1] == ("  device 0: slurm 4711 of alice, 8.0 GiB, connect timeout 600, exec timeout 1800/7200")
