"""Rules about the chip itself: presence, health, memory, temperature, and what cannot be seen."""

from __future__ import annotations

import pytest

from npu_watchd.limits import Limits
from npu_watchd.model.finding import Action, Evidence, Severity
from npu_watchd.model.ids import DeviceKey
from npu_watchd.model.reading import Failure, FailureKind
from npu_watchd.model.records import MemoryErrors
from npu_watchd.model.verdict import Decision, Order
from tests.rules.world import HOUR_S, MINUTE_S, NOON_S, World

TIMEOUT = Failure(FailureKind.TIMEOUT, "npu-smi info -t ecc -i 3: no answer within 10 s")


def ecc(**counts: int) -> dict[str, MemoryErrors]:
    return {"hbm": MemoryErrors(**{"single_bit": 0, "double_bit": 0, **counts})}


def test_a_healthy_node_has_no_findings() -> None:
    world = World()
    assert world.cycles(0, HOUR_S) == {}


def test_a_device_is_missing_after_three_tables_without_it() -> None:
    world = World()
    world.cycle(0)
    world.change(3, present=False, health="unknown")
    assert world.cycle(15) == {}
    assert world.cycle(30) == {}
    found = world.cycle(45)["device_missing npu 3 chip 0"]
    assert found.summary == "device 3 (NPU 3 chip 0 at 0000:83:00.0) is no longer in the table of npu-smi"
    assert (found.severity, found.quarantines, found.action) == (Severity.CRITICAL, True, Action.RESET_DEVICE)
    assert found.evidence == (Evidence("npu_device_present", 0, 1, "", None, "npu-smi info"),)


def test_a_device_that_is_back_is_no_longer_missing() -> None:
    world = World()
    world.change(3, present=False, health="unknown")
    assert world.cycles(0, 45)
    world.change(3, present=True, health="ok")
    assert world.cycle(60) == {}


def test_without_a_table_nobody_is_missing_and_whoever_was_stays_so() -> None:
    world = World()
    world.change(3, present=False, health="unknown")
    world.cycles(0, 45)
    blind = {"npu_info": TIMEOUT}
    for npu in range(8):
        world.change(npu, present=None, health="unknown", blind=blind, vital_blind=True)
    world.node = {"devices_present": None, "blind": blind}
    found = world.cycles(60, 600)
    assert found["device_missing npu 3 chip 0"].held
    assert "device_missing npu 4 chip 0" not in found


def test_expected_devices_that_never_were_seen_are_the_nodes_finding() -> None:
    world = World(expected=10)
    found = world.cycles(0, 30)["device_missing node"]
    assert found.summary == "2 of 10 expected devices have never been in the table of npu-smi"


def test_a_device_that_was_missing_before_a_restart_is_not_missed_twice() -> None:
    world = World()
    world.cycle(0)
    world.change(3, present=False, health="unknown")
    assert list(world.cycles(15, 60)) == ["device_missing npu 3 chip 0"]
    # The daemon that has just been started has never seen the device.
    del world.devices[DeviceKey(3)]
    found = world.cycles(75, 150)
    assert list(found) == ["device_missing npu 3 chip 0"]
    assert found["device_missing npu 3 chip 0"].held


@pytest.mark.parametrize(
    ("health", "severity", "quarantines"),
    [("warning", "warning", False), ("alarm", "critical", False), ("critical", "critical", True)],
)
def test_only_critical_health_quarantines(health: str, severity: str, quarantines: bool) -> None:
    world = World()
    world.change(2, health=health)
    found = world.cycle(0)["device_unhealthy npu 2 chip 0"]
    assert (found.severity.value, found.quarantines) == (severity, quarantines)


def test_unknown_health_is_no_finding_and_ends_none() -> None:
    world = World()
    world.change(2, health="alarm")
    world.cycle(0)
    world.change(2, health="unknown", blind={"npu_health": TIMEOUT})
    world.change(4, health="unknown", blind={"npu_health": TIMEOUT})
    found = world.cycle(15)
    assert found["device_unhealthy npu 2 chip 0"].held
    assert "device_unhealthy npu 4 chip 0" not in found


def test_a_health_without_a_word_and_codes_without_an_answer_end_no_finding() -> None:
    world = World()
    world.change(2, health="critical", error_codes=("80e18402",))
    world.cycle(0)
    world.change(2, health="unknown", error_codes=None)
    found = world.cycle(15)
    assert found.keys() == {"device_unhealthy npu 2 chip 0", "error_code npu 2 chip 0"}
    assert all(finding.held for finding in found.values())


def test_one_uncorrectable_error_is_enough_even_if_it_was_there_before_us() -> None:
    world = World()
    world.change(3, memory_errors=ecc(double_bit=2))
    found = world.cycle(0)["hbm_double_bit npu 3 chip 0"]
    assert found.summary == "device 3: 2 uncorrectable HBM errors since its last reset"
    assert found.evidence[0] == Evidence(
        'npu_device_memory_errors_total{memory="hbm",kind="double_bit"}',
        2,
        1,
        "",
        None,
        "npu-smi info -t ecc -i 3: HBM Double Bit Error Count",
    )
    assert found.evidence[1].observed == 0, "nothing came while we watched"


def test_a_lifetime_count_of_uncorrectable_errors_is_inventory() -> None:
    world = World()
    world.change(3, memory_errors=ecc(double_bit_lifetime=9))
    assert world.cycles(0, HOUR_S) == {}


def test_a_reset_of_the_device_ends_the_finding() -> None:
    world = World()
    world.change(3, memory_errors=ecc(double_bit=2, double_bit_lifetime=2))
    world.cycle(0)
    world.change(3, memory_errors=ecc(double_bit=0, double_bit_lifetime=2))
    assert world.cycle(60) == {}


def test_corrected_errors_that_climb_are_found_and_old_ones_are_not() -> None:
    world = World()
    world.change(5, memory_errors=ecc(single_bit=700))
    world.cycle(0)
    world.change(3, memory_errors=ecc(single_bit=19))
    assert world.cycle(60) == {}
    world.change(3, memory_errors=ecc(single_bit=20))
    found = world.cycle(120)
    assert list(found) == ["hbm_single_bit npu 3 chip 0"]
    assert found["hbm_single_bit npu 3 chip 0"].summary == (
        "device 3: 20 corrected HBM errors in the last hour (limit 20)"
    )


def test_corrected_errors_are_over_an_hour_later() -> None:
    world = World()
    world.cycle(0)
    world.change(3, memory_errors=ecc(single_bit=25))
    assert world.cycle(60)
    assert world.cycle(HOUR_S)
    assert world.cycle(75 + HOUR_S) == {}


def test_a_device_no_worse_than_its_neighbours_is_not_found() -> None:
    world = World()
    world.cycle(0)
    for npu in range(8):
        world.change(npu, memory_errors=ecc(single_bit=30 if npu != 3 else 60))
    assert world.cycle(60) == {}, "twice the neighbours' median is below four times it"
    world.change(3, memory_errors=ecc(single_bit=120))
    assert list(world.cycle(120)) == ["hbm_single_bit npu 3 chip 0"]


def test_a_device_that_has_long_had_errors_is_held_against_its_own_past() -> None:
    world = World()
    for hour in range(8 * 24):
        world.change(3, memory_errors=ecc(single_bit=10 * hour))
        world.cycle(hour * HOUR_S)
    last = 8 * 24 * HOUR_S
    world.change(3, memory_errors=ecc(single_bit=10 * 191 + 39))
    assert world.cycle(last) == {}
    world.change(3, memory_errors=ecc(single_bit=10 * 191 + 45))
    assert list(world.cycle(last + 60)) == ["hbm_single_bit npu 3 chip 0"]


@pytest.mark.parametrize(
    ("pages", "said"),
    [
        (15, None),
        (16, ("warning", False, "observe")),
        (63, ("warning", False, "observe")),
        (64, ("critical", True, "replace")),
        (200, ("critical", True, "replace")),
    ],
)
def test_isolated_pages_have_two_steps(pages: int, said: tuple[str, bool, str] | None) -> None:
    world = World()
    world.change(1, memory_errors=ecc(double_bit_isolated_pages=pages))
    found = world.cycle(0).get("isolated_pages npu 1 chip 0")
    assert (found and (found.severity.value, found.quarantines, found.action.value)) == said


def test_a_hot_chip_is_found_after_a_minute_and_must_cool_by_five_degrees() -> None:
    world = World()
    world.change(6, temperature_celsius={"chip": 91.0, "hbm": 60.0})
    assert world.cycles(0, 45) == {}
    assert world.cycle(60)["overheating npu 6 chip 0"].summary == "device 6: chip at 91 °C (limit 90 °C)"
    world.change(6, temperature_celsius={"chip": 86.0, "hbm": 60.0})
    assert world.cycles(75, 300)
    world.change(6, temperature_celsius={"chip": 84.0, "hbm": 60.0})
    assert world.cycles(315, 360)
    assert world.cycle(375) == {}


def test_hot_memory_is_critical_where_the_vendor_says_so() -> None:
    world = World()
    world.change(6, temperature_celsius={"chip": 91.0, "hbm": 96.0})
    found = world.cycles(0, 60)["overheating npu 6 chip 0"]
    assert (found.severity.value, found.quarantines) == ("critical", False)
    assert found.evidence[0].source == "npu-smi info -t memory -i 6: HBM Temperature"


def test_a_chip_may_have_limits_of_its_own() -> None:
    world = World(Limits({"chip_warning_celsius": 80}, {"910B3": {"chip_warning_celsius": 95}}))
    world.change(6, temperature_celsius={"chip": 91.0})
    assert world.cycles(0, 120) == {}


def test_known_code_of_a_separate_tier_quarantines_and_a_hint_says_nothing() -> None:
    world = World()
    world.change(2, error_codes=("80e18402",))
    world.change(4, error_codes=("8c2fa009",))
    found = world.cycle(0)
    assert list(found) == ["error_code npu 2 chip 0"]
    assert found["error_code npu 2 chip 0"].quarantines


def test_an_unknown_code_is_a_warning_and_never_quarantines() -> None:
    world = World()
    world.change(2, error_codes=("8f18abcd",))
    found = world.cycle(0)["error_code npu 2 chip 0"]
    assert (found.severity.value, found.quarantines) == ("warning", False)


def test_a_hardware_code_that_comes_back_is_found_by_the_vendors_count() -> None:
    world = World()
    found = world.cycle(0)
    for minute in (10, 40):
        world.change(2, error_codes=("80e01801",))
        world.cycle(minute * MINUTE_S)
        world.change(2, error_codes=())
        found = world.cycle((minute + 2) * MINUTE_S)
    assert found["error_code_repeats npu 2 chip 0"].quarantines
    assert "error_code npu 2 chip 0" not in found
    assert world.cycle(40 * MINUTE_S + 24 * HOUR_S + 60) == {}


def test_after_a_release_only_what_comes_then_counts_and_half_as_often_is_too_often() -> None:
    world = World()
    world.cycle(0)
    for minute in (10, 40):
        world.change(2, error_codes=("80e01801",))
        world.cycle(minute * MINUTE_S)
        world.change(2, error_codes=())
        world.cycle((minute + 2) * MINUTE_S)
    answer, _ = world.judging.decide(
        Decision(Order.RELEASE, DeviceKey(2), "alice", "reseated", NOON_S + 43 * MINUTE_S, force=True)
    )
    assert answer.accepted
    assert world.cycle(44 * MINUTE_S) == {}, "the two bursts were before the release"
    world.change(2, error_codes=("80e01801",))
    found = world.cycle(60 * MINUTE_S)["error_code_repeats npu 2 chip 0"]
    assert (found.quarantines, found.evidence[0].observed, found.evidence[0].limit) == (True, 1, 1)


def test_a_code_that_flickers_within_three_minutes_is_one_burst() -> None:
    world = World()
    found = world.cycle(0)
    for second in (600, 720, 840):
        world.change(2, error_codes=("80e01801",))
        world.cycle(second)
        world.change(2, error_codes=())
        found = world.cycle(second + 60)
    assert found == {}


def test_a_tool_that_hangs_three_times_is_the_nodes_finding() -> None:
    world = World()
    world.hung = Failure(FailureKind.TIMEOUT, "npu-smi info: no answer within 10 s")
    assert world.cycle(0) == {}
    assert world.cycle(15) == {}
    found = world.cycle(30)["tool_wedged node"]
    assert found.summary == "npu-smi hangs: npu-smi info: no answer within 10 s"
    world.hung = None
    assert world.cycle(45) == {}


def test_a_process_that_cannot_be_ended_is_found_at_once() -> None:
    world = World()
    world.abandoned = {"npu-smi": 2}
    assert world.cycle(0)["tool_wedged node"].summary == (
        "2 process(es) of npu-smi cannot be ended: stuck in the driver (state D)"
    )


def test_a_vital_probe_that_fails_makes_the_device_blind_and_other_probes_do_not() -> None:
    world = World()
    vital = frozenset({"npu_info", "npu_ecc", "npu_health"})
    world.change(3, vital=vital, blind={"npu_ecc": TIMEOUT}, vital_blind=True)
    world.change(4, vital=vital, blind={"npu_usages": TIMEOUT})
    found = world.cycles(0, 45)
    assert list(found) == ["probe_blind npu 3 chip 0"]
    assert found["probe_blind npu 3 chip 0"].evidence[0].observed == TIMEOUT.detail


def test_a_table_that_cannot_be_read_is_one_finding_and_not_one_a_device() -> None:
    world = World()
    world.cycle(0)
    blind = {"npu_info": TIMEOUT}
    for npu in range(8):
        world.change(npu, present=None, health="unknown", blind=blind, vital=frozenset(blind), vital_blind=True)
    world.node = {"devices_present": None, "blind": blind}
    assert list(world.cycle(60)) == ["probe_blind node"]


def test_a_rule_that_is_switched_off_finds_nothing() -> None:
    world = World(off=["hbm_double_bit"])
    world.change(3, memory_errors=ecc(double_bit=2))
    assert world.cycle(0) == {}


def test_the_journal_tells_the_story_with_numbers_that_grow() -> None:
    world = World()
    world.cycle(0)
    world.change(3, memory_errors=ecc(double_bit=2))
    world.cycle(60)
    told = [(event.number, event.kind, event.device_id) for event in world.events][-1]
    assert told == (len(world.events), "finding_opened", "3")
    assert [event.number for event in world.events] == list(range(1, len(world.events) + 1))


def test_device_keys_are_what_findings_are_about() -> None:
    world = World()
    world.change(3, health="critical")
    assert world.judge(0).findings[0].subject == DeviceKey(3)
