"""Servers on loopback that take one POST after another and answer as a test says: real sockets, real TLS."""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

Answer = Callable[["Server", socket.socket], None]
"""Given the connection once the request is read."""


@dataclass(frozen=True)
class Request:
    line: str
    headers: dict[str, str]
    body: bytes

    @property
    def alerts(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self.body)
        return found


@dataclass
class Server:
    port: int
    answer: Answer
    tls: ssl.SSLContext | None = None
    requests: list[Request] = field(default_factory=list)
    asked: threading.Condition = field(default_factory=threading.Condition)
    ending: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}"

    def wait_for(self, true: Callable[[list[Request]], bool]) -> list[Request]:
        """The requests so far, once they are as wanted."""
        with self.asked:
            assert self.asked.wait_for(lambda: true(self.requests), 20), self.requests
            return list(self.requests)

    def serve(self, listener: socket.socket) -> None:
        while not self.ending.is_set():
            try:
                sock, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self._exchange, args=(sock,), daemon=True).start()

    def _exchange(self, plain: socket.socket) -> None:
        with contextlib.suppress(OSError), contextlib.ExitStack() as closing:
            closing.callback(plain.close)
            sock = self.tls.wrap_socket(plain, server_side=True) if self.tls else plain
            closing.enter_context(sock)
            request = _read(sock)
            if request is None:
                return
            with self.asked:
                self.requests.append(request)
                self.asked.notify_all()
            self.answer(self, sock)


def answers(status: str = "200 OK", body: str = "", **headers: str) -> Answer:
    """An orderly answer; the header names have `_` for `-`."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body.encode())}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return says(("\r\n".join(lines) + "\r\n\r\n" + body).encode())


def says(data: bytes) -> Answer:
    """These bytes, and then the end of the connection."""
    return lambda _, sock: sock.sendall(data)


def hangs(server: Server, _: socket.socket) -> None:
    server.ending.wait(60)


def trickles(server: Server, sock: socket.socket) -> None:
    """A header that never ends, a byte at a time: no single wait is long."""
    sock.sendall(b"HTTP/1.1 200 OK\r\nX: ")
    while not server.ending.wait(0.05):
        sock.sendall(b"x")


@contextlib.contextmanager
def serving(answer: Answer, tls: ssl.SSLContext | None = None) -> Iterator[Server]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = Server(listener.getsockname()[1], answer, tls)
        thread = threading.Thread(target=server.serve, args=(listener,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.ending.set()
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            thread.join(10)


def closed_port() -> int:
    """A port on which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def _read(sock: socket.socket) -> Request | None:
    with sock.makefile("rb") as stream:
        line = stream.readline().decode("latin-1").strip()
        if not line:
            return None
        headers = {}
        while text := stream.readline().decode("latin-1").strip():
            name, _, value = text.partition(":")
            headers[name.lower()] = value.strip()
        return Request(line, headers, stream.read(int(headers.get("content-length", "0"))))
