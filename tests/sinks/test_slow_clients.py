"""Clients that hold on: none may keep a scrape from being answered within a second."""

from __future__ import annotations

import contextlib
import os
import resource
import socket
import threading
from collections.abc import Iterator

import pytest

from npu_watchd.catalogue import Kind, NodeFamily
from npu_watchd.sinks.web.registry import Limits
from npu_watchd.sinks.web.server import WORKERS
from tests.sinks.serving import Serving, read_all, serving, took_s, wait_until

SHORT = Limits(head_s=1.0, reply_s=1.0, idle_s=1.0, linger_s=0.5)

BIG = NodeFamily("x", Kind.GAUGE, "h", ("n",), lambda _: [({"n": f"{'x' * 250}{n:06d}"}, n) for n in range(20_000)])
"""Some 5 MB of text: more than the sockets' buffers take."""


@contextlib.contextmanager
def _crowd(run: Serving, size: int) -> Iterator[list[socket.socket]]:
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(run.connect()) for _ in range(size)]


def _scrape_is_quick(run: Serving) -> None:
    answer = None

    def scrape() -> None:
        nonlocal answer
        answer = run.get("/-/healthy")

    assert took_s(scrape) < 1.0
    assert answer is not None
    assert answer.status == 200


def test_200_silent_connections_keep_nobody_waiting() -> None:
    with serving() as run, _crowd(run, 200):
        for _ in range(20):
            _scrape_is_quick(run)


def test_trickled_heads_hold_no_worker() -> None:
    with serving() as run, _crowd(run, WORKERS * 4) as crowd:
        for byte in b"GET /metrics HTTP/1.1\r\nX-Sl":
            for sock in crowd:
                sock.sendall(bytes([byte]))
            _scrape_is_quick(run)


def test_a_head_must_be_whole_in_time_however_steadily_it_trickles() -> None:
    with serving(limits=SHORT) as run, run.connect() as sock:
        sock.settimeout(0.05)
        answered = b""
        sent = 0

        def trickle() -> bool:
            nonlocal answered, sent
            with contextlib.suppress(ConnectionError):
                sock.send(b"GET / HTTP/1.1\r\nX: "[sent : sent + 1] or b"x")
            sent += 1
            with contextlib.suppress(TimeoutError, ConnectionError):
                answered += sock.recv(4096)
            return bool(answered)

        assert 0.8 < took_s(lambda: wait_until(trickle)) < 2.5
    assert answered.startswith(b"HTTP/1.1 408 ")


def test_a_silent_connection_is_closed_in_time() -> None:
    with serving(limits=SHORT) as run, run.connect() as sock:
        assert 0.8 < took_s(lambda: read_all(sock)) < 2.5


def test_an_idle_connection_is_closed_after_its_time() -> None:
    with serving(limits=SHORT) as run, run.connect() as sock:
        sock.sendall(b"GET /-/healthy HTTP/1.1\r\nHost: x\r\n\r\n")
        assert sock.recv(65536).startswith(b"HTTP/1.1 200 OK")
        assert 0.5 < took_s(lambda: read_all(sock)) < 2.5


def test_slow_readers_hold_no_worker_and_are_cut_off() -> None:
    with serving(limits=SHORT, families=(BIG,)) as run, _crowd(run, WORKERS * 3) as crowd:
        size = len(run.get("/metrics").body)
        assert size > 5_000_000
        for sock in crowd:
            sock.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
        for _ in range(20):
            _scrape_is_quick(run)
        wait_until(lambda: _open_descriptors(run) <= 2)
        assert len(read_all(crowd[0])) < size


def test_one_big_answer_in_many_pieces_arrives_whole() -> None:
    with serving(families=(BIG,)) as run, run.connect() as sock:
        sock.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        answer = read_all(sock)
    head, _, body = answer.partition(b"\r\n\r\n")
    assert f"Content-Length: {len(body)}".encode() in head
    assert body.endswith(b"19999.0\n")


def test_above_the_cap_the_longest_waiting_makes_room() -> None:
    limits = Limits(connections=20)
    with serving(limits=limits) as run, _crowd(run, 20) as crowd:
        wait_until(lambda: _open_descriptors(run) == 20)
        for _ in range(5):
            _scrape_is_quick(run)
        crowd[0].settimeout(5)
        assert crowd[0].recv(1) == b""
        assert _open_descriptors(run) <= 20


def test_whoever_holds_most_connections_makes_the_room() -> None:
    with serving(limits=Limits(connections=20)) as run, run.connect() as lone, contextlib.ExitStack() as stack:
        wait_until(lambda: _open_descriptors(run) == 1)
        for _ in range(60):
            stack.enter_context(run.connect(source="127.0.0.2"))
        lone.sendall(b"GET /-/healthy HTTP/1.0\r\n\r\n")
        assert read_all(lone).startswith(b"HTTP/1.1 200 OK")


def test_a_flood_of_connections_keeps_scrapes_going_and_leaks_nothing() -> None:
    with serving(limits=Limits(connections=50, linger_s=0.2)) as run:
        stop = threading.Event()

        def flood() -> None:
            held: list[socket.socket] = []
            while not stop.is_set():
                with contextlib.suppress(OSError):
                    held.append(run.connect(source="127.0.0.2"))
                if len(held) > 100:
                    held.pop(0).close()
            for sock in held:
                sock.close()

        flooder = threading.Thread(target=flood)
        flooder.start()
        try:
            for _ in range(20):
                _scrape_is_quick(run)
                assert _open_descriptors(run) <= 51
        finally:
            stop.set()
            flooder.join()
        wait_until(lambda: _open_descriptors(run) == 0)


def test_a_thousand_scrapes_leave_no_descriptor_behind() -> None:
    with serving(limits=Limits(linger_s=0.2)) as run:
        run.get()
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(1000):
            run.get()
        wait_until(lambda: len(os.listdir("/proc/self/fd")) <= before)


@contextlib.contextmanager
def _descriptors(soft: int) -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_connections_take_at_most_a_quarter_of_the_descriptors() -> None:
    with contextlib.ExitStack() as stack:
        with _descriptors(200):
            run = stack.enter_context(serving())
        stack.enter_context(_crowd(run, 80))
        for _ in range(5):
            _scrape_is_quick(run)
            assert _open_descriptors(run) <= 50


def test_without_a_descriptor_left_it_waits_and_then_goes_on() -> None:
    with serving() as run, socket.socket() as sock:
        sock.settimeout(5)
        with _descriptors(3):
            sock.connect(("127.0.0.1", run.port))
            sock.sendall(b"GET /-/healthy HTTP/1.0\r\n\r\n")
            wait_until(lambda: run.server._front is not None and not run.server._front.accepting)
        assert read_all(sock).startswith(b"HTTP/1.1 200 OK")


@pytest.mark.parametrize("ending", [b"", b"GET / HT", b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"])
def test_a_client_that_vanishes_costs_nothing(ending: bytes) -> None:
    with serving() as run:
        for _ in range(50):
            with run.connect() as sock:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                sock.sendall(ending)
        _scrape_is_quick(run)
        wait_until(lambda: _open_descriptors(run) == 0)
        assert run.logged == []


def _open_descriptors(run: Serving) -> int:
    """Connections that the server holds."""
    front = run.server._front
    assert front is not None
    return front.connections
