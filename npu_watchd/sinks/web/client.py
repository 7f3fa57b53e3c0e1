"""One connection: what came of its request, what is still to be sent, and the request class that cheroot drives."""

from __future__ import annotations

import io
import socket
import ssl
from collections import deque
from collections.abc import Callable
from enum import Enum
from typing import Any

from cheroot.server import HTTPConnection, HTTPRequest


class Phase(Enum):
    """Who waits for what; every phase but WORK has a deadline."""

    HANDSHAKE = "handshake"
    HEAD = "head"
    WORK = "work"
    """A worker has it; the front does not touch it."""
    REPLY = "reply"
    LINGER = "linger"
    """All is sent; the client's close is awaited, since closing over unread bytes would destroy the answer."""


class Flow(Enum):
    DONE = "done"
    WANTS_READ = "wants_read"
    WANTS_WRITE = "wants_write"
    BROKEN = "broken"


class Outbox:
    """The `wfile` of cheroot's request: keeps references, so that 50 scrapers share one body, and never blocks."""

    closed = False

    def __init__(self) -> None:
        self._parts: deque[memoryview] = deque()

    def write(self, data: bytes) -> int:
        if data:
            self._parts.append(memoryview(data))
        return len(data)

    def flush(self) -> None:
        """Nothing to do: sending is `send`."""

    def send(self, sock: socket.socket) -> Flow:
        """Sends as much as the socket takes at once."""
        while self._parts:
            try:
                sent = sock.send(self._parts[0])
            except ssl.SSLWantReadError:
                return Flow.WANTS_READ
            except (BlockingIOError, InterruptedError, ssl.SSLWantWriteError):
                return Flow.WANTS_WRITE
            except OSError:
                self._parts.clear()
                return Flow.BROKEN
            if sent == len(self._parts[0]):
                self._parts.popleft()
            else:
                self._parts[0] = self._parts[0][sent:]
        return Flow.DONE


class Request(HTTPRequest):
    """cheroot's request with the answers of this server: every refusal closes, none shows an inside."""

    def read_request_line(self) -> bool:
        try:
            return bool(super().read_request_line())  # type: ignore[no-untyped-call]
        except ValueError:
            # cheroot lets urlsplit's complaint about `http://[` through, which would be a 500.
            self.simple_response("400 Bad Request", "Malformed Request-URI")
            return False

    def read_request_headers(self) -> bool:
        good = bool(super().read_request_headers())  # type: ignore[no-untyped-call]
        if self.chunked_read or self.inheaders.get(b"Content-Length", b"0").strip() != b"0":
            # No path here takes a body: it stays unread, and the connection cannot be used again.
            self.close_connection = True
        return good

    def simple_response(self, status: str, msg: str = "") -> None:
        self.close_connection = True
        self.sent_headers = True
        self.conn.wfile.write(plain_response(str(status), str(msg)))


class Client(HTTPConnection):
    """A connection between the front (which reads, sends and keeps the deadlines) and cheroot's workers."""

    RequestHandlerClass = Request

    def __init__(
        self, server: Any, sock: socket.socket, address: tuple[Any, ...], done: Callable[[Client, bool], None]
    ) -> None:
        # Not calling cheroot's __init__: it makes blocking files, and caches that tie the object into a cycle.
        self.server = server
        self.socket = sock
        self.rfile = io.BytesIO()
        self.wfile = Outbox()
        self.requests_seen = 0
        self.remote_addr, self.remote_port = address[0], address[1]
        self.phase = Phase.HEAD
        self.since = 0.0
        self.deadline = 0.0
        self.buffer = bytearray()
        self.served = False
        self.keep = False
        self.watched = 0
        self.discarded = 0
        self._done = done

    def close(self) -> None:
        """What a worker calls when this was the connection's last request; the front does the closing."""
        self._done(self, False)


def plain_response(status: str, text: str = "") -> bytes:
    """A whole response that ends its connection."""
    body = f"{text or status}\n".encode("latin-1", "replace")
    allow = "Allow: GET, HEAD\r\n" if status.startswith("405") else ""
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {len(body)}\r\n{allow}"
        "X-Content-Type-Options: nosniff\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n"
    )
    return head.encode("latin-1") + body
