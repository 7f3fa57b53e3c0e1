"""Small pasts with literal values: what counts as growth, what as a reset, and what nobody may invent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from npu_watchd.catalogue import CATALOGUE, Kind
from npu_watchd.memory.board import Board, Watch
from npu_watchd.memory.counters import FOLLOWED
from npu_watchd.memory.history import History, Increase, Labels, Reset, Spell
from npu_watchd.model.ids import NODE, DeviceKey
from npu_watchd.model.pcie import PcieErrors
from npu_watchd.model.records import Hccs, PcieLinkErrors
from npu_watchd.model.snapshot import Identity, Port, ProbeState, Snapshot
from tests.memory.build import PERIODS_S, at, ecc, info, row, said, table
from tests.memory.past import CHIP, DOUBLE, ERRORS, LIFETIME, PORT, chip, hbm, node, port, roce

HOUR = 3600.0


def double(count: int, **changes: str | None) -> Snapshot:
    """The node with this many double-bit errors since the device's reset."""
    return node(chip(memory_errors=hbm(count)), **changes)  # type: ignore[arg-type]


def past(*seen: tuple[float, Snapshot]) -> tuple[History, list[Reset]]:
    history, resets = History(), []
    for now_s, snapshot in seen:
        resets += history.observe(snapshot, now_s)
    return history, resets


def grown(history: History, metric: str = ERRORS, window_s: float = HOUR) -> float | None:
    increase = history.increase(metric, CHIP, DOUBLE, window_s)
    return increase.count if increase else None


def restarted(history: History) -> History:
    return History.restore(history.everything())


# -- counters


def test_a_series_that_was_never_seen_has_no_increase() -> None:
    history, _ = past((0.0, node(chip())))
    assert history.increase(ERRORS, CHIP, DOUBLE, HOUR) is None
    assert history.series(ERRORS, CHIP) == {}


def test_the_first_sight_of_a_count_is_inventory() -> None:
    history, resets = past((100.0, double(7)))
    assert history.increase(ERRORS, CHIP, DOUBLE, HOUR) == Increase(0.0, 0.0, None, None)
    assert history.series(ERRORS, CHIP) == {DOUBLE: 7.0}
    assert resets == []


def test_a_climb_counts_within_its_window_only() -> None:
    history, _ = past((100.0, double(2)), (200.0, double(3)), (300.0, double(3)), (400.0, double(8)))
    assert history.increase(ERRORS, CHIP, DOUBLE, 1000.0) == Increase(6.0, 300.0, 200.0, 400.0, 100.0)
    assert history.increase(ERRORS, CHIP, DOUBLE, 150.0) == Increase(5.0, 150.0, 400.0, 400.0, 300.0)


def test_growth_at_the_very_start_of_the_window_is_outside_of_it() -> None:
    history, _ = past((0.0, double(0)), (100.0, double(4)), (160.0, double(5)))
    assert grown(history, window_s=60.0) == 1.0
    assert grown(history, window_s=60.5) == 5.0


def test_a_restart_in_the_middle_of_a_climb_loses_and_invents_nothing() -> None:
    history, _ = past((100.0, double(2)), (160.0, double(4)))
    again = restarted(history)
    assert again.observe(double(7), 220.0) == []
    assert again.increase(ERRORS, CHIP, DOUBLE, HOUR) == Increase(5.0, 120.0, 160.0, 220.0, 100.0)


def test_after_a_reboot_all_that_a_count_shows_is_new() -> None:
    history, _ = past((100.0, double(5)))
    again = restarted(history)
    assert again.observe(double(1, boot_id="boot-2"), 900.0) == [Reset("boot_id", CHIP, ERRORS, DOUBLE, 5.0, 1.0)]
    assert grown(again) == 1.0


def test_a_reboot_is_a_reset_also_where_the_count_shows_as_much_as_before() -> None:
    history, resets = past(
        (100.0, double(1)), (900.0, double(1, boot_id="boot-2")), (960.0, double(1, boot_id="boot-2"))
    )
    assert grown(history) == 1.0
    assert [reset.reason for reset in resets] == ["boot_id"]


def test_a_reset_from_zero_is_no_news() -> None:
    _, resets = past((100.0, double(0)), (900.0, double(0, boot_id="boot-2")))
    assert resets == []


def test_a_boot_id_that_cannot_be_read_is_no_other_boot() -> None:
    history, resets = past((100.0, double(5)), (160.0, double(6, boot_id=None)), (220.0, double(6)))
    assert (grown(history), resets) == (1.0, [])


def test_a_new_driver_is_a_reset() -> None:
    history, resets = past((100.0, double(5)), (1000.0, double(5)), (1900.0, double(3, driver="26.0.0")))
    assert grown(history) == 3.0
    assert resets == [Reset("driver", CHIP, ERRORS, DOUBLE, 5.0, 3.0)]


def test_a_reading_from_before_the_driver_changed_is_not_taken_for_one_after_it() -> None:
    """The table comes four times as often as `-t ecc`: the first snapshot with the new driver shows the old count."""
    old = hbm(5)
    history, resets = past(
        (100.0, node(chip(memory_errors=old))),
        (115.0, node(chip(memory_errors=dict(old)), driver="26.0.0")),
    )
    assert (grown(history), resets) == (0.0, [])
    history.observe(double(0, driver="26.0.0"), 160.0)
    assert grown(history) == 0.0


def test_what_was_counted_before_the_table_showed_the_new_driver_is_not_counted_twice() -> None:
    history, _ = past((0.0, double(0)), (1000.0, double(0)), (1010.0, double(1)), (1070.0, double(1, driver="26.0.0")))
    assert grown(history) == 1.0


def test_a_driver_that_nobody_can_name_hides_no_growth_and_doubles_none() -> None:
    history, _ = past((0.0, double(2)), (600.0, double(4, driver=None)), (1200.0, double(9, driver=None)))
    assert grown(history) == 7.0
    history.observe(double(9), 1300.0)
    assert grown(history) == 7.0
    other, _ = past((0.0, double(0)), (600.0, double(4, driver=None)), (1200.0, double(6, driver="26.0.0")))
    assert grown(other) == 6.0


def test_a_count_that_fell_counts_anew_once_a_second_reading_confirms_it() -> None:
    """A device that was reset while the daemon ran, or `-t ecc` that somebody cleared."""
    history, resets = past((0.0, double(5)), (60.0, double(0)))
    assert (grown(history), resets, history.series(ERRORS, CHIP)) == (0.0, [], {DOUBLE: 5.0})
    assert history.observe(double(2), 120.0) == [Reset("fell", CHIP, ERRORS, DOUBLE, 5.0, 2.0)]
    assert (grown(history), history.series(ERRORS, CHIP)) == (2.0, {DOUBLE: 2.0})
    assert history.observe(double(3), 180.0) == []
    assert grown(history) == 3.0


def test_a_zero_between_two_equal_counts_was_a_failed_read() -> None:
    history, resets = past((0.0, double(5)), (60.0, double(0)), (120.0, double(5)), (180.0, double(6)))
    assert (grown(history), resets) == (1.0, [])


def test_growth_over_a_failed_read_counts_from_the_value_before_it() -> None:
    history, resets = past((0.0, double(5)), (60.0, double(0)), (120.0, double(9)))
    assert (grown(history), resets) == (4.0, [])


def test_a_failed_read_that_is_shown_for_many_cycles_does_not_confirm_itself() -> None:
    failed = hbm(0)
    history, resets = past(
        (0.0, double(5)), *((60.0 + 5 * cycle, node(chip(memory_errors=dict(failed)))) for cycle in range(12))
    )
    resets += history.observe(double(5), 120.0)
    assert (grown(history), resets) == (0.0, [])


def test_the_board_hands_out_the_same_record_until_there_is_another_reading() -> None:
    """It is by this that the history tells a reading from the one before."""
    board = Board("n1", "boot-1", None, lambda _: Watch("910B", frozenset({"npu_ecc"}), frozenset(), frozenset()))
    history, resets = History(), []
    board.put([info(table(row(3)))])
    for now_s, count in ((0.0, 5), (60.0, 0), (120.0, 5)):
        board.put([info(table(row(3)), now_s), said(3, ecc(count), now_s, probe="npu_ecc")])
        for cycle in range(12):
            snapshot = board.snapshot(at(now_s + 5 * cycle), PERIODS_S.get)
            resets += history.observe(snapshot, now_s + 5 * cycle)
    assert (grown(history), resets) == (0.0, [])


def test_a_restart_between_a_fall_and_its_confirmation_keeps_the_doubt() -> None:
    history, _ = past((0.0, double(5)), (60.0, double(0)))
    again = restarted(history)
    assert again.observe(double(5), 120.0) == []
    assert grown(again) == 0.0


def test_a_counter_that_wraps_is_a_reset_and_its_growth_a_lower_bound() -> None:
    history, resets = past((0.0, double(4294967290)), (60.0, double(4)), (120.0, double(4)))
    assert (grown(history), [reset.reason for reset in resets]) == (4.0, ["fell"])


def test_growth_over_a_blind_spell_counts_when_it_ends() -> None:
    history, _ = past((0.0, double(1)), (600.0, node(chip())), (1200.0, node(chip())))
    assert history.increase(ERRORS, CHIP, DOUBLE, HOUR) == Increase(0.0, 0.0, None, None)
    assert history.series(ERRORS, CHIP) == {DOUBLE: 1.0}
    history.observe(double(6), 1800.0)
    assert history.increase(ERRORS, CHIP, DOUBLE, HOUR) == Increase(5.0, 1800.0, 1800.0, 1800.0, 0.0)


def test_a_count_that_nobody_reads_any_more_does_not_cover_the_window() -> None:
    history, _ = past((0.0, double(1)), (1000.0, double(1)), (1005.0, node(chip())), (1600.0, node(chip())))
    increase = history.increase(ERRORS, CHIP, DOUBLE, 1000.0)
    assert increase == Increase(0.0, 400.0, None, None)


def life(count: int, **changes: object) -> Snapshot:
    return node(chip(memory_errors=hbm(None, life=count)), **changes)  # type: ignore[arg-type]


def test_a_lifetime_count_grows_over_a_reboot_by_the_difference() -> None:
    history, resets = past((0.0, life(40)), (600.0, life(43, boot_id="boot-2", driver="26.0.0")))
    assert (grown(history, LIFETIME), resets) == (3.0, [])


def test_a_lifetime_count_that_was_cleared_counts_from_there() -> None:
    history, resets = past((0.0, life(40)), (60.0, life(2)), (120.0, life(2)), (180.0, life(3)))
    assert grown(history, LIFETIME) == 1.0
    assert resets == [Reset("fell", CHIP, LIFETIME, DOUBLE, 40.0, 2.0)]


def other_chip(count: int, serial: str | None, **changes: object) -> Snapshot:
    identity = Identity(name="910B3", serial_number=serial)
    return node(chip(identity=identity, memory_errors=hbm(count, life=count)), **changes)  # type: ignore[arg-type]


def test_another_chip_in_the_same_place_begins_as_inventory() -> None:
    history, _ = past((0.0, other_chip(1, "SN-1")), (60.0, other_chip(5, "SN-1")))
    assert history.observe(other_chip(90, "SN-2"), 120.0) == [Reset("replaced", CHIP, None, (), None, None)]
    assert history.increase(ERRORS, CHIP, DOUBLE, HOUR) == Increase(0.0, 0.0, None, None)
    assert history.series(LIFETIME, CHIP) == {DOUBLE: 90.0}
    history.observe(other_chip(91, "SN-2"), 180.0)
    assert grown(history) == 1.0


def test_a_serial_number_that_is_read_late_or_not_at_all_is_no_other_chip() -> None:
    history, resets = past((0.0, other_chip(1, None)), (60.0, other_chip(2, "SN-1")), (120.0, other_chip(3, None)))
    assert (grown(history), resets) == (2.0, [])


def test_after_a_boot_the_lifetime_count_waits_until_it_is_known_whose_it_is() -> None:
    history, _ = past((0.0, other_chip(5, "SN-1")))
    again = restarted(history)
    again.observe(other_chip(70, None, boot_id="boot-2"), 600.0)
    assert grown(again, LIFETIME) == 0.0
    again.observe(other_chip(70, "SN-2", boot_id="boot-2"), 660.0)
    assert grown(again, LIFETIME) == 0.0
    same = restarted(history)
    same.observe(other_chip(7, None, boot_id="boot-2"), 600.0)
    same.observe(other_chip(7, "SN-1", boot_id="boot-2"), 660.0)
    assert grown(same, LIFETIME) == 2.0


def test_a_serial_number_that_never_comes_is_not_waited_for_for_ever() -> None:
    history, _ = past((0.0, other_chip(5, "SN-1")))
    again = restarted(history)
    again.observe(other_chip(7, None, boot_id="boot-2"), 600.0)
    again.observe(other_chip(7, None, boot_id="boot-2"), 1201.0)
    assert grown(again, LIFETIME) == 2.0


def test_history_time_never_runs_backwards_whatever_is_handed_in() -> None:
    history, _ = past((1000.0, double(1)), (400.0, double(4)))
    assert history.now_s == pytest.approx(1000.0)
    assert history.now_s > 1000.0
    assert grown(history, window_s=1.0) == 3.0


def test_a_wall_clock_that_jumped_while_the_daemon_was_away_does_not_move_what_was_before() -> None:
    """The next start begins at the last instant that was kept where the wall clock now lies before it."""
    history, _ = past((10_000.0, double(1)), (10_060.0, double(3)))
    again = restarted(history)
    again.observe(double(4), 500.0)
    assert grown(again) == 3.0
    assert again.now_s >= 10_060.0


COUNTED_BY_DEVICE: tuple[tuple[str, Labels, Callable[[int], dict[str, Any]]], ...] = (
    ("npu_device_pcie_errors_total", (("severity", "fatal"),), lambda n: {"pcie_errors": PcieErrors("a", 0, 0, n)}),
    (
        "npu_device_pcie_link_errors_total",
        (("kind", "crc"),),
        lambda n: {"pcie_link_errors": PcieLinkErrors({"crc": n})},
    ),
    ("npu_device_hccs_errors_total", (("link", "0"),), lambda n: {"hccs": Hccs(True, (n,), (), None)}),
    ("npu_device_hccs_retries_total", (("link", "0"),), lambda n: {"hccs": Hccs(True, (), (n,), None)}),
    ("npu_device_roce_link_downs_total", (), lambda n: {"roce": roce(link_downs=n)}),
)


@pytest.mark.parametrize(("metric", "labels", "fields"), COUNTED_BY_DEVICE)
def test_every_error_counter_of_a_device_is_followed(
    metric: str, labels: Labels, fields: Callable[[int], dict[str, Any]]
) -> None:
    history, _ = past((0.0, node(chip(**fields(2)))), (60.0, node(chip(**fields(5)))))
    assert history.series(metric, CHIP)[labels] == 5.0
    increase = history.increase(metric, CHIP, labels, HOUR)
    assert increase is not None
    assert increase.count == 3.0


def test_the_counters_of_a_host_port_belong_to_that_port() -> None:
    history, _ = past((0.0, node(port=port(1, symbol_error=4))), (60.0, node(port=port(3, symbol_error=9))))
    downs = history.increase("npu_node_rdma_port_link_downs_total", PORT, (), HOUR)
    errors = history.increase("npu_node_rdma_port_errors_total", PORT, (("counter", "symbol_error"),), HOUR)
    assert (downs and downs.count, errors and errors.count) == (2.0, 5.0)


def test_a_new_npu_driver_does_not_reset_the_hosts_ports_nor_the_kernels_pcie_counts() -> None:
    aer = "npu_device_pcie_errors_total"
    before = node(chip(pcie_errors=PcieErrors("a", 4, 0, 0)), port=port(3))
    after = node(chip(pcie_errors=PcieErrors("a", 4, 0, 0)), port=port(3), driver="26.0.0")
    history, resets = past((0.0, before), (60.0, after))
    increase = history.increase(aer, CHIP, (("severity", "correctable"),), HOUR)
    downs = history.increase("npu_node_rdma_port_link_downs_total", PORT, (), HOUR)
    assert (increase and increase.count, downs and downs.count, resets) == (0.0, 0.0, [])


def test_link_downs_that_fell_are_confirmed_by_the_next_cycle() -> None:
    def downs(count: int) -> Snapshot:
        return node(chip(roce=roce(link_downs=count)))

    history, resets = past((0.0, downs(5)), (5.0, downs(1)), (10.0, downs(1)), (15.0, downs(1)))
    increase = history.increase("npu_device_roce_link_downs_total", CHIP, (), HOUR)
    assert (increase and increase.count, [reset.reason for reset in resets]) == (1.0, ["fell"])


def test_lines_of_the_log_are_counted_from_the_daemons_start() -> None:
    log = "npu_node_log_events_total"
    fatal = (("code", "fatal"), ("kind", "pcie"))
    history, _ = past((0.0, node(chip())), (60.0, node(chip(), pcie_log_events={("fatal", "3"): 2, ("fatal", ""): 1})))
    mine, shared = history.increase(log, CHIP, fatal, HOUR), history.increase(log, NODE, fatal, HOUR)
    assert (mine and mine.count, shared and shared.count) == (2.0, 1.0)
    again = restarted(history)
    assert again.observe(node(chip(), pcie_log_events={("fatal", "3"): 5}), 120.0) == []
    increase = again.increase(log, CHIP, fatal, HOUR)
    assert increase is not None
    assert increase.count == 7.0


def test_every_counter_of_the_catalogue_is_followed_or_left_out_on_purpose() -> None:
    traffic = {"npu_device_roce_packets_total", "npu_device_roce_pause_frames_total", "npu_node_rdma_port_bytes_total"}
    counters = {family.name for family in CATALOGUE if family.kind is Kind.COUNTER}
    assert {name for name in counters if not name.startswith("npu_watchd_")} - traffic == set(FOLLOWED)


def test_one_series_too_many_is_refused_and_counted() -> None:
    history = History(most_series=1)
    history.observe(node(chip(memory_errors=hbm(1, life=1))), 0.0)
    assert history.series(ERRORS, CHIP) == {DOUBLE: 1.0}
    assert history.series(LIFETIME, CHIP) == {}
    assert history.refused >= 1


def test_growth_older_than_thirty_days_is_forgotten_and_its_series_kept() -> None:
    history, _ = past((0.0, double(0)), (60.0, double(9)), (31 * 86_400.0, double(9)))
    assert grown(history, window_s=60 * 86_400.0) == 0.0
    assert history.series(ERRORS, CHIP) == {DOUBLE: 9.0}


def test_a_series_that_nobody_has_seen_for_thirty_days_is_forgotten() -> None:
    history, _ = past((0.0, double(2)), (60.0, node(chip())))
    history.changes()
    history.observe(node(chip()), 31 * 86_400.0)
    assert history.series(ERRORS, CHIP) == {}
    assert len(history.changes().dropped) == 1


def test_two_thousand_points_are_merged_and_their_sum_kept() -> None:
    history = History()
    for step in range(5000):
        history.observe(double(step), 60.0 * step)
    assert grown(history, window_s=1e9) == 4999.0
    assert grown(history, window_s=HOUR) == 60.0
    merged = grown(history, window_s=60.0 * 4000.5)
    assert merged is not None
    assert 3900.0 < merged <= 4000.0
    assert sum(1 for _ in history.everything().points) <= 2000
    assert grown(restarted(history), window_s=1e9) == 4999.0


def test_nothing_new_makes_no_change_to_write() -> None:
    history, _ = past((0.0, double(1)))
    assert history.changes().empty is False
    history.observe(double(1), 60.0)
    assert history.changes().empty is True


# -- conditions


def test_a_condition_is_known_since_its_last_change() -> None:
    history, _ = past(
        (0.0, node(chip(present=True))), (60.0, node(chip(present=False))), (120.0, node(chip(present=False)))
    )
    assert (history.state("present", CHIP), history.since("present", CHIP)) == (False, 60.0)


def test_not_knowing_neither_ends_nor_begins_a_spell() -> None:
    history, _ = past((0.0, node(chip(present=False))), (60.0, node(chip(present=None))))
    assert (history.state("present", CHIP), history.since("present", CHIP)) == (None, 0.0)
    history.observe(node(chip(present=False)), 120.0)
    assert (history.state("present", CHIP), history.since("present", CHIP)) == (False, 0.0)


def test_a_condition_that_was_never_known_has_no_since() -> None:
    history, _ = past((0.0, node(chip(present=None))))
    assert (history.state("present", CHIP), history.since("present", CHIP)) == (None, None)
    assert history.state("port_up", PORT) is None


def test_a_flapping_port_has_spells_up_and_down() -> None:
    history, _ = past(
        *((60.0 * step, node(port=port(up=up))) for step, up in enumerate([True, False, True, True, False]))
    )
    assert history.spells("port_up", PORT, HOUR) == (Spell(0.0, 60.0), Spell(120.0, 240.0))
    assert history.spells("port_up", PORT, HOUR, value=False) == (Spell(60.0, 120.0), Spell(240.0, None))
    assert history.spells("port_up", PORT, 150.0) == (Spell(120.0, 240.0),)


@pytest.mark.parametrize(
    ("seen", "ever"), [([], False), ([False], False), ([True], True), ([False, True, False], True), ([None], False)]
)
def test_a_port_was_ever_up_only_where_somebody_saw_it(seen: list[bool | None], ever: bool) -> None:
    ports = (None if up is None else port(up=up) for up in seen)
    history, _ = past(*((60.0 * step, node(port=one)) for step, one in enumerate(ports)))
    assert history.ever("port_up", PORT) is ever


def test_a_port_that_is_gone_is_down_and_one_that_nobody_sees_is_unknown() -> None:
    gone = Port(PORT, present=False, expected=True, facts=None, counters=None)
    history, _ = past((0.0, node(port=port())), (60.0, node(port=gone)))
    assert history.state("port_up", PORT) is False
    history.observe(node(), 120.0)
    assert history.state("port_up", PORT) is None
    assert history.since("port_up", PORT) == 60.0


def test_the_npus_own_port_is_followed_by_its_device() -> None:
    history, _ = past((0.0, node(chip(roce=roce(link_up=True)))), (60.0, node(chip(roce=roce(link_up=False)))))
    assert (history.state("npu_port_up", CHIP), history.since("npu_port_up", CHIP)) == (False, 60.0)


def test_an_error_code_comes_goes_and_is_not_known_while_blind() -> None:
    name = "error_code:80e01801"
    history, _ = past((0.0, node(chip())))
    assert history.state(name, CHIP) is False
    history.observe(node(chip(error_codes=("80e01801",))), 60.0)
    assert history.state(name, CHIP) is True
    history.observe(node(chip(error_codes=None)), 120.0)
    assert history.state(name, CHIP) is None
    history.observe(node(chip(error_codes=("a4025021",))), 180.0)
    assert history.state(name, CHIP) is False
    assert history.spells(name, CHIP, HOUR) == (Spell(60.0, 180.0),)
    assert history.names("error_code:", CHIP) == (name, "error_code:a4025021")
    assert history.state(name, DeviceKey(4)) is None


def test_the_codes_of_a_chip_that_was_replaced_are_not_the_new_ones() -> None:
    name = "error_code:80e01801"
    old = chip(error_codes=("80e01801",))
    new = replace(old, identity=Identity(serial_number="SN-2"), error_codes=())
    history, _ = past((0.0, node(old)), (60.0, node(new)))
    assert (history.state(name, CHIP), history.spells(name, CHIP, HOUR)) == (False, ())


def test_a_probe_is_followed_for_the_device_or_the_node_that_it_asks() -> None:
    probes = (ProbeState("npu_ecc", "3", up=False, failure=None), ProbeState("ibstat", None, up=True, failure=None))
    history, _ = past((0.0, node(chip(), probes=probes)))
    assert (history.state("probe_up:npu_ecc", CHIP), history.state("probe_up:ibstat", NODE)) == (False, True)


def test_a_restart_keeps_conditions_and_goes_on_with_them() -> None:
    history, _ = past((0.0, node(port=port(up=True))), (60.0, node(port=port(up=False))))
    again = restarted(history)
    assert (again.state("port_up", PORT), again.since("port_up", PORT)) == (False, 60.0)
    again.observe(node(port=port(up=False)), 600.0)
    assert again.since("port_up", PORT) == 60.0
    again.observe(node(port=port(up=True)), 660.0)
    assert again.spells("port_up", PORT, HOUR, value=False) == (Spell(60.0, 660.0),)


def test_conditions_that_flap_for_ever_stay_bounded() -> None:
    history = History()
    for step in range(3000):
        history.observe(node(port=port(up=step % 2 == 0)), 60.0 * step)
    assert len(history.spells("port_up", PORT, 1e9)) <= 1000
    # And the boot that was seen.
    assert len(history.everything().transitions) <= 2001
    assert history.since("port_up", PORT) == 60.0 * 2999
    assert restarted(history).spells("port_up", PORT, 1e9) == history.spells("port_up", PORT, 1e9)


# -- peaks


def test_the_peak_of_a_ports_speed_is_of_the_times_when_it_was_up() -> None:
    speed = "npu_node_rdma_port_bits_per_second"
    history, _ = past(
        (0.0, node(port=port(up=True, rate_gbps=200.0))),
        (60.0, node(port=port(up=False, rate_gbps=400.0))),
        (120.0, node(port=port(up=True, rate_gbps=100.0))),
    )
    assert history.peak(speed, PORT, ()) == 200e9
    assert restarted(history).peak(speed, PORT, ()) == 200e9


def test_the_peak_of_an_npus_port_is_its_devices() -> None:
    speed = "npu_device_roce_link_bits_per_second"
    history, _ = past((0.0, node(chip(roce=roce(link_up=True, bits_per_second=200_000_000_000)))))
    assert history.peak(speed, CHIP, ()) == 200e9
    assert history.peak(speed, DeviceKey(9), ()) is None
