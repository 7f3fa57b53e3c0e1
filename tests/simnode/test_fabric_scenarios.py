"""The fabric in the scenarios: well-formed around every event, quiet where it should be, and as described."""

from __future__ import annotations

import pytest

from npu_watchd.model.fabric import NetHealth, NpuLink, OpticalModule
from npu_watchd.parsers import hccn, hccn_optical, hccn_stat, ibstat
from npu_watchd.simnode import hccn_tool
from npu_watchd.simnode import ibstat as fake_ibstat
from npu_watchd.simnode.answer import Answer
from npu_watchd.simnode.scenario_file import load, names
from npu_watchd.simnode.state import ChipState, NodeState
from npu_watchd.simnode.sysfs import tree
from npu_watchd.simnode.timeline import state_at

AROUND = [(name, t_s + by) for name in names() for t_s in load(name).instants() for by in (-1.0, 0.0, 1.0)]


def ask(node: NodeState, chip: ChipState, command: str) -> Answer:
    """In the form that this generation takes."""
    if node.family == "950":
        return hccn_tool.answer(node, ("-g", command, "-i", str(chip.logic_id), "-u", "0", "-p", "4"))
    return hccn_tool.answer(node, ("-i", str(chip.logic_id), command, "-g"))


def said(name: str, t_s: float, device: int, command: str) -> Answer:
    node = state_at(load(name), t_s)
    return ask(node, node.chips[device], command)


def module(name: str, t_s: float, device: int) -> OpticalModule:
    return hccn_optical.parse(said(name, t_s, device, "-optical").text)


@pytest.mark.parametrize(("name", "t_s"), AROUND)
def test_around_every_event_the_fabric_answers_in_words_that_can_be_parsed(name: str, t_s: float) -> None:
    node = state_at(load(name), t_s)
    assert len(ibstat.parse(fake_ibstat.answer(node, ()).text).ports) <= len(node.hcas or ())
    assert tree(node).files
    parsed = {
        "-link": hccn.link,
        "-link_stat": hccn.link_history,
        "-stat": hccn_stat.parse,
        "-optical": hccn_optical.parse,
    }
    for chip in node.chips:
        for command, parse in parsed.items():
            told = ask(node, chip, command)
            if told.exit_code == 0 and not told.hangs:
                assert parse(told.text) is not None
            else:
                assert told.hangs or told.stderr or told.text.startswith("hccn_tool is busy")


@pytest.mark.parametrize("name", ["quiet", "busy_node", "hbm_storm", "a3_16_dies", "ascend950", "unknown_chip"])
def test_a_scenario_about_something_else_has_a_healthy_fabric(name: str) -> None:
    node = state_at(load(name), 100.0)
    assert [port.up for port in ibstat.parse(fake_ibstat.answer(node, ()).text).ports] == [True, True]
    for chip in node.chips:
        assert hccn.link(ask(node, chip, "-link").text) == NpuLink(True)
        stat = hccn_stat.parse(ask(node, chip, "-stat").text)
        assert not any(stat.errors.values())
        optical = hccn_optical.parse(ask(node, chip, "-optical").text)
        assert (optical.present, len(optical.lanes)) == (True, 4)
        assert all(0.0001 < (lane.receive_watts or 0.0) < 0.003 for lane in optical.lanes)


def test_roce_flap_goes_down_six_times_on_device_3_and_four_times_on_mlx5_1() -> None:
    history = hccn.link_history(said("roce_flap", 3000.0, 3, "-link_stat").text)
    assert (history.up_count, history.down_count, len(history.changes or ())) == (7, 6, 10)
    stat = hccn_stat.parse(said("roce_flap", 3000.0, 3, "-stat").text)
    assert (stat.retries, stat.errors["out_of_order"]) == (6 * 40 * 15, 6 * 40 * 4)
    assert hccn.link_history(said("roce_flap", 3000.0, 2, "-link_stat").text).down_count == 0
    ports = [
        ibstat.parse(fake_ibstat.answer(state_at(load("roce_flap"), t_s), ()).text).ports for t_s in (239, 240, 270)
    ]
    assert [[port.up for port in found] for found in ports] == [[True, True], [True, False], [True, True]]


def test_roce_down_has_a_port_down_one_not_heard_and_one_slow() -> None:
    assert hccn.link(said("roce_down", 200.0, 5, "-link").text) == NpuLink(False)
    assert hccn.net_health(said("roce_down", 200.0, 5, "-net_health").text) == NetHealth("Fault")
    assert [lane.receive_los for lane in module("roce_down", 200.0, 5).lanes] == [True] * 4
    assert hccn.net_health(said("roce_down", 400.0, 2, "-net_health").text) == NetHealth("Receive timeout")
    assert hccn.link(said("roce_down", 400.0, 2, "-link").text) == NpuLink(True)
    assert hccn.speed(said("roce_down", 500.0, 6, "-speed").text).bits_per_second == 100 * 10**9
    found = ibstat.parse(fake_ibstat.answer(state_at(load("roce_down"), 500.0), ()).text).ports
    assert [(port.state, port.physical_state, port.rate_gbps) for port in found] == [
        ("Down", "Disabled", 200.0),
        ("Active", "LinkUp", 100.0),
    ]


def test_hccn_busy_is_busy_sick_and_locked_by_turns() -> None:
    assert said("hccn_busy", 92.0, 0, "-link").text == "hccn_tool is busy, please try again.\n"
    assert said("hccn_busy", 97.0, 0, "-link").text == "link status: UP\n"
    assert [said("hccn_busy", t_s, 3, "-link").delay_s for t_s in (239.0, 240.0, 1199.0, 1200.0)] == [0, 300, 300, 0]
    assert said("hccn_busy", 380.0, 6, "-optical").stderr == "I2c is busy. Please try again.\n"
    assert [said("hccn_busy", t_s, 7, "-link").hangs for t_s in (1499.0, 1500.0, 1559.0, 1560.0)] == [
        False,
        True,
        True,
        False,
    ]


def test_optics_dim_lane_by_lane() -> None:
    watts = [module("optics_dim", t_s, 4).lanes[2].receive_watts for t_s in (300, 600, 900, 1500)]
    assert watts == [0.0003102, 0.0001214, 0.0000711, 0.0]
    limit = module("optics_dim", 900.0, 4).receive_limits.low_warning
    assert limit == 0.0001
    assert [lane.receive_los for lane in module("optics_dim", 1500.0, 4).lanes] == [False, False, True, False]
    assert [module("optics_dim", t_s, 1).temperature_celsius for t_s in (360.0, 720.0)] == [66.0, 74.0]
    assert module("optics_dim", 500.0, 0).lanes[0].transmit_watts == 0.0001514
    assert [module("optics_dim", t_s, 6).present for t_s in (1199.0, 1200.0)] == [True, False]


def test_no_hca_is_silence_then_ports_then_one_that_cannot_be_read_then_one_lost() -> None:
    told = [fake_ibstat.answer(state_at(load("no_hca"), t_s), ()) for t_s in (0.0, 299.0, 300.0, 840.0, 960.0, 1200.0)]
    assert [(one.text.count("State: Active"), one.exit_code) for one in told] == [
        (0, 0),
        (0, 0),
        (2, 0),
        (1, 255),
        (2, 0),
        (1, 0),
    ]
    assert (told[0].text, told[0].stderr) == ("", "")
