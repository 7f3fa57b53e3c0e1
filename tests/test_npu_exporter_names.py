"""The names of Huawei's npu-exporter: literal lines of a 910B3 and of an A3, and nothing where nobody knows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from npu_watchd.catalogue import CATALOGUE, Kind, exported
from npu_watchd.catalogue.npu_exporter import FAMILIES
from npu_watchd.model.fabric import NpuPortStatistics
from npu_watchd.model.jobs import Attribution, DeviceJobs, Job, ProcessKey, Scheduler
from npu_watchd.model.records import MemoryErrors
from npu_watchd.model.snapshot import Identity, Memory, Outcome
from npu_watchd.sinks.metrics import Exposition, Format
from tests.golden.play import play
from tests.sinks.build import device, outcome, process
from tests.sinks.fabric import npu_port

_910B3 = """\
machine_npu_nums 8.0
machine_card_nums 8.0
machine_healthy_npu_nums 8.0
machine_unhealthy_npu_nums 0.0
machine_unknown_npu_nums 0.0
node_base_info{driverVersion="25.5.1"} 1.0
npu_chip_info_health_status{id="0",model_name="910B3",pcie_bus_info="0000:C1:00.0"} 1.0
npu_chip_info_name{id="0",name="910B3",pcie_bus_info="0000:C1:00.0"} 1.0
npu_chip_info_serial_number{id="0",model_name="910B3",pcie_bus_info="0000:C1:00.0",serial_number="SN320000000001"} 1.0
npu_chip_info_temperature{id="0",model_name="910B3",pcie_bus_info="0000:C1:00.0"} 60.0
npu_chip_info_power{id="0",model_name="910B3",pcie_bus_info="0000:C1:00.0"} 336.8
npu_chip_info_aicore_current_freq{id="0",model_name="910B3",pcie_bus_info="0000:C1:00.0"} 1800.0
npu_chip_info_process_info_num{id="0",model_name="910B3",pcie_bus_info="0000:C1:00.0"} 1.0
npu_chip_info_process_info{id="0",model_name="910B3",pcie_bus_info="0000:C1:00.0",process_id="40101"} 56210.0
npu_chip_info_utilization{id="0",model_name="910B3",pcie_bus_info="0000:C1:00.0"} 94.0
npu_chip_info_overall_utilization{id="0",model_name="910B3",pcie_bus_info="0000:C1:00.0"} 74.0
npu_chip_info_vector_utilization{id="0",model_name="910B3",pcie_bus_info="0000:C1:00.0"} 29.0
npu_chip_info_cube_utilization{id="0",model_name="910B3",pcie_bus_info="0000:C1:00.0"} 66.0
npu_chip_info_hbm_used_memory{id="0",model_name="910B3",pcie_bus_info="0000:C1:00.0"} 59603.0
npu_chip_info_hbm_total_memory{id="0",model_name="910B3",pcie_bus_info="0000:C1:00.0"} 65536.0
npu_chip_info_hbm_utilization{id="0",model_name="910B3",pcie_bus_info="0000:C1:00.0"} 90.94696
npu_chip_info_hbm_bandwidth_utilization{id="0",model_name="910B3",pcie_bus_info="0000:C1:00.0"} 44.0
npu_chip_info_hbm_temperature{id="0",model_name="910B3",pcie_bus_info="0000:C1:00.0"} 60.0
npu_chip_info_hbm_ecc_single_bit_error_cnt{id="0",model_name="910B3",pcie_bus_info="0000:C1:00.0"} 0.0
npu_chip_info_hbm_ecc_double_bit_error_cnt{id="0",model_name="910B3",pcie_bus_info="0000:C1:00.0"} 0.0
npu_chip_info_hbm_ecc_total_single_bit_error_cnt{id="0",model_name="910B3",pcie_bus_info="0000:C1:00.0"} 0.0
npu_chip_info_hbm_ecc_total_double_bit_error_cnt{id="0",model_name="910B3",pcie_bus_info="0000:C1:00.0"} 0.0
npu_chip_info_hbm_ecc_single_bit_isolated_pages_cnt{id="0",model_name="910B3",pcie_bus_info="0000:C1:00.0"} 0.0
npu_chip_info_hbm_ecc_double_bit_isolated_pages_cnt{id="0",model_name="910B3",pcie_bus_info="0000:C1:00.0"} 0.0
npu_chip_info_network_status{id="0",model_name="910B3",pcie_bus_info="0000:C1:00.0"} 1.0
npu_chip_info_link_status{id="0",model_name="910B3",pcie_bus_info="0000:C1:00.0"} 1.0
npu_chip_link_speed{id="0",model_name="910B3",pcie_bus_info="0000:C1:00.0"} 200000.0
npu_chip_mac_rx_pause_num{id="0",model_name="910B3",pcie_bus_info="0000:C1:00.0"} 0.0
npu_chip_mac_tx_pfc_pkt_num{id="0",model_name="910B3",pcie_bus_info="0000:C1:00.0"} 0.0
npu_chip_info_rx_fcs_num{id="0",model_name="910B3",pcie_bus_info="0000:C1:00.0"} 0.0
npu_chip_info_rx_ecn_num{id="0",model_name="910B3",pcie_bus_info="0000:C1:00.0"} 0.0
npu_chip_roce_rx_all_pkt_num{id="0",model_name="910B3",pcie_bus_info="0000:C1:00.0"} 2.9520357e+07
npu_chip_roce_new_pkt_rty_num{id="0",model_name="910B3",pcie_bus_info="0000:C1:00.0"} 0.0
npu_chip_optical_state{id="0",model_name="910B3",pcie_bus_info="0000:C1:00.0"} 1.0
npu_chip_optical_vcc{id="0",model_name="910B3",pcie_bus_info="0000:C1:00.0"} 3301.0
npu_chip_optical_temp{id="0",model_name="910B3",pcie_bus_info="0000:C1:00.0"} 41.0
npu_chip_optical_tx_power_0{id="0",model_name="910B3",pcie_bus_info="0000:C1:00.0"} 1.0393
npu_chip_optical_rx_power_3{id="0",model_name="910B3",pcie_bus_info="0000:C1:00.0"} 0.9808
"""

_A3 = """\
machine_npu_nums 14.0
machine_card_nums 7.0
machine_healthy_npu_nums 13.0
machine_unhealthy_npu_nums 0.0
machine_unknown_npu_nums 1.0
node_base_info{driverVersion="26.0.rc2"} 1.0
npu_chip_info_health_status{id="6",model_name="Ascend910",pcie_bus_info="0000:91:00.0"} 1.0
npu_chip_info_power{id="6",model_name="Ascend910",pcie_bus_info="0000:91:00.0"} 549.5
npu_chip_info_process_info_num{id="6",model_name="Ascend910",pcie_bus_info="0000:91:00.0"} 3.0
npu_chip_info_process_info{id="6",model_name="Ascend910",pcie_bus_info="0000:91:00.0",process_id="91002"} 141.0
npu_chip_info_cube_utilization{id="6",model_name="Ascend910",pcie_bus_info="0000:91:00.0"} 79.0
npu_chip_info_hbm_used_memory{id="6",model_name="Ascend910",pcie_bus_info="0000:91:00.0"} 51561.0
npu_chip_link_speed{id="6",model_name="Ascend910",pcie_bus_info="0000:91:00.0"} 200000.0
"""


def _lines(page: str) -> list[str]:
    return [line for line in page.splitlines() if not line.startswith("#")]


def _shown(one: Outcome) -> list[str]:
    exposition = Exposition(one, FAMILIES)
    assert exposition.problems == ()
    return _lines(exposition.body(Format.TEXT).decode())


def _values(one: Outcome, name: str) -> list[float]:
    return [float(line.rpartition(" ")[2]) for line in _shown(one) if re.match(rf"{name}[{{ ]", line)]


@pytest.mark.parametrize(("scenario", "second", "expected"), [("quiet", 300, _910B3), ("a3_16_dies", 390, _A3)])
def test_a_simulated_node_has_the_lines_that_npu_exporter_would_have(
    scenario: str, second: int, expected: str, tmp_path: Path
) -> None:
    shown = _lines(play(scenario, (second,), tmp_path, families=FAMILIES).pages[second])
    assert [line for line in expected.splitlines() if line not in shown] == []
    assert {re.split(r"[{ ]", line)[0] for line in shown} <= {family.name for family in FAMILIES}
    if scenario == "a3_16_dies":
        names = {re.split(r"[{ ]", line)[0] for line in shown if '{id="7",' in line}
        assert "npu_chip_info_temperature" in names
        assert "npu_chip_info_power" not in names, "a second die has no power of its own"
        assert not [line for line in shown if re.search(r'\{id="[23]",', line)], "two dies are gone"
        assert not [line for line in shown if re.search(r'health_status\{id="9",', line)], (
            "its health is unknown: no -1"
        )
        assert len({line.partition('id="')[2].partition('"')[0] for line in shown if 'id="' in line}) == 14


def test_the_names_are_off_unless_they_are_asked_for_and_none_is_ours() -> None:
    assert exported(npu_exporter_names=False) == CATALOGUE
    assert exported(npu_exporter_names=True) == (*CATALOGUE, *FAMILIES)
    names = [family.name for family in exported(npu_exporter_names=True)]
    assert len(set(names)) == len(names)
    assert {family.kind for family in FAMILIES} == {Kind.GAUGE}


@pytest.mark.parametrize(
    ("health", "value"), [("ok", [1.0]), ("warning", [0.0]), ("alarm", [0.0]), ("critical", [0.0]), ("unknown", [])]
)
def test_unknown_health_has_no_sample_and_is_counted_as_unknown(health: str, value: list[float]) -> None:
    shown = outcome([device(0, health=health)])
    assert _values(shown, "npu_chip_info_health_status") == value
    counts = [_values(shown, f"machine_{state}_npu_nums") for state in ("healthy", "unhealthy", "unknown")]
    assert counts == [[float(health == "ok")], [float(value == [0.0])], [float(health == "unknown")]]


def test_without_a_table_nothing_is_said_of_the_machine() -> None:
    shown = outcome([device(0, present=None, health="unknown")], devices_present=None)
    assert _shown(shown) == ['node_base_info{driverVersion="24.1.rc2"} 1.0']


def test_error_codes_are_decimal_numbers_by_position() -> None:
    shown = outcome([device(0, error_codes=("80e01801", "8c084e00", "80e01801"))])
    assert _values(shown, "npu_chip_info_error_code") == [2162169857.0]
    assert _values(shown, "npu_chip_info_error_code_1") == [2349354496.0]
    assert _values(shown, "npu_chip_info_error_code_2") == []


def test_a_device_whose_number_is_a_guess_is_left_out() -> None:
    nameless = Identity(name="910B3", logic_id=None, pci_address=None)
    by_position = device(0, identity=nameless, device_id_source="position")
    assert not [line for line in _shown(outcome([by_position])) if 'id="' in line]
    by_logic_id = device(4, identity=nameless, device_id_source="logic_id")
    assert 'npu_chip_info_power{id="4",model_name="910B3"} 93.5' in _shown(outcome([by_logic_id]))


def test_an_idle_chip_has_one_process_of_nothing_and_an_unlisted_one_none() -> None:
    idle, unlisted = outcome([device(0, processes=())]), outcome([device(0, processes=None)])
    assert _values(idle, "npu_chip_info_process_info") == [0.0]
    assert _values(idle, "npu_chip_info_process_info_num") == [0.0]
    assert _values(unlisted, "npu_chip_info_process_info") == []
    assert _values(unlisted, "npu_chip_info_process_info_num") == []


def test_a_cut_list_is_no_count() -> None:
    shown = outcome([device(0, processes=(process("python3"),), processes_cut=True)])
    assert _values(shown, "npu_chip_info_process_info_num") == []
    assert _values(shown, "npu_chip_info_process_info") == [2048.0]


def test_a_process_has_the_hosts_pid_and_its_container() -> None:
    row = process("python3", pid=87)
    job = Job(Scheduler.DOCKER, "c0ffee", container="c0ffee" * 10 + "beef")
    told = Attribution(device(0).key, 87, "python3", row.memory_bytes, ProcessKey(71001, 5), job=job)
    shown = _shown(outcome([device(0, processes=(row,), jobs=DeviceJobs((told,)))]))
    assert (
        f'npu_chip_info_process_info{{container_id="{job.container}",id="0",model_name="910B3",'
        f'pcie_bus_info="0000:80:00.0",process_id="71001"}} 2048.0'
    ) in shown


def test_a_key_that_hccn_tool_does_not_print_is_absent_and_not_zero() -> None:
    port = npu_port(statistics=NpuPortStatistics(counters={"roce_rx_all_pkt_num": 7}))
    shown = outcome([device(0, roce=port)])
    assert _values(shown, "npu_chip_roce_rx_all_pkt_num") == [7.0]
    assert _values(shown, "npu_chip_info_rx_fcs_num") == []


@pytest.mark.parametrize(
    ("state", "value"),
    [
        ("success", [1.0]),
        ("init", [1.0]),
        ("unreachable", [0.0]),
        ("detect_ip_set", [0.0]),
        ("unknown", []),
        (None, []),
    ],
)
def test_the_network_is_well_as_they_say_it(state: str | None, value: list[float]) -> None:
    assert _values(outcome([device(0, roce=npu_port(reachability=state))]), "npu_chip_info_network_status") == value


def test_a_link_that_nobody_could_ask_about_is_neither_down_nor_minus_one() -> None:
    assert _values(outcome([device(0, roce=npu_port(link_up=False))]), "npu_chip_info_link_status") == [0.0]
    assert _values(outcome([device(0, roce=npu_port(link_up=None))]), "npu_chip_info_link_status") == []


def test_memory_is_in_mb_and_counts_keep_their_places() -> None:
    shown = outcome(
        [
            device(
                0,
                memory={"ddr": Memory(used_bytes=3 << 20, total_bytes=None)},
                memory_errors={"hbm": MemoryErrors(1, 2, 3, 4, 5, 6)},
            )
        ]
    )
    assert _values(shown, "npu_chip_info_used_memory") == [3.0]
    assert _values(shown, "npu_chip_info_total_memory") == []
    counts = [
        _values(shown, f"npu_chip_info_hbm_ecc_{name}")
        for name in (
            *("single_bit_error_cnt", "double_bit_error_cnt"),
            *("total_single_bit_error_cnt", "total_double_bit_error_cnt"),
            *("single_bit_isolated_pages_cnt", "double_bit_isolated_pages_cnt"),
        )
    ]
    assert counts == [[1.0], [2.0], [3.0], [4.0], [5.0], [6.0]]
