"""The table of `npu-smi info`: what is no value, what is no name, and which rows are not trusted."""

from __future__ import annotations

from npu_watchd.model.records import ProcessRow
from npu_watchd.parsers import info_table
from tests.parsers.device_row import device
from tests.parsers.texts import MIB, typed


def test_each_mark_of_a_failed_query_makes_its_row_untrusted_and_no_other() -> None:
    table = info_table.parse(typed("info__910B3__25.2.2__marks_of_failed_queries"))
    assert {(row.npu, row.distrust) for row in table.devices} == {
        (0, ()),
        (1, ("bus id 0000:00:00.0",)),
        (2, ("power 0.0", "temperature 0", "HBM 0 / 0")),
        (3, ("the name is blank",)),
        (None, ("the row with name and health is missing",)),
        (5, ("unknown health word 'Broken'",)),
        (
            6,
            (
                "no bus id, on a chip that has one",
                "more memory used than there is (70001/ 65536)",
                "a utilisation of 255 %",
            ),
        ),
    }
    assert [row.trusted for row in table.devices] == [True, False, False, False, False, False, False]
    assert [row.health for row in table.devices] == ["OK", "OK", "OK", "OK", None, None, "OK"]


def test_what_a_failed_query_prints_is_no_value() -> None:
    table = info_table.parse(typed("info__910B3__25.2.2__marks_of_failed_queries"))
    nothing = table.devices[2]
    assert nothing == device(
        2,
        0,
        "910B3",
        "OK",
        pci_address="0000:c2:00.0",
        aicore_utilization_ratio=0.0,
        hugepages_used=0,
        hugepages_total=0,
        distrust=("power 0.0", "temperature 0", "HBM 0 / 0"),
    )
    assert table.devices[1].pci_address is None
    assert (table.devices[6].aicore_utilization_ratio, table.devices[6].hbm_used_bytes) == (None, None)


def test_five_digits_take_the_blank_before_the_slash() -> None:
    row = info_table.parse(typed("info__910B3__25.2.2__marks_of_failed_queries")).devices[0]
    assert (row.hbm_used_bytes, row.hbm_total_bytes) == (61825 * MIB, 65536 * MIB)
    assert (row.memory_used_bytes, row.memory_total_bytes) == (None, None)


def test_blank_names_bars_in_names_and_a_process_called_health() -> None:
    table = info_table.parse(typed("info__910B3__25.2.2__marks_of_failed_queries"))
    assert table.processes == (
        ProcessRow(0, 0, 4021, "python3.11", 58377 * MIB),
        ProcessRow(0, 0, 4022, None, 141 * MIB),
        ProcessRow(0, 0, 4023, "a|b|Health|c", 142 * MIB),
        ProcessRow(0, 0, 4024, "Health", 143 * MIB),
    )
    assert table.idle_npus == (1,)


def test_a_warning_below_a_good_table_is_kept() -> None:
    table = info_table.parse(typed("info__910B3__25.2.2__marks_of_failed_queries"))
    assert table.warnings == ("[WARNING]The driver package is not whole on this node, as some version may say it.",)
    assert table.complete


def _changed(name: str, old: str, new: str) -> str:
    text = typed(name)
    assert text.count(old) == 1
    return text.replace(old, new)


def test_the_first_910s_need_their_ddr_and_later_ones_have_none() -> None:
    old = info_table.parse(_changed("info__910A__1.9.2__ddr_and_hbm", "2711 / 15137", "0    / 0    "))
    assert [row.distrust for row in old.devices] == [("memory 0 / 0",), ()]
    new = info_table.parse(typed("info__A3__25.5.0__pid_on_two_dies"))
    assert [row.distrust for row in new.devices] == [(), ()]


def test_a_310_has_one_memory_and_needs_it() -> None:
    table = info_table.parse(_changed("info__310P3__22.0.0__numeric_power", "957   / 21534", "0     / 0    "))
    assert table.devices[0].distrust == ("memory 0 / 0",)
    assert table.devices[0].memory_total_bytes is None


def test_a_memory_of_unknown_use_keeps_its_size() -> None:
    row = info_table.parse(_changed("info__310P3__22.0.0__numeric_power", "957   / 21534", "NA    / 21534")).devices[0]
    assert (row.memory_used_bytes, row.memory_total_bytes, row.trusted) == (None, 21534 * MIB, True)


def test_no_bus_id_is_a_mark_only_where_the_chip_has_one() -> None:
    table = info_table.parse(_changed("info__310P3__22.0.0__numeric_power", "0000:AF:00.0", "NA          "))
    assert table.devices[0].distrust == ("no bus id, on a chip that has one",)
    assert info_table.parse(typed("info__310B4__23.0.2.1__no_pci_no_power")).devices[0].trusted
    assert info_table.parse(typed("info__950PR__25.7.rc1__no_chip_ids_rows_one_short")).devices[1].trusted


def test_a_chip_of_a_950_whose_first_row_is_missing_is_nobody() -> None:
    lines = typed("info__950PR__25.7.rc1__no_chip_ids_rows_one_short").splitlines(keepends=True)
    table = info_table.parse("".join(lines[:9] + lines[10:]))
    assert [(row.npu, row.chip, row.health, row.distrust) for row in table.devices] == [
        (0, None, "OK", ()),
        (None, None, None, ("the row with name and health is missing",)),
    ]
