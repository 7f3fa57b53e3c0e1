"""How long a person waits: for the demo's first page, for the imports, for --help."""

from __future__ import annotations

import contextlib
import http.client
import signal
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

from npu_watchd.command import NO_DAEMON
from tests.bench.verdict import Row


def rows(*, quick: bool) -> Iterator[Row]:
    times = 3 if quick else 7
    yield Row("demo: from its start to 200 on /-/ready", _demo_s(), "s", 30.0)
    bare_s = _median_s(times, "-c", "pass")
    daemon_s = _median_s(times, "-c", "import npu_watchd.daemon")
    yield Row("import of the daemon, without Python's own start", 1000 * (daemon_s - bare_s), "ms")
    yield Row("`npu-watchd check`, whole process", 1000 * _median_s(times, "-m", "npu_watchd", "check"), "ms", 200.0)
    yield Row("`npu-watchd --help`", 1000 * _median_s(times, "-m", "npu_watchd", "--help"), "ms")


def _demo_s() -> float:
    port = free_port()
    began = time.monotonic()
    command = [sys.executable, "-m", "npu_watchd", "demo", "--port", str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as demo:
        wait_until_ready(port, demo)
        took_s = time.monotonic() - began
        demo.send_signal(signal.SIGTERM)
    return took_s


def _median_s(times: int, *arguments: str) -> float:
    def once() -> float:
        began = time.monotonic()
        done = subprocess.run([sys.executable, *arguments], check=False, stdout=subprocess.DEVNULL)
        took_s = time.monotonic() - began
        assert done.returncode in (0, NO_DAEMON), arguments
        return took_s

    once()
    return statistics.median(once() for _ in range(times))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_until_ready(port: int, process: subprocess.Popen[Any], within_s: float = 60.0) -> None:
    """Until the daemon says that it has something to show. Raises TimeoutError, also where it has ended."""
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(OSError), contextlib.closing(http.client.HTTPConnection("127.0.0.1", port)) as asked:
            asked.request("GET", "/-/ready")
            if asked.getresponse().status == 200:
                return
        time.sleep(0.01)
    raise TimeoutError(f"the daemon was not ready within {within_s:.0f} s, exit code {process.poll()}")
