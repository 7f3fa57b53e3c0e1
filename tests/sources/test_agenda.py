"""What is asked next, and that the tool's share of time keeps its cap."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable
from copy import deepcopy
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from npu_watchd.sources.agenda import Agenda, Plan, Task
from npu_watchd.sources.probe import Target

INFO = Task("npu_info", Target())
HEALTH = Task("npu_health", Target(0, 0, (0,)))
USAGES = Task("npu_usages", Target(0, None, (0,)))
BOARD = Task("npu_board", Target(0, None, (0,)))
NODE_OF_ONE = {INFO: Plan(15, 1), HEALTH: Plan(60, 2), USAGES: Plan(60, 4), BOARD: Plan(3600, 4)}


def no_jitter() -> float:
    return 0.0


def agenda(share: float = 0.2, burst_s: float = 30.0, jitter: Callable[[], float] = no_jitter) -> Agenda:
    return Agenda(share, burst_s, jitter)


def replay(one: Agenda, took_s: Callable[[Task], float], until_s: float) -> list[tuple[float, Task]]:
    """Start whatever may start, half a second after it could; the starts."""
    starts: list[tuple[float, Task]] = []
    now_s = 0.0
    while now_s < until_s:
        task = one.next(now_s)
        if task is None:
            now_s += 0.5
            continue
        starts.append((now_s, task))
        ended_s = now_s + took_s(task)
        one.done(task, now_s, ended_s, succeeded=True)
        now_s = ended_s
    return starts


def of(task: Task, starts: Iterable[tuple[float, Task]]) -> list[float]:
    return [at_s for at_s, started in starts if started == task]


def test_what_tells_whether_a_device_is_well_comes_first() -> None:
    one = agenda()
    one.plan(NODE_OF_ONE, 0.0)
    order = []
    for _ in range(4):
        task = one.next(0.0)
        assert task is not None
        one.done(task, 0.0, 0.0, succeeded=True)
        order.append(task.probe)
    assert order == ["npu_info", "npu_health", "npu_board", "npu_usages"]


def test_every_probe_keeps_its_period_while_calls_are_quick() -> None:
    one = agenda()
    one.plan(NODE_OF_ONE, 0.0)
    starts = replay(one, lambda _: 0.3, 600.0)
    assert (len(of(INFO, starts)), len(of(HEALTH, starts)), len(of(USAGES, starts)), len(of(BOARD, starts))) == (
        40,
        10,
        10,
        1,
    )
    assert one.stretch() == 1.0


def test_nothing_is_due_between_two_calls() -> None:
    one = agenda()
    one.plan({INFO: Plan(15, 1)}, 0.0)
    one.done(INFO, 0.0, 1.0, succeeded=True)
    assert one.next(14.9) is None
    assert one.next(15.0) == INFO


@given(
    share=st.floats(0.01, 1.0),
    burst_s=st.floats(0.5, 60.0),
    durations_s=st.lists(st.floats(0.0, 30.0), min_size=1, max_size=60),
    jitters=st.lists(st.floats(0.0, 1.0), min_size=1, max_size=5),
    every_s=st.floats(1.0, 100.0),
)
def test_the_share_never_exceeds_the_cap_by_more_than_the_burst(
    share: float, burst_s: float, durations_s: list[float], jitters: list[float], every_s: float
) -> None:
    """From any call's start to any later one's: what was spent fits the cap, one burst, and the last call's length."""
    turns = iter(range(10**6))
    one = agenda(share, burst_s, lambda: jitters[next(turns) % len(jitters)])
    one.plan({task: Plan(every_s, plan.rank) for task, plan in NODE_OF_ONE.items()}, 0.0)
    calls: list[tuple[float, float]] = []
    now_s = 0.0
    for took_s in durations_s:
        task = one.next(now_s)
        if task is not None:
            one.done(task, now_s, now_s + took_s, succeeded=True)
            calls.append((now_s, took_s))
            now_s += took_s
        else:
            now_s += 1.0
    for first, (began_s, _) in enumerate(calls):
        spent_s = 0.0
        for at_s, took_s in calls[first:]:
            assert spent_s <= burst_s + share * (at_s - began_s) + 1e-6
            spent_s += took_s


def test_a_slow_tool_is_asked_less_often_and_keeps_the_cap() -> None:
    one = agenda(share=0.2, burst_s=5.0)
    one.plan(NODE_OF_ONE, 0.0)
    starts = replay(one, lambda _: 5.0, 3600.0)
    assert len(starts) * 5.0 <= 5.0 + 0.2 * 3600.0 + 5.0
    assert one.share(3600.0) == pytest.approx(0.2, abs=0.05)
    assert one.stretch() > 2.0


def test_a_slow_tool_still_gets_the_vital_questions_asked() -> None:
    one = agenda(share=0.2, burst_s=5.0)
    one.plan(NODE_OF_ONE, 0.0)
    starts = replay(one, lambda _: 2.0, 3600.0)
    gaps_s = [after - before for before, after in pairwise(of(INFO, starts))]
    assert max(gaps_s) <= 3 * 15 * one.stretch()
    assert len(of(HEALTH, starts)) >= 50


def test_nobody_starves_while_the_tool_is_quick() -> None:
    """16 dies at 0.1 s a call: every task comes within three of its periods, by which its readings age."""
    plans = {INFO: Plan(15, 1)}
    for npu in range(8):
        plans |= {Task("npu_health", Target(npu, chip, (chip,))): Plan(60, 2) for chip in (0, 1)}
        plans |= {Task(probe, Target(npu, None, (0, 1))): Plan(60, 4) for probe in ("npu_usages", "npu_common")}
        plans[Task("npu_ecc", Target(npu, None, (0, 1)))] = Plan(60, 2)
    one = agenda(jitter=lambda: 0.5)
    one.plan(plans, 0.0)
    starts = replay(one, lambda _: 0.1, 1800.0)
    for task, plan in plans.items():
        times_s = [0.0, *of(task, starts), 1800.0]
        longest_s = max(after - before for before, after in pairwise(times_s))
        assert longest_s <= plan.every_s * 1.1, task


def test_only_calls_that_succeed_stretch_the_periods() -> None:
    """A hang makes readings stale; it must not make old ones last longer."""
    one = agenda()
    one.plan({INFO: Plan(15, 1)}, 0.0)
    one.done(INFO, 0.0, 0.5, succeeded=True)
    for turn in range(1, 20):
        one.done(INFO, turn * 60.0, turn * 60.0 + 12.0, succeeded=False)
    assert one.stretch() == 1.0
    one.done(INFO, 2000.0, 2012.0, succeeded=True)
    assert one.stretch() > 1.0


def test_the_stretch_is_demand_over_share() -> None:
    one = agenda(share=0.1)
    one.plan({INFO: Plan(15, 1), HEALTH: Plan(60, 2)}, 0.0)
    one.done(INFO, 0.0, 3.0, succeeded=True)
    one.done(HEALTH, 3.0, 9.0, succeeded=True)
    assert one.stretch() == pytest.approx((3 / 15 + 6 / 60) / 0.1)


def test_an_empty_bucket_starts_nothing_until_it_has_filled() -> None:
    one = agenda(share=0.2, burst_s=2.0)
    one.plan({INFO: Plan(1, 1)}, 0.0)
    assert one.next(0.0) == INFO
    one.done(INFO, 0.0, 4.0, succeeded=False)
    # 4 s spent of 2: the 2 s of debt take 10 s to pay at a fifth.
    assert one.next(13.9) is None
    assert one.next(14.1) == INFO


def test_tasks_of_a_card_that_is_gone_leave() -> None:
    one = agenda()
    one.plan({INFO: Plan(15, 1), HEALTH: Plan(60, 2)}, 0.0)
    one.plan({INFO: Plan(15, 1)}, 0.0)
    one.done(INFO, 0.0, 0.1, succeeded=True)
    assert one.next(10.0) is None


def test_a_call_whose_task_left_meanwhile_still_costs() -> None:
    one = agenda(burst_s=2.0)
    one.plan({HEALTH: Plan(60, 2)}, 0.0)
    one.plan({INFO: Plan(15, 1)}, 1.0)
    one.done(HEALTH, 0.0, 10.0, succeeded=True)
    assert one.next(10.0) is None
    assert one.share(10.0) == pytest.approx(10 / 120)
    assert one.stretch() == 1.0


def test_planning_again_moves_nothing() -> None:
    one = agenda()
    one.plan({INFO: Plan(15, 1)}, 0.0)
    one.done(INFO, 0.0, 0.1, succeeded=True)
    for second in range(1, 15):
        one.plan({INFO: Plan(15, 1)}, float(second))
    assert one.next(14.5) is None
    assert one.next(15.0) == INFO


def test_a_shorter_period_counts_from_now() -> None:
    one = agenda()
    one.plan({HEALTH: Plan(3600, 2)}, 0.0)
    one.done(HEALTH, 0.0, 0.1, succeeded=True)
    one.plan({HEALTH: Plan(30, 2)}, 100.0)
    assert one.next(129.0) is None
    assert one.next(130.0) == HEALTH


def test_who_is_in_a_hurry_comes_at_once_and_then_in_its_turn_again() -> None:
    one = agenda()
    one.plan({HEALTH: Plan(60, 2)}, 0.0)
    one.done(HEALTH, 0.0, 0.1, succeeded=True)
    assert one.next(10.0) is None
    one.hurry([HEALTH, INFO], 10.0)
    assert one.next(10.0) == HEALTH
    one.done(HEALTH, 10.0, 10.1, succeeded=True)
    assert one.next(69.0) is None
    assert one.next(70.0) == HEALTH


def test_hurry_does_not_break_the_cap() -> None:
    one = agenda(burst_s=1.0)
    one.plan({HEALTH: Plan(60, 2)}, 0.0)
    one.done(HEALTH, 0.0, 10.0, succeeded=True)
    one.hurry([HEALTH], 11.0)
    assert one.next(11.0) is None


def test_jitter_brings_calls_forward_by_at_most_a_tenth() -> None:
    for jitter, due_s in ((0.0, 60.0), (0.5, 57.0), (1.0, 54.0)):
        one = agenda(jitter=lambda jitter=jitter: jitter)  # type: ignore[misc]
        one.plan({HEALTH: Plan(60, 2)}, 0.0)
        one.done(HEALTH, 0.0, 0.1, succeeded=True)
        assert one.next(due_s - 0.1) is None
        assert one.next(due_s) == HEALTH


def test_what_can_wait_is_spread_over_the_first_minute() -> None:
    dice = iter((0.0, 0.25, 0.5, 0.75))
    one = agenda(jitter=lambda: next(dice, 0.0))
    tasks = [Task("npu_usages", Target(npu, None, (0,))) for npu in range(4)]
    one.plan(dict.fromkeys(tasks, Plan(3600, 4)), 100.0)
    started: list[tuple[float, int | None]] = []
    for second in range(100, 170):
        task = one.next(float(second))
        if task is not None:
            one.done(task, second, second, succeeded=True)
            started.append((second, task.target.npu))
    assert started == [(100, 0), (115, 1), (130, 2), (145, 3)]


def test_the_share_is_that_of_the_last_two_minutes() -> None:
    one = agenda()
    one.plan({INFO: Plan(15, 1)}, 0.0)
    assert one.share(0.0) is None
    one.done(INFO, 0.0, 12.0, succeeded=True)
    one.done(INFO, 60.0, 66.0, succeeded=True)
    assert one.share(100.0) == pytest.approx(18 / 120)
    assert one.share(150.0) == pytest.approx(6 / 120)
    # Calm is a share of nothing; only before the first call nobody knows.
    assert one.share(1000.0) == 0.0


def test_calls_that_take_no_time_do_not_come_back_at_once() -> None:
    """A missing tool fails in no time at all."""
    one = agenda()
    one.plan({INFO: Plan(15, 1)}, 0.0)
    one.done(INFO, 0.0, 0.0, succeeded=False)
    assert one.next(1.0) is None
    assert one.next(15.0) == INFO


@pytest.mark.parametrize("took_s", [0.5, 1.0, 2.0, 4.0])
@pytest.mark.parametrize("cards_that_can_wait", [8, 1])
def test_nobody_goes_stale_because_the_tool_is_slow(took_s: float, cards_that_can_wait: int) -> None:
    """Every task comes within three of its stretched periods, what can wait too: also where it is a small part."""
    plans = {INFO: Plan(15, 1)}
    for npu in range(8):
        plans |= {Task("npu_health", Target(npu, chip, (chip,))): Plan(60, 2) for chip in (0, 1)}
        plans[Task("npu_ecc", Target(npu, None, (0, 1)))] = Plan(60, 2)
        if npu < cards_that_can_wait:
            plans[Task("npu_usages", Target(npu, None, (0, 1)))] = Plan(60, 4)
    one = agenda(jitter=lambda: 0.5)
    one.plan(plans, 0.0)
    until_s = 6 * 3600.0
    starts = replay(one, lambda _: took_s, until_s)
    stretch = one.stretch()
    for task, plan in plans.items():
        times_s = [*of(task, starts), until_s]
        # The first round is not over at once: its tasks were all due together.
        settled_s = [at_s for at_s in times_s if at_s > 1800.0]
        longest_s = max(after - before for before, after in pairwise([1800.0, *settled_s]))
        assert longest_s <= 3 * plan.every_s * stretch, (task, longest_s, stretch)


LINK, STAT, OTHER_LINK = (
    Task("hccn_link", Target(2, 0, (0,), logic_id=0)),
    Task("hccn_stat", Target(2, 0, (0,), logic_id=0)),
    Task("hccn_link", Target(6, 0, (0,), logic_id=1)),
)
PORTS = {task: Plan(60, 4) for task in (LINK, STAT, OTHER_LINK)}


def of_ports(plans: dict[Task, Plan]) -> Agenda:
    """An agenda whose cap never holds these up."""
    one = agenda(share=1.0, burst_s=1e9)
    one.plan(plans, 0.0)
    return one


def due(one: Agenda, now_s: float) -> set[Task]:
    """All that would be started now."""
    one, found = deepcopy(one), set()
    while (task := one.next(now_s)) is not None:
        one.done(task, now_s, now_s, succeeded=False)
        found.add(task)
    return found


def hang(one: Agenda, now_s: float) -> float:
    """The tool hangs over LINK for ten seconds; when it is asked about it again."""
    one.done(LINK, now_s, now_s + 10.0, succeeded=False, timed_out=True)
    return next(second for second in (now_s + 10.0 + half / 2 for half in range(2400)) if LINK in due(one, second))


def test_a_port_rests_longer_after_each_hang_up_to_ten_minutes() -> None:
    one = of_ports(PORTS)
    now_s, rests = 0.0, []
    for _ in range(6):
        again_s = hang(one, now_s)
        rests.append(again_s - now_s - 10.0)
        now_s = again_s
    assert rests == [60.0, 120.0, 240.0, 480.0, 600.0, 600.0]


def test_a_port_that_hung_for_a_month_still_rests_ten_minutes_and_leaves_no_trace_in_memory() -> None:
    one = of_ports(PORTS)
    for number in range(5000):
        one.done(LINK, 610.0 * number, 610.0 * number + 10.0, succeeded=False, timed_out=True)
    assert hang(one, 610.0 * 5000) == 610.0 * 5001
    assert len(pickle.dumps(one)) < 2000


def test_a_hang_makes_every_question_of_that_port_rest_and_no_other_port() -> None:
    one = of_ports(PORTS)
    hang(one, 0.0)
    assert due(one, 69.5) == {OTHER_LINK}
    assert due(one, 70.0) == {LINK, STAT, OTHER_LINK}


def test_an_answer_ends_the_rest_and_the_count_and_a_failure_neither() -> None:
    one = of_ports(PORTS)
    assert hang(one, 0.0) == 70.0
    one.done(STAT, 70.0, 70.1, succeeded=False)
    assert hang(one, 71.0) == 201.0
    one.done(STAT, 201.0, 201.1, succeeded=True)
    assert hang(one, 202.0) == 272.0


def test_a_new_plan_does_not_end_a_rest_nor_get_round_it_with_a_new_question() -> None:
    one = of_ports({LINK: Plan(60, 4)})
    hang(one, 0.0)
    one.plan({LINK: Plan(5, 4), STAT: Plan(5, 4)}, 20.0)
    assert due(one, 69.5) == set()
    assert due(one, 70.0) == {LINK, STAT}


def test_a_port_that_is_no_longer_asked_about_is_forgotten_with_its_rest() -> None:
    one = of_ports(PORTS)
    hang(one, 0.0)
    one.plan({OTHER_LINK: Plan(60, 4)}, 20.0)
    one.plan(PORTS, 30.0)
    assert due(one, 30.0) == {LINK, STAT, OTHER_LINK}
    assert hang(one, 30.0) == 100.0


def test_the_tool_of_all_cards_does_not_rest_over_one_of_them() -> None:
    one = agenda(share=1.0)
    one.plan({HEALTH: Plan(15, 2)}, 0.0)
    one.done(HEALTH, 0.0, 10.0, succeeded=False, timed_out=True)
    assert one.next(15.0) == HEALTH


def test_between_two_calls_the_agenda_says_how_long_nothing_is_due() -> None:
    one = agenda()
    assert one.idle_s(0.0) == float("inf")
    one.plan({INFO: Plan(15, 1)}, 0.0)
    assert one.idle_s(0.0) == 0.0
    one.done(INFO, 0.0, 1.0, succeeded=True)
    assert one.idle_s(1.0) == 14.0
    assert one.idle_s(20.0) == 0.0


def test_while_the_share_is_spent_the_agenda_says_when_there_is_some_again() -> None:
    one = agenda(share=0.2, burst_s=1.0)
    one.plan({INFO: Plan(15, 1), HEALTH: Plan(60, 2)}, 0.0)
    assert one.next(0.0) == INFO
    one.done(INFO, 0.0, 3.0, succeeded=True)
    rest_s = one.idle_s(3.0)
    assert rest_s == pytest.approx(10.001), "the 2 s that were too many come at a fifth of a second each"
    assert one.next(3.0 + rest_s - 0.01) is None
    assert one.next(3.0 + rest_s) == HEALTH
