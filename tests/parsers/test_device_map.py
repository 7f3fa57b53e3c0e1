"""`npu-smi info -m`."""

from __future__ import annotations

import pytest

from npu_watchd.model.records import DeviceMap, MapRow
from npu_watchd.parsers import device_map
from tests.parsers.texts import refused, typed


def test_names_hold_blanks_mcus_are_no_chips_and_a_lost_card_is_counted() -> None:
    assert device_map.parse(typed("map__910A__23.0.5__mcu_rows_and_a_lost_card")) == DeviceMap(
        (
            MapRow(npu=0, chip=0, logic_id=0, phy_id=None, slot_id=None, name="Ascend 910A"),
            MapRow(npu=5, chip=0, logic_id=3, phy_id=None, slot_id=None, name="Ascend 910A"),
        ),
        lost_cards=1,
    )


def test_a3_has_logic_and_phy_ids() -> None:
    assert device_map.parse(typed("map__A3__25.5.0__phy_ids")) == DeviceMap(
        (
            MapRow(npu=3, chip=0, logic_id=0, phy_id=6, slot_id=None, name="Ascend910"),
            MapRow(npu=3, chip=1, logic_id=1, phy_id=7, slot_id=None, name="Ascend910"),
        )
    )


def test_950_has_slots_and_no_logic_id() -> None:
    assert device_map.parse(typed("map__950DT__26.0.rc1__slots")) == DeviceMap(
        (
            MapRow(npu=0, chip=0, logic_id=None, phy_id=11, slot_id=4, name="Ascend950DT"),
            MapRow(npu=1, chip=0, logic_id=None, phy_id=12, slot_id=5, name="Ascend950DT"),
        )
    )


HEADER = "\tNPU ID     Chip ID    Chip Logic ID    Chip Name\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: npu-smi printed nothing"),
        ("what\n", "line 1: no map of npu-smi info -m"),
        (HEADER, "line 1: a map without a single chip"),
        (HEADER + "\t0 0 0\n", "line 2: 3 columns where the header has 4"),
        (HEADER + "\t0 - 0 Ascend 910B3\n", "line 2: a chip without its ids"),
        (HEADER + "\t0 0 x Ascend 910B3\n", "line 2: 'x' is no count"),
        (HEADER + "\t0 0 0 Ascend 910B3\n\t0 0 1 Ascend 910B3\n", "line 3: the same chip twice"),
        ("\tNPU ID  Chip ID  Chip Colour  Chip Name\n", "line 1: an unknown column in the map"),
        ("\tNPU ID  Chip ID  Chip ID  Chip Name\n", "line 1: an unknown column in the map"),
        ("\tNPU ID  Chip Name  Chip ID\n", "line 1: a map without NPU ID, Chip ID and Chip Name"),
    ],
)
def test_a_map_that_cannot_be_trusted_is_refused_by_its_line(text: str, message: str) -> None:
    assert str(refused(device_map.parse, text)).startswith(message)
