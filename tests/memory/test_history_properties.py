"""Random pasts of one device: the history never counts an error that was not there, and a restart changes no answer."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from npu_watchd.memory.growth import Growth
from npu_watchd.memory.history import Changes, History
from npu_watchd.model.ids import NODE, Subject
from npu_watchd.model.snapshot import ProbeState, Snapshot
from tests.memory.past import CHIP, DOUBLE, ERRORS, LIFETIME, PORT, chip, hbm, node, port

QUIET = ("read", "read", "read", "blind", "restart", "hide_table", "show_table")
RESETS = ("reset", "reboot", "new_driver")
steps = st.one_of(st.integers(1, 4), st.sampled_from(QUIET))
rough_steps = st.one_of(steps, st.sampled_from((*RESETS, "zero_read")))


@dataclass
class World:
    """A device whose true errors are known, and the history of somebody who reads its counters once a minute."""

    history: History = field(default_factory=History)
    kept: Changes = field(default_factory=Changes)
    now_s: float = 1000.0
    true: int = 0
    """Errors since the first sight of the count."""
    read: int = 0
    """Those of them that a reading could have shown."""
    since_reset: int = 3
    life: int = 9
    boot: int = 1
    driver: int = 1
    table: bool = True
    failed_before: bool = False

    def play(self, step: int | str) -> None:
        if isinstance(step, int):
            self.true, self.since_reset, self.life = self.true + step, self.since_reset + step, self.life + step
            return
        if step in ("hide_table", "show_table"):
            self.table = step == "show_table"
        elif step == "restart":
            self.kept = self.kept.then(self.history.changes())
            self.history = History.restore(self.kept)
        elif step in RESETS:
            self.since_reset = 0
            self.boot += step == "reboot"
            self.driver += step == "new_driver"
        elif step == "zero_read" and not self.failed_before:
            self._observe(0, 0)
            self.failed_before = True
        elif step == "blind":
            self._observe(None, None)
        else:
            self._observe(self.since_reset, self.life)
            self.read, self.failed_before = self.true, False

    def _observe(self, since_reset: int | None, life: int | None) -> None:
        self.now_s += 60.0
        ecc = {} if since_reset is None else hbm(since_reset, life=life)
        up = self.true % 2 == 0
        probes = (ProbeState("npu_ecc", "3", up=since_reset is not None, failure=None),)
        codes = None if since_reset is None else ("80e01801",) if self.true % 3 == 0 else ()
        seen: Snapshot = node(
            chip(memory_errors=ecc, error_codes=codes),
            port=port(self.true, up=up),
            boot_id=f"boot-{self.boot}",
            driver=f"{self.driver}" if self.table else None,
            probes=probes,
        )
        self.history.observe(seen, self.now_s)
        self.kept = self.kept.then(self.history.changes())

    def counted(self, metric: str) -> float:
        found = self.history.increase(metric, CHIP, DOUBLE, 1e9)
        assert found is not None
        return found.count


def played(story: list[int | str]) -> World:
    world = World()
    world.play("read")
    world.true = world.read = 0
    for step in story:
        world.play(step)
    return world


@given(st.lists(steps, max_size=40))
def test_without_resets_the_growth_is_exact_whatever_blindness_and_restarts_there_were(story: list[int | str]) -> None:
    world = played(story)
    assert world.counted(ERRORS) == world.read
    assert world.counted(LIFETIME) == world.read


@settings(max_examples=400)
@given(st.lists(rough_steps, max_size=60))
def test_with_resets_and_failed_reads_no_error_is_invented(story: list[int | str]) -> None:
    world = played(story)
    assert 0 <= world.counted(ERRORS) <= world.true
    assert 0 <= world.counted(LIFETIME) <= world.true


@given(st.lists(rough_steps, max_size=60))
def test_a_lifetime_count_is_exact_over_all_of_them_once_it_is_read_again(story: list[int | str]) -> None:
    world = played(story)
    world.play("read")
    assert world.counted(LIFETIME) == world.true


SPELLS: list[tuple[str, Subject]] = [
    ("port_up", PORT),
    ("error_code:80e01801", CHIP),
    ("probe_up:npu_ecc", CHIP),
]


def answers(history: History) -> list[object]:
    found: list[object] = [history.now_s, history.refused]
    for window_s in (90.0, 600.0, 1e9):
        found += [history.increase(metric, CHIP, DOUBLE, window_s) for metric in (ERRORS, LIFETIME)]
        found.append(history.increase("npu_node_rdma_port_link_downs_total", PORT, (), window_s))
        for name, subject in SPELLS:
            found += [history.spells(name, subject, window_s, value=value) for value in (True, False)]
    for name, subject in (*SPELLS, ("present", CHIP), ("probe_up:npu_ecc", NODE)):
        found += [history.state(name, subject), history.since(name, subject)]
    found += [dict(history.series(metric, CHIP)) for metric in (ERRORS, LIFETIME)]
    found.append(history.peak("npu_node_rdma_port_bits_per_second", PORT, ()))
    return found


@given(st.lists(rough_steps, max_size=60))
def test_what_was_kept_answers_as_the_history_itself_does(story: list[int | str]) -> None:
    world = played(story)
    expected = answers(world.history)
    assert answers(History.restore(world.kept)) == expected
    assert answers(History.restore(world.history.everything())) == expected


@given(st.lists(rough_steps, max_size=40), st.lists(rough_steps, max_size=20))
def test_a_history_that_goes_on_from_what_was_kept_goes_on_as_if_nothing_had_been(
    story: list[int | str], later: list[int | str]
) -> None:
    world, other = played(story), played(story)
    other.play("restart")
    for step in later:
        world.play(step)
        other.play(step)
    # The two cannot agree on how long ago a count was read, where nobody has read it since.
    for metric in (ERRORS, LIFETIME):
        assert other.counted(metric) == world.counted(metric)


points = st.lists(st.tuples(st.integers(1, 50), st.integers(1, 9)), max_size=60)


@given(points, st.integers(0, 4), st.floats(0, 3000))
def test_merged_growth_keeps_its_sum_and_never_tells_a_window_too_much(
    steps: list[tuple[int, int]], merges: int, start_s: float
) -> None:
    exact, merged, now_s = Growth(), Growth(), 0.0
    for pause, count in steps:
        for growth in (exact, merged):
            growth.add(now_s, now_s + pause, now_s + pause, count)
        now_s += pause
    for _ in range(merges):
        merged.merge_oldest()
    total, whole = sum(count for _, count in steps), merged.since(-1.0)
    assert (whole[0] if whole else 0.0) == total
    assert sum(count for *_, count in merged.points()) == total
    truth, told = exact.since(start_s), merged.since(start_s)
    assert (told[0] if told else 0.0) <= (truth[0] if truth else 0.0)


@given(points, st.floats(0, 3000), st.floats(0, 3000))
def test_forgetting_what_is_old_changes_nothing_of_what_is_new(
    steps: list[tuple[int, int]], until_s: float, start_s: float
) -> None:
    growth, now_s = Growth(), 0.0
    for pause, count in steps:
        growth.add(now_s, now_s + pause, now_s + pause, count)
        now_s += pause
    before = growth.since(max(start_s, until_s))
    growth.forget(until_s)
    assert growth.since(max(start_s, until_s)) == before
