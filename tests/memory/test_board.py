"""Readings in, a snapshot out: what is fresh stands, what is not is blind."""

from __future__ import annotations

import threading

from npu_watchd.memory.board import Board
from npu_watchd.model.ids import NODE, DeviceKey
from npu_watchd.model.reading import NOT_READ_YET, Failure, FailureKind, Reading
from npu_watchd.model.records import Board as BoardRecord
from npu_watchd.model.records import Card, CardList, DeviceMap, MemoryErrors, ProcessMemoryChip, ProcessRow
from npu_watchd.model.snapshot import Device, ProbeState, ProbeTally
from tests.memory.build import (
    PERIODS_S,
    TIMEOUT,
    UNSUPPORTED,
    at,
    device,
    ecc,
    headless,
    health,
    info,
    map_row,
    new_board,
    reading,
    row,
    said,
    shown,
    table,
    well,
)


def test_a_device_is_ok_when_the_table_and_a_fresh_health_answer_say_so() -> None:
    board = new_board()
    board.put([info(table(row(0)))])
    assert device(board, 0).health == "unknown"
    assert device(board, 0).blind["npu_health"] == NOT_READ_YET
    board.put(well(0))
    assert device(board, 0).health == "ok"
    assert device(board, 0).vital_blind is False


def test_a_device_that_vanishes_keeps_its_identity_and_loses_its_values() -> None:
    board = new_board()
    board.put([info(table(row(0), row(1, name="910B4"))), *well(0), *well(1)])
    board.put([info(table(row(0)), at_s=15)])
    gone = device(board, 1, 16)
    assert (gone.present, gone.health, gone.identity.name) == (False, "unknown", "910B4")
    assert (gone.power_watts, gone.memory, gone.memory_errors, gone.error_codes) == (None, {}, {}, None)
    now = shown(board, 16)
    assert (now.devices_present, now.devices_expected) == (1, 2)
    assert device(board, 0, 16).health == "ok"


def test_a_device_that_comes_back_is_present_again() -> None:
    board = new_board()
    for second, rows in ((0, (row(0), row(1))), (15, (row(0),)), (30, (row(0), row(1)))):
        board.put([info(table(*rows), at_s=second)])
    board.put(well(1, 31))
    assert (device(board, 1, 32).present, device(board, 1, 32).health) == (True, "ok")


def test_an_ok_of_the_table_after_a_bad_word_needs_a_health_answer_from_after_that_word() -> None:
    """Of a chip that is bad and has no code `-t health` says OK as well, and a health query that fails prints OK."""
    board = new_board()
    board.put([info(table(row(0, health="Critical"), row(1))), *well(0), *well(1)])
    assert device(board, 0).health == "critical"
    board.put([info(table(row(0, health="Critical"), row(1)), at_s=15)])
    board.put([info(table(row(0), row(1)), at_s=30)])
    assert (device(board, 0, 31).health, device(board, 1, 31).health) == ("unknown", "ok")
    board.put([said(0, TIMEOUT, 32)])
    assert device(board, 0, 33).health == "unknown"
    board.put(well(0, 40))
    assert device(board, 0, 41).health == "ok"


def test_what_was_read_before_a_device_vanished_says_nothing_when_it_is_back() -> None:
    """It may have been reset: its old `ok` and its old counts are another life's."""
    board = new_board()
    board.put([info(table(row(0), row(1))), *well(0), said(1, health("OK")), said(1, UNSUPPORTED, probe="npu_ecc")])
    board.put([info(table(row(0)), at_s=15)])
    board.put([info(table(row(0), row(1)), at_s=30)])
    back = device(board, 1, 31)
    assert (back.present, back.health, back.vital_blind) == (True, "unknown", True)
    assert back.blind == {"npu_health": NOT_READ_YET}
    # What its silicon cannot say it still cannot, and the others have lost nothing.
    assert set(back.unsupported) == {"npu_ecc"}
    assert device(board, 0, 31).health == "ok"


def test_a_reading_is_good_for_three_periods_and_then_its_values_go() -> None:
    board = new_board()
    board.put([info(table(row(0))), *well(0)])
    for second in (60, 120, 180):
        board.put([info(table(row(0)), at_s=second)])
    assert device(board, 0, 180).memory_errors == {"hbm": MemoryErrors(single_bit=4, double_bit=0)}
    stale = device(board, 0, 181)
    assert stale.memory_errors == {}
    assert stale.blind["npu_ecc"] == Failure(FailureKind.STALE, "last read 181 s ago, at a period of 60 s")
    assert (stale.health, stale.error_codes, stale.vital_blind) == ("unknown", None, True)
    # The table is fresh, so its values stand.
    assert stale.power_watts == 91.5


def test_the_last_good_reading_stands_while_newer_calls_fail() -> None:
    board = new_board()
    board.put([info(table(row(0))), *well(0)])
    board.put([info(TIMEOUT, at_s=15), said(0, TIMEOUT, 60), said(0, TIMEOUT, 60, "npu_ecc")])
    assert device(board, 0, 45).present is True
    assert device(board, 0, 45).health == "ok"
    assert device(board, 0, 45).memory_errors["hbm"].double_bit == 0
    # And then the newer failure is the reason, not mere age.
    board.put([info(table(row(0)), at_s=181)])
    assert device(board, 0, 181).blind["npu_ecc"] == TIMEOUT


def test_a_probe_that_failed_is_down_at_once_although_its_last_value_stands() -> None:
    board = new_board()
    board.put([info(table(row(0))), *well(0), said(0, TIMEOUT, 5, "npu_ecc")])
    states = {(state.probe, state.device_id): state for state in shown(board, 6).probes}
    assert states["npu_ecc", "0"] == ProbeState("npu_ecc", "0", up=False, failure=TIMEOUT, successes=1, failures=1)
    assert states["npu_health", "0"].up is True
    assert states["npu_info", None].up is True


def test_the_probes_of_a_vanished_device_are_neither_up_nor_down() -> None:
    board = new_board()
    board.put([info(table(row(0), row(1))), *well(0), *well(1)])
    board.put([info(table(row(0)), at_s=15)])
    assert [(state.probe, state.device_id) for state in shown(board, 16).probes] == [
        ("npu_ecc", "0"),
        ("npu_health", "0"),
        ("npu_info", None),
    ]


def test_without_a_fresh_table_every_device_is_unknown_and_none_is_present() -> None:
    board = new_board()
    board.put([info(table(row(0), row(1))), *well(0, 40), *well(1, 40)])
    board.put([info(TIMEOUT, at_s=15), info(TIMEOUT, at_s=30), info(TIMEOUT, at_s=45)])
    now = shown(board, 46)
    assert now.devices_present is None
    assert now.devices_expected == 2
    assert {key: (one.present, one.health) for key, one in now.devices.items()} == {
        DeviceKey(0): (None, "unknown"),
        DeviceKey(1): (None, "unknown"),
    }
    assert now.blind["npu_info"] == TIMEOUT
    assert now.devices[DeviceKey(0)].blind["npu_info"] == TIMEOUT
    assert (now.tool_version, now.driver_version) == (None, None)


def test_a_bad_word_outlives_the_table_that_cannot_be_read() -> None:
    board = new_board()
    board.put([info(table(row(0))), said(0, health("Critical", "80e01801"), 40), info(TIMEOUT, at_s=45)])
    assert device(board, 0, 50).health == "critical"


def test_ages_follow_the_stretched_period() -> None:
    board = new_board()
    board.put([info(table(row(0)))])
    assert board.snapshot(at(60), PERIODS_S.get).devices_present is None
    assert board.snapshot(at(60), {"npu_info": 30.0}.get).devices_present == 1


def test_one_chips_failure_is_that_chips_alone() -> None:
    board = new_board()
    board.put([info(table(row(0, 0), row(0, 1))), *well(0), *well(0, chip=1)])
    failed = Failure(FailureKind.EXIT, "Failed to query npu chip: 1 info.")
    board.put(
        [said(0, ecc(7), 200, "npu_ecc", 0), said(0, failed, 200, "npu_ecc", 1), info(table(row(0, 0), row(0, 1)), 200)]
    )
    assert device(board, 0, 201, chip=0).memory_errors["hbm"].double_bit == 7
    assert "npu_ecc" not in device(board, 0, 201, chip=0).blind
    assert device(board, 0, 201, chip=1).memory_errors == {}
    assert device(board, 0, 201, chip=1).blind["npu_ecc"] == failed


def test_a_probe_that_the_chip_does_not_support_is_noted_and_is_no_failure() -> None:
    board = new_board()
    board.put([info(table(row(0))), *well(0), said(0, UNSUPPORTED)])
    one = device(board, 0)
    assert one.unsupported == {"npu_health": "This device does not support querying health."}
    assert (one.blind, one.health, one.vital_blind) == ({}, "ok", False)
    assert board.unsupported("npu_health", DeviceKey(0)) is True
    assert board.unsupported("npu_ecc", DeviceKey(0)) is False
    assert all(state.probe != "npu_health" for state in shown(board).probes)
    assert {tally.probe: tally.failures for tally in shown(board).tallies}["npu_health"] == {}


def test_a_tool_that_refuses_the_table_leaves_the_node_blind_whatever_it_calls_the_reason() -> None:
    board = new_board()
    refused = Failure(FailureKind.UNSUPPORTED, "dcmi module initialize failed. ret is -8255 (another generation)")
    board.put([info(refused)])
    now = shown(board)
    assert now.blind["npu_info"] == refused
    assert now.probes == (ProbeState("npu_info", None, up=False, failure=refused, failures=1),)
    assert board.unsupported("npu_info", NODE) is False


def test_a_vital_probe_that_is_switched_off_leaves_the_device_unknown() -> None:
    board = new_board(disabled=frozenset({"npu_health"}))
    board.put([info(table(row(0))), said(0, ecc(0), probe="npu_ecc")])
    one = device(board, 0)
    assert (one.health, one.vital_blind) == ("unknown", True)
    assert one.blind["npu_health"] == Failure(
        FailureKind.MISSING, "switched off by [probes.npu_health] enabled = false"
    )


def test_a_device_without_ecc_counts_is_not_seen_whole() -> None:
    board = new_board(disabled=frozenset({"npu_ecc"}))
    board.put([info(table(row(0))), said(0, health("OK"))])
    assert device(board, 0).vital_blind is True


def test_before_the_first_answer_nothing_is_known_and_nothing_is_invented() -> None:
    now = shown(new_board())
    assert now.devices == {}
    assert (now.devices_present, now.devices_expected) == (None, None)
    assert now.blind == {"npu_info": NOT_READ_YET, "npu_map": NOT_READ_YET, "npu_list": NOT_READ_YET}
    assert (now.probes, now.tallies, now.warnings) == ((), (), ())


def test_a_missing_tool_is_a_failure_and_no_device() -> None:
    board = new_board(expected=8)
    missing = Failure(FailureKind.MISSING, "npu-smi: not found on PATH")
    board.put([info(missing)])
    now = shown(board)
    assert (now.devices, now.devices_present, now.devices_expected) == ({}, None, 8)
    assert now.blind["npu_info"] == missing
    assert now.tallies == (ProbeTally("npu_info", 0.25, None, {"missing": 1}),)


def test_the_map_gives_device_ids_before_the_first_table() -> None:
    board = new_board()
    board.put([reading("npu_map", NODE, DeviceMap((map_row(3, 0, 1), map_row(7, 0, 0))))])
    assert {one.device_id: one.present for one in shown(board).devices.values()} == {"1": None, "0": None}


def test_a_lost_card_raises_what_is_expected_and_warns() -> None:
    board = new_board()
    board.put([info(table(row(1, 0), row(1, 1)))])
    board.put([reading("npu_list", NODE, CardList(2, (Card(None, 0, None, None), Card(1, 2, None, None))))])
    now = shown(board)
    assert (now.devices_expected, now.devices_present) == (4, 2)
    assert now.warnings == ("npu-smi counts 1 card(s) that it cannot reach (NPU ID -1 in `npu-smi info -l`)",)


def test_a_row_that_nobody_can_name_is_a_warning_and_no_device() -> None:
    board = new_board()
    board.put([info(table(row(0), headless(row(1)), warnings=("[WARNING] something",)))])
    now = shown(board)
    assert (now.devices_present, len(now.devices)) == (1, 1)
    assert now.warnings == ("[WARNING] something", "a row of the table names no chip that we know (0000:81:00.0)")


def test_one_boards_answer_holds_its_firmware_and_a_mixed_node_shows_both() -> None:
    board = new_board()
    board.put([info(table(row(0), row(1)))])
    versions = BoardRecord("7.8.0", None, None, None, None), BoardRecord("7.7.0", None, None, None, None)
    board.put([said(0, versions[0], probe="npu_board")])
    assert shown(board).firmware_version == "7.8.0"
    board.put([said(1, versions[1], probe="npu_board")])
    assert shown(board).firmware_version == "7.7.0, 7.8.0"


def test_only_other_chips_are_a_change() -> None:
    board = new_board()
    assert board.put([info(table(row(0)))]) is True
    assert board.put([info(table(row(0, health="Alarm")))]) is False
    assert board.put([info(TIMEOUT)]) is False
    assert board.put([info(table(row(0), row(1)))]) is True
    assert board.put(well(0)) is False


def test_unwell_is_who_is_not_ok_or_not_to_be_trusted() -> None:
    board = new_board()
    untrusted = row(2, trusted=False, distrust=("HBM 0 / 0",))
    board.put([info(table(row(0), row(1, health="Warning"), untrusted, row(3, health="UNKNOWN")))])
    assert board.unwell() == [DeviceKey(1), DeviceKey(2), DeviceKey(3)]


def test_only_cards_of_the_newest_table_are_asked() -> None:
    board = new_board()
    board.put([info(table(row(0, 0), row(0, 1), row(4, 0, name="310P3")))])
    assert board.cards() == [(0, (0, 1), "910B3", True, {}, ()), (4, (0,), "310P3", True, {}, ())]
    board.put([info(table(row(0, 0)))])
    # The second die of a card that is there is still asked: it may answer although the table leaves it out.
    assert board.cards() == [(0, (0, 1), "910B3", True, {}, ())]
    board.put([info(table(row(5, None, name="950PR")))])
    assert board.cards() == [(5, (0,), "950PR", False, {}, ())]


def test_tallies_count_calls_failures_and_unknown_keys() -> None:
    board = new_board()
    board.put([Reading("npu_ecc", DeviceKey(0), at(7), 0.5, ecc(0), unknown_keys=2)])
    board.put([said(0, TIMEOUT, 8, "npu_ecc"), said(1, TIMEOUT, 8, "npu_ecc")])
    board.put([Reading("npu_ecc", DeviceKey(0), at(9), 0.75, ecc(0), unknown_keys=1)])
    assert shown(board).tallies == (ProbeTally("npu_ecc", 0.75, 1_790_000_009.0, {"timeout": 2}, 3),)


def test_lines_of_the_tools_own_log_are_counted_by_code() -> None:
    board = new_board()
    board.take_log([("dcmi_init", -8020), ("dcmi_init", -8005)], at(1))
    board.take_log([("dcmi_init", -8020)], at(2))
    assert shown(board).tool_log_events == {"-8020": 2, "-8005": 1}


def test_the_same_process_counts_for_each_die_that_lists_it() -> None:
    board = new_board()
    rows = (ProcessRow(0, 0, 4711, "python", 1), ProcessRow(0, 1, 4711, "python", 2))
    board.put([info(table(row(0, 0), row(0, 1), processes=rows))])
    assert [len(one.processes or ()) for one in shown(board).devices.values()] == [1, 1]


def eight(*more: int) -> tuple[ProcessRow, ...]:
    return tuple(ProcessRow(0, 0, pid, "python", 1) for pid in (*range(11, 19), *more))


def crowded_board() -> Board:
    board = new_board(probes=frozenset({"npu_health", "npu_ecc", "npu_proc_mem"}))
    board.put([info(table(row(0), row(1), processes=eight(), idle_npus=(1,)), 100)])
    return board


def shown_then(board: Board, second: float) -> Device:
    periods_s = {**PERIODS_S, "npu_proc_mem": 60.0}
    return board.snapshot(at(second), periods_s.get).devices[DeviceKey(0)]


def test_a_chip_of_which_the_table_lists_eight_processes_is_asked_for_all() -> None:
    board = crowded_board()
    assert [card[5] for card in board.cards()] == [(0,), ()]
    assert (len(shown_then(board, 101).processes or ()), shown_then(board, 101).processes_cut) == (8, True)
    board.put([said(0, ProcessMemoryChip(0, eight(19)), 102, "npu_proc_mem")])
    assert (len(shown_then(board, 103).processes or ()), shown_then(board, 103).processes_cut) == (9, False)
    listed = board.processes()
    assert listed is not None
    assert [(one.row.pid, one.earlier_s) for one in listed.processes[7:]] == [(18, 0.0), (19, -2.0)]


def test_what_the_fuller_list_told_ends_with_the_crowd() -> None:
    board = crowded_board()
    board.put([said(0, ProcessMemoryChip(0, eight(19)), 102, "npu_proc_mem")])
    board.put([info(table(row(0), processes=eight()[:2]), 115)])
    assert [card[5] for card in board.cards()] == [()]
    assert (len(shown_then(board, 116).processes or ()), shown_then(board, 116).processes_cut) == (2, False)
    board.put([info(table(row(0), processes=eight()), 130)])
    assert (len(shown_then(board, 131).processes or ()), shown_then(board, 131).processes_cut) == (8, True)


def test_a_fuller_list_that_cannot_be_had_is_a_blind_spot_of_a_crowded_chip_alone() -> None:
    board = crowded_board()
    board.put([said(0, TIMEOUT, 102, "npu_proc_mem")])
    assert (shown_then(board, 103).blind["npu_proc_mem"], shown_then(board, 103).processes_cut) == (TIMEOUT, True)
    board.put([info(table(row(0), processes=eight()[:2]), 115)])
    assert "npu_proc_mem" not in shown_then(board, 116).blind
    board.put([info(table(row(0), processes=eight()), 130), said(0, UNSUPPORTED, 131, "npu_proc_mem")])
    assert shown_then(board, 132).unsupported == {"npu_proc_mem": "This device does not support querying health."}
    assert shown_then(board, 132).processes_cut


def test_a_snapshot_is_whole_while_readings_pour_in() -> None:
    board = new_board()
    one, two = table(row(0)), table(row(0), row(1), row(2))
    stop = threading.Event()

    def pour() -> None:
        while not stop.is_set():
            board.put([info(one)])
            board.put([info(two)])

    threads = [threading.Thread(target=pour) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(200):
            now = shown(board)
            assert now.devices_present in (None, 1, 3)
            assert now.devices_present in (None, sum(1 for each in now.devices.values() if each.present))
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_a_reloaded_config_changes_what_is_expected() -> None:
    board = new_board(expected=8)
    board.put([info(table(row(0)))])
    board.configure("node-18", None)
    assert (shown(board).node, shown(board).devices_expected) == ("node-18", 1)
