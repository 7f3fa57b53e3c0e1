"""What is done to a scheduler: cell by cell, and over random histories of verdicts, people and budgets."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from npu_watchd.decide.acting import (
    NONE,
    STALE_S,
    Do,
    Grip,
    Memory,
    Wish,
    mark_of,
    next_step,
    remembered,
    wish_of,
)
from npu_watchd.model.acting import MARK, Allowance, Hold, Holder, Why
from npu_watchd.model.finding import Event
from npu_watchd.model.ids import NODE
from npu_watchd.model.reading import Failure, FailureKind
from npu_watchd.model.verdict import State, Verdict

FREE = Hold(Holder.NOBODY, "IDLE")
ALICES = Hold(Holder.OTHER, "IDLE+DRAIN, alice")
OURS = Hold(Holder.OURS, "IDLE+DRAIN, npu-watchd: [q1]", "q1")
GONE = Failure(FailureKind.TIMEOUT, "the controller does not answer")
GRANTED, SPENT = Allowance(True, "1 of 20"), Allowance(False, "9 of 20")
ILL = Wish("q1", 5.0, newest=7, released=0)
WELL = Wish(None, 5.0, newest=9, released=0)
RELEASED = Wish(None, 5.0, newest=9, released=8)
HELD = Memory(Grip("q1", "q1", since=7))
FREED = Memory(Grip("q1", "q1", since=7, released=True))
LET_GO = replace(HELD, given_back="q1")

CASES = [
    (ILL, FREE, NONE, None, (Do.ASK, None)),
    (ILL, FREE, NONE, GRANTED, (Do.HOLD, None)),
    (ILL, FREE, NONE, SPENT, (Do.NOTHING, Why.BUDGET_SPENT)),
    (ILL, FREE, NONE, GONE, (Do.NOTHING, Why.BUDGET_UNKNOWN)),
    (ILL, ALICES, NONE, GRANTED, (Do.NOTHING, Why.HELD_BY_OTHER)),
    (ILL, ALICES, HELD, GRANTED, (Do.NOTHING, Why.HELD_BY_OTHER)),
    (ILL, OURS, NONE, GRANTED, (Do.NOTHING, None)),
    (ILL, OURS, HELD, GRANTED, (Do.NOTHING, None)),
    (ILL, FREE, HELD, GRANTED, (Do.RELEASE, None)),
    (ILL, FREE, LET_GO, GRANTED, (Do.FREE, None)),
    (Wish("q2", 5.0, newest=12, released=10), FREE, HELD, GRANTED, (Do.FREE, None)),
    (Wish("q2", 5.0, newest=12, released=0), FREE, FREED, GRANTED, (Do.FREE, None)),
    (ILL, FREE, Memory(given_back="q1"), GRANTED, (Do.NOTHING, Why.GIVEN_BACK)),
    (ILL, FREE, Memory(given_back="q0"), GRANTED, (Do.HOLD, None)),
    (ILL, GONE, NONE, GRANTED, (Do.NOTHING, Why.UNREACHABLE)),
    (replace(ILL, age_s=STALE_S + 1), FREE, NONE, GRANTED, (Do.NOTHING, Why.STALE)),
    (replace(RELEASED, age_s=STALE_S + 1), OURS, FREED, None, (Do.NOTHING, Why.STALE)),
    (WELL, FREE, NONE, None, (Do.NOTHING, None)),
    (WELL, ALICES, NONE, None, (Do.NOTHING, None)),
    (WELL, GONE, NONE, None, (Do.NOTHING, Why.UNREACHABLE)),
    (WELL, GONE, HELD, None, (Do.NOTHING, Why.UNREACHABLE)),
    (WELL, OURS, NONE, None, (Do.NOTHING, Why.UNKNOWN_MARK)),
    (WELL, OURS, HELD, None, (Do.NOTHING, Why.NOT_RELEASED)),
    (RELEASED, OURS, FREED, None, (Do.FREE, None)),
    (RELEASED, ALICES, FREED, None, (Do.FREE, None)),
    (RELEASED, OURS, NONE, None, (Do.NOTHING, Why.UNKNOWN_MARK)),
    (WELL, FREE, LET_GO, None, (Do.FREE, None)),
]


@pytest.mark.parametrize(("wish", "hold", "memory", "allowance", "expected"), CASES)
def test_each_case_has_its_step(
    wish: Wish,
    hold: Hold | Failure,
    memory: Memory,
    allowance: Allowance | Failure | None,
    expected: tuple[Do, Why | None],
) -> None:
    step = next_step(wish, hold, memory, allowance, dry_run=False)
    assert (step.do, step.why) == expected
    assert (step.text != "") is (step.why is not None or step.do in (Do.HOLD, Do.FREE, Do.RELEASE))


@pytest.mark.parametrize(("wish", "hold", "memory", "allowance", "expected"), CASES)
def test_a_dry_run_changes_no_scheduler(
    wish: Wish,
    hold: Hold | Failure,
    memory: Memory,
    allowance: Allowance | Failure | None,
    expected: tuple[Do, Why | None],
) -> None:
    step = next_step(wish, hold, memory, allowance, dry_run=True)
    acts = expected[0] in (Do.HOLD, Do.FREE)
    assert (step.do, step.why) == ((Do.NOTHING, Why.DRY_RUN) if acts else expected)


def test_a_mark_is_known_from_the_line_on_at_which_it_was_seen_under_a_quarantine() -> None:
    assert remembered(ILL, OURS, NONE) == HELD
    assert remembered(replace(ILL, newest=90), OURS, HELD) == HELD
    assert remembered(WELL, OURS, NONE) == NONE
    assert remembered(ILL, ALICES, NONE) == NONE
    assert remembered(ILL, GONE, HELD) == HELD


def test_a_mark_that_outlives_its_quarantine_stands_for_the_next() -> None:
    second = Wish("q2", 5.0, newest=40, released=38)
    after = remembered(second, OURS, HELD)
    assert after == Memory(Grip("q1", "q2", since=40))
    assert next_step(replace(second, mark=None), OURS, after, None, dry_run=False).why is Why.NOT_RELEASED


def test_a_release_is_remembered_when_the_journal_has_long_forgotten_it() -> None:
    after = remembered(RELEASED, GONE, HELD)
    assert after == FREED
    assert remembered(WELL, OURS, after) == FREED
    assert remembered(replace(ILL, newest=12), OURS, after) == Memory(Grip("q1", "q1", since=12))


def test_a_release_of_before_the_grip_is_not_about_it() -> None:
    assert remembered(replace(RELEASED, released=7), OURS, HELD) == HELD


def node(state: State, since_s: float = 1_790_000_000.25) -> Verdict:
    return Verdict(NODE, None, state, since_s, ())


def test_the_mark_says_when_the_quarantine_began_and_is_the_same_for_the_same_one() -> None:
    assert mark_of(node(State.QUARANTINE)) == "q20260921T141320Z-b7edf43f"
    assert mark_of(node(State.QUARANTINE, 1_790_000_000.5)) == "q20260921T141320Z-97fc7296"
    assert re.fullmatch(MARK, str(mark_of(node(State.QUARANTINE, 0.0))))
    assert {mark_of(node(state)) for state in State if state is not State.QUARANTINE} == {None}


def test_the_wish_is_the_newest_verdicts() -> None:
    lines = [
        Event(4, 1.0, "decided_release", ""),
        Event(6, 2.0, "decided_ack", ""),
        Event(9, 3.0, "finding_opened", ""),
    ]
    assert wish_of(node(State.PROBATION), lines, 2.0) == Wish(None, 2.0, newest=9, released=4)
    assert wish_of(node(State.UNKNOWN), [], 2.0) == Wish(None, 2.0, newest=0, released=0)


# Random histories


@dataclass
class World:
    """A scheduler, a node's verdict, and people; what must never happen is asserted where it would."""

    hold: Hold = FREE
    number: int = 1
    released: int = 0
    quarantine: str | None = None
    memory: Memory = NONE
    budget: Allowance | Failure = GRANTED
    reachable: bool = True
    dry_run: bool = False
    let_go: frozenset[str] = frozenset()
    """Quarantines from which a person took the node at the scheduler, while our mark was known to hold it."""

    def falls_ill(self) -> None:
        if self.quarantine is None:
            self.number += 1
            self.quarantine = f"q{self.number}"

    def is_given_back_unheard(self) -> None:
        """Our own act went through, and the daemon died before it heard of it."""
        if self.quarantine is None and self.memory.grip is not None and self.memory.grip.released:
            self.hold = FREE if self.hold.holder is Holder.OURS else self.hold

    def is_released(self) -> None:
        if self.quarantine is not None:
            self.number += 1
            self.quarantine, self.released = None, self.number

    def loses_its_verdicts(self) -> None:
        """state.db was of no use."""
        self.quarantine, self.released, self.memory = None, 0, NONE

    def changes_its_config(self) -> None:
        """`node_when`: the quarantine ends without anybody's word."""
        self.quarantine = None

    def person_drains(self) -> None:
        self.hold = ALICES

    def person_resumes(self) -> None:
        if self.hold is not FREE and self.memory.grip is not None and self.quarantine is not None:
            self.let_go |= {self.memory.grip.wanted}
        self.hold = FREE

    def turns(self) -> None:
        """As warden.py goes about it, until there is nothing to do."""
        for _ in range(6):
            wish = Wish(self.quarantine, 1.0, self.number, self.released)
            seen: Hold | Failure = self.hold if self.reachable else GONE
            self.memory = remembered(wish, seen, self.memory)
            step = next_step(wish, seen, self.memory, None, dry_run=self.dry_run)
            if step.do is Do.ASK:
                step = next_step(wish, seen, self.memory, self.budget, dry_run=self.dry_run)
            if step.do is Do.NOTHING:
                return
            assert self.reachable
            getattr(self, f"_{step.do.value}")(wish)
        raise AssertionError("it finds no rest")

    def _hold(self, wish: Wish) -> None:
        assert self.hold.holder is Holder.NOBODY
        assert self.budget == GRANTED
        assert not self.dry_run
        assert wish.mark is not None
        assert wish.mark not in self.let_go, "a person has given the node back"
        self.hold = Hold(Holder.OURS, "", wish.mark)
        self.memory = remembered(wish, self.hold, self.memory)

    def _free(self, _: Wish) -> None:
        grip = self.memory.grip
        assert grip is not None
        assert not self.dry_run
        if self.hold.holder is Holder.OURS and self.hold.mark == grip.mark:
            assert self.quarantine is None
            assert self.released > grip.since
            self.hold = FREE
        self.memory = replace(self.memory, grip=None)

    def _release(self, _: Wish) -> None:
        grip = self.memory.grip
        assert grip is not None
        assert self.hold.holder is Holder.NOBODY
        assert grip.wanted in self.let_go, "nobody but a person has given it back"
        self.is_released()
        self.memory = replace(self.memory, given_back=grip.wanted)


ACTS = st.sampled_from(
    [
        World.falls_ill,
        World.is_released,
        World.loses_its_verdicts,
        World.changes_its_config,
        World.is_given_back_unheard,
        World.person_drains,
        World.person_resumes,
        World.turns,
        lambda world: setattr(world, "budget", SPENT),
        lambda world: setattr(world, "budget", GONE),
        lambda world: setattr(world, "budget", GRANTED),
        lambda world: setattr(world, "reachable", not world.reachable),
        lambda world: setattr(world, "dry_run", not world.dry_run),
    ]
)


@settings(max_examples=1500)
@given(st.lists(ACTS, max_size=25))
def test_over_any_history_only_own_marks_are_undone_and_only_after_a_release(acts: list[object]) -> None:
    world = World()
    for act in acts:
        before = world.hold
        act(world)  # type: ignore[operator]
        if before.holder is Holder.OTHER and act not in (World.person_resumes, World.person_drains):
            assert world.hold == before
    world.reachable, world.budget, world.dry_run = True, GRANTED, False
    world.turns()
    world.turns()
    if world.quarantine is not None and world.quarantine not in world.let_go:
        assert world.hold.holder is not Holder.NOBODY, "in the end an ill node is out of use"
