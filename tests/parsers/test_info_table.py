"""The table of `npu-smi info`: every layout, literally."""

from __future__ import annotations

import pytest

from npu_watchd.model.records import InfoTable, ProcessRow
from npu_watchd.parsers import info_table
from tests.parsers.device_row import device
from tests.parsers.texts import MIB, typed


def test_310_with_logic_ids_and_one_memory() -> None:
    assert info_table.parse(typed("info__310__21.0.2__two_chips_of_four")) == InfoTable(
        tool_version="21.0.2",
        driver_version="21.0.1",
        devices=(
            device(
                2050,
                0,
                "310",
                "OK",
                logic_id=4,
                pci_address="0000:06:00.0",
                power_watts=13.1,
                temperature_celsius=52.0,
                aicore_utilization_ratio=0.07,
                memory_used_bytes=2703 * MIB,
                memory_total_bytes=8192 * MIB,
            ),
            device(
                2050,
                3,
                "310",
                "Warning",
                logic_id=7,
                pci_address="0000:09:00.0",
                power_watts=13.1,
                temperature_celsius=77.0,
                aicore_utilization_ratio=0.99,
                memory_used_bytes=8190 * MIB,
                memory_total_bytes=8192 * MIB,
            ),
        ),
        processes=None,
    )


def test_old_910a_has_two_memories_and_no_hugepages() -> None:
    table = info_table.parse(typed("info__910A__1.9.2__ddr_and_hbm"))
    assert (table.tool_version, table.driver_version, table.processes) == ("1.9.2", "21.0.rc1", None)
    assert table.devices == (
        device(
            0,
            0,
            "910A",
            "OK",
            pci_address="0000:c1:00.0",
            power_watts=71.8,
            temperature_celsius=41.0,
            aicore_utilization_ratio=0.12,
            memory_used_bytes=2711 * MIB,
            memory_total_bytes=15137 * MIB,
            hbm_used_bytes=19 * MIB,
            hbm_total_bytes=32768 * MIB,
        ),
        device(
            6,
            0,
            "910A",
            "OK",
            pci_address="0000:02:00.0",
            power_watts=299.4,
            temperature_celsius=83.0,
            aicore_utilization_ratio=1.0,
            memory_used_bytes=3105 * MIB,
            memory_total_bytes=15039 * MIB,
            hbm_used_bytes=30998 * MIB,
            hbm_total_bytes=32768 * MIB,
        ),
    )


NUMERIC_POWER = InfoTable(
    tool_version="22.0.0",
    driver_version="22.0.3",
    devices=(
        device(
            24,
            0,
            "310P3",
            "OK",
            logic_id=1,
            pci_address="0000:af:00.0",
            power_watts=16.7,
            temperature_celsius=39.0,
            aicore_utilization_ratio=0.04,
            memory_used_bytes=957 * MIB,
            memory_total_bytes=21534 * MIB,
            hugepages_used=2,
            hugepages_total=970,
        ),
    ),
    processes=None,
)


@pytest.mark.parametrize("name", ["info__310P3__22.0.0__numeric_power", "info__310P3__22.0.0__hal_prelude"])
def test_310p_with_a_numeric_power_with_and_without_a_line_of_the_library_above_it(name: str) -> None:
    assert info_table.parse(typed(name)) == NUMERIC_POWER


def test_a_duo_without_title_row_shares_a_bus_id_and_has_processes_with_blanks_in_their_names() -> None:
    table = info_table.parse(typed("info__310P3__24.1.rc2__duo_no_title_row"))
    assert (table.tool_version, table.driver_version) == (None, None)
    assert table.devices == (
        device(
            2944,
            0,
            "310P3",
            "OK",
            logic_id=0,
            pci_address="0000:5e:00.0",
            temperature_celsius=58.0,
            aicore_utilization_ratio=0.31,
            memory_used_bytes=20011 * MIB,
            memory_total_bytes=44280 * MIB,
            hugepages_used=0,
            hugepages_total=0,
        ),
        device(
            2944,
            1,
            "310P3",
            "OK",
            logic_id=1,
            pci_address="0000:5e:00.0",
            temperature_celsius=61.0,
            aicore_utilization_ratio=0.0,
            memory_used_bytes=1391 * MIB,
            memory_total_bytes=43693 * MIB,
            hugepages_used=0,
            hugepages_total=0,
        ),
    )
    assert table.processes == (
        ProcessRow(2944, 0, 70111, "mind ie server", 18411 * MIB),
        ProcessRow(2944, 1, 70111, "mind ie server", 72 * MIB),
    )


def test_310b_without_bus_and_power_is_trusted_and_its_power_unknown() -> None:
    table = info_table.parse(typed("info__310B4__23.0.2.1__no_pci_no_power"))
    assert table.devices == (
        device(
            0,
            0,
            "310B4",
            "Alarm",
            logic_id=0,
            temperature_celsius=63.0,
            aicore_utilization_ratio=0.03,
            memory_used_bytes=3777 * MIB,
            memory_total_bytes=10810 * MIB,
            hugepages_used=15,
            hugepages_total=1304,
        ),
    )
    assert table.processes is None


def test_a_cell_that_pushed_its_neighbours_aside_is_read_by_its_bars() -> None:
    table = info_table.parse(typed("info__910B4-1__24.1.0.1__shifted_cells_and_eight_processes"))
    assert (table.tool_version, table.driver_version) == ("24.1.0.1", "24.1.rc3.7")
    assert table.devices == (
        device(
            5,
            0,
            "910B4-1",
            "Critical",
            pci_address="0000:61:00.0",
            power_watts=88.8,
            temperature_celsius=50.0,
            aicore_utilization_ratio=0.33,
            hbm_used_bytes=64001 * MIB,
            hbm_total_bytes=65536 * MIB,
            hugepages_used=0,
            hugepages_total=0,
        ),
    )


def test_eight_processes_are_all_that_the_table_lists() -> None:
    table = info_table.parse(typed("info__910B4-1__24.1.0.1__shifted_cells_and_eight_processes"))
    assert [(row.pid, row.name, row.memory_bytes) for row in table.processes or ()] == [
        (501, "rank0", 101 * MIB),
        (502, "rank1", 102 * MIB),
        (503, "rank2", 103 * MIB),
        (504, "rank3", 104 * MIB),
        (505, "rank4", 105 * MIB),
        (506, "rank5", 106 * MIB),
        (507, "rank6", 107 * MIB),
        (508, "rank7", 108 * MIB),
    ]


def test_two_dies_of_an_a3_with_a_frame_of_one_cell_between_them() -> None:
    table = info_table.parse(typed("info__A3__25.5.0__pid_on_two_dies"))
    assert table.devices == (
        device(
            3,
            0,
            "Ascend910",
            "OK",
            phy_id=6,
            pci_address="0000:9c:00.0",
            power_watts=171.9,
            temperature_celsius=38.0,
            aicore_utilization_ratio=0.61,
            hbm_used_bytes=29717 * MIB,
            hbm_total_bytes=65536 * MIB,
            hugepages_used=0,
            hugepages_total=0,
        ),
        device(
            3,
            1,
            "Ascend910",
            "OK",
            phy_id=7,
            pci_address="0000:9e:00.0",
            temperature_celsius=37.0,
            aicore_utilization_ratio=0.0,
            hbm_used_bytes=2871 * MIB,
            hbm_total_bytes=65536 * MIB,
            hugepages_used=0,
            hugepages_total=0,
        ),
    )
    assert table.processes == (
        ProcessRow(3, 0, 91823, "VLLMWorker_TP", 26011 * MIB),
        ProcessRow(3, 1, 91823, "VLLMWorker_TP", 141 * MIB),
    )


def test_26_adds_the_pid_in_the_container() -> None:
    table = info_table.parse(typed("info__A3__26.0.rc1__container_pids"))
    assert [(row.npu, row.chip, row.phy_id, row.power_watts) for row in table.devices] == [
        (7, 0, 14, 160.3),
        (7, 1, 15, None),
    ]
    assert table.processes == (
        ProcessRow(7, 0, 33001, "a|1|2", 44803 * MIB, container_pid=17),
        ProcessRow(7, 0, 33002, None, 72 * MIB, container_pid=None),
    )


def test_950_has_four_cells_no_chip_ids_and_rows_one_short() -> None:
    table = info_table.parse(typed("info__950PR__25.7.rc1__no_chip_ids_rows_one_short"))
    assert table == InfoTable(
        tool_version="25.7.rc1",
        driver_version="25.7.rc1.6",
        devices=(
            device(
                0,
                None,
                "Ascend950PR",
                "OK",
                pci_address="0000:01:00.0",
                power_watts=188.2,
                temperature_celsius=47.0,
                aicore_utilization_ratio=0.4,
                hbm_used_bytes=6621 * MIB,
                hbm_total_bytes=131072 * MIB,
                hugepages_used=0,
                hugepages_total=0,
            ),
            device(
                1,
                None,
                "Ascend950PR",
                "Alarm",
                power_watts=401.5,
                temperature_celsius=71.0,
                aicore_utilization_ratio=1.0,
                hbm_used_bytes=114600 * MIB,
                hbm_total_bytes=114688 * MIB,
                hugepages_used=0,
                hugepages_total=0,
            ),
        ),
        processes=(ProcessRow(0, None, 846001, None, 333 * MIB),),
        idle_npus=(1,),
    )


def test_masked_versions_na_everywhere_and_an_idle_tool_that_says_so() -> None:
    assert info_table.parse(typed("info__910B2__masked__idle_without_title_words")) == InfoTable(
        tool_version="xx.x.rcx",
        driver_version="xx.x.rcx",
        devices=(device(12, 0, "910B2", "UNKNOWN", pci_address="0000:xx:00.0", hbm_total_bytes=65536 * MIB),),
        processes=(),
        idle_npus=(12,),
    )
