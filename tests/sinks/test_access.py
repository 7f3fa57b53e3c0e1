"""Basic auth, the rate limit and configured headers, asked of the running server; and how little a guesser can hold."""

from __future__ import annotations

import base64
import threading
import time
from collections.abc import Callable
from pathlib import Path

import bcrypt
import pytest

from npu_watchd.sinks.web.access import Admission, BasicAuth, RateLimit
from tests.sinks.serving import Answer, Serving, serving, took_s


def _hash(password: str, cost: int = 4) -> str:
    return bcrypt.hashpw(password.encode(), bcrypt.gensalt(cost)).decode()


def _basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def _cpu_s(action: Callable[[], object]) -> float:
    """Of this thread: a busy machine does not change it."""
    began = time.thread_time()
    action()
    return time.thread_time() - began


def _config(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "web.yml"
    path.write_text(text)
    return path


def test_without_the_password_there_is_nothing(tmp_path: Path) -> None:
    config = _config(tmp_path, f"basic_auth_users:\n  ops: {_hash('right')}\n  other: {_hash('else')}\n")
    with serving(config_file=config) as run:
        for path in ("/", "/metrics", "/-/healthy", "/nope"):
            for header in ({}, {"Authorization": _basic("ops", "wrong")}, {"Authorization": _basic("who", "right")}):
                answer = run.get(path, **header)
                assert answer.status == 401
                assert answer.headers["WWW-Authenticate"] == 'Basic realm="npu-watchd"'
        assert run.get("/metrics", Authorization=_basic("ops", "right")).status == 200
        assert run.get("/metrics", Authorization=_basic("other", "else")).status == 200
        assert run.get("/metrics", Authorization=_basic("other", "right")).status == 401


@pytest.mark.parametrize("header", ["", "Basic", "Basic !", "Basic bm9jb2xvbg==", "Basic /////w==", "Bearer x", "\xff"])
def test_a_broken_header_is_no_password(header: str) -> None:
    assert BasicAuth().admit({"ops": _hash("")}, header, "10.0.0.1") is Admission.REFUSED


def test_bcrypt_of_htpasswd_and_long_or_odd_passwords_work() -> None:
    auth = BasicAuth()
    users = {"apache": _hash("right").replace("$2b$", "$2y$"), "long": _hash("x" * 72), "tür": _hash("schlüssel:ein")}
    assert auth.admit(users, _basic("apache", "right"), "a") is Admission.WELCOME
    assert auth.admit(users, _basic("long", "x" * 100), "a") is Admission.WELCOME
    assert auth.admit(users, _basic("tür", "schlüssel:ein"), "a") is Admission.WELCOME
    assert auth.admit(users, _basic("apache", "ri\0ght"), "a") is Admission.REFUSED


def test_bcrypt_runs_once_for_a_password() -> None:
    auth, users = BasicAuth(), {"ops": _hash("right", cost=10)}
    first = _cpu_s(lambda: auth.admit(users, _basic("ops", "right"), "10.0.0.1"))
    again = _cpu_s(lambda: [auth.admit(users, _basic("ops", "right"), "10.0.0.1") for _ in range(100)])
    assert again < first


def test_an_unknown_user_costs_as_much_as_a_known_one() -> None:
    auth, users = BasicAuth(), {"ops": _hash("right", cost=10)}
    known = min(_cpu_s(lambda n=n: auth.admit(users, _basic("ops", f"guess{n}"), "a")) for n in range(3))  # type: ignore[misc]
    unknown = min(_cpu_s(lambda n=n: auth.admit(users, _basic(f"u{n}", "right"), "a")) for n in range(3))  # type: ignore[misc]
    assert 0.5 < unknown / known < 2


def test_a_new_password_in_the_file_ends_the_old_one(tmp_path: Path) -> None:
    config = _config(tmp_path, f"basic_auth_users:\n  ops: {_hash('old')}\n")
    with serving(config_file=config) as run:
        assert run.get(Authorization=_basic("ops", "old")).status == 200
        _config(tmp_path, f"basic_auth_users:\n  ops: {_hash('new')}\n# changed\n")
        assert run.get(Authorization=_basic("ops", "old")).status == 401
        assert run.get(Authorization=_basic("ops", "new")).status == 200


def test_a_guesser_keeps_no_known_client_waiting(tmp_path: Path) -> None:
    config = _config(tmp_path, f"basic_auth_users:\n  ops: {_hash('right', cost=12)}\n")
    with serving(config_file=config) as run:
        assert run.get(Authorization=_basic("ops", "right")).status == 200
        stop = threading.Event()
        seen: set[int] = set()

        def guess(name: int) -> None:
            count = 0
            while not stop.is_set():
                count += 1
                seen.add(run.get(Authorization=_basic("ops", f"{name}-{count}")).status)

        guessers = [threading.Thread(target=guess, args=(name,)) for name in range(12)]
        for guesser in guessers:
            guesser.start()
        try:
            slowest = max(took_s(lambda: _must_be_welcome(run)) for _ in range(20))
        finally:
            stop.set()
            for guesser in guessers:
                guesser.join()
        assert slowest < 1.0
        assert seen <= {401, 503}


def _must_be_welcome(run: Serving) -> None:
    assert run.get(Authorization=_basic("ops", "right")).status == 200


def test_refusals_do_not_push_good_answers_out_of_memory() -> None:
    auth, users = BasicAuth(), {"ops": _hash("right")}
    auth.admit(users, _basic("ops", "right"), "a")
    for n in range(300):
        auth.admit(users, _basic("ops", f"guess{n}"), "b")
    assert len(auth._answers) == 128
    assert list(auth._answers.values()).count(True) == 1


def test_fifty_first_scrapes_at_once_are_answered_or_asked_to_come_again(tmp_path: Path) -> None:
    config = _config(tmp_path, f"basic_auth_users:\n  ops: {_hash('right', cost=10)}\n")
    with serving(config_file=config) as run:
        answers: list[Answer] = []
        threads = [
            threading.Thread(target=lambda: answers.append(run.get(Authorization=_basic("ops", "right"))))
            for _ in range(50)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(answers) == 50
        assert {answer.status for answer in answers} <= {200, 503}
        assert all(answer.headers["Retry-After"] == "1" for answer in answers if answer.status == 503)
        _must_be_welcome(run)


def test_configured_headers_are_on_every_answer(tmp_path: Path) -> None:
    config = _config(
        tmp_path,
        "http_server_config:\n  http2: true\n  headers:\n    X-Frame-Options: deny\n"
        "    Content-Security-Policy: default-src 'none'\n",
    )
    with serving(config_file=config) as run:
        for path in ("/", "/metrics", "/nope"):
            answer = run.get(path)
            assert answer.headers["X-Frame-Options"] == "deny"
            assert answer.headers["Content-Security-Policy"] == "default-src 'none'"
        assert [event for event, _ in run.logged] == ["web_http2_not_spoken"]


def test_above_the_rate_limit_requests_are_refused(tmp_path: Path) -> None:
    with serving(config_file=_config(tmp_path, "rate_limit:\n  interval: 1h\n  burst: 2\n")) as run:
        assert [run.get("/-/healthy").status for _ in range(4)] == [200, 200, 429, 429]


def test_the_bucket_fills_with_time() -> None:
    now = [0.0]
    limit = RateLimit(interval_s=2.0, burst=2, monotonic=lambda: now[0])
    assert [limit.allow() for _ in range(3)] == [True, True, False]
    now[0] = 2.0
    assert [limit.allow(), limit.allow()] == [True, False]
    now[0] = 1000.0
    assert [limit.allow() for _ in range(3)] == [True, True, False]
