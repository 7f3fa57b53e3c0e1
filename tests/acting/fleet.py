"""A Prometheus that says of the fleet what a test wants, over real HTTP."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit


@dataclass
class Fleet:
    """The next answer."""

    out: float | None = 1
    nodes: float | None = 20
    here: float | None = 1
    status: int = 200
    body: bytes | None = None
    """In place of the three numbers."""
    when_asked: Callable[[], object] = lambda: None
    """What happens before it answers."""
    url: str = ""
    asked: list[str] = field(default_factory=list)
    """The queries."""

    def answer(self) -> bytes:
        if self.body is not None:
            return self.body
        counts = {"out": self.out, "nodes": self.nodes, "here": self.here}
        result = [
            {"metric": {"npu_budget": name}, "value": [1_790_000_000.0, str(count)]}
            for name, count in counts.items()
            if count is not None
        ]
        return json.dumps({"status": "success", "data": {"resultType": "vector", "result": result}}).encode()


@contextmanager
def fleet() -> Iterator[Fleet]:
    told = Fleet()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            url = urlsplit(self.path)
            told.when_asked()
            told.asked += parse_qs(url.query).get("query", [])
            body = told.answer() if url.path == "/api/v1/query" else b"no such page"
            self.send_response(told.status if url.path == "/api/v1/query" else 404)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        told.url = f"http://127.0.0.1:{server.server_port}"
        try:
            yield told
        finally:
            server.shutdown()
            thread.join(5)
