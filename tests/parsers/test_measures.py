"""Utilisation, clocks, HBM temperature, firmware and link errors out of the other `-t` answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from npu_watchd.model.reading import Failure, FailureKind
from npu_watchd.model.records import Board, Clocks, Hccs, MemoryTemperature, PcieLinkErrors, Usages
from npu_watchd.parsers import measures
from tests.parsers.texts import refused, said, typed


def test_rates_by_unit_and_no_rate_of_a_memory_that_is_not_there() -> None:
    assert measures.usages(typed("usages__910B3__25.2.2__id_last")) == {
        0: Usages(
            {"aicore": 0.87, "aivector": 0.34, "aicube": 0.8, "ctrlcpu": 0.06, "npu": 0.91},
            {"hbm": 0.55},
        )
    }


def test_310b_names_its_memory_without_ddr() -> None:
    assert measures.usages(typed("usages__310B4__23.0.rc3__id_first")) == {
        0: Usages({"aicore": 0.07, "ctrlcpu": 0.02}, {"ddr": 0.01})
    }


def test_a_clock_of_zero_is_no_clock() -> None:
    assert measures.clocks(typed("common__310P3__25.2.0__ids_first_and_mcu")) == {
        0: Clocks(801_000_000, 1_800_000_000),
        1: Clocks(None, 1_800_000_000),
    }


def test_hbm_temperature_and_none_where_the_chip_has_none() -> None:
    text = typed("memory__910B3__25.2.2__hbm")
    assert measures.memory_temperature(text) == {0: MemoryTemperature(51.0)}
    assert measures.memory_temperature(text.replace(": 51", ": 0")) == {0: MemoryTemperature(None)}
    assert measures.memory_temperature(text.replace("HBM Temperature(C)", "HBM Colour        ")) == {
        0: MemoryTemperature(None)
    }


def test_board() -> None:
    assert measures.board(typed("board__910B3__25.2.2__card")) == {
        None: Board("7.7.0.9.220", "25.2.2", "IT21XYZ", "SN0042", "OK")
    }
    assert measures.board(typed("board__310B4__23.0.rc3__nothing_known")) == {
        None: Board("6.2.1.0", None, None, None, None)
    }


def test_hccs_counts_by_link() -> None:
    assert measures.hccs(typed("hccs__A3__25.5.0__a_bad_link")) == {
        None: Hccs(healthy=False, error_counts=(0, 99, 0), retry_counts=(1, 2, 3), first_error_lane="3")
    }


def test_pcie_counts_by_key() -> None:
    assert measures.pcie_link_errors(typed("pcie-err__950PR__26.1.0__counts")) == {
        None: PcieLinkErrors({"tx": 1, "rx": 993, "lcrc": 2, "ecrc": 0, "retry": 416})
    }


def test_a_heading_alone_is_how_910b_says_that_it_has_no_pcie_counts() -> None:
    assert said(measures.pcie_link_errors, "\tNPU ID : 0\n\tChip Count : 1\n\n") == (
        FailureKind.UNSUPPORTED,
        "npu-smi printed a heading and no counts",
    )


def test_a_failing_chip_is_a_failure_beside_its_neighbours_record() -> None:
    text = (
        "\tNPU ID : 8\n\tChip Count : 2\n\n\tHBM Temperature(C) : 44\n\tChip ID : 0\n\n"
        "\tChip ID : 1\nFailed to query npu chip: 1 info.\n"
    )
    assert measures.memory_temperature(text) == {
        0: MemoryTemperature(44.0),
        1: Failure(FailureKind.EXIT, "Failed to query npu chip: 1 info."),
    }


@pytest.mark.parametrize(
    ("parse", "text", "message"),
    [
        (measures.usages, "\tAicore Usage Rate(%) : 101\n", "line 1: a rate of 101.0 %"),
        (measures.usages, "\tAicore Usage Rate(%) : -1\n", "line 1: a rate of -1.0 %"),
        (measures.clocks, "\tAicore Freq(MHZ) : fast\n", "line 1: 'fast' is no count"),
        (measures.hccs, "\thccs error count : 1 2 3\n", "line 1: no list"),
        (measures.hccs, "\thccs error count : [1 x]\n", "line 1: 'x' is no count"),
        (measures.memory_temperature, "\tHBM Temperature(C) : 4e1\n", "line 1: '4e1' is no number"),
    ],
)
def test_what_is_no_value_is_refused_by_its_line(parse: Callable[[str], Any], text: str, message: str) -> None:
    assert str(refused(parse, text)).startswith(message)
