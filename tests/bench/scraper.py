"""A client that costs little, so that what is measured is the server."""

from __future__ import annotations

import socket
import time

PLAIN = ""
PROMETHEUS = (
    "Accept: application/openmetrics-text;version=1.0.0;q=0.6,text/plain;version=0.0.4;q=0.3,*/*;q=0.1\r\n"
    "Accept-Encoding: gzip\r\n"
)
"""As Prometheus asks."""


class ScrapeError(Exception):
    """The answer was not a whole page."""


class Scraper:
    """One connection that stays open."""

    def __init__(self, port: int, headers: str, path: str = "/metrics") -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=10)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._request = f"GET {path} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n".encode()
        self.body = b""

    def scrape(self) -> float:
        """Seconds that one scrape took; `body` is what came. Raises ScrapeError."""
        began = time.perf_counter()
        self._socket.sendall(self._request)
        data = self._receive(b"")
        while b"\r\n\r\n" not in data:
            data = self._receive(data)
        head, _, body = data.partition(b"\r\n\r\n")
        status, *lines = head.decode("latin-1").split("\r\n")
        if not status.startswith("HTTP/1.1 200"):
            raise ScrapeError(status)
        headers = {name.lower(): text for name, _, text in (line.partition(": ") for line in lines)}
        while len(body) < int(headers["content-length"]):
            body = self._receive(body)
        self.body = body
        return time.perf_counter() - began

    def _receive(self, before: bytes) -> bytes:
        data = self._socket.recv(1 << 18)
        if not data:
            raise ScrapeError("the server closed the connection")
        return before + data

    def close(self) -> None:
        self._socket.close()
