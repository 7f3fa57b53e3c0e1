"""Any other `-t` answer, as its keys and texts."""

from __future__ import annotations

from npu_watchd.model.reading import FailureKind
from npu_watchd.model.records import Block, BlockChip
from npu_watchd.parsers import blocks
from tests.parsers.texts import refused, said, typed


def test_the_mcu_stands_apart_and_keys_keep_their_units() -> None:
    assert blocks.parse(typed("temp__910B3__25.2.2__mcu_sensors")) == Block(
        npu=0,
        chips=(BlockChip(0, {"NPU Temperature (C)": "44"}),),
        mcu={"LM75A_TE (C)": "36", "LM75B_TE (C)": "37"},
    )


def test_the_same_key_of_chip_and_mcu_are_two_values() -> None:
    assert blocks.parse(typed("common__310P3__25.2.0__ids_first_and_mcu")) == Block(
        npu=8,
        chips=(
            BlockChip(0, {"Aicore Freq(MHZ)": "1800", "Aicore curFreq(MHZ)": "801", "Temperature(C)": "46"}),
            BlockChip(1, {"Aicore Freq(MHZ)": "1800", "Aicore curFreq(MHZ)": "0", "Temperature(C)": "47"}),
        ),
        mcu={"Temperature(C)": "39", "NPU Real-time Power(W)": "51.5"},
    )


def test_lines_with_a_blank_key_go_on_with_the_value_above() -> None:
    assert blocks.parse(typed("current-fault-event__950PR__26.1.0__two_events")) == Block(
        npu=1,
        chips=(
            BlockChip(
                None,
                {
                    "Fault Event Count": "2",
                    "Fault Event Information": ("event id=0x80E01801, severity=3\nevent id=0x80C98009, severity=1"),
                },
            ),
        ),
    )


def test_a_value_with_colons_is_split_at_the_first() -> None:
    values = blocks.parse(typed("board__910B3__25.2.2__card")).chips[0].values
    assert values["PCIe Bus Info"] == "0000:C1:00.0"


def test_no_blank_before_or_after_the_colon_is_needed() -> None:
    assert blocks.parse("Chip Phy-ID   :3\nTX Error Count : 0\n").chips == (
        BlockChip(None, {"Chip Phy-ID": "3", "TX Error Count": "0"}),
    )


def test_a_last_line_without_its_end_may_be_cut_and_is_left_out() -> None:
    assert blocks.parse("\tA : 1\n\tB : 12").chips == (BlockChip(None, {"A": "1"}),)


def test_an_id_that_closes_the_text_needs_no_end_of_line() -> None:
    text = typed("temp__910B3__25.2.2__mcu_sensors").rstrip("\n")
    assert blocks.parse(text) == blocks.parse(typed("temp__910B3__25.2.2__mcu_sensors"))


def test_an_id_of_which_a_digit_may_be_missing_does() -> None:
    text = "\tNPU ID : 0\n\tChip Count : 16\n\n\tTemperature : 44\n\tChip ID : 1"
    assert str(refused(blocks.parse, text)).startswith("line 4: values of a chip that no Chip ID names")


def test_a_failing_chip_without_its_id_does_not_take_its_neighbours() -> None:
    text = "\tNPU ID : 0\n\tChip Count : 2\n\n\tTemperature : 44\n\tChip ID : 0\n\nFailed to query npu chip: 1 info.\n"
    assert blocks.parse(text).chips == (
        BlockChip(0, {"Temperature": "44"}),
        BlockChip(1, {}, "Failed to query npu chip: 1 info."),
    )


def test_text_that_has_no_keys_is_refused_by_its_line() -> None:
    assert str(refused(blocks.parse, "\tA : 1\n       NPU0       NPU1\n")).startswith(
        "line 2: neither a key nor a value"
    )


def test_an_empty_answer_and_a_heading_say_nothing() -> None:
    assert said(blocks.parse, "\n\n") == (FailureKind.UNPARSEABLE, "line 1: npu-smi printed nothing")
    assert said(blocks.parse, "\tNPU ID : 0\n\tChip Count : 1\n") == (
        FailureKind.UNPARSEABLE,
        "line 2: npu-smi said nothing of any chip",
    )
