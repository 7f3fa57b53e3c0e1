"""What one Alertmanager is told, and when: tables of small histories, and random ones against the promises."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from npu_watchd.sinks.alertmanager.alert import Alert, Labels, Posting
from npu_watchd.sinks.alertmanager.outbox import ALERTS_MAX, BATCH_MAX, LIFE_S, TAIL_S, Batch, Outbox
from tests.sinks.alertmanager.build import NOON_S, alert, at

A, B = alert("A"), alert("B")
RESEND_S = 60.0


def told(batch: Batch | None) -> dict[str, str]:
    """Alert name → fires or ends."""
    if batch is None:
        return {}
    return {name_of(posting): "fires" if posting.resolved_mono_s is None else "ends" for posting in batch.postings}


def name_of(posting: Posting) -> str:
    return dict(posting.alert.labels)["alertname"]


def send(outbox: Outbox, mono_s: float) -> dict[str, str]:
    """What a server that takes everything is told at this instant."""
    batch = outbox.due(at(mono_s))
    if batch is not None:
        outbox.sent(batch)
    return told(batch)


def fail(outbox: Outbox, mono_s: float) -> dict[str, str]:
    batch = outbox.due(at(mono_s))
    if batch is not None:
        outbox.failed(batch, at(mono_s))
    return told(batch)


def box(*alerts: Alert, mono_s: float = 0.0, sent: bool = True) -> Outbox:
    """An outbox whose server was told of these alerts."""
    outbox = Outbox(RESEND_S)
    outbox.take(alerts, at(mono_s))
    if sent:
        send(outbox, mono_s)
    return outbox


def test_nothing_wrong_is_nothing_to_send() -> None:
    outbox = Outbox(RESEND_S)
    outbox.take([], at(0))
    assert outbox.due(at(0)) is None
    assert outbox.idle_s(at(0)) is None


def test_a_new_alert_is_sent_at_once_and_ends_in_four_minutes_if_nobody_repeats_it() -> None:
    outbox = box(A, sent=False)
    assert outbox.idle_s(at(0)) == 0.0
    assert outbox.due(at(0)) == Batch((Posting(A, NOON_S + 240),), 0)


def test_what_fires_is_sent_again_after_sixty_seconds_and_not_before() -> None:
    outbox = box(A)
    outbox.take([A], at(59.9))
    assert send(outbox, 59.9) == {}
    assert outbox.idle_s(at(50)) == 10.0
    assert send(outbox, 60) == {"A": "fires"}
    assert send(outbox, 60) == {}


def test_another_alert_does_not_bring_the_first_along_early() -> None:
    outbox = box(A)
    outbox.take([A, B], at(5))
    assert send(outbox, 5) == {"B": "fires"}


def test_new_values_wait_for_the_next_time() -> None:
    outbox = box(A)
    newer = alert("A", annotations={"summary": "worse"})
    outbox.take([newer], at(5))
    assert outbox.due(at(5)) is None
    batch = outbox.due(at(60))
    assert batch is not None
    assert batch.postings[0].alert.annotations == {"summary": "worse"}


def test_a_resolved_alert_is_sent_for_five_minutes_with_the_time_of_its_end() -> None:
    outbox = box(A)
    outbox.take([], at(10))
    ends = []
    for mono_s in range(10, 400):
        batch = outbox.due(at(mono_s))
        if batch is not None:
            ends.append((mono_s, batch.postings[0].ends_at_s - NOON_S))
            outbox.sent(batch)
    assert ends == [(10, 10), (70, 10), (130, 10), (190, 10), (250, 10)]
    assert outbox.idle_s(at(400)) is None


def test_an_alert_that_is_back_within_the_tail_fires_at_once() -> None:
    outbox = box(A)
    outbox.take([], at(10))
    assert send(outbox, 10) == {"A": "ends"}
    outbox.take([A], at(12))
    assert send(outbox, 12) == {"A": "fires"}


def test_an_alert_that_nobody_heard_of_needs_no_end() -> None:
    outbox = box(A, sent=False)
    outbox.take([], at(1))
    assert outbox.due(at(1)) is None


def test_an_alert_of_which_the_server_may_have_heard_is_ended() -> None:
    outbox = box(A, sent=False)
    assert fail(outbox, 0) == {"A": "fires"}
    outbox.take([], at(1))
    assert send(outbox, 1) == {"A": "ends"}


def test_another_severity_ends_the_one_alert_and_fires_the_other() -> None:
    worse = alert(labels=(("alertname", "A"), ("severity", "critical")))
    outbox = box(A)
    outbox.take([worse], at(5))
    batch = outbox.due(at(5))
    assert batch is not None
    assert {(dict(it.alert.labels)["severity"], it.ends_at_s - NOON_S) for it in batch.postings} == {
        ("critical", 245.0),
        ("warning", 5.0),
    }


def test_rests_double_up_to_a_minute_while_the_server_is_gone() -> None:
    outbox = box(A, sent=False)
    tries = [mono_s for mono_s in range(300) if fail(outbox, mono_s)]
    assert tries == [0, 1, 3, 7, 15, 31, 63, 123, 183, 243]


def test_no_rest_is_longer_than_the_period_of_sending_again() -> None:
    outbox = box(A, sent=False)
    outbox.resend_s = 2.0
    assert [mono_s for mono_s in range(10) if fail(outbox, mono_s)] == [0, 1, 3, 5, 7, 9]


def test_a_month_without_the_server_is_no_different() -> None:
    outbox = box(A, sent=False)
    for minute in range(50_000):
        assert fail(outbox, 60.0 * minute) == {"A": "fires"}


def test_one_success_ends_the_rests() -> None:
    outbox = box(A, sent=False)
    fail(outbox, 0)
    fail(outbox, 1)
    assert send(outbox, 3) == {"A": "fires"}
    outbox.take([A, B], at(3))
    assert fail(outbox, 3) == {"B": "fires"}
    assert outbox.idle_s(at(3)) == 1.0


def test_after_an_outage_the_newest_state_wins() -> None:
    outbox = box(A)
    outbox.take([A, B], at(10))
    fail(outbox, 10)
    outbox.take([B], at(20))
    fail(outbox, 20)
    outbox.take([A], at(30))
    fail(outbox, 30)
    assert send(outbox, 100) == {"A": "fires", "B": "ends"}


@pytest.mark.parametrize(("back_at_s", "heard"), [(309.0, {"A": "ends"}), (310.0, {}), (4000.0, {})])
def test_an_end_is_made_up_for_within_its_tail_and_needs_none_after_it(back_at_s: float, heard: dict[str, str]) -> None:
    outbox = box(A)
    outbox.take([], at(10))
    fail(outbox, 10)
    assert send(outbox, back_at_s) == heard
    assert LIFE_S < TAIL_S


@pytest.mark.parametrize("jump_s", [-86400.0, 86400.0])
def test_a_jump_of_the_wall_clock_fires_and_resolves_nothing(jump_s: float) -> None:
    outbox = box(A, B)
    outbox.take([A], at(10))
    send(outbox, 10)
    outbox.take([A], at(20, jump_s))
    assert outbox.due(at(20, jump_s)) is None
    batch = outbox.due(at(70, jump_s))
    assert batch is not None
    assert {name_of(it): it.ends_at_s - NOON_S - jump_s for it in batch.postings} == {"A": 310.0, "B": 10.0}
    assert all(it.starts_at_s <= it.ends_at_s for it in batch.postings)


def test_a_batch_is_bounded_and_the_rest_follows() -> None:
    outbox = box(*(alert(f"A{number}") for number in range(250)), sent=False)
    assert [len(send(outbox, 0)) for _ in range(4)] == [BATCH_MAX, BATCH_MAX, 50, 0]


def test_one_alert_that_is_refused_does_not_keep_the_others_from_being_told() -> None:
    outbox = box(*(alert(f"A{number}") for number in range(150)), sent=False)
    first = fail(outbox, 0)
    second = send(outbox, 1)
    assert len(first | second) == 150


def test_without_room_the_oldest_ends_go_first() -> None:
    outbox = box(*(alert(f"A{number}") for number in range(ALERTS_MAX)), sent=False)
    while send(outbox, 0):
        pass
    outbox.take([alert(f"A{number}") for number in range(1, ALERTS_MAX)], at(1))
    outbox.take([alert(f"A{number}") for number in range(2, ALERTS_MAX)], at(2))
    outbox.take([*(alert(f"A{number}") for number in range(2, ALERTS_MAX)), B], at(3))
    assert outbox.dropped == 1
    assert send(outbox, 3) == {"A1": "ends", "B": "fires"}


def test_with_too_many_alerts_the_critical_and_the_old_stay() -> None:
    critical = alert(labels=(("alertname", "Z"), ("severity", "critical")), starts_at_s=NOON_S + 99)
    many = [alert(f"A{number}", starts_at_s=NOON_S + number) for number in range(ALERTS_MAX)]
    outbox = box(*many, sent=False)
    outbox.take([*many, critical], at(1))
    outbox.take([*many, critical], at(2))
    assert outbox.dropped == 1
    heard: dict[str, str] = {}
    while batch := send(outbox, 2):
        heard |= batch
    assert (len(heard), heard["Z"], heard["A0"], f"A{ALERTS_MAX - 1}" in heard) == (ALERTS_MAX, "fires", "fires", False)


@dataclass
class Server:
    """What an Alertmanager makes of what it hears: an alert fires until its endsAt. Its own clock never jumps."""

    ends_at_s: dict[Labels, float] = field(default_factory=dict)
    heard: list[tuple[float, Labels, bool]] = field(default_factory=list)

    def hear(self, batch: Batch, mono_s: float, jump_s: float) -> None:
        for posting in batch.postings:
            self.ends_at_s[posting.alert.labels] = posting.ends_at_s - jump_s
            self.heard.append((mono_s, posting.alert.labels, posting.resolved_mono_s is None))

    def fires(self, mono_s: float) -> set[Labels]:
        return {labels for labels, ends_at_s in self.ends_at_s.items() if ends_at_s > NOON_S + mono_s}


@dataclass(frozen=True)
class Step:
    """Some seconds of a node's life: which alerts fire, and how the server fares."""

    seconds: int
    firing: frozenset[str]
    up: bool
    jump_s: float


STEPS = st.lists(
    st.builds(
        Step,
        st.sampled_from([1, 4, 5, 30, 70, 250, 320]),
        st.frozensets(st.sampled_from("ABC")),
        st.booleans(),
        st.sampled_from([0.0, -3600.0, 5.0, 1e6]),
    ),
    max_size=8,
)


@given(STEPS, st.sampled_from([1, 5, 60, 120]), st.booleans())
def test_no_history_breaks_a_promise(steps: list[Step], resend_s: int, lost_answers: bool) -> None:
    """One publication and one look a second; lost_answers: the server hears even what we take for failed."""
    outbox, server = Outbox(float(resend_s)), Server()
    mono_s, down_until_s = 0, -60
    firing: dict[Labels, Alert] = {}
    changes: list[tuple[float, Labels]] = []
    for step in steps:
        before, firing = firing, {alert(name).labels: alert(name) for name in step.firing}
        changes += [(mono_s, labels) for labels in firing.keys() ^ before.keys()]
        down_until_s = down_until_s if step.up else mono_s + step.seconds
        for _ in range(step.seconds):
            now = at(mono_s, step.jump_s)
            outbox.take(firing.values(), now)
            while batch := outbox.due(now):
                if step.up or lost_answers:
                    server.hear(batch, mono_s, step.jump_s)
                if step.up:
                    outbox.sent(batch)
                else:
                    outbox.failed(batch, now)
            idle_s = outbox.idle_s(now)
            assert idle_s is None or idle_s > 0
            # At once while the server is well, and a minute after an outage at the latest, it knows the truth.
            if mono_s >= down_until_s + 60:
                assert server.fires(mono_s) == firing.keys()
            mono_s += 1
    if not lost_answers:
        nothing_was_told_too_often(server, changes, resend_s)
    for heard_s, labels, fires in server.heard:
        assert fires or heard_s < TAIL_S + max(at_s for at_s, other in changes if other == labels and at_s <= heard_s)


def nothing_was_told_too_often(server: Server, changes: list[tuple[float, Labels]], resend_s: int) -> None:
    """Not twice within a period, unless it changed in between."""
    last: dict[Labels, float] = {}
    for heard_s, labels, _ in server.heard:
        if labels in last and heard_s - last[labels] < resend_s:
            assert any(last[labels] < at_s <= heard_s for at_s, other in changes if other == labels)
        last[labels] = heard_s
