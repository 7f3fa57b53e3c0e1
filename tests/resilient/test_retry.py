"""A step that is tried again: bounded, told, and never because of us."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from npu_watchd.resilient import Incident, Kind, Policy, Retrier, Watchd, classify

PASSING = "EI0006: Getting socket times out. Reason: peer"
FATAL = "EI0004: The ranktable or rank is invalid"
COMPILE = "RuntimeError: Response is empty\nmindspore/ccsrc/backend/common/session/kernel_build_client.h:100 Response"


class Node(Watchd):
    """A daemon that remembers; of whom it says that he is sick."""

    def __init__(self, sick: str | None = None, *, broken: bool = False) -> None:
        super().__init__(Path("/nowhere"))
        self.heard: list[Incident] = []
        self._sick, self._broken = sick, broken

    def report(self, incident: Incident) -> None:
        if self._broken:
            raise OSError
        self.heard.append(incident)

    def sick(self, device_id: str) -> str | None:
        if self._broken:
            raise ValueError
        return self._sick if device_id == "3" else None


def failing(*texts: str) -> Callable[[], int]:
    """Fails with each of these in turn, then succeeds."""
    rest: Iterator[str] = iter(texts)

    def step() -> int:
        text = next(rest, None)
        if text is not None:
            raise RuntimeError(text)
        return 42

    return step


def retrier(node: Node, pauses: list[float] | None = None, **changes: object) -> Retrier:
    kept: list[float] = [] if pauses is None else pauses
    chosen = {"device_id": 3, "rank": 0, "watchd": node, "sleep": kept.append, "chance": lambda: 0.0, **changes}
    return Retrier(**chosen)  # type: ignore[arg-type]


def test_what_may_pass_is_tried_again_with_growing_pauses_and_told() -> None:
    node, pauses, renewed = Node(), list[float](), list[int]()
    assert retrier(node, pauses, renew=lambda: renewed.append(1)).run(failing(PASSING, COMPILE)) == 42
    assert pauses == [10.0, 20.0]
    assert renewed == [1, 1]
    told = [(one.error, one.action, one.attempt, one.device_id, one.rank) for one in node.heard]
    assert told == [("socket_timeout", "retry", 1, "3", "0"), ("compile_child", "retry", 2, "3", "0")]


def test_three_in_a_row_are_enough_and_a_success_begins_anew() -> None:
    one = retrier(node := Node())
    assert one.run(failing(PASSING, PASSING)) == 42
    assert one.run(failing(PASSING, PASSING)) == 42
    with pytest.raises(RuntimeError, match="EI0006"):
        one.run(failing(PASSING, PASSING, PASSING, PASSING))
    assert [incident.action for incident in node.heard] == ["retry"] * 6 + ["stop"]


def test_a_fault_that_comes_and_goes_ends_too() -> None:
    one = retrier(Node(), policy=Policy(attempts=2, attempts_in_all=3))
    assert [one.run(failing(PASSING)), one.run(failing(PASSING))] == [42, 42]
    with pytest.raises(RuntimeError):
        one.run(failing(PASSING))


@pytest.mark.parametrize("text", [FATAL, f"{PASSING} because of {FATAL}", "ValueError: shapes differ", ""])
def test_what_is_fatal_or_unknown_is_raised_at_once(text: str) -> None:
    pauses: list[float] = []
    with pytest.raises(RuntimeError):
        retrier(Node(), pauses).run(failing(text))
    assert pauses == []


def test_a_device_that_the_daemon_calls_sick_is_not_tried_again() -> None:
    node = Node(sick="uncorrectable errors")
    with pytest.raises(RuntimeError):
        retrier(node).run(failing(PASSING))
    assert [one.action for one in node.heard] == ["stop"]


def test_a_daemon_that_is_broken_changes_nothing() -> None:
    assert retrier(Node(broken=True)).run(failing(PASSING)) == 42


def test_an_error_of_renew_is_raised_and_ctrl_c_is_no_error() -> None:
    def broken() -> None:
        raise ValueError("no device")

    with pytest.raises(ValueError, match="no device"):
        retrier(Node(), renew=broken).run(failing(PASSING))

    def stopped() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        retrier(Node()).run(stopped)


def test_the_cause_behind_an_exception_counts() -> None:
    def step() -> None:
        try:
            raise RuntimeError(FATAL)
        except RuntimeError as error:
            raise RuntimeError(PASSING) from error

    with pytest.raises(RuntimeError, match="EI0006"):
        retrier(node := Node()).run(step)
    assert [one.error for one in node.heard] == ["rank_table"]


@given(st.integers(1, 10_000), st.floats(0, 1))
def test_pauses_are_bounded(attempt: int, chance: float) -> None:
    assert 10.0 <= Policy().pause_s(attempt, chance) <= 375.0


@pytest.mark.parametrize(
    ("text", "name", "kind"),
    [
        (COMPILE, "compile_child", Kind.RETRIABLE),
        ("E30003 The number of started NN processes exceeds the limit", "leftover", Kind.RETRIABLE),
        ("ret[207001], Device 6 may be other processes occupying this card", "occupied", Kind.RETRIABLE),
        ("Failed to allocate memory, 207001", "device_memory", Kind.FATAL),
        ("EI0002 after an HBM multi-bit ECC error", "hbm_uncorrectable", Kind.FATAL),
    ],
)
def test_an_error_is_known_by_its_own_words(text: str, name: str, kind: Kind) -> None:
    found = classify(text)
    assert found is not None
    assert (found.name, found.kind) == (name, kind)


def test_response_is_empty_of_another_program_is_not_ours() -> None:
    assert classify("RuntimeError: Response is empty") is None


def test_a_report_reaches_the_socket_or_the_spool_or_nobody(tmp_path: Path) -> None:
    incident = Incident("link", "retry", 1, "3", "0", "x" * 9000)
    Watchd(tmp_path / "none").report(incident)
    (tmp_path / "spool").mkdir()
    watchd = Watchd(tmp_path)
    watchd._spool(b"{}")
    assert [path.suffix for path in (tmp_path / "spool").iterdir()] == [".json"]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as daemon:
        daemon.bind(str(tmp_path / "incidents.sock"))
        watchd.report(incident)
        found = json.loads(daemon.recv(4096))
    assert (found["error"], found["device_id"], len(found["text"])) == ("link", "3", 500)


def test_the_verdict_is_believed_while_it_is_fresh(tmp_path: Path) -> None:
    import time

    def verdict(at_s: float, state: str) -> str | None:
        one = {"subject": "x", "device_id": "3", "state": state, "own_state": state, "reasons": [{"text": "broken"}]}
        document = {"at": at_s, "stale_after_seconds": 60.0, "verdicts": [one]}
        (tmp_path / "verdict.json").write_text(json.dumps(document))
        return Watchd(tmp_path)._verdict("3")

    now_s = time.time()
    assert verdict(now_s, "quarantine") == "broken"
    assert verdict(now_s, "watch") is None
    assert verdict(now_s - 100, "quarantine") is None
    (tmp_path / "verdict.json").write_text("{")
    assert Watchd(tmp_path).sick("3") is None
