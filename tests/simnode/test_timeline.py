"""Scenario and time make the state: the same each time, with counters that climb, reset and are remembered."""

from __future__ import annotations

from itertools import pairwise

from npu_watchd.simnode.scenario import Scenario, from_json, to_json
from npu_watchd.simnode.scenario_file import load, names, parse
from npu_watchd.simnode.state import ChipState, ErrorCode
from npu_watchd.simnode.timeline import state_at
from npu_watchd.simnode.wander import wander

HEAD = """
title = "t"
description = "d"
generation = "910B3"
tool_version = "25.5.1"
cards = 2
"""


def scenario(events: str) -> Scenario:
    return parse(HEAD + events, "test", "test.toml")


def device(events: str, t_s: float, logic_id: int = 1) -> ChipState:
    return state_at(scenario(events), t_s).chips[logic_id]


def test_the_same_second_gives_the_same_state_in_any_order_of_asking() -> None:
    quiet = load("quiet")
    forth = [state_at(quiet, t_s) for t_s in (0.0, 61.0, 3600.0)]
    assert [state_at(load("quiet"), t_s) for t_s in (3600.0, 61.0, 0.0)] == forth[::-1]


def test_numbers_wander_a_little_and_not_in_jumps() -> None:
    watts = [state_at(load("quiet"), 300.0 + t_s).chips[0].power_watts or 0.0 for t_s in range(200)]
    assert len(set(watts)) > 20
    assert max(watts) - min(watts) < 120
    assert max(abs(after - before) for before, after in pairwise(watts)) < 10


def test_two_chips_do_not_wander_in_step() -> None:
    assert wander("chip0", 50.0) != wander("chip1", 50.0)


def test_before_its_start_a_scenario_is_as_at_its_start() -> None:
    assert state_at(load("quiet"), -100.0) == state_at(load("quiet"), 0.0)


def test_a_climb_counts_whole_errors_at_its_rate_and_its_lifetime_twin_with_it() -> None:
    events = '[[at]]\nt = "10m"\ndevice = 1\nhbm.single_bit_lifetime = 500\nclimb.hbm.single_bit = "40/h"'
    seen = [
        (device(events, t_s).hbm_errors.single_bit, device(events, t_s).hbm_errors.single_bit_lifetime)
        for t_s in (599.9, 600, 689, 690, 4200, 7800)
    ]
    assert seen == [(0, 0), (0, 500), (0, 500), (1, 501), (40, 540), (80, 580)]


def test_a_climb_that_lasts_keeps_what_it_counted() -> None:
    events = '[[at]]\nt = 0\nlasts = "30m"\ndevice = 1\nclimb.hbm.single_bit = "60/h"'
    assert device(events, 9000).hbm_errors.single_bit == 30


def test_a_climb_ends_where_a_new_one_begins() -> None:
    events = '[[at]]\nt=0\ndevice=1\nclimb.pcie.rx="3600/h"\n[[at]]\nt=10\ndevice=1\nclimb.pcie.rx="0/h"'
    text = HEAD.replace("910B3", "950PR") + events
    chip = state_at(parse(text, "test", "test.toml"), 100.0).chips[1]
    assert chip.pcie is not None
    assert chip.pcie.rx == 10


def test_a_reset_forgets_the_counts_keeps_the_lifetime_and_isolates_the_waiting_pages() -> None:
    events = """
[[at]]
t = 10
device = 1
health = "Alarm"
codes = [{ code = "80E01809", text = "x" }]
hbm.double_bit = 2
start = [{ pid = 7, name = "python", memory = 100 }]
climb.hbm.single_bit = "3600/h"
[[at]]
t = 20
device = 1
reset = true
"""
    before = device(events, 19.5)
    assert (before.health, before.codes) == ("Alarm", (ErrorCode("80E01809", "x"),))
    assert (before.hbm_errors.double_bit, before.hbm_errors.double_bit_next_isolated_pages) == (2, 2)
    after = device(events, 3600)
    assert (after.health, after.codes, after.processes) == ("OK", (), ())
    errors = after.hbm_errors
    assert (errors.single_bit, errors.double_bit, errors.double_bit_next_isolated_pages) == (0, 0, 0)
    assert (errors.single_bit_lifetime, errors.double_bit_lifetime, errors.double_bit_isolated_pages) == (10, 2, 2)


def test_what_lasts_is_taken_back_as_if_it_had_never_been() -> None:
    events = '[[at]]\nt = 10\nlasts = "10s"\ndevice = 1\nlost = true\n[[at]]\nt = 0\ndevice = 1\nhealth = "Warning"'
    assert [device(events, t_s).lost for t_s in (9.9, 10, 19.9, 20)] == [False, True, True, False]
    assert device(events, 20).health == "Warning"


def test_processes_make_a_chip_busy_warm_and_full_and_leave_it_idle() -> None:
    events = """
[[at]]
t = 10
device = 1
start = [{ pid = 7, name = "python", memory = 40000 }, { pid = 8, memory = 100 }]
[[at]]
t = 20
device = 1
stop = [7]
[[at]]
t = 30
device = 1
stop = "all"
"""
    idle, busy, less, idle_again = (device(events, t_s) for t_s in (5, 15, 25, 35))
    assert (idle.load.aicore, idle.hbm.used_mb, idle.clock_mhz) == (0, 3393, 800)
    assert busy.load.aicore > 70
    assert (busy.hbm.used_mb, busy.clock_mhz) == (43493, 1800)
    assert (busy.power_watts or 0) > 250
    assert busy.temperature_c > idle.temperature_c + 10
    assert [process.pid for process in less.processes] == [8]
    assert (idle_again.load.aicore, idle_again.hbm.used_mb) == (0, 3393)


def test_memory_in_use_never_exceeds_what_there_is() -> None:
    events = "[[at]]\nt = 0\ndevice = 1\nstart = [{ pid = 7, memory = 999999 }]"
    assert device(events, 1).hbm.used_mb == 65536


def test_an_event_reaches_its_devices_and_no_other() -> None:
    events = '[[at]]\nt = 0\ndevice = 1\nhbm.double_bit = 3\nfails = ["ecc"]'
    assert device(events, 1, logic_id=0).hbm_errors.double_bit == 0
    assert device(events, 1, logic_id=0).fails == frozenset()
    assert device(events, 1).fails == frozenset({"ecc"})


def test_a_scenario_survives_json() -> None:
    for name in names():
        assert from_json(to_json(load(name))) == load(name)
