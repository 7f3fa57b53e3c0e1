"""`npu-smi info -l`."""

from __future__ import annotations

import pytest

from npu_watchd.model.records import Card, CardList
from npu_watchd.parsers import card_list
from tests.parsers.texts import refused, typed


def test_a_lost_card_is_kept_without_its_id() -> None:
    assert card_list.parse(typed("list__910B3__25.2.2__one_card_lost")) == CardList(
        3, (Card(None, 0, None, None), Card(2, 1, None, None), Card(32896, 2, None, None))
    )


def test_310p_names_product_and_serial_number() -> None:
    assert card_list.parse(typed("list__310P3__23.0.0__serial")) == CardList(
        1, (Card(8, 1, "IT21DUO300", "2102310XYZ"),)
    )


def test_950_counts_no_chips_and_na_is_no_name() -> None:
    assert card_list.parse(typed("list__950PR__25.7.rc1__without_chip_count")) == CardList(
        2, (Card(0, None, None, None), Card(3, None, "A950CARD", "SN77"))
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: npu-smi printed nothing"),
        ("\tNPU ID : 0\n", "line 1: no Total Count"),
        ("\tTotal Count : 2\n\tNPU ID : 0\n", "line 2: Total Count says 2, but 1 cards follow"),
        ("\tTotal Count : 1\n\tNPU ID : NA\n", "line 2: a card without its id"),
        ("\tTotal Count : 1\n\tNPU ID : -2\n", "line 2: '-2' is no count"),
    ],
)
def test_a_list_that_cannot_be_trusted_is_refused_by_its_line(text: str, message: str) -> None:
    assert str(refused(card_list.parse, text)).startswith(message)
