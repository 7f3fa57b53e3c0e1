"""The exported metrics of the fabric: DESIGN section 7's names and labels, literal values, and no value that lies."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from npu_watchd.catalogue import CATALOGUE, DEVICE_FAMILIES, NODE_FAMILIES
from npu_watchd.model.fabric import (
    NET_HEALTH_LABELS,
    NpuPortStatistics,
    OpticalLane,
    OpticalModule,
    PortCounters,
    PortKey,
    RdmaPort,
)
from npu_watchd.model.ids import DeviceKey
from npu_watchd.model.pcie import PcieErrors, PcieLink, PcieLoad, SocketPcieLoad
from npu_watchd.model.reading import Failure, FailureKind
from npu_watchd.model.records import Hccs, MemoryErrors
from npu_watchd.model.snapshot import Device, Identity, Memory, NpuPort, Outcome, Port, ProbeState
from npu_watchd.parsers import hccn_optical, hccn_stat
from npu_watchd.sinks.metrics import Exposition, Format
from npu_watchd.sources.hccn_probes import HCCN_PROBES
from npu_watchd.sources.npu_smi_probes import NPU_SMI_PROBES
from npu_watchd.sources.rdma import ERROR_COUNTERS
from tests.parsers.texts import CAPTURES
from tests.sinks.build import device, outcome

CONTRACT: dict[str, tuple[str, str]] = {
    "npu_device_roce_link_up": ("device_id", "gauge"),
    "npu_device_roce_link_bits_per_second": ("device_id", "gauge"),
    "npu_device_roce_link_downs_total": ("device_id", "counter"),
    "npu_device_roce_reachability": ("device_id, state", "gauge"),
    "npu_device_roce_packets_total": ("device_id, direction", "counter"),
    "npu_device_roce_errors_total": ("device_id, kind", "counter"),
    "npu_device_roce_pause_frames_total": ("device_id, direction, kind", "counter"),
    "npu_device_optical_power_watts": ("device_id, lane, direction", "gauge"),
    "npu_device_optical_temperature_celsius": ("device_id", "gauge"),
    "npu_device_optical_present": ("device_id", "gauge"),
    "npu_device_pcie_link_transfers_per_second": ("device_id", "gauge"),
    "npu_device_pcie_link_max_transfers_per_second": ("device_id", "gauge"),
    "npu_device_pcie_link_lanes": ("device_id", "gauge"),
    "npu_device_pcie_link_max_lanes": ("device_id", "gauge"),
    "npu_device_pcie_errors_total": ("device_id, severity", "counter"),
    "npu_device_pcie_throughput_bytes_per_second": ("device_id, direction", "gauge"),
    "npu_device_pcie_load_ratio": ("device_id, direction", "gauge"),
    "npu_node_pcie_throughput_bytes_per_second": ("socket, direction", "gauge"),
    "npu_node_rdma_port_info": ("rdma_device, port, link_layer, firmware, netdev", "gauge"),
    "npu_node_rdma_port_up": ("rdma_device, port", "gauge"),
    "npu_node_rdma_port_state": ("rdma_device, port, state", "gauge"),
    "npu_node_rdma_port_physical_state": ("rdma_device, port, state", "gauge"),
    "npu_node_rdma_port_bits_per_second": ("rdma_device, port", "gauge"),
    "npu_node_rdma_port_errors_total": ("rdma_device, port, counter", "counter"),
    "npu_node_rdma_port_bytes_total": ("rdma_device, port, direction", "counter"),
    "npu_node_rdma_port_link_downs_total": ("rdma_device, port", "counter"),
}


def declared() -> dict[str, tuple[set[str], str]]:
    found = {family.name: ({*family.labels, "device_id"}, family.kind.value) for family in DEVICE_FAMILIES}
    return found | {family.name: (set(family.labels), family.kind.value) for family in NODE_FAMILIES}


@pytest.mark.parametrize("name", CONTRACT)
def test_the_contracts_names_labels_and_types(name: str) -> None:
    labels, kind = CONTRACT[name]
    assert declared()[name] == (set(labels.split(", ")), kind)


def page(shown: Outcome, pattern: str) -> list[str]:
    """The samples whose name matches."""
    exposition = Exposition(shown, CATALOGUE)
    assert exposition.problems == ()
    lines = exposition.body(Format.TEXT).decode().splitlines()
    return [line for line in lines if re.match(pattern, line)]


def captured(name: str) -> str:
    return (CAPTURES / "hccn_tool" / f"{name}.txt").read_text(encoding="utf-8")


def with_port(**facts: object) -> Outcome:
    return outcome([device(0, roce=NpuPort(**facts))])  # type: ignore[arg-type]


# The NPU's own port


@pytest.mark.parametrize(("up", "value"), [(True, "1.0"), (False, "0.0")])
def test_a_link_up_or_down_is_a_state(up: bool, value: str) -> None:
    assert page(with_port(link_up=up), "npu_device_roce") == [f'npu_device_roce_link_up{{device_id="0"}} {value}']


def test_a_port_that_could_not_be_read_has_no_sample() -> None:
    assert page(with_port(), "npu_device_(roce|optical)") == []
    assert page(outcome([device(0, roce=None)]), "npu_device_(roce|optical)") == []


def test_each_value_that_could_not_be_read_is_absent_on_its_own() -> None:
    shown = page(with_port(link_up=True, link_downs=24, bits_per_second=None), "npu_device_roce")
    assert shown == [
        'npu_device_roce_link_up{device_id="0"} 1.0',
        'npu_device_roce_link_downs_total{device_id="0"} 24.0',
    ]


def test_speed_is_in_bits_per_second() -> None:
    assert page(with_port(bits_per_second=200_000_000_000), "npu_device_roce") == [
        'npu_device_roce_link_bits_per_second{device_id="0"} 2e+11'
    ]


def test_reachability_is_one_series_a_state_of_the_tools_ten() -> None:
    assert page(with_port(reachability="receive_timeout"), "npu_device_roce") == [
        f'npu_device_roce_reachability{{device_id="0",state="{state}"}} {value}'
        for state, value in (
            ("success", "0.0"),
            ("socket_fail", "0.0"),
            ("receive_timeout", "1.0"),
            ("unreachable", "0.0"),
            ("time_exceeded", "0.0"),
            ("fault", "0.0"),
            ("init", "0.0"),
            ("thread_error", "0.0"),
            ("detect_ip_set", "0.0"),
            ("unknown", "0.0"),
        )
    ]


def test_packets_errors_and_pauses_by_direction_and_kind() -> None:
    shown = page(with_port(statistics=hccn_stat.parse(captured("hccn-stat__every_counter"))), "npu_device_roce")
    assert shown == [
        'npu_device_roce_packets_total{device_id="0",direction="receive"} 1013.0',
        'npu_device_roce_packets_total{device_id="0",direction="transmit"} 1.8446744073709552e+19',
        'npu_device_roce_errors_total{device_id="0",kind="receive_fcs"} 1065.0',
        'npu_device_roce_errors_total{device_id="0",kind="out_of_order"} 1208.0',
        'npu_device_roce_errors_total{device_id="0",kind="retry"} 1247.0',
        'npu_device_roce_pause_frames_total{device_id="0",direction="receive",kind="priority"} 1628.0',
        'npu_device_roce_pause_frames_total{device_id="0",direction="transmit",kind="priority"} 108.0',
    ]


def test_light_by_lane_and_direction_and_darkness_that_was_measured_is_zero() -> None:
    optical = hccn_optical.parse(captured("hccn-optical__receive_loss_on_lane_1"))
    assert page(with_port(optical=optical), "npu_device_optical") == [
        'npu_device_optical_power_watts{device_id="0",direction="transmit",lane="0"} 0.001111',
        'npu_device_optical_power_watts{device_id="0",direction="receive",lane="0"} 0.000901',
        'npu_device_optical_power_watts{device_id="0",direction="transmit",lane="1"} 0.001112',
        'npu_device_optical_power_watts{device_id="0",direction="receive",lane="1"} 0.0',
        'npu_device_optical_power_watts{device_id="0",direction="transmit",lane="2"} 0.001113',
        'npu_device_optical_power_watts{device_id="0",direction="receive",lane="2"} 0.000903',
        'npu_device_optical_power_watts{device_id="0",direction="transmit",lane="3"} 0.001114',
        'npu_device_optical_power_watts{device_id="0",direction="receive",lane="3"} 0.000904',
        'npu_device_optical_temperature_celsius{device_id="0"} 47.0',
        'npu_device_optical_present{device_id="0"} 1.0',
    ]


def test_a_cage_without_a_module_has_no_light_and_no_temperature() -> None:
    optical = hccn_optical.parse(captured("hccn-optical__not_present"))
    assert page(with_port(optical=optical), "npu_device_optical") == ['npu_device_optical_present{device_id="0"} 0.0']


# PCIe


def link(**changes: object) -> PcieLink:
    whole = PcieLink("0000:c1:00.0", ("0000:c0:01.0", "0000:c1:00.0"), 16e9, 32e9, 16, 16, 16e9, 16e9, 16, 16)
    return replace(whole, **changes)  # type: ignore[arg-type]


def test_a_narrow_path_shows_what_it_has_and_what_it_could_have() -> None:
    narrow = link(lanes=8, path_lanes=8)
    assert page(outcome([device(0, pcie_link=narrow)]), "npu_device_pcie") == [
        'npu_device_pcie_link_transfers_per_second{device_id="0"} 1.6e+10',
        'npu_device_pcie_link_max_transfers_per_second{device_id="0"} 1.6e+10',
        'npu_device_pcie_link_lanes{device_id="0"} 8.0',
        'npu_device_pcie_link_max_lanes{device_id="0"} 16.0',
    ]


def test_a_link_of_which_the_kernel_knows_only_the_width_shows_only_that() -> None:
    known = link(transfers_per_second=None, path_max_transfers_per_second=None, path_max_lanes=None)
    assert page(outcome([device(0, pcie_link=known)]), "npu_device_pcie") == [
        'npu_device_pcie_link_lanes{device_id="0"} 16.0'
    ]


ROOT = "0000:c0:01.0"


def errors(*ports: PcieErrors, **changes: object) -> list[str]:
    own = replace(PcieErrors("0000:c1:00.0", 4, 1, 0, ports=ports, far_end=ROOT), **changes)  # type: ignore[arg-type]
    return page(outcome([device(0, pcie_errors=own)]), "npu_device_pcie_errors")


def test_errors_are_those_that_either_end_of_the_link_has_seen() -> None:
    switch = PcieErrors("0000:00:01.0", 1000, 1000, 1000)
    assert errors(switch, PcieErrors(ROOT, 30, 0, 2)) == [
        'npu_device_pcie_errors_total{device_id="0",severity="correctable"} 34.0',
        'npu_device_pcie_errors_total{device_id="0",severity="nonfatal"} 1.0',
        'npu_device_pcie_errors_total{device_id="0",severity="fatal"} 2.0',
    ]


def test_a_port_further_up_is_not_taken_for_the_far_end() -> None:
    assert errors(PcieErrors("0000:00:01.0", 1000, 1000, 1000))[0].endswith(" 4.0")


def test_a_sum_of_which_one_part_could_not_be_read_is_not_shown() -> None:
    assert errors(PcieErrors(ROOT, None, 0, 2)) == [
        'npu_device_pcie_errors_total{device_id="0",severity="nonfatal"} 1.0',
        'npu_device_pcie_errors_total{device_id="0",severity="fatal"} 2.0',
    ]
    assert errors(failures={ROOT: Failure(FailureKind.EXIT, "Input/output error")}) == []


def test_load_is_in_bytes_per_second_and_as_a_share_of_what_the_link_carries() -> None:
    # 2.5 GT/s × 16 lanes × 8/10 / 8: 4 GB/s each way.
    slow = link(transfers_per_second=2.5e9, path_transfers_per_second=2.5e9, path_max_transfers_per_second=2.5e9)
    load = PcieLoad(1e9, 0.0, 0.1, "dcmi").against(slow, busy=True)
    assert page(outcome([device(0, pcie_load=load)]), "npu_device_pcie_(throughput|load)") == [
        'npu_device_pcie_throughput_bytes_per_second{device_id="0",direction="receive"} 1e+09',
        'npu_device_pcie_throughput_bytes_per_second{device_id="0",direction="transmit"} 0.0',
        'npu_device_pcie_load_ratio{device_id="0",direction="receive"} 0.25',
        'npu_device_pcie_load_ratio{device_id="0",direction="transmit"} 0.0',
    ]


def test_a_load_without_a_known_link_has_no_ratio_and_a_direction_nobody_measures_no_sample() -> None:
    load = PcieLoad(None, 2e9, 0.5, "perf").against(None, busy=True)
    assert page(outcome([device(0, pcie_load=load)]), "npu_device_pcie_(throughput|load)") == [
        'npu_device_pcie_throughput_bytes_per_second{device_id="0",direction="transmit"} 2e+09'
    ]


# The host's ports

KEY = PortKey("mlx5_0", 1)
FACTS = RdmaPort(
    "mlx5_0",
    1,
    firmware="28.43.2026",
    state="Active",
    physical_state="LinkUp",
    rate_gbps=400.0,
    link_layer="Ethernet",
)
COUNTERS = PortCounters(
    KEY,
    errors={"symbol_error": 1, "out_of_sequence": 0},
    bytes={"receive": 4000, "transmit": 2**64},
    link_downs=11,
    netdev="ens21np0",
)


def node_of(facts: RdmaPort | None, counters: PortCounters | None, present: bool | None = True) -> list[str]:
    port = Port(KEY, present, expected=True, facts=facts, counters=counters)
    return page(outcome([], ports={KEY: port}), "npu_node_rdma")


def test_the_series_of_a_host_port() -> None:
    assert node_of(FACTS, COUNTERS) == [
        'npu_node_rdma_port_info{firmware="28.43.2026",link_layer="Ethernet",netdev="ens21np0",port="1",'
        'rdma_device="mlx5_0"} 1.0',
        'npu_node_rdma_port_up{port="1",rdma_device="mlx5_0"} 1.0',
        'npu_node_rdma_port_state{port="1",rdma_device="mlx5_0",state="down"} 0.0',
        'npu_node_rdma_port_state{port="1",rdma_device="mlx5_0",state="initializing"} 0.0',
        'npu_node_rdma_port_state{port="1",rdma_device="mlx5_0",state="armed"} 0.0',
        'npu_node_rdma_port_state{port="1",rdma_device="mlx5_0",state="active"} 1.0',
        'npu_node_rdma_port_state{port="1",rdma_device="mlx5_0",state="active_defer"} 0.0',
        'npu_node_rdma_port_physical_state{port="1",rdma_device="mlx5_0",state="sleep"} 0.0',
        'npu_node_rdma_port_physical_state{port="1",rdma_device="mlx5_0",state="polling"} 0.0',
        'npu_node_rdma_port_physical_state{port="1",rdma_device="mlx5_0",state="disabled"} 0.0',
        'npu_node_rdma_port_physical_state{port="1",rdma_device="mlx5_0",state="training"} 0.0',
        'npu_node_rdma_port_physical_state{port="1",rdma_device="mlx5_0",state="link_up"} 1.0',
        'npu_node_rdma_port_physical_state{port="1",rdma_device="mlx5_0",state="error_recovery"} 0.0',
        'npu_node_rdma_port_physical_state{port="1",rdma_device="mlx5_0",state="phy_test"} 0.0',
        'npu_node_rdma_port_bits_per_second{port="1",rdma_device="mlx5_0"} 4e+11',
        'npu_node_rdma_port_errors_total{counter="symbol_error",port="1",rdma_device="mlx5_0"} 1.0',
        'npu_node_rdma_port_errors_total{counter="out_of_sequence",port="1",rdma_device="mlx5_0"} 0.0',
        'npu_node_rdma_port_bytes_total{direction="receive",port="1",rdma_device="mlx5_0"} 4000.0',
        'npu_node_rdma_port_bytes_total{direction="transmit",port="1",rdma_device="mlx5_0"} 1.8446744073709552e+19',
        'npu_node_rdma_port_link_downs_total{port="1",rdma_device="mlx5_0"} 11.0',
    ]


def test_a_virtual_function_that_is_down_with_its_link_up_is_not_up() -> None:
    down = node_of(replace(FACTS, state="Down"), None)
    assert 'npu_node_rdma_port_up{port="1",rdma_device="mlx5_0"} 0.0' in down
    assert 'npu_node_rdma_port_physical_state{port="1",rdma_device="mlx5_0",state="link_up"} 1.0' in down


def test_an_expected_port_that_is_gone_is_not_up_and_has_no_other_number() -> None:
    assert node_of(None, None, present=False) == ['npu_node_rdma_port_up{port="1",rdma_device="mlx5_0"} 0.0']


def test_of_a_port_that_nobody_can_see_nothing_is_said() -> None:
    assert node_of(None, None, present=None) == []


def test_a_port_without_a_state_has_neither_a_state_set_nor_an_up() -> None:
    shown = node_of(replace(FACTS, state=None, rate_gbps=None), None)
    assert not [line for line in shown if re.match(r"npu_node_rdma_port_(up|state|bits)", line)]
    assert len(shown) == 8


# Budget


def test_the_fullest_a3_die_keeps_within_its_eighty_series() -> None:
    """With all that is on by default, and optics of four lanes; PCIe load, which is opt-in, adds four."""
    statistics = hccn_stat.parse(captured("hccn-stat__every_counter"))
    lanes = tuple(OpticalLane(number, 0.001, 0.001) for number in range(4))
    full = device(
        0,
        identity=Identity("Ascend910", 0, 0, "0000:c1:00.0", "7.1"),
        profile="A3",
        utilization_ratio=dict.fromkeys(("aicore", "aivector", "aicube", "aicpu", "ctrlcpu", "npu"), 0.5),
        memory={"hbm": Memory(1, 2)},
        memory_bandwidth_utilization_ratio={"hbm": 0.5},
        memory_errors={"hbm": MemoryErrors(*range(8))},
        hccs=Hccs(True, tuple(range(7)), tuple(range(7)), None),
        roce=NpuPort(True, 3, 200_000_000_000, "success", statistics, OpticalModule(True, 47.0, lanes=lanes)),
        pcie_link=link(),
        pcie_errors=PcieErrors("0000:c1:00.0", 1, 2, 3, far_end=ROOT),
    )
    per_device = [probe.name for probe in (*NPU_SMI_PROBES, *HCCN_PROBES) if probe.scope.value != "node"]
    asked = [*per_device, "pcie_link", "pcie_aer", "pcie_load"]
    states = tuple(ProbeState(probe, "0", up=True, failure=None) for probe in asked)
    shown = page(outcome([full], probes=states), r".*[{,]device_id=\"0\"")
    own = [line for line in shown if not line.startswith("npu_watchd_probe_up")]
    print(f"{len(own)} series of the device, and {len(shown) - len(own)} of its probes' states")
    assert len(own) <= 80


def test_a_sockets_load_is_the_nodes_by_direction_as_its_devices_see_it() -> None:
    sockets = (SocketPcieLoad(0, 12_009_876_544.0, 1_501_313_472.0, 1.0), SocketPcieLoad(1, 0.0, None, 1.0))
    assert page(outcome([device(0)], pcie_sockets=sockets), "npu_node_pcie") == [
        'npu_node_pcie_throughput_bytes_per_second{direction="receive",socket="0"} 1.2009876544e+10',
        'npu_node_pcie_throughput_bytes_per_second{direction="transmit",socket="0"} 1.501313472e+09',
        'npu_node_pcie_throughput_bytes_per_second{direction="receive",socket="1"} 0.0',
    ]
    assert page(outcome([device(0)]), "npu_node_pcie") == []


def test_the_largest_intel_machine_costs_sixteen_series() -> None:
    sockets = tuple(SocketPcieLoad(socket, 1.0, 1.0, 1.0) for socket in range(8))
    assert len(page(outcome([device(0)], pcie_sockets=sockets), "npu_node_pcie")) == 16


def ports_of(number: int) -> dict[PortKey, Port]:
    names = [PortKey(f"mlx5_{index}", 1) for index in range(number)]
    counters = replace(COUNTERS, errors=dict.fromkeys([name.rpartition("/")[2] for name in ERROR_COUNTERS], 1))
    return {key: Port(key, True, True, replace(FACTS, ca=key.rdma_device), replace(counters, key=key)) for key in names}


@pytest.mark.parametrize("hcas", [2, 10])
def test_a_host_port_costs_the_same_number_of_series_whatever_its_driver_counts(hcas: int) -> None:
    shown = page(outcome([device(0)], ports=ports_of(hcas)), "npu_node|npu_watchd|npu_devices")
    ports = [line for line in shown if line.startswith("npu_node_rdma")]
    print(f"{hcas} HCAs: {len(shown)} series of the node, {len(ports)} of them of its ports")
    assert len(ports) == 28 * hcas


def test_a_device_of_which_nothing_is_known_has_no_series_of_the_fabric() -> None:
    nobody = Device(DeviceKey(3), "3", "position", Identity(), "GENERIC", None, "unknown")
    assert page(outcome([nobody]), "npu_device_(roce|optical|pcie)") == []


def test_every_word_of_reachability_has_a_label_of_its_own() -> None:
    assert len(set(NET_HEALTH_LABELS.values())) == 10
    assert isinstance(hccn_stat.parse(captured("hccn-stat__950")), NpuPortStatistics)
