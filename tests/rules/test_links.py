"""Rules about ports and PCIe: down, flapping, slow, errors, light, lanes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from npu_watchd.model.fabric import NpuPortStatistics, OpticalLane, OpticalModule, PortCounters, PortKey, RdmaPort
from npu_watchd.model.finding import Finding, Severity
from npu_watchd.model.ids import DeviceKey
from npu_watchd.model.pcie import PcieErrors, PcieLink, PcieLoad
from npu_watchd.model.reading import Failure, FailureKind
from npu_watchd.model.snapshot import NpuPort, Port
from npu_watchd.model.verdict import Decision, Order
from tests.rules.world import HOUR_S, MINUTE_S, NOON_S, World

MLX = PortKey("mlx5_0", 1)
DENIED = Failure(FailureKind.DENIED, "ibstat: may not be executed")
NO_COUNTS: Mapping[str, int] = {}
BUSY = Failure(FailureKind.EXIT, "hccn_tool is busy, please try again.")


def port(
    up: bool | None = True, rate_gbps: float = 200.0, expected: bool = True, counts: Mapping[str, int] = NO_COUNTS
) -> Port:
    facts = RdmaPort(
        "mlx5_0",
        1,
        state={True: "Active", False: "Down", None: None}[up],
        physical_state={True: "LinkUp", False: "Polling", None: None}[up],
        rate_gbps=rate_gbps,
    )
    return Port(MLX, True, expected, facts, PortCounters(MLX, errors=counts, link_downs=0))


def npu_port(up: bool | None = True, *, downs: int = 0, speed: int | None = 200_000_000_000) -> NpuPort:
    return NpuPort(link_up=up, link_downs=downs, bits_per_second=speed if up else None)


def link(**changes: object) -> PcieLink:
    good = PcieLink(
        "0000:83:00.0",
        ("0000:80:01.0", "0000:83:00.0"),
        transfers_per_second=16e9,
        max_transfers_per_second=16e9,
        lanes=16,
        max_lanes=16,
        path_transfers_per_second=16e9,
        path_max_transfers_per_second=16e9,
        path_lanes=16,
        path_max_lanes=16,
    )
    return replace(good, **changes)  # type: ignore[arg-type]


def test_a_host_port_is_down_after_four_minutes() -> None:
    world = World()
    world.ports[MLX] = port()
    world.cycle(0)
    world.ports[MLX] = port(up=False)
    assert world.cycles(15, 240) == {}
    found = world.cycle(255)["roce_down mlx5_0/1"]
    assert found.summary == "RDMA port mlx5_0/1 has been down for 4 min or longer"
    assert (found.device_id, found.severity, found.quarantines) == (None, Severity.CRITICAL, False)
    assert found.evidence[0].source == "ibstat mlx5_0 1"


def test_a_port_that_never_was_up_is_not_missed() -> None:
    world = World()
    world.ports[MLX] = port(up=False, expected=False)
    world.change(3, roce=npu_port(up=False))
    assert world.cycles(0, HOUR_S) == {}


def test_a_port_that_was_up_before_the_daemon_was_started_anew_is_missed() -> None:
    world = World()
    world.ports[MLX] = port()
    world.cycle(0)
    world.ports[MLX] = port(up=False, expected=False)
    assert list(world.cycles(15, 300)) == ["roce_down mlx5_0/1"]


def test_an_npu_port_that_goes_down_is_the_devices_finding() -> None:
    world = World()
    world.change(3, roce=npu_port())
    world.cycle(0)
    world.change(3, roce=npu_port(up=False))
    found = world.cycles(60, 300, every=60)["roce_down npu 3 chip 0"]
    assert (found.device_id, found.evidence[0].source) == ("3", "hccn_tool -i 3 -link -g")


def test_a_failed_query_is_no_link_down_and_ends_none() -> None:
    world = World()
    for npu in (3, 4):
        world.change(npu, roce=npu_port())
    world.cycle(0)
    world.change(3, roce=npu_port(up=False))
    world.cycles(60, 300, every=60)
    for npu in (3, 4):
        world.change(npu, roce=None, blind={"hccn_link": BUSY})
    found = world.cycles(360, 1200, every=60)
    assert list(found) == ["roce_down npu 3 chip 0"]
    assert found["roce_down npu 3 chip 0"].held_because == "hccn_tool is busy, please try again."


def test_a_port_that_comes_up_is_no_longer_down() -> None:
    world = World()
    world.ports[MLX] = port()
    world.cycle(0)
    world.ports[MLX] = port(up=False)
    world.cycles(15, 300)
    world.ports[MLX] = port()
    assert world.cycle(315) == {}


def test_a_third_fall_of_25_seconds_is_flapping() -> None:
    world = World()
    world.ports[MLX] = port()
    world.cycle(0)
    found: dict[str, Finding] = {}
    for fall in (600, 1200, 1800):
        assert "roce_flap mlx5_0/1" not in found
        world.ports[MLX] = port(up=False)
        world.cycle(fall)
        world.ports[MLX] = port()
        found = world.cycle(fall + 30)
    assert found["roce_flap mlx5_0/1"].summary == "RDMA port mlx5_0/1 went down and came back 3 times in 12 h"
    assert world.cycle(600 + 30 + 12 * HOUR_S + 1) == {}


def test_shorter_falls_are_no_flap_but_five_link_downs_are() -> None:
    world = World()
    world.change(3, roce=npu_port(downs=40))
    world.cycle(0)
    for fall in range(1, 5):
        world.change(3, roce=npu_port(downs=40 + fall))
        assert world.cycle(60 * fall) == {}
    world.change(3, roce=npu_port(downs=45))
    found = world.cycle(300)["roce_flap npu 3 chip 0"]
    assert found.summary == "device 3: its own RoCE port lost its link 5 times in 24 h"


def test_a_port_slower_than_it_has_been_is_found_at_the_second_poll() -> None:
    world = World()
    world.ports[MLX] = port(rate_gbps=200)
    world.cycle(0)
    world.ports[MLX] = port(rate_gbps=100)
    assert world.cycle(30) == {}
    found = world.cycle(60)["roce_slow mlx5_0/1"]
    assert found.summary == "RDMA port mlx5_0/1 runs at 100 Gbit/s; it has run at 200 Gbit/s"


def test_a_slow_port_that_goes_down_stays_slow_until_it_is_up() -> None:
    world = World()
    world.ports[MLX] = port(rate_gbps=200)
    world.cycle(0)
    world.ports[MLX] = port(rate_gbps=100)
    world.cycles(30, 60)
    world.ports[MLX] = port(up=False)
    assert world.cycle(90)["roce_slow mlx5_0/1"].held
    world.ports[MLX] = port(rate_gbps=200)
    assert "roce_slow mlx5_0/1" not in world.cycle(120)


@pytest.mark.parametrize(
    ("counter", "below", "limit"),
    [
        ("symbol_error", 19, 20),
        ("link_error_recovery", 49, 50),
        ("port_rcv_errors", 5999, 6000),
        ("port_xmit_discards", 59999, 60000),
        ("local_ack_timeout_err", 599, 600),
        ("local_link_integrity_errors", 0, 1),
    ],
)
def test_a_ports_errors_have_a_rate_each(counter: str, below: int, limit: int) -> None:
    world = World()
    world.ports[MLX] = port(counts={counter: 1000})
    world.cycle(0)
    world.ports[MLX] = port(counts={counter: 1000 + below})
    assert world.cycle(30) == {}
    world.ports[MLX] = port(counts={counter: 1000 + limit})
    found = world.cycle(60)["roce_errors mlx5_0/1"]
    assert found.evidence[0].observed == limit
    assert found.evidence[0].limit == pytest.approx(limit)


def test_an_npu_port_that_resends_is_found() -> None:
    world = World()
    world.change(3, roce=replace(npu_port(), statistics=NpuPortStatistics(retries=5)))
    world.cycle(0)
    world.change(3, roce=replace(npu_port(), statistics=NpuPortStatistics(retries=700)))
    assert "roce_errors npu 3 chip 0" in world.cycle(60)


def test_faint_light_is_held_against_the_modules_own_limit() -> None:
    def module(milliwatts: float) -> NpuPort:
        lane = OpticalLane(0, transmit_watts=1e-3, receive_watts=milliwatts / 1000)
        return replace(npu_port(), optical=OpticalModule(True, lanes=(lane,)))

    world = World()
    world.change(3, roce=module(0.1446))
    assert world.cycles(0, 120, every=60) == {}
    world.change(3, roce=module(0.1))
    assert world.cycle(180) == {}
    found = world.cycle(240)["optics npu 3 chip 0"]
    assert found.summary == (
        'device 3: npu_device_optical_power_watts{lane="0",direction="receive"} is 0.1 mW (limit 0.1445 mW)'
    )


def test_darkness_on_a_link_that_is_down_says_nothing_of_the_module() -> None:
    lane = OpticalLane(0, receive_watts=0.0, receive_los=True)
    world = World()
    world.change(3, roce=replace(npu_port(up=False), optical=OpticalModule(True, lanes=(lane,))))
    assert world.cycles(0, 120, every=60) == {}


def test_lost_lanes_are_found_after_three_polls_also_when_idle() -> None:
    world = World()
    world.change(3, pcie_link=link(lanes=8, path_lanes=8))
    assert world.cycles(0, 60, every=60) == {}
    found = world.cycle(120)["pcie_link npu 3 chip 0"]
    assert found.evidence[0].source == "cat /sys/bus/pci/devices/{0000:80:01.0,0000:83:00.0}/current_link_width"
    assert (found.evidence[0].observed, found.evidence[0].limit) == (8, 16)


def test_a_slow_link_counts_only_while_the_device_works() -> None:
    world = World()
    slow = link(transfers_per_second=2.5e9, path_transfers_per_second=2.5e9)
    world.change(3, pcie_link=slow, utilization_ratio={"aicore": 0.0})
    assert world.cycles(0, 600, every=60) == {}
    world.change(3, utilization_ratio={"aicore": 0.9})
    assert world.cycles(660, 780, every=60)
    world.change(3, utilization_ratio={"aicore": 0.0})
    assert world.cycle(840)["pcie_link npu 3 chip 0"].held
    world.change(3, pcie_link=link(), utilization_ratio={"aicore": 0.9})
    assert world.cycle(900) == {}


def errors(correctable: int = 0, nonfatal: int = 0, fatal: int = 0) -> PcieErrors:
    return PcieErrors("0000:83:00.0", correctable, nonfatal, fatal)


def test_pcie_errors_before_our_time_are_inventory() -> None:
    world = World()
    world.change(3, pcie_errors=errors(correctable=100_000, nonfatal=4, fatal=1), pcie_link=link())
    assert world.cycles(0, HOUR_S, every=60) == {}


@pytest.mark.parametrize(("severity", "quarantines"), [("nonfatal", False), ("fatal", True)])
def test_one_error_that_could_not_be_corrected_is_critical(severity: str, quarantines: bool) -> None:
    world = World()
    world.change(3, pcie_errors=errors(), pcie_link=link())
    world.cycle(0)
    world.change(3, pcie_errors=errors(**{severity: 1}))
    found = world.cycle(30)["pcie_errors npu 3 chip 0"]
    assert (found.severity, found.quarantines) == (Severity.CRITICAL, quarantines)
    assert found.evidence[0].source == f"cat /sys/bus/pci/devices/0000:83:00.0/aer_dev_{severity}"


def test_corrected_pcie_errors_are_counted_by_lane() -> None:
    world = World()
    world.change(3, pcie_errors=errors(), pcie_link=link())
    world.cycle(0)
    world.change(3, pcie_errors=errors(correctable=153))
    assert world.cycle(30) == {}
    world.change(3, pcie_errors=errors(correctable=154))
    found = world.cycle(60)["pcie_errors npu 3 chip 0"]
    assert found.summary == "device 3: 154 corrected PCIe errors in 10 min (limit 154 for 16 lanes)"
    assert (found.severity, found.quarantines) == (Severity.WARNING, False)


def test_a_full_pcie_link_is_found_after_a_minute() -> None:
    world = World()
    world.change(3, pcie_load=PcieLoad(25e9, 1e9, 0.1, "dcmi", receive_ratio=0.91, transmit_ratio=0.04))
    assert world.cycles(0, 45) == {}
    found = world.cycle(60)["pcie_load npu 3 chip 0"]
    assert found.summary == "device 3: its PCIe link is 91% full (receive, limit 85%)"


def test_unreadable_ports_hold_what_was_found() -> None:
    world = World()
    world.ports[MLX] = port()
    world.cycle(0)
    world.ports[MLX] = port(up=False)
    world.cycles(15, 300)
    world.ports[MLX] = replace(port(up=None), facts=None, present=None, counters=None)
    world.node = {"blind": {"ibstat": DENIED}}
    found = world.cycles(315, 15 * MINUTE_S)
    assert found["roce_down mlx5_0/1"].held_because == "ibstat: may not be executed"


def test_a_device_that_vanished_keeps_what_was_found() -> None:
    world = World()
    world.change(3, pcie_link=link(lanes=8, path_lanes=8))
    world.cycles(0, 120, every=60)
    world.change(3, present=False, health="unknown", pcie_link=None)
    found = world.cycles(180, 600, every=60)
    assert sorted(found) == ["device_missing npu 3 chip 0", "pcie_link npu 3 chip 0"]
    assert found["pcie_link npu 3 chip 0"].held
    assert world.judging.journal[-1].device_id == world.devices[DeviceKey(3)].device_id


def test_a_restart_of_the_daemon_mends_no_link_no_module_and_no_climb() -> None:
    dim = replace(npu_port(), optical=OpticalModule(True, lanes=(OpticalLane(0, receive_watts=1e-5),)))
    world = World()
    world.change(2, pcie_link=link(), pcie_errors=PcieErrors("0000:82:00.0", correctable=0, nonfatal=0, fatal=0))
    world.change(3, pcie_link=link(lanes=8))
    world.change(4, roce=dim)
    world.cycle(0)
    world.change(2, pcie_errors=PcieErrors("0000:82:00.0", correctable=900, nonfatal=0, fatal=0))
    stood = {"pcie_errors npu 2 chip 0", "pcie_link npu 3 chip 0", "optics npu 4 chip 0"}
    assert world.cycles(60, 180, every=60).keys() == stood
    # What is not read yet is in no `blind`: that is nothing that anybody could mend.
    world.change(2, pcie_link=None, pcie_errors=None)
    world.change(3, pcie_link=None)
    world.change(4, roce=None)
    found = world.cycle(240)
    assert found.keys() == stood
    assert {finding.held_because for finding in found.values()} == {"not read yet"}


def test_a_chip_that_cannot_say_has_no_such_finding_any_more() -> None:
    world = World()
    world.change(3, pcie_link=link(lanes=8))
    world.cycles(0, 120, every=60)
    world.change(3, pcie_link=None, unsupported={"pcie_link": "the device has no PCI address"})
    assert world.cycle(180) == {}


def test_a_link_that_falls_does_not_mend_the_module() -> None:
    dim = OpticalModule(True, lanes=(OpticalLane(0, receive_watts=1e-5),))
    world = World()
    world.change(3, roce=replace(npu_port(), optical=dim))
    world.cycles(0, 120, every=60)
    world.change(3, roce=replace(npu_port(up=False), optical=dim))
    assert world.cycle(180)["optics npu 3 chip 0"].held
    world.change(3, roce=replace(npu_port(), optical=OpticalModule(True, lanes=(OpticalLane(0, receive_watts=1e-3),))))
    assert world.cycle(240) == {}


def test_what_grew_while_nobody_could_look_for_long_is_no_burst() -> None:
    world = World()
    world.change(3, pcie_link=link(), pcie_errors=PcieErrors("0000:83:00.0", correctable=0, nonfatal=0, fatal=0))
    world.cycle(0)
    world.change(3, pcie_errors=PcieErrors("0000:83:00.0", correctable=900, nonfatal=0, fatal=0))
    assert world.cycle(8 * HOUR_S) == {}, "900 in eight hours are 19 in ten minutes"
    world.change(3, pcie_errors=PcieErrors("0000:83:00.0", correctable=1050, nonfatal=0, fatal=0))
    found = world.cycle(8 * HOUR_S + 30)["pcie_errors npu 3 chip 0"]
    assert found.summary == "device 3: 168 corrected PCIe errors in 10 min (limit 154 for 16 lanes)"


def test_a_fatal_pcie_error_before_a_release_is_no_longer_news() -> None:
    world = World()
    world.change(2, pcie_errors=errors(), pcie_link=link())
    world.cycle(0)
    world.change(2, pcie_errors=errors(fatal=1))
    assert world.cycle(60)["pcie_errors npu 2 chip 0"].quarantines
    release = Decision(Order.RELEASE, DeviceKey(2), "alice", "reseated", NOON_S + 65, force=True)
    assert world.judging.decide(release)[0].accepted
    assert world.cycle(75) == {}
    world.change(2, pcie_errors=errors(fatal=2))
    assert world.cycle(90)["pcie_errors npu 2 chip 0"].evidence[0].observed == 1
