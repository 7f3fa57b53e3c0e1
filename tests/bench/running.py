"""The real daemon on the node of sixteen dies, and beside it a bare loop that makes the same calls."""

from __future__ import annotations

import contextlib
import gzip
import mmap
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
PACE = 20
"""So much faster than by default where limits are held: calls come one upon another then, as on a machine whose pages
stay where they are (see `page_touch_us`), and the CPU time is the program's. The clock's and the logs' looks, every 2
and 5 s, keep their own pace: some 2 ms a minute."""
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


@dataclass(frozen=True, slots=True)
class Run:
    """What the daemon and the bare loop spent over some default periods' worth of work."""

    daemon: Cpu
    bare: Cpu
    worth_s: float
    """How long the daemon would have taken for it at default periods."""
    rss_bytes: int
    pss_bytes: int

    @property
    def own_percent(self) -> float:
        return 100 * self.daemon.own_s / self.worth_s


def rows(*, quick: bool) -> Iterator[Row]:
    fast = _run(8.0 if quick else 60.0, PACE)
    slow = _run(6.0 if quick else 60.0, 1)
    at = f"at {PACE} times the default pace"
    yield Row(f"daemon's own CPU a cycle, {at}", 10 * fast.own_percent * CYCLE_S, "ms")
    yield Row(f"daemon's own CPU, one core, {at}, for default periods", fast.own_percent, "%", 0.5)
    yield Row(f"CPU of daemon and tools beside a bare loop, {at}", fast.daemon.all_s / fast.bare.all_s, "×", 1.25)
    hot_us, rested_us = page_touch_us(0.0), page_touch_us(1.0)
    yield Row("this machine: CPU for touching a page again, at once", hot_us, "µs")
    yield Row("this machine: CPU for touching a page again, after 1 s", rested_us, "µs")
    yield Row("daemon's own CPU, one core, at default pace on this machine", slow.own_percent, "%")
    yield Row("CPU of daemon and tools beside a bare loop, likewise", slow.daemon.all_s / slow.bare.all_s, "×")
    yield Row("RSS of the real daemon", slow.rss_bytes / 2**20, "MiB", 60.0)
    yield Row("PSS of the real daemon", slow.pss_bytes / 2**20, "MiB")


def page_touch_us(rest_s: float) -> float:
    """Microseconds of CPU that writing to a page costs which was last touched `rest_s` ago.

    Some 0.03 on hardware. A hypervisor that takes pages away from whoever pauses charges tens of microseconds for each
    to the process that wakes up: then a rare waking is dear whatever the process does, and says nothing of it.
    """
    pages, size = 2000, mmap.PAGESIZE
    with mmap.mmap(-1, pages * size) as memory:
        for _ in range(2):
            for page in range(pages):
                memory[page * size] = 1
        time.sleep(rest_s)
        began_s = time.thread_time()
        for page in range(pages):
            memory[page * size] = 2
        return (time.thread_time() - began_s) * 1e6 / pages


def _run(window_s: float, pace: int) -> Run:
    with tempfile.TemporaryDirectory(prefix="npu-watchd-bench-") as directory:
        port = free_port()
        node = install(Path(directory), f"127.0.0.1:{port}", pace)
        with contextlib.ExitStack() as processes:
            loop = processes.enter_context(_process("tests.bench.bare_loop", str(node.called), str(node.bare_tool)))
            assert loop.stdout is not None
            assert loop.stdout.readline() == b"ready\n"
            daemon = processes.enter_context(_process("npu_watchd", "--config", str(node.config), "run"))
            wait_until_ready(port, daemon)
            time.sleep(SETTLE_S)
            before = cpu(daemon.pid), cpu(loop.pid)
            began = time.monotonic()
            page = _scrape_for(port, window_s, SCRAPE_S / pace)
            took_s = time.monotonic() - began
            ours, bare = cpu(daemon.pid).since(before[0]), cpu(loop.pid).since(before[1])
            memory = psutil.Process(daemon.pid).memory_full_info()
            assert loop.poll() is None
    failed = [line for line in page.splitlines() if line.startswith("npu_watchd_probe_failures_total{")]
    if failed:
        raise SystemExit("calls of the tool failed, so nothing was measured: " + "; ".join(failed))
    return Run(ours, bare, took_s * pace, memory.rss, memory.pss)


def _scrape_for(port: int, window_s: float, every_s: float) -> str:
    """A scrape now and one each period; the page at the end."""
    ends = time.monotonic() + window_s
    scraper = Scraper(port, PROMETHEUS)
    while (left_s := ends - time.monotonic()) > 0:
        scraper.scrape()
        time.sleep(min(every_s, left_s))
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
