"""Who is there, who is missed, and what number each one has."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from npu_watchd.memory.roster import Roster
from npu_watchd.model.ids import DeviceKey
from npu_watchd.model.records import Board, Card, CardList, DeviceMap, MapRow
from npu_watchd.parsers import card_list, device_map, info_table
from tests.memory.build import headless, map_row, row, table
from tests.parsers.texts import CAPTURES, typed


def captured(name: str) -> str:
    return (CAPTURES / "npu-smi" / f"{name}.txt").read_text(encoding="utf-8")


def ids(roster: Roster) -> dict[DeviceKey, str]:
    return {key: number for key, (number, _) in roster.device_ids().items()}


def sources(roster: Roster) -> set[str]:
    return {source for _, source in roster.device_ids().values()}


def test_a_chip_that_vanishes_stays_a_member_with_its_identity() -> None:
    roster = Roster()
    roster.see_table(table(row(0), row(1, name="910B4", pci_address="0000:c2:00.0")))
    roster.see_table(table(row(0)))
    assert roster.members() == [DeviceKey(0), DeviceKey(1)]
    assert DeviceKey(1) not in roster.rows
    assert roster.identities[DeviceKey(1)].name == "910B4"
    assert roster.identities[DeviceKey(1)].pci_address == "0000:c2:00.0"


def test_a_blank_name_or_bus_id_does_not_erase_what_is_known() -> None:
    roster = Roster()
    roster.see_table(table(row(0)))
    roster.see_table(table(row(0, name=None, pci_address=None, trusted=False, distrust=("the name is blank",))))
    assert roster.identities[DeviceKey(0)].name == "910B3"
    assert roster.identities[DeviceKey(0)].pci_address == "0000:80:00.0"


def test_a_table_says_whether_other_chips_are_in_it() -> None:
    roster = Roster()
    assert roster.see_table(table(row(0), row(1))) is True
    assert roster.see_table(table(row(1, health="Alarm"), row(0))) is False
    assert roster.see_table(table(row(0))) is True
    assert roster.see_table(table(row(0))) is False
    assert roster.see_table(table(row(0), row(1))) is True


def test_the_device_id_is_the_logic_id() -> None:
    roster = Roster()
    roster.see_table(table(row(3), row(7)))
    roster.see_map(DeviceMap((map_row(3, 0, 1, 5), map_row(7, 0, 0, 4))))
    assert roster.device_ids() == {DeviceKey(3): ("1", "logic_id"), DeviceKey(7): ("0", "logic_id")}


def test_without_logic_ids_it_is_the_phy_id() -> None:
    """Ascend 950 has no such column."""
    roster = Roster()
    roster.see_map(device_map.parse(captured("map__950PR__25.5.1__whole")))
    roster.see_table(table(*(row(npu, None, name="950PR") for npu in range(8))))
    assert ids(roster)[DeviceKey(5)] == "5"
    assert sources(roster) == {"phy_id"}


def test_without_a_map_the_phy_id_of_the_table_counts() -> None:
    roster = Roster()
    roster.see_table(info_table.parse(typed("info__A3__25.5.0__pid_on_two_dies")))
    assert roster.device_ids() == {DeviceKey(3, 0): ("6", "phy_id"), DeviceKey(3, 1): ("7", "phy_id")}


def test_with_neither_it_is_the_position() -> None:
    roster = Roster()
    roster.see_table(table(row(2048), row(24), row(24, 1)))
    assert roster.device_ids() == {
        DeviceKey(24, 0): ("0", "position"),
        DeviceKey(24, 1): ("1", "position"),
        DeviceKey(2048, 0): ("2", "position"),
    }


def test_a_number_that_two_chips_have_is_no_number() -> None:
    """A soft-shared A3 shows two dies with phy id 0."""
    roster = Roster()
    roster.see_table(table(row(0, 0, phy_id=0), row(0, 1, phy_id=0)))
    assert roster.device_ids() == {DeviceKey(0, 0): ("0", "position"), DeviceKey(0, 1): ("1", "position")}


def test_before_the_first_table_the_map_alone_gives_the_numbers() -> None:
    roster = Roster()
    roster.see_map(device_map.parse(captured("map__950PR__25.5.1__whole")))
    assert roster.device_ids() == {DeviceKey(npu): (str(npu), "phy_id") for npu in range(8)}


def test_a_vanished_chip_keeps_its_number() -> None:
    roster = Roster()
    roster.see_map(DeviceMap(tuple(map_row(npu, 0, npu) for npu in range(4))))
    roster.see_table(table(*(row(npu) for npu in range(4))))
    roster.see_table(table(row(0), row(1), row(3)))
    roster.see_map(DeviceMap((map_row(0, 0, 0), map_row(1, 0, 1), map_row(3, 0, 3)), lost_cards=1))
    assert roster.device_ids()[DeviceKey(2)] == ("2", "logic_id")
    assert ids(roster)[DeviceKey(3)] == "3"


def test_a_vanished_chip_loses_its_number_to_the_chip_that_the_driver_gave_it_to() -> None:
    """After a reload of the driver without card 1 the others are numbered anew."""
    roster = Roster()
    roster.see_map(DeviceMap(tuple(map_row(npu, 0, npu) for npu in range(3))))
    roster.see_table(table(row(0), row(1), row(2)))
    roster.see_table(table(row(0), row(2)))
    roster.see_map(DeviceMap((map_row(0, 0, 0), map_row(2, 0, 1))))
    assert roster.device_ids() == {
        DeviceKey(0): ("0", "logic_id"),
        DeviceKey(1): ("npu1-chip0", "lost"),
        DeviceKey(2): ("1", "logic_id"),
    }


KEYS = st.builds(DeviceKey, st.integers(0, 5), st.integers(0, 1))
NUMBERS = st.none() | st.integers(0, 6)
TABLES = st.lists(st.tuples(KEYS, NUMBERS), unique_by=lambda one: one[0], max_size=8)
MAPS = st.lists(st.tuples(KEYS, NUMBERS, NUMBERS), unique_by=lambda one: one[0], max_size=8)


@given(st.lists(st.tuples(st.booleans(), TABLES, MAPS), max_size=6))
def test_every_member_has_one_number_and_no_two_the_same(
    steps: list[tuple[bool, list[tuple[DeviceKey, int | None]], list[tuple[DeviceKey, int | None, int | None]]]],
) -> None:
    roster = Roster()
    for is_table, shown, mapped in steps:
        if is_table:
            roster.see_table(table(*(row(key.npu, key.chip, phy_id=phy) for key, phy in shown)))
        else:
            roster.see_map(DeviceMap(tuple(map_row(key.npu, key.chip, logic, phy) for key, logic, phy in mapped)))
        numbers = roster.device_ids()
        assert set(numbers) == set(roster.members())
        given_out = [number for number, _ in numbers.values()]
        assert len(set(given_out)) == len(given_out)
        # The chips that are there share one source; only a missing one may be `lost`.
        assert len({numbers[key][1] for key in roster.rows}) <= 1
        assert all(numbers[key][1] != "lost" for key in roster.rows)


@given(st.permutations(range(6)), st.sets(st.integers(0, 5)))
def test_while_the_driver_keeps_its_numbers_no_device_id_moves(order: list[int], gone: set[int]) -> None:
    roster = Roster()
    roster.see_map(DeviceMap(tuple(map_row(npu, 0, logic) for npu, logic in enumerate(order))))
    roster.see_table(table(*(row(npu) for npu in range(6))))
    before = ids(roster)
    left = [npu for npu in range(6) if npu not in gone]
    roster.see_table(table(*(row(npu) for npu in left)))
    roster.see_map(DeviceMap(tuple(map_row(npu, 0, order[npu]) for npu in left), lost_cards=len(gone)))
    assert ids(roster) == before


def test_a_row_without_its_first_line_is_known_again_by_its_phy_id() -> None:
    roster = Roster()
    dies = (row(3, 0, phy_id=6), row(3, 1, phy_id=7))
    roster.see_table(table(*dies))
    assert roster.see_table(table(dies[0], headless(dies[1]))) is False
    assert roster.rows[DeviceKey(3, 1)].trusted is False
    assert roster.unclaimed == ()


def test_a_row_without_its_first_line_is_known_again_by_its_bus_id() -> None:
    roster = Roster()
    roster.see_table(table(row(0), row(1)))
    assert roster.see_table(table(row(0), headless(row(1)))) is False
    assert set(roster.rows) == {DeviceKey(0), DeviceKey(1)}


def test_on_a_duo_whose_chips_share_a_bus_id_the_chip_number_tells_them_apart() -> None:
    duo = (row(8, 0, pci_address="0000:5e:00.0"), row(8, 1, pci_address="0000:5e:00.0"))
    roster = Roster()
    roster.see_table(table(*duo))
    roster.see_table(table(headless(duo[0]), duo[1]))
    assert roster.rows[DeviceKey(8, 0)].trusted is False
    assert roster.rows[DeviceKey(8, 1)].trusted is True


def test_a_row_that_nobody_can_name_is_nobodys() -> None:
    roster = Roster()
    roster.see_table(table(row(0), headless(row(1))))
    assert roster.members() == [DeviceKey(0)]
    assert list(roster.unclaimed) == ["a row of the table names no chip that we know (0000:81:00.0)"]
    roster.see_table(table(row(0), row(1)))
    assert list(roster.unclaimed) == []


def test_a_row_that_fits_two_chips_is_nobodys() -> None:
    roster = Roster()
    twins = [row(npu, pci_address="0000:5e:00.0") for npu in (0, 1)]
    roster.see_table(table(*twins))
    roster.see_table(table(headless(twins[0])))
    assert roster.rows == {}
    assert len(roster.unclaimed) == 1


def test_a_row_with_its_number_is_never_displaced_by_one_without() -> None:
    roster = Roster()
    roster.see_table(table(row(0), row(1)))
    stray = headless(row(1))
    roster.see_table(table(row(0), stray, row(1, health="Alarm")))
    assert roster.rows[DeviceKey(1)].health == "Alarm"
    assert len(roster.unclaimed) == 1


def test_mcu_rows_are_no_devices() -> None:
    roster = Roster()
    roster.see_map(device_map.parse(captured("map__A3__25.5.1__whole")))
    assert roster.members() == [DeviceKey(npu, chip) for npu in range(8) for chip in (0, 1)]


@pytest.mark.parametrize(
    ("capture", "expected", "lost"),
    [
        ("list__A3__25.5.1__whole", 16, 0),
        ("list__A3__25.5.1__lost_chip1", 16, 1),
        ("list__910B3__25.5.1__whole", 8, 0),
        ("list__910B3__25.5.1__lost_chip1", 8, 1),
        ("list__950PR__25.5.1__whole", 8, 0),
    ],
)
def test_the_list_counts_the_chips_of_a_lost_card_like_those_of_the_others(
    capture: str, expected: int, lost: int
) -> None:
    roster = Roster()
    roster.see_list(card_list.parse(captured(capture)))
    assert (roster.expected(None), roster.lost_cards) == (expected, lost)


def test_the_config_knows_best_how_many_there_should_be() -> None:
    roster = Roster()
    roster.see_table(table(row(0), row(1)))
    assert roster.expected(None) == 2
    assert roster.expected(8) == 8
    assert Roster().expected(None) is None


def test_what_was_once_seen_is_expected_although_the_list_counts_fewer() -> None:
    roster = Roster()
    roster.see_table(table(row(0), row(1)))
    roster.see_table(table(row(0)))
    roster.see_list(CardList(1, (Card(0, 1, None, None),)))
    assert roster.expected(None) == 2


def test_a_row_with_npu_minus_one_in_the_map_is_a_lost_card_and_no_device() -> None:
    roster = Roster()
    roster.see_map(device_map.parse(captured("map__910B3__25.5.1__lost_chip1")))
    assert len(roster.members()) == 7
    assert roster.lost_cards == 1


def test_the_map_follows_the_driver_and_keeps_what_it_does_not_say() -> None:
    roster = Roster()
    roster.see_map(DeviceMap((MapRow(0, 0, 4, 9, None, "Ascend 910B3"),)))
    roster.see_map(DeviceMap((MapRow(0, 0, 2, None, None, "Ascend 910B3"),)))
    assert (roster.identities[DeviceKey(0)].logic_id, roster.identities[DeviceKey(0)].phy_id) == (2, 9)


def test_firmware_and_serial_number_come_from_the_board_and_stay() -> None:
    roster = Roster()
    board = Board("7.8.0.6.201", None, None, "SN1", None)
    roster.see_board(DeviceKey(0), board)
    roster.see_board(DeviceKey(0), replace(board, firmware_version=None, serial_number=None))
    assert roster.identities[DeviceKey(0)].firmware == "7.8.0.6.201"
    assert roster.identities[DeviceKey(0)].serial_number == "SN1"
