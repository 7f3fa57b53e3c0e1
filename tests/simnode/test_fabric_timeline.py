"""What scenarios make of ports, links and load: counters only grow, a reset begins anew, and no clock is asked."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest

from npu_watchd.simnode.pcie_slot import PcieSlot, capacity_bytes_per_second, unit_of
from npu_watchd.simnode.roce_port import RocePort
from npu_watchd.simnode.scenario import Scenario, from_json, to_json
from npu_watchd.simnode.scenario_file import ScenarioError, load, names, parse
from npu_watchd.simnode.state import NodeState
from npu_watchd.simnode.sysfs_ib import SimPort
from npu_watchd.simnode.sysfs_pci import Link
from npu_watchd.simnode.timeline import state_at

HEAD = 'title = "t"\ndescription = "d"\ngeneration = "910B3"\ntool_version = "25.5.1"\ncards = 2\n'


def made(events: str, head: str = HEAD) -> Scenario:
    return parse(head + events, "made", "made.toml")


def port(scenario: Scenario, t_s: float, device: int = 0) -> RocePort:
    found = state_at(scenario, t_s).chips[device].roce
    assert found is not None
    return found


def slot(scenario: Scenario, t_s: float, device: int = 0) -> PcieSlot:
    found = state_at(scenario, t_s).chips[device].slot
    assert found is not None
    return found


def host(scenario: Scenario, t_s: float, at: int = 0) -> SimPort:
    hcas = state_at(scenario, t_s).hcas
    assert hcas is not None
    return hcas[at].ports[0]


def adapters(node: NodeState) -> list[str]:
    return [hca.name for hca in node.hcas or ()]


@pytest.mark.parametrize(
    ("generation", "speed", "hcas"),
    [
        ("910A", 100_000, 2),
        ("910B4", 200_000, 2),
        ("A3", 200_000, 2),
        ("950PR", 400_000, 2),
        ("950DT", 400_000, 2),
        ("310P3", None, None),
        ("310", None, None),
        ("310B4", None, None),
    ],
)
def test_training_chips_have_ports_and_inference_chips_have_none(
    generation: str, speed: int | None, hcas: int | None
) -> None:
    node = state_at(made("", HEAD.replace("910B3", generation)), 5.0)
    assert {chip.roce and chip.roce.speed_mbps for chip in node.chips} == {speed}
    assert (node.hcas and len(node.hcas)) == hcas


def test_a_scenario_may_say_how_many_adapters_there_are() -> None:
    assert adapters(state_at(made("hcas = 3\n"), 0.0)) == ["mlx5_0", "mlx5_1", "mlx5_2"]
    assert state_at(made("hcas = 0\n"), 0.0).hcas is None


def test_an_event_happens_as_often_as_it_says() -> None:
    flap = made('[[at]]\nt = 60\nlasts = 10\nevery = "2m"\ntimes = 3\ndevice = 1\nport.link = "down"\n')
    assert [event.t_s for event in flap.events] == [60.0, 180.0, 300.0]
    counts = [(port(flap, t_s, 1).up, port(flap, t_s, 1).down_count) for t_s in (59, 60, 70, 185, 1000)]
    assert counts == [(True, 0), (False, 1), (True, 1), (False, 2), (True, 3)]
    assert port(flap, 1000, 0).down_count == 0


def test_the_newest_ten_changes_are_kept_with_their_times() -> None:
    flap = made("[[at]]\nt = 60\nlasts = 10\nevery = 20\ntimes = 9\ndevice = 0\nport.link = 'down'\n")
    found = port(flap, 1000.0)
    assert (found.up_count, found.down_count, len(found.changes)) == (10, 9, 10)
    node = state_at(flap, 1000.0, start_s=5_000_000.0)
    assert node.now_s == 5_001_000.0
    assert node.chips[0].roce is not None
    assert [(change.at_s, change.up) for change in node.chips[0].roce.changes[:2]] == [
        (5_000_230.0, True),
        (5_000_220.0, False),
    ]


def test_a_reset_of_the_device_begins_its_counts_anew_and_leaves_those_of_the_kernel() -> None:
    told = made(
        "[[at]]\nt = 10\nlasts = 5\ndevice = 0\nport.link = 'down'\n"
        "[[at]]\nt = 0\ndevice = 0\nport.counters.mac_rx_bad_pkt_num = 7\naer.device.correctable.BadTLP = 3\n"
        "[[at]]\nt = 100\ndevice = 0\nreset = true\n"
    )
    before, after = port(told, 99.0), port(told, 101.0)
    assert (before.up_count, before.down_count, before.counters["mac_rx_bad_pkt_num"]) == (2, 1, 7)
    assert (after.up_count, after.down_count, after.counters["mac_rx_bad_pkt_num"]) == (1, 0, 0)
    assert after.counters["mac_rx_total_pkt_num"] == 1
    assert slot(told, 101.0).errors == {"correctable": {"BadTLP": 3}}


def test_traffic_stands_still_while_the_link_is_down_or_the_job_is_over() -> None:
    told = made(
        "[[at]]\nt = 0\ndevice = 0\nstart = [{ pid = 1, memory = 5 }]\n"
        "[[at]]\nt = 100\nlasts = 50\ndevice = 0\nport.link = 'down'\n"
        "[[at]]\nt = 200\ndevice = 0\nstop = 'all'\n"
    )
    packets = [port(told, t_s).counters["mac_tx_total_pkt_num"] for t_s in (100, 149, 160, 200, 300)]
    assert packets == [16_000_150, 16_000_150, 17_600_165, 24_000_225, 24_000_375]


def every_count(node: NodeState) -> dict[str, int]:
    counts: dict[str, int] = {}
    for chip in node.chips:
        if chip.roce is not None:
            counts |= {f"{chip.logic_id} {key}": value for key, value in chip.roce.counters.items()}
            counts[f"{chip.logic_id} downs"] = chip.roce.down_count or 0
        for at, link in enumerate(chip.hccs.links if chip.hccs else ()):
            counts[f"{chip.logic_id} hccs {at}"] = link.tx_packets
    for hca in node.hcas or ():
        counts |= {f"{hca.name} {key}": value for key, value in hca.ports[0].counters.items() if isinstance(value, int)}
    return counts


@pytest.mark.parametrize("name", names())
def test_the_executables_run_the_same_scenario_from_json(name: str) -> None:
    scenario = load(name)
    again = from_json(json.loads(json.dumps(to_json(scenario))))
    for t_s in scenario.instants():
        assert state_at(again, t_s) == state_at(scenario, t_s)


@pytest.mark.parametrize("name", sorted(set(names()) - {"double_bit_then_reset"}))
def test_no_count_ever_falls(name: str) -> None:
    scenario = load(name)
    edges = sorted({*scenario.instants(), *(t_s + 1 for t_s in scenario.instants()), scenario.instants()[-1] + 600})
    for before, after in pairwise([every_count(state_at(scenario, t_s)) for t_s in edges]):
        fallen = {key for key in before.keys() & after.keys() if after[key] < before[key]}
        assert not fallen


@pytest.mark.parametrize(
    ("link", "state", "physical_state"), [("down", 1, 3), ("polling", 1, 2), ("initializing", 2, 5), ("up", 4, 5)]
)
def test_the_hosts_ports_have_the_states_of_the_specification(link: str, state: int, physical_state: int) -> None:
    told = made(f"[[at]]\nt = 5\nhca = 'mlx5_1'\nrdma.link = '{link}'\n")
    assert (host(told, 5.0, 1).state, host(told, 5.0, 1).physical_state) == (state, physical_state)
    assert (host(told, 5.0, 0).state, host(told, 4.0, 1).state) == (4, 4)


def test_a_host_port_counts_its_downs_and_its_network_device_its_carrier() -> None:
    told = made("[[at]]\nt = 5\nlasts = 5\nevery = 20\ntimes = 2\nhca = 'mlx5_0'\nrdma.link = 'down'\n")
    assert [host(told, t_s).counters["link_downed"] for t_s in (4, 5, 24, 25, 99)] == [0, 1, 1, 2, 2]
    netdev = state_at(told, 26.0).netdevs[0]
    assert (netdev.name, netdev.carrier, netdev.ups, netdev.downs) == ("ens21np0", False, 2, 3)


def test_lost_adapters_leave_a_kernel_that_could_do_rdma() -> None:
    told = made("[[at]]\nt = 5\nlasts = 5\nhcas = 'all'\nrdma.lost = true\n")
    assert [state_at(told, t_s).hcas == () for t_s in (4, 5, 10)] == [False, True, False]
    assert state_at(told, 6.0).netdevs == ()


def test_pcie_errors_climb_at_the_end_that_counts_them() -> None:
    told = made("[[at]]\nt = 60\ndevice = 1\nclimb.aer.port.correctable.BadTLP = '40/m'\n")
    assert slot(told, 150.0, 1).port_errors == {"correctable": {"BadTLP": 60}}
    assert slot(told, 150.0, 1).errors == {}
    assert slot(told, 150.0, 0).port_errors == {}


def test_where_firmware_owns_aer_nobody_counts() -> None:
    found = slot(made("firmware_owns_aer = true\n"), 5.0)
    assert (found.errors, found.port_errors) == (None, None)


def test_load_is_what_the_scenario_says_and_never_more_than_the_link_carries() -> None:
    told = made(
        "[[at]]\nt = 5\ndevice = 0\npcie_load.receive = 20.0\n[[at]]\nt = 9\ndevice = 0\nlink.lanes = 4\n",
    )
    assert slot(told, 5.0).receive_bytes_per_second == 20e9
    assert slot(told, 9.0).receive_bytes_per_second == pytest.approx(0.93 * 16e9 * 4 * 128 / 130 / 8)
    assert slot(told, 9.0).link == Link(16.0, 4, 16.0, 16)


def test_a_job_moves_gigabytes_and_an_idle_device_next_to_nothing() -> None:
    told = made("[[at]]\nt = 0\ndevice = 0\nstart = [{ pid = 1, memory = 5 }]\n")
    assert 1.5e9 < slot(told, 33.0, 0).receive_bytes_per_second < 5e9
    assert slot(told, 33.0, 1).receive_bytes_per_second == 1.5e6


def test_capacity_is_speed_times_width_times_encoding() -> None:
    assert capacity_bytes_per_second(Link(16.0, 16)) == pytest.approx(31.508e9, rel=1e-4)
    assert capacity_bytes_per_second(Link(2.5, 16)) == 4e9


def test_a_device_is_below_a_root_port_of_its_own_which_one_unit_watches() -> None:
    slots = state_at(load("quiet"), 0.0).slots()
    assert [(one.address, one.root_port, unit_of(one, slots)) for one in slots[:3]] == [
        ("0000:01:00.0", "0000:00:01.0", "hisi_pcie0_core1"),
        ("0000:02:00.0", "0000:00:02.0", "hisi_pcie0_core0"),
        ("0000:41:00.0", "0000:40:01.0", "hisi_pcie1_core1"),
    ]


def test_two_chips_behind_one_address_are_one_slot_until_both_are_lost() -> None:
    node = state_at(load("duo_310p"), 301.0)
    assert [(one.address, node.on_the_bus(one)) for one in node.slots()] == [
        ("0000:01:00.0", True),
        ("0000:81:00.0", True),
    ]


@pytest.mark.parametrize(
    ("events", "problem"),
    [
        ("[[at]]\nt = 0\nhca = 'mlx5_7'\nrdma.link = 'up'", "'mlx5_7' is not there, the node has mlx5_0, mlx5_1 - at"),
        ("[[at]]\nt = 0\nrdma.link = 'up'", "an event of a host's port needs `hca` or `hcas` - at `$.at[0]`"),
        ("[[at]]\nt = 0\nhca = 'mlx5_0'\nport.link = 'up'", "an event of a chip needs `device` or `devices`"),
        ("[[at]]\nt = 0\ndevice = 0\nport.net_health = 'fine'", "'fine' is none of Success, Socket fail"),
        ("[[at]]\nt = 0\ndevice = 0\nport.counters.nosuch = 1", "'nosuch' is none of crc_error_sum"),
        ("[[at]]\nt = 0\nhca = 'mlx5_0'\nclimb.rdma.nosuch = '1/s'", "'nosuch' is none of VL15_dropped"),
        ("[[at]]\nt = 0\ndevice = 0\naer.port.fatal.BadTLP = 1", "'BadTLP' is none of ACSViol"),
        ("[[at]]\nt = 0\ndevice = 0\naer.bridge.fatal.DLP = 1", "Object contains unknown field `bridge`"),
        ("[[at]]\nt = 0\ntimes = 3\nhccn_tool = 'locked'", "times needs `every` - at `$.at[0].times`"),
        ("[[at]]\nt = 0\ndevice = 0\nport.answers = 'lazy'", "Invalid enum value 'lazy'"),
        (
            "[[at]]\nt = 0\nlasts = 4\nhca = 'mlx5_0'\nrdma.counters.symbol_error = 1",
            "counts, reset, oom and stop are not taken back",
        ),
    ],
)
def test_a_wrong_event_of_the_fabric_is_refused_with_file_and_key(events: str, problem: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        made(events)
    assert str(refused.value).startswith(f"made.toml: {problem}")
