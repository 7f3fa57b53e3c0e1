"""Ports and PCIe paths of the simulated node on /metrics: its numbers, its faults, and what nobody can tell."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.harness import Daemon, launch, processes_below, running, until
from tests.e2e.page import Page
from tests.e2e.simulated import simulated

ALL = tuple("01234567")
PORTS = dict.fromkeys(("hccn_link", "hccn_speed", "hccn_stat", "hccn_net_health", "hccn_optical"), "6s")
HOST = {"ibstat": "1s", "rdma_counters": "1s"}
HCAS = ("mlx5_0", "mlx5_1")
PCIE = {"pcie_link": "1s", "pcie_aer": "1s"}


def _links(page: Page) -> dict[str, float]:
    return page.by_device("npu_device_roce_link_up")


def _all_up(page: Page) -> bool:
    return _links(page) == dict.fromkeys(ALL, 1.0)


def _host_port(page: Page, name: str, rdma_device: str, **labels: str) -> float | None:
    return page.value(f"npu_node_rdma_port_{name}", rdma_device=rdma_device, port="1", **labels)


# Ports


def test_a_port_that_is_down_is_down_alone_and_its_speed_is_not_told(tmp_path: Path) -> None:
    node = simulated("roce_down", tmp_path, 0, {**PORTS, **HOST})
    with running(node.config) as daemon:
        daemon.shows(lambda page: _all_up(page) and _host_port(page, "up", "mlx5_0") == 1, "all ports are up")
        state = node.stand_at(700)
        page = daemon.shows(
            lambda page: (
                page.value("npu_device_roce_reachability", device_id="5", state="fault") == 1
                and page.value("npu_device_roce_reachability", device_id="2", state="receive_timeout") == 1
                and _links(page)["5"] == 0
                and page.value("npu_device_optical_power_watts", device_id="5", lane="3", direction="receive") == 0
                and page.value("npu_device_roce_link_bits_per_second", device_id="6") == 100e9
                and _host_port(page, "up", "mlx5_0") == 0
            ),
            "what happened has been read",
        )
        assert _links(page) == {**dict.fromkeys(ALL, 1.0), "5": 0.0}
        assert page.by_device("npu_device_roce_link_bits_per_second") == {
            **dict.fromkeys("012347", 200e9),
            "6": 100e9,
        }
        reachable = page.by_device("npu_device_roce_reachability", state="success")
        assert reachable == {**dict.fromkeys(ALL, 1.0), "2": 0.0, "5": 0.0}
        assert page.value("npu_device_roce_reachability", device_id="2", state="receive_timeout") == 1
        assert [_host_port(page, "up", device) for device in ("mlx5_0", "mlx5_1")] == [0, 1]
        assert _host_port(page, "state", "mlx5_0", state="down") == 1
        assert _host_port(page, "physical_state", "mlx5_0", state="disabled") == 1
        assert _host_port(page, "bits_per_second", "mlx5_1") == 100e9
        assert _host_port(page, "link_downs_total", "mlx5_0") == 1
        assert daemon.event("npu_link_down", level="warning")["device_id"] == "5"
        assert daemon.event("port_down", level="warning")["rdma_device"] == "mlx5_0"
        packets = {str(chip.logic_id): chip.roce.counters["mac_rx_total_pkt_num"] for chip in state.chips if chip.roce}
        daemon.shows(
            lambda page: page.by_device("npu_device_roce_packets_total", direction="receive") == packets,
            f"the packets of every port: {packets}",
        )


def test_a_device_that_keeps_hccn_tool_waiting_is_blind_alone(tmp_path: Path) -> None:
    every = {"hccn_link": "3s", "hccn_net_health": "3s"}
    node = simulated("hccn_busy", tmp_path, 0, every, dict.fromkeys(every, "2s"))
    node.log_calls("hccn_tool")
    with running(node.config) as daemon:
        daemon.shows(lambda page: _all_up(page) and len(_reachable(page)) == 8, "all ports are up")
        node.stand_at(300)
        others = dict.fromkeys("0124567", 1.0)
        page = daemon.shows(lambda page: _links(page) == others and _reachable(page) == others, "device 3 is blind")
        assert page.value("npu_watchd_probe_failures_total", probe="hccn_link", kind="timeout") is not None or (
            page.value("npu_watchd_probe_failures_total", probe="hccn_net_health", kind="timeout") is not None
        )
        blind = daemon.device("3")["blind"]
        assert {"hccn_link", "hccn_net_health"} <= blind.keys()
        assert "timeout" in {failure["kind"] for failure in blind.values()}
        assert any("hccn_tool" in failure["detail"] for failure in blind.values())
        assert not {"hccn_link", "hccn_net_health"} & daemon.device("4")["blind"].keys()
        asked = len(node.asked())
        until(lambda: len(node.asked()) > asked + 14, "the others are asked as before")
        assert _links(daemon.page()) == others
        node.stand_at(1300)
        asked = len(node.asked())
        until(lambda: len(node.asked()) > asked + 14, "and once more, while device 3 still rests")
        assert not any(value == 0 for value in _links(daemon.page()).values()), "a failed query is no link down"
    assert [line for line in node.asked() if line.startswith("a second one")] == []


def _reachable(page: Page) -> dict[str, float]:
    return page.by_device("npu_device_roce_reachability", state="success")


def test_a_hccn_tool_that_hangs_costs_no_value_of_npu_smi_and_does_not_outlive_the_daemon(tmp_path: Path) -> None:
    node = simulated("hccn_busy", tmp_path, 1510, {"hccn_link": "5s"})
    with running(node.config) as daemon:
        tool = tmp_path / "bin" / "hccn_tool"
        until(lambda: any("hccn_tool" in line for line in processes_below(tmp_path)), f"{tool} hangs")
        page = daemon.page()
        assert sorted(page.by_device("npu_device_temperature_celsius", sensor="chip")) == list(ALL)
        assert _links(page) == {}
        code, took_s = daemon.stop()
    assert (code, took_s < 5) == (0, True)
    assert processes_below(tmp_path) == []


# The host


def test_ports_that_are_expected_and_not_there_are_missed_and_said_so(tmp_path: Path) -> None:
    node = simulated("no_hca", tmp_path, 0, HOST)
    with running(node.config) as daemon:
        page = daemon.shows(lambda page: _host_port(page, "up", "mlx5_1") == 0, "both ports are missed")
        assert _host_port(page, "up", "mlx5_0") == 0
        assert "npu_node_rdma_port_state" not in page.samples, "missing is not down"
        assert "npu_node_rdma_port_bits_per_second" not in page.samples
        ports = daemon.snapshot()["ports"]
        assert [(port["rdma_device"], port["present"], port["expected"]) for port in ports] == [
            ("mlx5_0", False, True),
            ("mlx5_1", False, True),
        ]
        html = daemon.get("/").text
        assert "mlx5_0/1" in html
        assert "missing" in html
        node.stand_at(400)
        daemon.shows(lambda page: [_host_port(page, "up", name) for name in HCAS] == [1, 1], "both are up")
        node.stand_at(900)
        page = daemon.shows(lambda page: _host_port(page, "bits_per_second", "mlx5_1") is None, "a rate cannot be read")
        assert _host_port(page, "bits_per_second", "mlx5_0") == 200e9
        node.stand_at(1300)
        page = daemon.shows(lambda page: _host_port(page, "up", "mlx5_0") == 0, "one falls off the bus")
        assert _host_port(page, "up", "mlx5_1") == 1
        vanished = until(
            lambda: [line for line in daemon.events("port_vanished") if line["rdma_device"] == "mlx5_0"], "it"
        )
        assert vanished[-1]["level"] == "warning"


# PCIe


def test_lanes_that_are_lost_are_told_and_a_link_that_sleeps_is_only_slow(tmp_path: Path) -> None:
    node = simulated("pcie_narrow", tmp_path, 0, PCIE)
    with running(node.config) as daemon:
        lanes = "npu_device_pcie_link_lanes"
        daemon.shows(lambda page: page.by_device(lanes) == dict.fromkeys(ALL, 16.0), "sixteen lanes everywhere")
        node.stand_at(240)
        page = daemon.shows(lambda page: page.value(lanes, device_id="2") == 8, "device 2 has eight")
        assert page.by_device(lanes) == {**dict.fromkeys(ALL, 16.0), "2": 8.0}
        assert page.by_device("npu_device_pcie_link_max_lanes") == dict.fromkeys(ALL, 16.0)
        speeds = page.by_device("npu_device_pcie_link_transfers_per_second")
        assert speeds == {**dict.fromkeys(ALL, 16e9), "5": 2.5e9}
        assert daemon.event("pcie_narrow", level="warning")["device_id"] == "2"
        assert len(daemon.events("pcie_narrow")) == 1


def test_pcie_errors_of_both_ends_are_counted_and_history_stays_what_it_was(tmp_path: Path) -> None:
    node = simulated("pcie_errors", tmp_path, 0, PCIE)
    errors = "npu_device_pcie_errors_total"
    with running(node.config) as daemon:
        page = daemon.shows(lambda page: page.value(errors, device_id="7", severity="correctable") == 12, "old errors")
        assert sum(page.by_device(errors, severity="correctable").values()) == 12
        node.stand_at(720)
        page = daemon.shows(lambda page: page.value(errors, device_id="4", severity="nonfatal") == 1, "a nonfatal one")
        # Ten minutes at 40 a minute by the port and 10 by the device.
        assert page.by_device(errors, severity="correctable") == {**dict.fromkeys(ALL, 0.0), "1": 500.0, "7": 12.0}
        assert page.by_device(errors, severity="fatal") == dict.fromkeys(ALL, 0.0)
        node.stand_at(1205)
        daemon.shows(lambda page: page.value(errors, device_id="4", severity="fatal") == 1, "its port saw a fatal one")


def test_the_load_of_every_link_is_counted_by_perf_where_it_is_switched_on(tmp_path: Path) -> None:
    node = simulated("pcie_saturated", tmp_path, 450, PCIE)
    with running(node.config) as daemon:
        load = "npu_device_pcie_load_ratio"
        page = daemon.shows(lambda page: len(page.by_device(load, direction="receive")) == 16, "the load of 16 dies")
        received = page.by_device(load, direction="receive")
        assert {device for device, ratio in received.items() if ratio > 0.85} == {"8", "9", "10", "11"}
        assert round(received["8"], 2) == 0.91
        assert max(ratio for device, ratio in received.items() if device not in {"8", "9", "10", "11"}) < 0.2
        sent = page.by_device(load, direction="transmit")
        assert round(sent["12"], 2) == 0.83
        assert max(ratio for device, ratio in sent.items() if device != "12") < 0.2
        throughput = page.value("npu_device_pcie_throughput_bytes_per_second", device_id="12", direction="transmit")
        assert throughput == pytest.approx(26e9)


def test_an_intel_host_shows_its_sockets_and_says_why_no_device(tmp_path: Path) -> None:
    node = simulated("pcie_sockets", tmp_path, 240, PCIE)
    with running(node.config) as daemon:
        load = "npu_node_pcie_throughput_bytes_per_second"
        page = daemon.shows(lambda page: page.value(load, socket="1", direction="receive") is not None, "two sockets")
        assert page.value(load, socket="1", direction="receive") == pytest.approx(22.3e9, rel=0.01)
        assert page.value(load, socket="0", direction="transmit") is not None
        assert "npu_device_pcie_throughput_bytes_per_second" not in page.samples
        assert [one["socket"] for one in daemon.snapshot()["pcie_sockets"]] == [0, 1]
        assert "pcm-pcie measures whole CPU sockets" in daemon.device("2")["unsupported"]["pcie_load"]
        assert "PCIe load by CPU socket" in daemon.get("/").text
        (tmp_path / "bin" / "pcm-pcie").write_text("#!/bin/sh\necho Can not open MSR device >&2\nexit 1\n")
    with running(node.config) as daemon:
        daemon.shows(lambda page: page.value("npu_watchd_probe_up", probe="pcie_load") == 0, "pcm-pcie fails")
        snapshot = daemon.snapshot()
        assert snapshot["blind"]["pcie_load"]["kind"] == "denied"
        assert snapshot["pcie_sockets"] == []
        assert "pcie_load" not in daemon.device("2")["blind"]


def test_errors_that_the_kernel_logged_since_boot_are_shown_again_after_a_restart(tmp_path: Path) -> None:
    node = simulated("quiet", tmp_path, 0, PCIE)
    slot = node.stand_at(0).chips[2].slot
    assert slot is not None
    words = "PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer, (Receiver ID)"
    kernel = tmp_path / "dev/kmsg"
    kernel.write_text(f"6,0,1,-;Booting Linux\n3,1,5000000,-;ascend_drv {slot.address}: {words}\n12,2,6,-;{words}\n")
    count = "npu_node_log_events_total"
    for _ in ("before a restart", "after it"):
        with running(node.config) as daemon:
            page = daemon.shows(
                lambda page: page.value(count, kind="pcie", code="fatal", device_id="2") is not None, "one of this boot"
            )
            assert page.value(count, kind="pcie", code="fatal", device_id="2") == 1
            (event,) = daemon.snapshot()["pcie_log_events"]
            assert (event["severity"], event["count"], event["before_start"]) == ("fatal", 1, 1)
    with running(node.config) as daemon:
        daemon.shows(
            lambda page: page.value(count, kind="pcie", code="fatal", device_id="2") == 1, "the one of this boot"
        )
        with kernel.open("a") as more:
            more.write(f"3,3,9000000,-;ascend_drv {slot.address}: {words}\n")
        daemon.shows(lambda page: page.value(count, kind="pcie", code="fatal", device_id="2") == 2, "and a new one")
        assert [event["before_start"] for event in daemon.snapshot()["pcie_log_events"]] == [1]


# The tree


def test_a_sysfs_that_vanishes_costs_its_own_series_and_no_other(tmp_path: Path) -> None:
    node = simulated("quiet", tmp_path, 0, {**HOST, **PCIE, "hccn_link": "4s"})
    with running(node.config) as daemon:
        lanes, counts = "npu_device_pcie_link_lanes", "npu_node_rdma_port_bytes_total"
        daemon.shows(lambda page: len(page.by_device(lanes)) == 8 and counts in page.samples and _all_up(page), "all")
        tree, away = tmp_path / "sys", tmp_path / "unmounted"
        tree.rename(away)
        page = daemon.shows(lambda page: not page.by_device(lanes) and counts not in page.samples, "they are gone")
        assert _all_up(page)
        assert page.value("npu_devices_present") == 8
        assert sorted(page.by_device("npu_device_temperature_celsius", sensor="chip")) == list(ALL)
        assert _host_port(page, "up", "mlx5_0") == 1, "ibstat says so"
        away.rename(tree)
        daemon.shows(lambda page: len(page.by_device(lanes)) == 8 and counts in page.samples, "they are back")


def test_the_demo_keeps_its_tree_as_fresh_as_its_tools(tmp_path: Path) -> None:
    process = launch("demo", "--scenario", "busy_node", "--speed", "60", "--port", "0", env={"TMPDIR": str(tmp_path)})
    assert process.stdout is not None
    with Daemon(process) as daemon:
        daemon.ready()
        (data,) = tmp_path.glob("*/sys/class/infiniband/mlx5_0/ports/1/counters/port_rcv_data")
        before = int(data.read_text())
        until(lambda: int(data.read_text()) > before, "the host's port counts what goes over it")
        code, took_s = daemon.stop()
    assert (code, took_s < 5) == (0, True)
    assert list(tmp_path.iterdir()) == []
