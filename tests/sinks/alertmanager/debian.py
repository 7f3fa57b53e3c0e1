"""Debian's Alertmanager on loopback, with its data below the test's own directory."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from npu_watchd.model.reading import Tick
from tests.sinks.serving import wait_until

_CONFIG = "route: { receiver: nobody }\nreceivers: [ { name: nobody } ]\n"
_LISTENS = re.compile(r"Listening on.*address=127\.0\.0\.1:(\d+)")


def present() -> Tick:
    """Now: its alerts end by the real clock."""
    return Tick(time.monotonic(), time.time())


@dataclass
class Alertmanager:
    """A running server."""

    process: subprocess.Popen[str]
    port: int
    prefix: str = ""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def alerts(self) -> list[dict[str, Any]]:
        """Those that fire, as `GET /api/v2/alerts` has them."""
        found: list[dict[str, Any]] = json.loads(self._get("/api/v2/alerts"))
        return found

    def labels(self) -> list[dict[str, str]]:
        return sorted((alert["labels"] for alert in self.alerts()), key=str)

    def ready(self) -> bool:
        with contextlib.suppress(OSError):
            return self._get(f"{self.prefix}/-/ready") == b"OK"
        return False

    def _get(self, path: str) -> bytes:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=10)
        with contextlib.closing(connection):
            connection.request("GET", path)
            return connection.getresponse().read()


@contextlib.contextmanager
def alertmanager(
    directory: Path, *options: str, port: int = 0, prefix: str = "", secured: bool = False
) -> Iterator[Alertmanager]:
    """Skips where the program is not installed. port: 0 lets the kernel choose. secured: it lets only us in."""
    program = shutil.which("prometheus-alertmanager")
    if program is None:
        pytest.skip("the Debian package prometheus-alertmanager is not installed")
    directory.mkdir(parents=True, exist_ok=True)
    config = directory / "alertmanager.yml"
    config.write_text(_CONFIG)
    command = [
        program,
        f"--config.file={config}",
        f"--storage.path={directory / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--cluster.listen-address=",
        f"--web.route-prefix={prefix or '/'}",
        *options,
    ]
    log = directory / "log"
    with log.open("a") as opened:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=opened, stderr=opened, text=True)
    try:
        running = Alertmanager(process, port or _port(process, log), prefix)
        if not secured:
            wait_until(running.ready, 20)
        yield running
    finally:
        process.kill()
        process.wait(10)


def _port(process: subprocess.Popen[str], log: Path) -> int:
    def listens() -> bool:
        assert process.poll() is None, log.read_text()
        return _LISTENS.search(log.read_text()) is not None

    wait_until(listens, 20)
    match = _LISTENS.search(log.read_text())
    assert match is not None
    return int(match[1])
