"""The simulated hccn_tool is held to real text: stdout, stderr and exit code, byte for byte.

Runs over the folder that NPU_WATCHD_CAPTURES names.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from npu_watchd.model.fabric import Limits, OpticalLane, OpticalModule
from npu_watchd.parsers import hccn, hccn_optical, hccn_stat
from npu_watchd.simnode.answer import Answer
from npu_watchd.simnode.hccn_tool import answer
from npu_watchd.simnode.roce_port import Lane, LinkChange, Optics, PortMood, Range, RocePort
from npu_watchd.simnode.state import Family
from tests.simnode.fabric_states import node

CAPTURES = Path(os.environ.get("NPU_WATCHD_CAPTURES", "/nonexistent"))
BUILT = CAPTURES / "hccn_tool-built"
pytestmark = pytest.mark.skipif(not BUILT.is_dir(), reason="NPU_WATCHD_CAPTURES names no folder of captures")


def built(name: str) -> str:
    return (BUILT / f"hccn__{name}.txt").read_text()


def command_of(name: str) -> tuple[tuple[str, ...], int]:
    """Arguments and exit code of one capture."""
    with (BUILT / "MANIFEST.tsv").open() as rows:
        row = next(row for row in csv.DictReader(rows, delimiter="\t") if row["file"] == f"hccn__{name}.txt")
    return tuple(row["command"].split()[1:]), int(row["exit"])


def unix_s(time: str) -> float:
    return datetime.fromisoformat(time).replace(tzinfo=UTC).timestamp()


def says_again(name: str, port: RocePort, family: Family = "910B", now_s: float = 0.0) -> None:
    """The answer, whole: what the tool said, where it said it, and how it ended."""
    argv, code = command_of(name)
    stderr = BUILT / f"hccn__{name}.stderr"
    expected = Answer(built(name), code, stderr.read_text() if stderr.exists() else "")
    assert replace(answer(node(port, family, now_s=now_s), argv), delay_s=0.0) == expected


@pytest.mark.parametrize("name", ["ok", "flaps", "10records", "never_up"])
def test_a_links_history_is_printed_again(name: str) -> None:
    read = hccn.link_history(built(f"link_stat__{name}"))
    assert read.current_time is not None
    assert read.up_count is not None
    told = tuple(LinkChange(unix_s(change.time), change.up) for change in read.changes or ())
    port = RocePort(up_count=read.up_count, down_count=read.down_count, changes=told)
    says_again(f"link_stat__{name}", port, now_s=unix_s(read.current_time))


@pytest.mark.parametrize("name", ["ok", "nonzero", "big"])
def test_counters_are_printed_again(name: str) -> None:
    says_again(f"stat__{name}", RocePort(counters=hccn_stat.parse(built(f"stat__{name}")).counters))


@pytest.mark.parametrize("name", ["ok", "100000", "25000", "0", "-1"])
def test_a_speed_is_printed_again(name: str) -> None:
    says_again(f"speed__{name}", RocePort(speed_mbps=int(built(f"speed__{name}").split()[1])))


@pytest.mark.parametrize("value", range(6))
def test_a_reachability_is_printed_again(value: int) -> None:
    state = hccn.net_health(built(f"net_health__{value}")).state
    says_again(f"net_health__{value}", RocePort(net_health=state))


def test_a_link_that_is_down_is_printed_again() -> None:
    says_again("link__down", RocePort(up=hccn.link(built("link__down")).up))


# The module of the stub on which these were made.
MODULE = Optics(vendor="Huawei", part="02312FTK", serial="SN0000000000OPT", made_on="2023-08-11")


def lane_of(read: OpticalLane) -> Lane:
    def milli(value: float | None) -> float:
        return (value or 0.0) * 1000

    return Lane(
        milli(read.transmit_watts),
        milli(read.receive_watts),
        milli(read.bias_amperes),
        read.host_snr_decibels,
        read.media_snr_decibels,
    )


def range_of(limits: Limits, scale: float = 1000.0) -> Range:
    return Range((limits.high_warning or 0.0) * scale, (limits.low_warning or 0.0) * scale)


def module_of(read: OpticalModule) -> Optics:
    """The module that is printed so."""

    def mask(name: str) -> int:
        return sum(1 << lane.lane for lane in read.lanes if getattr(lane, name))

    return replace(
        MODULE,
        present=read.present is True,
        temperature_c=read.temperature_celsius or 0.0,
        voltage_mv=None if read.voltage_volts is None else read.voltage_volts * 1000,
        lanes=tuple(map(lane_of, read.lanes)) or MODULE.lanes,
        temperature=range_of(read.temperature_limits, 1.0),
        voltage=range_of(read.voltage_limits),
        transmit=range_of(read.transmit_limits),
        receive=range_of(read.receive_limits),
        bias=range_of(read.bias_limits),
        transmit_los=mask("transmit_los"),
        receive_los=mask("receive_los"),
        transmit_lol=mask("transmit_lol"),
        receive_lol=mask("receive_lol"),
        identifier=read.identifier,
    )


@pytest.mark.parametrize("name", ["ok", "absent", "rx_los", "hot", "no_snr", "unknown_id", "vcc0", "accfail"])
def test_a_module_is_printed_again(name: str) -> None:
    says_again(f"optical__{name}", RocePort(optics=module_of(hccn_optical.parse(built(f"optical__{name}")))))


def test_the_tables_of_a_module_are_printed_again() -> None:
    says_again("optical_v2__ok", RocePort(optics=module_of(hccn_optical.parse(built("optical_v2__ok")))))


def test_of_an_absent_module_the_tables_keep_the_ratios() -> None:
    measured = module_of(hccn_optical.parse(built("optical__ok")))
    says_again("optical_v2__absent", RocePort(optics=replace(measured, present=False)))


REFUSALS: tuple[tuple[str, PortMood], ...] = (
    *((f"{command}__res_EBUSY", "busy") for command in ("link_stat", "stat", "speed", "optical", "optical_v2")),
    ("optical__res_UDA_TOOL_SYS_BUSY_ERR", "busy"),
    *((f"{command}__res_ENOLINK", "no_link") for command in ("link", "link_stat", "speed", "optical")),
    *((f"{command}__res_EACCES", "denied") for command in ("link_stat", "speed", "optical")),
    *((f"{command}__res_GET_LOCK_FAIL", "lock_failed") for command in ("link", "stat")),
    *((f"{command}__res_EOPNOTSUPP", "refused") for command in ("link", "stat", "optical")),
    *((f"{command}__drv17", "refused") for command in ("stat", "speed", "optical")),
)


@pytest.mark.parametrize(("name", "mood"), REFUSALS)
def test_a_refusal_is_said_again(name: str, mood: PortMood) -> None:
    says_again(name, RocePort(answers=mood))


@pytest.mark.parametrize(
    "name",
    ["link__bad_dev", "link__bad_dev_alpha", "link__dev_100", "usage__no_args", "usage__bad_cmd", "usage__version"],
)
def test_a_wrong_call_is_refused_again(name: str) -> None:
    says_again(name, RocePort())


@pytest.mark.parametrize("name", ["usage__bad_op", "usage__extra_arg", "usage__no_op"])
def test_a_wrong_call_is_refused_in_the_same_words_before_the_usage_page(name: str) -> None:
    """The page itself is our own."""
    argv, code = command_of(name)
    said = answer(node(RocePort()), argv)
    assert (said.text.splitlines()[0], said.exit_code) == (built(name).splitlines()[0], code)
    assert said.stderr == (BUILT / f"hccn__{name}.stderr").read_text()


def test_a_sick_device_takes_as_long_and_says_the_same() -> None:
    argv, code = command_of("link__health_fail_300s")
    said = answer(node(RocePort(answers="sick"), device=3), argv)
    assert (said.text, said.exit_code, said.delay_s) == (built("link__health_fail_300s"), code, 300.0)
    assert said.stderr == (BUILT / "hccn__link__health_fail_300s.stderr").read_text()


Form = Callable[[str], RocePort]


def history_of_950(text: str) -> RocePort:
    read = hccn.link_history(text)
    told = tuple(LinkChange(unix_s(change.time), change.up) for change in read.changes or ())
    return RocePort(up_count=read.up_count or 0, down_count=read.down_count, changes=told, port=read.port or 0)


def speed_of_950(text: str) -> RocePort:
    read = hccn.speed(text)
    megabits = (read.bits_per_second or 0) // 10**6
    return RocePort(speed_mbps=megabits, lanes=read.lanes or 0, max_lanes=read.max_lanes or 0, port=read.port or 0)


@pytest.mark.parametrize(
    ("file", "command", "port_of"),
    [("a950_link_stat_table", "-link_stat", history_of_950), ("a950_speed_table", "-speed", speed_of_950)],
)
def test_the_boxes_of_the_950_manual_are_printed_again(file: str, command: str, port_of: Form) -> None:
    text = (CAPTURES / "hccn_tool" / f"{file}.txt").read_text()
    said = answer(node(port_of(text), "950"), ("-g", command, "-i", "0", "-u", "0", "-p", "4"))
    assert said == Answer(text)


def test_a_history_of_2023_without_its_down_count_is_printed_again() -> None:
    text = (CAPTURES / "hccn_tool" / "link_stat_report_table.txt").read_text()
    read = hccn.link_history(text)
    assert read.current_time is not None
    assert read.up_count is not None
    told = tuple(LinkChange(unix_s(change.time), change.up) for change in read.changes or ())
    port = RocePort(up_count=read.up_count, down_count=read.down_count, changes=told)
    said = answer(node(port, "910A", device=2, now_s=unix_s(read.current_time)), ("-i", "2", "-link_stat", "-g"))
    assert said.text == text.partition("\n")[2]
