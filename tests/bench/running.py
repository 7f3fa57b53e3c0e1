"""The real daemon on the node of sixteen dies, and beside it a bare loop that makes the same calls."""

from __future__ import annotations

import contextlib
import gzip
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

from tests.bench.scraper import PROMETHEUS, Scraper
from tests.bench.sixteen_dies import install
from tests.bench.starting import free_port, wait_until_ready
from tests.bench.verdict import Row

CYCLE_S = 5.0
SCRAPE_S = 15.0
SETTLE_S = 6.0
"""The first round of calls is over by then: it is the start's cost, not the cycle's."""


@dataclass(frozen=True, slots=True)
class Cpu:
    """CPU seconds of a process since its start."""

    own_s: float
    tools_s: float
    """Of its children that have ended."""

    def since(self, before: Cpu) -> Cpu:
        return Cpu(self.own_s - before.own_s, self.tools_s - before.tools_s)

    @property
    def all_s(self) -> float:
        return self.own_s + self.tools_s


def cpu(pid: int) -> Cpu:
    """The process's own in nanoseconds from its CPU clock (clock_getcpuclockid(3)); /proc has it in hundredths."""
    times = psutil.Process(pid).cpu_times()
    return Cpu(time.clock_gettime((~pid << 3) | 2), times.children_user + times.children_system)


def rows(*, quick: bool) -> Iterator[Row]:
    window_s = 15.0 if quick else 60.0
    with tempfile.TemporaryDirectory(prefix="npu-watchd-bench-") as directory:
        port = free_port()
        node = install(Path(directory), f"127.0.0.1:{port}")
        with contextlib.ExitStack() as processes:
            loop = processes.enter_context(_process("tests.bench.bare_loop", str(node.called), str(node.bare_tool)))
            assert loop.stdout is not None
            assert loop.stdout.readline() == b"ready\n"
            daemon = processes.enter_context(_process("npu_watchd", "--config", str(node.config), "run"))
            wait_until_ready(port, daemon)
            time.sleep(SETTLE_S)
            before = cpu(daemon.pid), cpu(loop.pid)
            began = time.monotonic()
            page = _scrape_for(port, window_s)
            took_s = time.monotonic() - began
            ours, bare = cpu(daemon.pid).since(before[0]), cpu(loop.pid).since(before[1])
            memory = psutil.Process(daemon.pid).memory_full_info()
            assert loop.poll() is None
    failed = [line for line in page.splitlines() if line.startswith("npu_watchd_probe_failures_total{")]
    if failed:
        raise SystemExit("calls of the tool failed, so nothing was measured: " + "; ".join(failed))
    per_cycle = ours.own_s / took_s * CYCLE_S
    yield Row(f"daemon's own CPU a cycle of {CYCLE_S:.0f} s, scraped every {SCRAPE_S:.0f} s", 1000 * per_cycle, "ms")
    yield Row("daemon's own CPU, share of one core", 100 * ours.own_s / took_s, "%", 0.5)
    yield Row("CPU of its tools, share of one core", 100 * ours.tools_s / took_s, "%")
    yield Row("CPU of daemon and tools beside the same calls from a bare loop", ours.all_s / bare.all_s, "×", 1.25)
    yield Row("RSS of the real daemon", memory.rss / 2**20, "MiB", 60.0)
    yield Row("PSS of the real daemon", memory.pss / 2**20, "MiB")


def _scrape_for(port: int, window_s: float) -> str:
    """A scrape now and one each period; the page at the end."""
    ends = time.monotonic() + window_s
    scraper = Scraper(port, PROMETHEUS)
    while (left_s := ends - time.monotonic()) > 0:
        scraper.scrape()
        time.sleep(min(SCRAPE_S, left_s))
    scraper.scrape()
    scraper.close()
    return gzip.decompress(scraper.body).decode()


@contextlib.contextmanager
def _process(module: str, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        [sys.executable, "-m", module, *arguments], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    with process:
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(10)
