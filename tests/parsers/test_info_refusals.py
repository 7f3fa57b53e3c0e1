"""The table of `npu-smi info`: what is refused by its line, and what is left out of a text that ends too early."""

from __future__ import annotations

from typing import Any

import pytest

from npu_watchd.model.reading import FailureKind
from npu_watchd.parsers import info_table
from tests.parsers.texts import refused, said, typed


@pytest.mark.parametrize(
    ("text", "kind", "words"),
    [
        ("", FailureKind.UNPARSEABLE, "line 1: npu-smi printed nothing"),
        ("Mon Nov 30\n", FailureKind.UNPARSEABLE, "line 1: no table of npu-smi info: 'Mon Nov 30'"),
        (
            "Failed to execute npu-smi info. ret is -8006.\n",
            FailureKind.EXIT,
            "Failed to execute npu-smi info. ret is -8006. "
            "(the driver did not answer in its own time; the chip may be wedged)",
        ),
        ("Failed to get card number.\n", FailureKind.EXIT, "Failed to get card number."),
    ],
)
def test_no_table_at_all(text: str, kind: FailureKind, words: str) -> None:
    assert said(info_table.parse, text) == (kind, words)


def test_the_same_chip_twice_is_refused() -> None:
    table = typed("info__910A__1.9.2__ddr_and_hbm").replace("| 6     910A ", "| 0     910A ")
    assert str(refused(info_table.parse, table)).startswith("line 11: NPU 0 has this chip already")


def test_two_tables_in_one_text_are_refused() -> None:
    table = typed("info__310P3__22.0.0__numeric_power")
    assert str(refused(info_table.parse, table + table)).startswith("line 11: 1 cells where the header has 3")


def test_a_torn_row_inside_the_table_is_refused_and_at_its_end_left_out() -> None:
    lines = typed("info__910A__1.9.2__ddr_and_hbm").splitlines()
    torn = [*lines[:7], lines[7][:60], *lines[8:]]
    assert str(refused(info_table.parse, "\n".join(torn))).startswith("line 8: a row without its closing bar")
    table = info_table.parse("\n".join([*lines[:10], lines[10][:60]]))
    assert [(row.npu, row.trusted, row.distrust) for row in table.devices] == [
        (0, True, ()),
        (6, False, ("the row is cut off",)),
    ]
    assert table.devices[1].hbm_used_bytes is None
    assert table.devices[1].pci_address == "0000:02:00.0"
    assert table.warnings == ("line 11: the row is cut off; its values are left out",)
    assert not table.complete


def test_a_chip_without_its_second_row_is_left_out_and_the_table_is_not_complete() -> None:
    lines = typed("info__910A__1.9.2__ddr_and_hbm").splitlines()
    table = info_table.parse("\n".join([*lines[:7], *lines[8:], ""]))
    assert [row.npu for row in table.devices] == [6]
    assert len(table.warnings) == 1
    assert table.warnings[0].startswith("line 7: a chip without its second row, left out: '0     910A OK")
    assert not table.complete


def test_a_table_that_no_frame_closes_is_not_complete() -> None:
    lines = typed("info__910A__1.9.2__ddr_and_hbm").splitlines()
    assert not info_table.parse("\n".join([*lines[:8], ""])).complete
    assert info_table.parse("\n".join([*lines[:9], ""])).complete


def test_a_process_row_without_its_end_of_line_is_left_out_since_a_name_may_hold_bars() -> None:
    text = typed("info__A3__26.0.rc1__container_pids")
    cut = text[: text.index("a|1|2              |") + len("a|1|2              |")]
    table = info_table.parse(cut)
    assert table.processes is None
    assert table.warnings == (
        "line 16: may be cut off; left out: '| 7       0                 | 33001         | a|1|2              |'",
    )
    assert not table.complete


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("| 13.1              77  ", "| 13.1              7x  ", "line 10: '7x' is no number"),
        ("| 0000:09:00.0 ", "| 0000:09 00.0 ", "line 11: '0000:09 00.0' is no bus id"),
        ("8190 / 8192 ", "8190   8192 ", "line 11: no value for Memory-Usage(MB)"),
        ("8190 / 8192 ", "8190 / 8192 / 3 ", "line 11: more values than the header has names"),
        ("| 3       7 ", "| x       7 ", "line 11: 'x' is no count"),
        ("| 3       7 ", "| 3     1 7 ", "line 11: 3 values below Chip Device"),
        ("| Bus-Id  ", "| Bus-ID  ", "line 5: no second header row with Bus-Id below Health"),
        ("| Chip    Device ", "| Chip    Gadget ", "line 5: unknown ids of a chip"),
        ("| 13.1              77  ", f"| 13.1              {'9' * 30}  ", "line 10: '9999999999"),
    ],
)
def test_what_is_no_value_is_refused_by_its_line(old: str, new: str, message: str) -> None:
    text = typed("info__310__21.0.2__two_chips_of_four")
    assert old in text
    assert str(refused(info_table.parse, text.replace(old, new))).startswith(message)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda text: text.replace("\n", "\r\n"), id="carriage returns"),
        pytest.param(lambda text: text.replace("\n", "   \n"), id="trailing blanks"),
        pytest.param(lambda text: "\n\n" + text.replace("\n", "\n\n"), id="blank lines"),
        pytest.param(lambda text: text.replace("\n", "\n    "), id="indented by a paste"),
        pytest.param(lambda text: text.rstrip("\n"), id="no last end of line"),
    ],
)
def test_white_space_that_a_paste_adds_changes_nothing(change: Any) -> None:
    text = typed("info__A3__25.5.0__pid_on_two_dies")
    assert info_table.parse(change(text)) == info_table.parse(text)
