"""Who may start a tool when, on a clock that only the test moves."""

from __future__ import annotations

from npu_watchd.model.reading import Failure, FailureKind
from npu_watchd.sources.strays import Process
from npu_watchd.sources.turns import Abandoned, Stuck, Turns

CAT = Process(pid=4194999, name="npu-smi", state="D", parent=1, group=4711, session=4711, started_ticks=90)


class World:
    """A clock, and a stuck run that ends when the test says so."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.ended = False
        self.turns = Turns(lambda: self.now_s, backoff_s=10.0)

    def claim(self) -> Failure | None:
        return self.turns.claim("npu-smi", "npu-smi info", self.now_s)

    def run_and_get_stuck(self) -> None:
        assert self.claim() is None
        self.ended = False
        report = Abandoned("npu-smi info", 4711, (CAT,), self.now_s)
        self.turns.release("npu-smi", Stuck(report, gone=lambda: self.ended))

    def rest_s(self) -> int:
        """How long the tool rests once its stuck run has ended."""
        self.ended = True
        refusal = self.claim()
        assert refusal is not None
        assert refusal.kind is FailureKind.WEDGED
        return int(refusal.detail.rsplit(" ", 2)[1])


def test_a_tool_is_refused_while_its_stuck_run_lives_however_long_that_is() -> None:
    world = World()
    world.run_and_get_stuck()
    world.now_s += 86400.0
    assert world.claim() == Failure(
        FailureKind.WEDGED,
        "npu-smi info: not started. `npu-smi info` was killed 86400 s ago and is still there, out of reach of SIGKILL: "
        "pid 4194999 (npu-smi, state D); no second npu-smi is started until it is gone; "
        "check `cat /proc/4194999/stack` and `dmesg` for a call that never returns",
    )
    assert world.turns.claim("hccn_tool", "hccn_tool -i 0 -link -g", world.now_s) is None


def test_the_rest_doubles_with_each_stuck_run_up_to_ten_minutes() -> None:
    world = World()
    rests = []
    for _ in range(9):
        world.run_and_get_stuck()
        rests.append(world.rest_s())
        world.now_s += rests[-1]
    assert rests == [10, 20, 40, 80, 160, 320, 600, 600, 600]


def test_a_run_that_ends_makes_the_next_rest_short_again() -> None:
    world = World()
    for expected in (10, 20):
        world.run_and_get_stuck()
        assert world.rest_s() == expected
        world.now_s += expected
    assert world.claim() is None
    world.turns.release("npu-smi", None)
    world.run_and_get_stuck()
    assert world.rest_s() == 10


def test_a_resting_tool_starts_when_its_rest_is_over_and_not_before() -> None:
    world = World()
    world.run_and_get_stuck()
    assert world.rest_s() == 10
    world.now_s += 9.9
    assert world.claim() is not None
    world.now_s += 0.1
    assert world.claim() is None


def test_abandoned_lists_a_run_until_it_is_gone() -> None:
    world = World()
    assert world.turns.abandoned() == {}
    world.run_and_get_stuck()
    assert world.turns.abandoned() == {"npu-smi": Abandoned("npu-smi info", 4711, (CAT,), 100.0)}
    world.ended = True
    assert world.turns.abandoned() == {}


def test_closing_tells_whether_a_run_is_still_under_way() -> None:
    world = World()
    assert world.claim() is None
    assert world.turns.close(0.01) is False
    world.turns.release("npu-smi", None)
    assert world.turns.close(0.01) is True
