"""The page's tables of the fabric: what is down, narrow or dim stands out, and nothing unknown looks calm."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from npu_watchd.model.fabric import NpuPortStatistics, PortCounters, PortKey
from npu_watchd.model.pcie import PcieErrors, PcieLoad, SocketPcieLoad
from npu_watchd.model.reading import Failure, FailureKind
from npu_watchd.model.snapshot import Device, Identity, NpuPort, Port
from tests.sinks.build import device, outcome
from tests.sinks.fabric import (
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
from tests.sinks.test_page import HOSTILE, Page

BUSY = Failure(FailureKind.EXIT, "hccn_tool is busy, please try again later.")


def table(page: Page, title: str) -> list[list[str]]:
    """The rows of the table with that first heading cell beside `Device`, up to the next table."""
    start = next(n for n, row in enumerate(page.rows) if title in row)
    rows = page.rows[start + 1 :]
    return rows[: next((n for n, row in enumerate(rows) if len(row) != len(page.rows[start])), len(rows))]


def host_ports(*which: Port) -> list[list[str]]:
    return table(Page(outcome([device(0)], ports=ports(*which))), "Net device")


def own_ports(*devices: Device) -> list[list[str]]:
    return table(Page(outcome(devices)), "Reaches its peer")


def links(*devices: Device) -> list[list[str]]:
    return table(Page(outcome(devices)), "Width")


def test_where_nothing_is_known_of_the_fabric_nothing_is_shown() -> None:
    source = Page(outcome([device(0), device(1, blind={"hccn_link": BUSY})])).source
    assert [anchor for anchor in ("ports", "npu-ports", "pcie") if f'id="{anchor}"' in source] == []


def test_a_port_of_the_host_is_one_row() -> None:
    assert host_ports(host_port()) == [
        ["mlx5_0/1", "–", "ens21np0", "Active", "LinkUp", "200 Gb/s", "Ethernet", "0", "none"]
    ]


def test_the_rate_of_a_port_that_is_down_is_a_leftover_and_not_shown() -> None:
    assert host_ports(down_port()) == [["mlx5_0/1", "–", "ens21np0", "Down", "Disabled", "–", "Ethernet", "0", "none"]]


def test_a_missing_port_is_marked_and_nothing_else_is_said_of_it() -> None:
    assert host_ports(missing_port()) == [["mlx5_0/1", "–", "–", "missing", "–", "–", "–", "–", "–"]]


@pytest.mark.parametrize(
    ("port", "look"),
    [
        (host_port(), "state-ok"),
        (down_port(), "state-alarm"),
        (missing_port(), "state-missing"),
        (unseen_port(), "state-unknown"),
        (host_port(physical_state="LinkErrorRecovery"), "state-alarm"),
        (host_port(physical_state=None), "state-unknown"),
    ],
)
def test_each_state_of_a_port_has_a_look_of_its_own(port: Port, look: str) -> None:
    page = Page(outcome([device(0)], ports=ports(port)))
    row = page.source.split('data-title="Port">')[1].split("</tr>")[0]
    assert row.count('class="state ') == 1
    assert f'class="state {look}"' in row


def test_a_port_that_never_was_up_is_no_alarm() -> None:
    page = Page(outcome([device(0)], ports=ports(down_port(expected=False))))
    assert "Down not up since we started" in page.text
    assert 'class="state state-alarm"' not in page.source
    assert "host port" not in page.text


def test_errors_are_those_that_are_not_zero_and_unread_files_are_counted() -> None:
    counters = PortCounters(
        PortKey("mlx5_0", 1),
        errors={"symbol_error": 0, "out_of_sequence": 12, "packet_seq_err": 3},
        failures={"counters/port_rcv_errors": "Invalid argument"},
    )
    port = replace(host_port(), counters=counters)
    assert host_ports(port)[0][-1] == "out_of_sequence 12, packet_seq_err 3 1 file cannot be read"
    silent = replace(host_port(), counters=PortCounters(PortKey("mlx5_0", 1)))
    assert host_ports(silent)[0][-2:] == ["–", "–"]


@pytest.mark.parametrize(
    ("which", "words", "look"),
    [
        ((host_port(),), "worst health: ok<", "ok"),
        ((host_port(), down_port("mlx5_1")), "worst health: ok, 1 host port down<", "warning"),
        ((missing_port("mlx5_0"), down_port("mlx5_1")), "worst health: ok, 2 host ports down<", "warning"),
        ((unseen_port(),), "worst health: ok<", "ok"),
    ],
)
def test_the_summary_is_not_calm_while_a_port_is_down(which: tuple[Port, ...], words: str, look: str) -> None:
    source = Page(outcome([device(0)], ports=ports(*which))).source
    assert words in source
    assert f'class="summary state-{look}"' in source


def test_the_summary_counts_npu_links_that_are_down_and_not_those_that_nobody_read() -> None:
    page = Page(outcome([device(0, roce=npu_port(link_up=False)), device(1, roce=npu_port(link_up=None)), device(2)]))
    assert "worst health: ok, 1 NPU link down" in page.text


def test_the_port_of_an_npu_is_one_row() -> None:
    assert own_ports(device(0, roce=npu_port())) == [
        ["0", "up", "0", "200 Gb/s", "success", "41 °C", "0.93 · 0.93 mW", "1.05 · 1.05 mW", "none"]
    ]


def test_what_hccn_tool_did_not_tell_is_a_dash_and_never_a_calm_zero() -> None:
    rows = own_ports(
        device(0, roce=NpuPort(link_up=True)), device(1, blind={"hccn_link": BUSY}), device(2, unsupported={})
    )
    assert rows == [["0", "up", *["–"] * 7], ["1", *["–"] * 8]]
    nothing_counted = npu_port(statistics=NpuPortStatistics(), optical=module(lane(0, None, transmit_watts=None)))
    assert own_ports(device(0, roce=nothing_counted))[0][-3:] == ["–", "–", "–"]


def test_dark_dim_and_hot_stand_out_by_the_modules_own_limits() -> None:
    optical = module(lane(0), lane(1, 0.00007), lane(2, 0.0, receive_los=True), lane(3, None), temperature_celsius=74.0)
    page = Page(outcome([device(0, roce=npu_port(optical=optical))]))
    assert "0.93 · <strong>0.07</strong> · <strong>0.00 LOS</strong> · – mW" in page.source
    assert "<strong>74 °C</strong>" in page.source
    assert "1.05 · 1.05 · 1.05 · 1.05 mW" in page.text


def test_a_port_without_a_module_says_so() -> None:
    optical = module(present=False, temperature_celsius=None)
    assert own_ports(device(0, roce=npu_port(optical=optical)))[0][5:8] == ["–", "no module", "no module"]


@pytest.mark.parametrize(
    ("word", "cell", "marked"),
    [("receive_timeout", "receive timeout", True), ("init", "init", False), ("unknown", "unknown", False)],
)
def test_a_peer_that_is_not_reached_stands_out(word: str, cell: str, marked: bool) -> None:
    page = Page(outcome([device(0, roce=npu_port(reachability=word))]))
    assert table(page, "Reaches its peer")[0][4] == cell
    assert ('class="state state-warning"' in page.source) is marked


def test_errors_of_an_npus_port_are_those_that_are_not_zero() -> None:
    statistics = NpuPortStatistics(errors={"receive_fcs": 0, "out_of_order": 7}, retries=21)
    assert own_ports(device(0, roce=npu_port(statistics=statistics)))[0][-1] == "out_of_order 7, retries 21"


def pcie_device(**parts: Any) -> Device:
    return device(0, identity=Identity(pci_address="0000:c1:00.0"), **parts)


def test_a_pcie_link_is_told_with_what_its_path_can_do() -> None:
    assert links(pcie_device(pcie_link=pcie_link(), pcie_errors=pcie_errors())) == [
        ["0", "0000:c1:00.0", "x16 of x16", "16 of 16 GT/s", "none"]
    ]


@pytest.mark.parametrize(
    ("changes", "cell"),
    [
        ({"lanes": 8, "path_lanes": 8}, "x8 of x16 narrow"),
        ({"path_lanes": 4}, "x4 of x16 narrow at a port above it"),
        ({"lanes": None, "path_lanes": None}, "– of x16"),
        ({"path_lanes": None, "path_max_lanes": None}, "x16 of –"),
        ({"lanes": None, "path_lanes": None, "path_max_lanes": None}, "–"),
    ],
)
def test_a_narrow_link_is_marked_and_says_where(changes: dict[str, Any], cell: str) -> None:
    page = Page(outcome([pcie_device(pcie_link=pcie_link(**changes))]))
    assert table(page, "Width")[0][2] == cell
    assert ('class="state state-warning"' in page.source) is ("narrow" in cell)


@pytest.mark.parametrize(
    ("utilization", "cell"),
    [
        ({"aicore": 0.9}, "2.5 of 16 GT/s slow under load"),
        ({"aicore": 0.0}, "2.5 of 16 GT/s no fault while idle"),
        ({}, "2.5 of 16 GT/s no fault while idle"),
    ],
)
def test_a_slow_link_is_a_fault_only_under_load(utilization: dict[str, float], cell: str) -> None:
    slow = pcie_link(transfers_per_second=2.5e9, path_transfers_per_second=2.5e9)
    assert links(pcie_device(pcie_link=slow, utilization_ratio=utilization))[0][3] == cell


def test_aer_counts_of_both_ends_are_summed_and_unknown_is_no_zero() -> None:
    assert links(pcie_device(pcie_errors=pcie_errors(4, at_far_end=3)))[0][4] == "correctable 7"
    assert links(pcie_device(pcie_errors=pcie_errors(None)))[0][4] == "correctable –"
    unread = PcieErrors("0000:c1:00.0", 0, 0, 0, far_end=ROOT_PORT, failures={ROOT_PORT: BUSY})
    assert links(pcie_device(pcie_errors=unread))[0][4] == "–"


def test_the_load_is_shown_where_it_is_measured() -> None:
    load = PcieLoad(21.5e9, None, 0.2, "dcmi", receive_ratio=0.684)
    assert links(pcie_device(pcie_load=load))[0][-2:] == ["68 %, 21.5 GB/s", "–"]


def test_the_load_of_sockets_is_a_table_of_its_own_and_an_unmeasured_direction_a_dash() -> None:
    sockets = (SocketPcieLoad(0, 12_009_876_544.0, 1_501_313_472.0, 1.0), SocketPcieLoad(1, 0.0, None, 1.0))
    page = Page(outcome([pcie_device(pcie_link=pcie_link())], pcie_sockets=sockets))
    assert table(page, "Memory to devices") == [["0", "12.0 GB/s", "1.5 GB/s"], ["1", "0.0 GB/s", "–"]]
    assert "PCIe load by CPU socket" not in Page(outcome([pcie_device(pcie_link=pcie_link())])).text


def test_a_device_that_is_not_on_pcie_has_no_row() -> None:
    rows = links(pcie_device(pcie_link=pcie_link()), device(1, identity=Identity()))
    assert [row[0] for row in rows] == ["0"]


def test_no_name_of_a_port_becomes_markup() -> None:
    key = PortKey(HOSTILE, 1)
    port = host_port(link_layer=HOSTILE, netdev=HOSTILE)
    port = replace(port, key=key, counters=PortCounters(key, errors={HOSTILE: 1}, failures={HOSTILE: HOSTILE}))
    page = Page(outcome([device(0, identity=Identity(pci_address=HOSTILE), pcie_link=pcie_link())], ports={key: port}))
    assert len(page.scripts()) == 1
    assert not [tag for tag, _ in page.tags if tag in ("img", "iframe", "svg")]
    assert not [name for _, attributes in page.tags for name in attributes if name.startswith("on")]


def test_a_page_of_64_devices_with_their_fabric_stays_small() -> None:
    everything = {"roce": npu_port(), "pcie_link": pcie_link(), "pcie_errors": pcie_errors()}
    page = Page(outcome([device(n, **everything) for n in range(64)]))
    assert len(page.source) < 200_000
