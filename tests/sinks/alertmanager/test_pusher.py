"""A thread for each Alertmanager: what all of them hear, and that no cycle ever waits for one."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from npu_watchd.config.alertmanager import AlertmanagerSection
from npu_watchd.config.values import AlertmanagerUrl, Seconds
from npu_watchd.model.reading import Tick
from npu_watchd.model.snapshot import Notifications
from npu_watchd.sinks.alertmanager import Pusher
from tests.sinks.alertmanager.build import NOON_S, at, finding
from tests.sinks.alertmanager.servers import Request, answers, closed_port, hangs, serving
from tests.sinks.serving import wait_until


def settings(*urls: str, token_file: Path | None = None) -> AlertmanagerSection:
    return AlertmanagerSection(
        urls=tuple(AlertmanagerUrl(url) for url in urls), timeout_s=Seconds(5), bearer_token_file=token_file
    )


@dataclass
class Node:
    """The engine's side: a clock that stands until it is set, and what was logged."""

    now: Tick = field(default_factory=lambda: at(0))
    logged: list[tuple[str, dict[str, object]]] = field(default_factory=list)
    pushers: list[Pusher] = field(default_factory=list)

    def pusher(self, *urls: str) -> Pusher:
        pusher = Pusher(settings(*urls), "node17", lambda: self.now, self.log)
        self.pushers.append(pusher)
        return pusher

    def log(self, event: str, /, **facts: object) -> None:
        self.logged.append((event, facts))

    def cycle(self, pusher: Pusher, mono_s: float, *devices: int) -> None:
        """One cycle at this instant, in which these devices have a fault."""
        self.now = at(mono_s)
        pusher.publish([finding(device) for device in devices], self.now)


@pytest.fixture
def node() -> Iterator[Node]:
    made = Node()
    yield made
    for pusher in made.pushers:
        pusher.close(0.1)


def heard(request: Request) -> dict[str, str]:
    """device_id → endsAt."""
    return {alert["labels"]["device_id"]: alert["endsAt"] for alert in request.alerts}


def test_every_alertmanager_of_the_set_hears_of_a_finding(node: Node) -> None:
    with serving(answers()) as one, serving(answers()) as other:
        pusher = node.pusher(one.url, other.url)
        node.cycle(pusher, 1, 3)
        for server in (one, other):
            (request,) = server.wait_for(lambda requests: len(requests) == 1)
            assert heard(request) == {"3": "2026-11-30T12:04:01.000Z"}
            assert request.alerts[0]["labels"]["node"] == "node17"


def test_what_no_longer_is_resolves(node: Node) -> None:
    with serving(answers()) as server:
        pusher = node.pusher(server.url)
        node.cycle(pusher, 1, 3, 4)
        server.wait_for(lambda requests: len(requests) == 1)
        wait_until(lambda: pusher.tally()[f"127.0.0.1:{server.port}"].sent == 1)
        node.cycle(pusher, 6, 4)
        requests = server.wait_for(lambda requests: len(requests) == 2)
        assert heard(requests[1]) == {"3": "2026-11-30T12:00:06.000Z"}


def test_another_language_is_the_same_alert_in_other_words(node: Node) -> None:
    with serving(answers()) as server:
        pusher = node.pusher(server.url)
        node.cycle(pusher, 1, 3)
        server.wait_for(lambda requests: len(requests) == 1)
        wait_until(lambda: pusher.tally()[f"127.0.0.1:{server.port}"].sent == 1)
        pusher.take(settings(server.url), "node17", "zh")
        node.cycle(pusher, 6, 3)
        node.cycle(pusher, 61, 3)
        (first, *_, last) = server.wait_for(lambda requests: "action_zh" in requests[-1].alerts[0]["annotations"])
        assert last.alerts[0]["labels"] == first.alerts[0]["labels"]
        assert last.alerts[0]["annotations"]["summary"].startswith("设备 3：自上次复位以来")
        assert last.alerts[0]["endsAt"] > first.alerts[0]["endsAt"]


def test_a_cycle_in_which_nothing_changes_sends_nothing(node: Node) -> None:
    with serving(answers()) as server:
        pusher = node.pusher(server.url)
        target = f"127.0.0.1:{server.port}"
        node.cycle(pusher, 0, 3)
        wait_until(lambda: pusher.tally()[target].sent == 1)
        for mono_s in range(5, 60, 5):
            node.cycle(pusher, mono_s, 3)
        node.cycle(pusher, 59, 3, 4)
        requests = server.wait_for(lambda requests: any("4" in heard(request) for request in requests))
        assert len(requests) == 2


def test_a_hanging_alertmanager_holds_up_neither_the_cycle_nor_the_others(node: Node) -> None:
    with serving(hangs) as dead, serving(answers()) as alive:
        pusher = node.pusher(dead.url, alive.url)
        node.cycle(pusher, 1, 3)
        dead.wait_for(lambda requests: len(requests) == 1)
        for mono_s in range(2, 500):
            node.cycle(pusher, mono_s, 3, mono_s)
        alive.wait_for(lambda requests: any("499" in heard(request) for request in requests))
        assert len(dead.requests) == 1


def test_the_end_waits_for_no_alertmanager(node: Node) -> None:
    with serving(hangs) as dead:
        pusher = node.pusher(dead.url)
        node.cycle(pusher, 1, 3)
        dead.wait_for(lambda requests: len(requests) == 1)
        pusher.close(0.0)
        (thread,) = (thread for thread in threading.enumerate() if thread.name == f"push 127.0.0.1:{dead.port}")
        assert thread.daemon


def test_a_thread_that_is_idle_ends_when_told(node: Node) -> None:
    pusher = node.pusher("http://127.0.0.1:9")
    pusher.close(5)
    assert not [thread for thread in threading.enumerate() if thread.name == "push 127.0.0.1:9"]


def test_without_urls_there_is_nothing_to_do(node: Node) -> None:
    pusher = node.pusher()
    node.cycle(pusher, 1, 3)
    assert pusher.tally() == {}


def test_an_outage_is_told_once_and_so_is_its_end(node: Node) -> None:
    with serving(answers("503 Down")) as server:
        pusher = node.pusher(server.url)
        target = f"127.0.0.1:{server.port}"
        node.cycle(pusher, 0, 3)
        wait_until(lambda: pusher.tally()[target].failures == 1)
        node.cycle(pusher, 1, 3)
        wait_until(lambda: pusher.tally()[target].failures == 2)
        server.answer = answers()
        node.cycle(pusher, 3, 3)
        wait_until(lambda: pusher.tally()[target] == Notifications(3, 2, 0, NOON_S + 3))
        wait_until(lambda: len(node.logged) == 2)
    assert node.logged == [
        (
            "alertmanager_failing",
            {
                "target": target,
                "kind": "exit",
                "detail": f"{target}: failed (503); look at its log, and at that of what stands before it",
            },
        ),
        ("alertmanager_reached_again", {"target": target, "outage_seconds": 3.0}),
    ]


def test_what_came_and_changed_during_an_outage_is_told_as_it_is_now(node: Node) -> None:
    with serving(answers("503 Down")) as server:
        pusher = node.pusher(server.url)
        target = f"127.0.0.1:{server.port}"
        node.cycle(pusher, 0, 3)
        wait_until(lambda: pusher.tally()[target].failures == 1)
        node.cycle(pusher, 0.5, 4)
        node.cycle(pusher, 0.6, 4, 5)
        server.answer = answers()
        node.cycle(pusher, 100, 5)
        wait_until(lambda: pusher.tally()[target].sent == 2)
        assert heard(server.requests[-1]).keys() == {"3", "5"}


def test_nobody_there_is_counted_from_the_first_moment(node: Node) -> None:
    port = closed_port()
    pusher = node.pusher(f"http://127.0.0.1:{port}/am")
    assert pusher.tally() == {f"127.0.0.1:{port}/am": Notifications()}
    node.cycle(pusher, 0, 3)
    wait_until(lambda: pusher.tally() == {f"127.0.0.1:{port}/am": Notifications(1, 1)})


def test_a_new_config_reaches_a_new_alertmanager_and_leaves_an_old_one(node: Node) -> None:
    with serving(answers()) as old, serving(answers()) as kept, serving(answers()) as new:
        pusher = node.pusher(old.url, kept.url)
        node.cycle(pusher, 0, 3)
        for server in (old, kept):
            server.wait_for(lambda requests: len(requests) == 1)
        wait_until(lambda: all(it.sent == 1 for it in pusher.tally().values()))
        pusher.take(settings(kept.url, new.url), "node17")
        assert list(pusher.tally()) == [f"127.0.0.1:{kept.port}", f"127.0.0.1:{new.port}"]
        assert set(heard(new.wait_for(lambda requests: len(requests) == 1)[0])) == {"3"}
        node.cycle(pusher, 10)
        assert set(heard(kept.wait_for(lambda requests: len(requests) == 2)[1])) == {"3"}
        assert len(old.requests) == 1


def test_new_credentials_hold_for_what_is_pending(node: Node, tmp_path: Path) -> None:
    with serving(answers("401 Unauthorized")) as server:
        pusher = node.pusher(server.url)
        target = f"127.0.0.1:{server.port}"
        node.cycle(pusher, 0, 3)
        wait_until(lambda: pusher.tally()[target].failures == 1)
        token = tmp_path / "token"
        token.write_text("secret")
        server.answer = answers()
        node.now = at(1)
        pusher.take(settings(server.url, token_file=token), "node17")
        requests = server.wait_for(lambda requests: len(requests) == 2)
        assert requests[1].headers["authorization"] == "Bearer secret"
        wait_until(lambda: pusher.tally()[target] == Notifications(2, 1, 0, NOON_S + 1))
    assert "secret" not in str(node.logged)


def test_a_fault_of_ours_is_told_and_does_not_end_the_thread() -> None:
    node, faults = Node(), [ZeroDivisionError("ours")]

    def clock() -> Tick:
        if faults:
            raise faults.pop()
        return node.now

    with serving(answers()) as server:
        pusher = Pusher(settings(server.url), "node17", clock, node.log)
        pusher.publish([finding(3)], node.now)
        server.wait_for(lambda requests: len(requests) == 1)
        pusher.close(5)
    assert node.logged == [
        ("alertmanager_push_failed", {"target": f"127.0.0.1:{server.port}", "error": "ZeroDivisionError('ours')"})
    ]
