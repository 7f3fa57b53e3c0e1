"""The budget's question to a real Prometheus that scrapes a small fleet."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from npu_watchd.model.acting import Allowance
from npu_watchd.model.reading import Failure
from npu_watchd.sinks.actuators.budget import Budget
from tests.e2e.harness import until
from tests.e2e.prometheus import scraping


@contextlib.contextmanager
def nodes(ill: set[int]) -> Iterator[list[int]]:
    """Four, on these ports; the page of each says whether its number is among the ill."""
    with contextlib.ExitStack() as stack:
        ports = []
        for number in range(4):
            server = stack.enter_context(ThreadingHTTPServer(("127.0.0.1", 0), _page(number, ill)))
            threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
            stack.callback(server.shutdown)
            ports.append(server.server_port)
        yield ports


def _page(number: int, ill: set[int]) -> type[BaseHTTPRequestHandler]:
    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            page = (
                f'npu_node_info{{node="node{number}",driver="25.5.1"}} 1\n'
                f'npu_watchd_node_verdict{{state="healthy"}} {int(number not in ill)}\n'
                f'npu_watchd_node_verdict{{state="quarantine"}} {int(number in ill)}\n'
            )
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.end_headers()
            self.wfile.write(page.encode())

        def log_message(self, *_: Any) -> None: ...

    return Page


def test_a_real_prometheus_grants_one_place_and_no_second(tmp_path: Path) -> None:
    ill: set[int] = set()
    with nodes(ill) as ports, scraping(tmp_path, {"npu-watchd": ports}) as prometheus:
        url = f"http://127.0.0.1:{prometheus.port}"
        first, second, stranger = (Budget(url, name, 0.1) for name in ("node0", "node1", "node9"))

        def says(budget: Budget, words: str) -> bool:
            answer = budget.ask()
            return words in (answer.detail if isinstance(answer, Failure) else answer.text)

        until(lambda: says(first, "has not seen this node's quarantine yet"), "it is known, and well")
        until(lambda: len(prometheus.query("npu_node_info")) == 4, "all are known")
        ill.add(0)
        one = "1 of 4 nodes are in quarantine, this one among them, and at most 1 may be"
        until(lambda: first.ask() == Allowance(True, one), "the first may go")
        ill.add(1)
        two = "2 of 4 nodes are in quarantine, this one among them, and at most 1 may be"
        until(lambda: second.ask() == Allowance(False, two), "the second may not")
        assert says(stranger, "it does not see this node; ")
