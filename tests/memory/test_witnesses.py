"""Who was on a device when an error code came to it: kept from then on, and never made up later."""

from __future__ import annotations

from npu_watchd.memory.history import History
from npu_watchd.memory.witnesses import MOST_ROWS, Tenants
from npu_watchd.model.snapshot import Identity
from tests.memory.past import CHIP, chip, node

CODE = "error_code:80e01801"
ALICE: Tenants = {CHIP: frozenset({"slurm 4711"})}
SICK, WELL = node(chip(error_codes=("80e01801",))), node(chip())


def began(history: History) -> list[float]:
    return [spell.began_s for spell in history.spells(CODE, CHIP, 1e9)]


def test_the_job_that_is_there_when_a_code_comes_is_kept() -> None:
    history = History()
    history.observe(WELL, 0.0, ALICE)
    history.observe(SICK, 15.0, ALICE)
    history.observe(SICK, 30.0, {CHIP: frozenset({"slurm 4712"})})
    assert (began(history), history.jobs(CODE, CHIP, 15.0)) == ([15.0], ("slurm 4711",))


def test_a_job_that_the_code_has_ended_was_there_as_well() -> None:
    history = History()
    history.observe(WELL, 0.0, ALICE)
    history.observe(WELL, 60.0, {CHIP: frozenset()})
    history.observe(SICK, 90.0, {CHIP: frozenset()})
    assert history.jobs(CODE, CHIP, 90.0) == ("slurm 4711",)


def test_a_job_that_left_long_before_was_not() -> None:
    history = History()
    history.observe(WELL, 0.0, ALICE)
    history.observe(WELL, 91.0, {CHIP: frozenset()})
    history.observe(SICK, 95.0, {CHIP: frozenset()})
    assert history.jobs(CODE, CHIP, 95.0) == ()


def test_while_nobody_knows_the_jobs_nothing_is_kept() -> None:
    history = History()
    history.observe(WELL, 0.0)
    history.observe(SICK, 15.0)
    history.observe(SICK, 20.0, ALICE)
    assert history.jobs(CODE, CHIP, 15.0) == ()


def test_after_a_restart_the_jobs_are_known_of_what_came_before_and_of_nothing_else() -> None:
    history = History()
    history.observe(SICK, 0.0, ALICE)
    history.observe(WELL, 15.0, ALICE)
    again = History.restore(history.everything())
    again.observe(SICK, 30.0)
    assert again.jobs(CODE, CHIP, 0.0) == ("slurm 4711",)
    assert again.jobs(CODE, CHIP, 30.0) == ()


def test_a_code_that_comes_all_the_time_keeps_its_newest_witnesses() -> None:
    history = History()
    for step in range(MOST_ROWS + 5):
        history.observe(SICK, 600.0 * step, ALICE)
        history.observe(WELL, 600.0 * step + 300, ALICE)
    assert len(history.everything().witnesses[CHIP]) == MOST_ROWS
    assert (history.jobs(CODE, CHIP, 0.0), history.jobs(CODE, CHIP, 600.0 * 5)) == ((), ("slurm 4711",))


def test_after_two_days_it_is_forgotten() -> None:
    history = History()
    history.observe(SICK, 0.0, ALICE)
    history.changes()
    history.observe(WELL, 2 * 86_400.0 + 1)
    assert history.jobs(CODE, CHIP, 0.0) == ()
    assert history.changes().witnesses == {CHIP: ()}


def test_another_chip_begins_without_a_past() -> None:
    history = History()
    history.observe(SICK, 0.0, ALICE)
    history.observe(node(chip(identity=Identity(serial_number="SN-2"))), 15.0, ALICE)
    assert history.everything().witnesses == {}
