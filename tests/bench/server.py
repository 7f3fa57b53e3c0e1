"""The web server and its like with constant bodies, in a process of their own: python -m tests.bench.server."""

from __future__ import annotations

import json
import sys
import tempfile
import threading
import time
from collections.abc import Iterable
from pathlib import Path

from npu_watchd.catalogue import CATALOGUE
from npu_watchd.sinks.metrics import Exposition, Format
from npu_watchd.sinks.web.app import Application, Environ, StartResponse
from npu_watchd.sinks.web.publication import Published
from tests.bench.memory import SimulatedNode

CYCLE_S = 0.5
"""Ten times as often as the daemon's default, so that cycles fall into the seconds for which this is measured."""


class Constant(Application):
    """The least that a WSGI application can do: the same bytes, whatever is asked."""

    def __init__(self, body: bytes, headers: list[tuple[str, str]]) -> None:
        self._body = body
        self._headers = [*headers, ("Content-Length", str(len(body)))]

    def __call__(self, _environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        start_response("200 OK", self._headers)
        return [self._body]


def main(directory: Path) -> None:
    """Prints the ports of the real server and of the two constant ones, and serves until stdin ends."""
    simulated = SimulatedNode(directory)
    for _ in range(24):
        simulated.pass_cycle()
    assert simulated.published is not None
    page = simulated.published.exposition
    text = Constant(page.body(Format.TEXT), [("Content-Type", Format.TEXT.value)])
    zipped = Constant(
        page.body(Format.OPENMETRICS, gzipped=True),
        [("Content-Type", Format.OPENMETRICS.value), ("Content-Encoding", "gzip")],
    )
    servers = [simulated.server(), simulated.server(), simulated.server()]
    servers[1]._application = text
    servers[2]._application = zipped
    for server in servers:
        server.start()
    print(json.dumps([int(server.addresses[0].rpartition(":")[2]) for server in servers]), flush=True)
    threading.Thread(target=_publish, args=(simulated,), daemon=True).start()
    sys.stdin.read()
    simulated.close()


def _publish(simulated: SimulatedNode) -> None:
    """What the daemon's engine does each cycle. The clock of the node stands, so that no tool is asked meanwhile."""
    while simulated.published is not None:
        time.sleep(CYCLE_S)
        outcome = simulated.published.outcome
        simulated.published = Published(outcome, Exposition(outcome, CATALOGUE))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="npu-watchd-bench-") as scratch:
        main(Path(scratch))
