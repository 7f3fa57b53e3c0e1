"""The real web server on a port of its own, and clients that behave or do not."""

from __future__ import annotations

import contextlib
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPSConnection
from pathlib import Path
from typing import Any

from npu_watchd.catalogue import Kind, NodeFamily
from npu_watchd.model.snapshot import Outcome
from npu_watchd.sinks.metrics import Exposition
from npu_watchd.sinks.web import Published, WebServer
from npu_watchd.sinks.web.history import CounterHistory
from npu_watchd.sinks.web.registry import DEFAULT_LIMITS, Limits
from tests.sinks.build import AT, device, outcome

FAMILIES = (NodeFamily("npu_node_info", Kind.GAUGE, "The node", ("node",), lambda o: [({"node": o.snapshot.node}, 1)]),)


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes


@dataclass
class Serving:
    """A running server, its newest publication, and what it logged."""

    server: WebServer
    published: Published | None
    logged: list[tuple[str, dict[str, object]]] = field(default_factory=list)

    @property
    def port(self) -> int:
        return int(self.server.addresses[0].rpartition(":")[2])

    def get(self, path: str = "/metrics", method: str = "GET", **headers: str) -> Answer:
        """One request on a connection of its own; the header names have `_` for `-`."""
        return exchange(HTTPConnection("127.0.0.1", self.port, timeout=10), path, method, headers)

    def get_tls(self, context: ssl.SSLContext, path: str = "/metrics", **headers: str) -> Answer:
        return exchange(HTTPSConnection("localhost", self.port, timeout=10, context=context), path, "GET", headers)

    def connect(self, source: str = "127.0.0.1") -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=10, source_address=(source, 0))

    def raw(self, request: bytes) -> bytes:
        """All that the server answers to these bytes until it closes."""
        with self.connect() as sock:
            sock.sendall(request)
            return read_all(sock)


def exchange(connection: HTTPConnection, path: str, method: str, headers: dict[str, str]) -> Answer:
    with contextlib.closing(connection):
        connection.request(method, path, headers={name.replace("_", "-"): text for name, text in headers.items()})
        response = connection.getresponse()
        return Answer(response.status, dict(response.getheaders()), response.read())


@contextlib.contextmanager
def serving(
    shown: Outcome | None = None,
    *,
    listen: tuple[str, ...] = ("127.0.0.1:0",),
    config_file: Path | None = None,
    limits: Limits = DEFAULT_LIMITS,
    families: tuple[Any, ...] = FAMILIES,
    first_cycle: bool = True,
    counters: CounterHistory | None = None,
) -> Iterator[Serving]:
    """A server that shows this outcome (a quiet device where none is given), or nothing yet."""
    shown = shown or outcome([device(0)])
    logged: list[tuple[str, dict[str, object]]] = []

    def log(event: str, /, **facts: object) -> None:
        logged.append((event, facts))

    started = time.monotonic()
    server = WebServer(
        listen,
        config_file,
        lambda: run.published,
        log,
        # The outcome's own clock, so that what it shows is fresh.
        monotonic=lambda: AT.mono_s + time.monotonic() - started,
        limits=limits,
        counters=counters,
    )
    run = Serving(server, Published(shown, Exposition(shown, families)) if first_cycle else None, logged)
    server.start()
    try:
        yield run
    finally:
        server.stop()


def read_all(sock: socket.socket) -> bytes:
    parts = []
    with contextlib.suppress(ConnectionResetError):
        while part := sock.recv(65536):
            parts.append(part)
    return b"".join(parts)


def wait_until(true: Callable[[], bool], within_s: float = 5.0) -> None:
    deadline = time.monotonic() + within_s
    while not true():
        assert time.monotonic() < deadline, "it did not come true in time"
        time.sleep(0.01)


def took_s(action: Callable[[], object]) -> float:
    began = time.monotonic()
    action()
    return time.monotonic() - began
