"""`npu-smi info -t ecc`: literal counts, and what stands where there are none."""

from __future__ import annotations

import pytest

from npu_watchd.model.reading import FailureKind
from npu_watchd.model.records import EccChip, EccReport, MemoryErrors
from npu_watchd.parsers import ecc
from tests.parsers.texts import refused, said, typed


def test_two_dies_by_their_closing_ids_and_a_difference_below_zero_is_unknown() -> None:
    assert ecc.parse(typed("ecc__A3__25.5.0__next_isolated_wrapped")) == EccReport(
        npu=3,
        chips=(
            EccChip(0, hbm=MemoryErrors(17, 2, 190, 4, 31, 8, 0, 6), ddr=None),
            EccChip(1, hbm=MemoryErrors(18, 3, 191, 5, 32, 9, 0, None), ddr=None),
        ),
    )


def test_the_chip_form_names_neither_npu_nor_chip_and_na_is_unknown() -> None:
    assert ecc.parse(typed("ecc__910B3__25.2.2__chip_form")) == EccReport(
        npu=None, chips=(EccChip(None, hbm=MemoryErrors(17, 0, 190, 1, 2, 0, 0, None), ddr=None),)
    )


def test_old_910a_counts_both_memories() -> None:
    assert ecc.parse(typed("ecc__910A__23.0.5__ddr_and_hbm")) == EccReport(
        npu=0,
        chips=(
            EccChip(
                0,
                hbm=MemoryErrors(40, 2, 400, 20, 5, 6, None, None),
                ddr=MemoryErrors(single_bit=3, double_bit=1),
            ),
        ),
    )


def test_310b_opens_with_the_id_and_names_no_memory() -> None:
    assert ecc.parse(typed("ecc__310B4__23.0.rc3__id_first_no_memory_named")) == EccReport(
        npu=0, chips=(EccChip(0, hbm=None, ddr=MemoryErrors(single_bit=12, double_bit=1)),)
    )


def test_a_failing_chip_keeps_the_tools_words_and_its_neighbour_its_counts() -> None:
    assert ecc.parse(typed("ecc__310P3__25.2.0__second_chip_fails")) == EccReport(
        npu=8,
        chips=(
            EccChip(0, hbm=None, ddr=MemoryErrors(1, 2, 3, 4, 5, 6, 0, 7)),
            EccChip(1, hbm=None, ddr=None, failure="Failed to query npu chip: 1 info."),
        ),
    )


def test_a_failing_first_chip_does_not_take_the_counts_of_the_second() -> None:
    whole = typed("ecc__A3__25.5.0__next_isolated_wrapped")
    second = whole[whole.index("\tHBM Single Bit Error Count               : 18") :]
    text = (
        "\tNPU ID                                   : 3\n\tChip Count                               : 2\n\n"
        "\tChip ID                                  : 0\nFailed to query npu chip: 0 info.\n\n"
    )
    assert [(chip.chip, chip.hbm, chip.failure) for chip in ecc.parse(text + second).chips] == [
        (0, None, "Failed to query npu chip: 0 info."),
        (1, MemoryErrors(18, 3, 191, 5, 32, 9, 0, None), None),
    ]


def test_a_first_chip_of_which_only_the_id_is_printed_is_left_out_and_does_not_take_the_counts_of_the_second() -> None:
    whole = typed("ecc__A3__25.5.0__next_isolated_wrapped")
    second = whole[whole.index("\tHBM Single Bit Error Count               : 18") :]
    heading = "\tNPU ID                                   : 3\n\tChip Count                               : 2\n\n"
    only_id = "\tChip ID                                  : 0\n"
    assert [(chip.chip, chip.hbm) for chip in ecc.parse(heading + only_id + "\n" + second).chips] == [
        (1, MemoryErrors(18, 3, 191, 5, 32, 9, 0, None)),
    ]
    assert "nothing tells whether the Chip ID opens or closes" in str(refused(ecc.parse, heading + only_id + second))


def test_a_heading_without_counts_is_how_the_tool_says_that_it_may_not() -> None:
    kind, words = said(ecc.parse, typed("ecc__910B3__25.2.2__heading_only"))
    assert kind is FailureKind.DENIED
    assert words == (
        "npu-smi printed a heading and no counts, as it does when it may not read the ECC records "
        "(run npu-watchd as root, on the host)"
    )


def test_unknown_keys_are_named() -> None:
    text = typed("ecc__910B3__25.2.2__chip_form") + "\tHBM Triple Bit Error Count               : 1\n"
    report = ecc.parse(text)
    assert report.unknown_keys == ("HBM Triple Bit Error Count",)
    assert report.chips[0].hbm == MemoryErrors(17, 0, 190, 1, 2, 0, 0, None)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\tHealth : OK\n", "line 1: no ECC count in the answer; keys: Health"),
        ("\tHBM Single Bit Error Count : 1x\n", "line 1: '1x' is no count"),
        ("\tHBM Single Bit Error Count : -1\n", "line 1: '-1' is no count"),
        ("\tHBM Single Bit Error Count : " + "9" * 5000 + "\n", "line 1: '9999"),
        (
            "\tHBM Single Bit Error Count : 1\n\tHBM Single Bit Error Count : 2\n",
            "line 2: the same key twice for one chip",
        ),
        (
            "\tNPU ID : 0\n\tChip Count : 2\n\n\tHBM Single Bit Error Count : 1\n",
            "line 4: values of a chip that no Chip ID names: the text is cut off",
        ),
        (
            "\tNPU ID : 0\n\tChip Count : 1\n\n\tHBM Single Bit Error Count : 1\n\tChip ID : 0\n\n"
            "\tHBM Single Bit Error Count : 2\n\tChip ID : 1\n",
            "line 8: Chip Count says 1, but 2 chips follow",
        ),
        (
            "\tNPU ID : 0\n\tChip Count : 2\n\n\tHBM Single Bit Error Count : 1\n\tChip ID : 0\n\n"
            "\tHBM Single Bit Error Count : 2\n\tChip ID : 0\n",
            "line 8: the same Chip ID twice",
        ),
    ],
)
def test_what_cannot_be_trusted_is_refused_by_its_line(text: str, message: str) -> None:
    assert str(refused(ecc.parse, text)).startswith(message)
