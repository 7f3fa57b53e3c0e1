"""How long after a count has changed the on-call's Alertmanager knows: the real daemon, its tool and the wire."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.bench.sixteen_dies import install
from tests.bench.starting import free_port, wait_until_ready
from tests.bench.verdict import Row
from tests.sinks.alertmanager.debian import alertmanager
from tests.sinks.alertmanager.servers import answers, serving

ALERT = "NpuMemoryUncorrectableErrors"
_LOOK_S = 0.02
_GIVE_UP_S = 60.0

Known = Callable[[], set[str]]
"""The device_ids of which somebody was told that their memory has errors."""


@dataclass(frozen=True, slots=True)
class Latency:
    """In seconds, of one alert."""

    from_change: float
    """The count changed just after the tool was asked, so that the whole period has to pass first."""
    from_answer: float
    """From the end of the call that showed it."""


class Calls:
    """When the tool was asked what, as it ended."""

    def __init__(self, fifo: Path) -> None:
        # Open for writing too: no call waits for a reader, and the reader does not end between two.
        self._lines = open(os.open(fifo, os.O_RDWR), encoding="utf-8")  # noqa: SIM115
        self._ended_s: dict[str, float] = {}
        self._news = threading.Condition()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for line in self._lines:
            with self._news:
                self._ended_s[line.strip()] = time.monotonic()
                self._news.notify_all()

    def next_end_s(self, arguments: str) -> float:
        """When the next call with these arguments has ended; waits for it. Raises TimeoutError."""
        with self._news:
            before = self._ended_s.get(arguments)
            if not self._news.wait_for(lambda: self._ended_s.get(arguments) != before, _GIVE_UP_S):
                raise TimeoutError(f"npu-smi was not asked {arguments!r} within {_GIVE_UP_S:.0f} s")
            return self._ended_s[arguments]


def rows(*, quick: bool) -> Iterator[Row]:
    # Of `npu_ecc`, instead of a minute: what is measured is what comes on top of the period.
    every_s, times = (2, 2) if quick else (5, 5)
    with tempfile.TemporaryDirectory(prefix="npu-watchd-bench-") as name, contextlib.ExitStack() as stack:
        directory = Path(name)
        who, url, known = _receiver(directory, stack)
        found = list(_latencies(directory / "node", url, known, every_s, times))
    at = f"npu_ecc every {every_s} s, worst of {times}"
    worst_s = max(one.from_change for one in found)
    yield Row(f"count changes in the tool → alert in {who}, {at}: beyond one period", worst_s - every_s, "s", 2.0)
    yield Row(f"the tool's answer → alert in {who}, {at}", max(one.from_answer for one in found), "s")


def _receiver(directory: Path, stack: contextlib.ExitStack) -> tuple[str, str, Known]:
    """What it is, its address, and of which devices it was told."""
    if shutil.which("prometheus-alertmanager"):
        server = stack.enter_context(alertmanager(directory / "alertmanager"))
        return "Alertmanager", server.url, lambda: _devices(server.alerts())
    heard = stack.enter_context(serving(answers()))
    who = "a server in its place (prometheus-alertmanager is not installed)"
    return who, heard.url, lambda: {one for request in list(heard.requests) for one in _devices(request.alerts)}


def _devices(alerts: list[dict[str, Any]]) -> set[str]:
    labels = [alert["labels"] for alert in alerts]
    return {each["device_id"] for each in labels if each["alertname"] == ALERT}


def _latencies(directory: Path, url: str, known: Known, every_s: int, times: int) -> Iterator[Latency]:
    directory.mkdir()
    port = free_port()
    node = install(directory, f"127.0.0.1:{port}")
    with node.config.open("a", encoding="utf-8") as config:
        # The cap on the tool's share would stretch the period on a slow machine.
        config.write(f'\n[engine]\ntool_share = 1.0\n\n[alertmanager]\nurls = ["{url}"]\n')
        config.write(f'\n[probes.npu_ecc]\nevery = "{every_s}s"\ntimeout = "{every_s}s"\n')
    calls = Calls(node.called)
    command = [sys.executable, "-m", "npu_watchd", "--config", str(node.config), "run"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as daemon:
        try:
            wait_until_ready(port, daemon)
            for npu in range(times):
                yield _one(directory / "texts", npu, calls, known)
        finally:
            daemon.terminate()


def _one(texts: Path, npu: int, calls: Calls, known: Known) -> Latency:
    """Each time another device has its first error that cannot be corrected."""
    asked = f"info -t ecc -i {npu}"
    shown = texts / asked
    text = shown.read_text(encoding="utf-8")
    changed = text.replace(
        "HBM Double Bit Error Count               : 0", "HBM Double Bit Error Count               : 1"
    )
    assert changed != text
    fresh = shown.with_name("fresh")
    fresh.write_text(changed, encoding="utf-8")
    calls.next_end_s(asked)
    fresh.replace(shown)
    changed_s = time.monotonic()
    answered_s = calls.next_end_s(asked)
    while str(2 * npu) not in known():
        if time.monotonic() > changed_s + _GIVE_UP_S:
            raise TimeoutError(f"no alert for device {2 * npu} within {_GIVE_UP_S:.0f} s")
        time.sleep(_LOOK_S)
    told_s = time.monotonic()
    return Latency(told_s - changed_s, told_s - answered_s)
