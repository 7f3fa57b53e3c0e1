"""The judge's invariants over ten thousand random lives of a device: faults, blindness, restarts, resets, people."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from npu_watchd.model.reading import NOT_READ_YET
from npu_watchd.model.verdict import Order, State
from tests.decide.court import LIMITS, THREE, TIMEOUT, Court, bad, held, mild

Deed = Callable[[Court], object]


def _some_work(court: Court) -> None:
    if court.verdict.state is State.PROBATION:
        court.lives(0.05, at_work=True)


DEEDS: tuple[Deed, ...] = (
    lambda court: court.finds(),
    lambda court: court.finds(bad(1)),
    lambda court: court.finds(bad(2)),
    lambda court: court.finds(bad(1, "isolated_pages")),
    lambda court: court.finds(*map(held, court.findings)),
    lambda court: court.finds(mild()),
    lambda court: court.finds(mild("jobs_share_device")),
    lambda court: court.finds(mild(), bad(1)),
    lambda court: court.sees(),
    lambda court: court.sees(at_work=True),
    lambda court: court.sees(TIMEOUT),
    lambda court: court.sees(NOT_READ_YET),
    lambda court: court.restarts(),
    lambda court: court.resets() if THREE in court.cases else None,
    lambda court: court.gets_a_new_chip() if THREE in court.cases else None,
    lambda court: court.says(Order.RELEASE),
    lambda court: court.says(Order.RELEASE, force=True),
    lambda court: court.says(Order.QUARANTINE),
    lambda court: court.says(Order.MAINTENANCE, for_s=600),
    lambda court: court.says(Order.MAINTENANCE_OVER),
    lambda court: court.pass_s(60),
    lambda court: court.pass_s(700),
    lambda court: court.pass_s(86_400),
    _some_work,
)
RELEASES = frozenset({15, 16})


# A life is one string of bytes: hypothesis draws it at once, and shortens it as well as a list of choices.
@settings(max_examples=10_000, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.binary(min_size=1, max_size=16))
def test_whatever_happens_the_invariants_hold(life: bytes) -> None:
    court = Court()
    court.judge()
    was = court.verdict.state
    for byte in life:
        deed = byte % len(DEEDS)
        DEEDS[deed](court)
        now = court.judge()
        verdict, found = court.verdict, court.findings
        assert not (was is State.QUARANTINE and now is not State.QUARANTINE and deed not in RELEASES)
        assert not (now is State.HEALTHY and court.seen[THREE].blind is not None)
        assert not (now is State.HEALTHY and found)
        excused = any(court.cases[THREE].excuses(one) for one in found if one.quarantines)
        live = any(one.quarantines and not one.held for one in found)
        in_maintenance = court.cases[THREE].maintenance is not None
        assert not (live and now is not State.QUARANTINE and not excused and not in_maintenance)
        assert not (verdict.held and live and not excused)
        assert now is not State.QUARANTINE or verdict.reasons
        once = court.cases[THREE]
        court.judge()
        assert court.cases[THREE] == once, "judging twice changes nothing"
        was = now


def test_ten_thousand_lives_reach_every_state_and_every_way_out_of_them() -> None:
    """The draw above would prove little if it never came anywhere: one life that goes through all."""
    court = Court()
    states = [court.judge()]
    states += [court.finds(mild()), court.finds(bad()), court.finds(), court.sees(TIMEOUT), court.sees()]
    court.says(Order.RELEASE)
    states += [court.pass_s(5), court.lives(24.1, at_work=True), court.sees(TIMEOUT)]
    assert [str(state) for state in states] == [
        *("healthy", "watch", "quarantine", "quarantine", "quarantine", "quarantine"),
        *("probation", "healthy", "unknown"),
    ]
    assert LIMITS["probation_clean_s"] == 86_400
