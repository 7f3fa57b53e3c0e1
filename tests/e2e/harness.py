"""The real daemon as a child of the test: started on a port that the kernel chooses, watched, and always reaped."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from npu_watchd.chips import profile_of
from npu_watchd.sources.rounds import OF_THE_CROWDED
from tests.e2e.page import Page, parsed

T = TypeVar("T")

PROGRAM = (sys.executable, "-m", "npu_watchd")
PATIENCE_S = 25.0
"""How long a claim may take to come true on two busy cores; nearly all take a second or two."""

QUICK = """
[engine]
cycle = "200ms"
tool_share = 1.0

[probes]
npu_info = { every = "600ms", timeout = "600ms" }
npu_map = { every = "5s", timeout = "5s" }
npu_list = { every = "5s", timeout = "5s" }
npu_health = { every = "1s" }
npu_ecc = { every = "1s" }
npu_usages = { every = "2s" }
npu_common = { every = "2s" }
npu_temp = { every = "2s" }
npu_hccs = { every = "2s" }
npu_pcie_err = { every = "2s" }
npu_board = { every = "2s" }
hccn_link = { every = "2s" }
hccn_link_stat = { every = "2s" }
hccn_stat = { every = "2s" }
hccn_net_health = { every = "2s" }
hccn_optical = { every = "2s" }
hccn_speed = { every = "2s" }
ibstat = { every = "2s" }
rdma_counters = { every = "2s" }
pcie_link = { every = "2s" }
pcie_aer = { every = "2s" }
"""
"""Periods for fake tools, which answer in a millisecond or two."""

STEADY = """
[engine]
cycle = "250ms"
tool_share = 1.0

[probes]
npu_info = { every = "3s" }
npu_health = { every = "5s" }
npu_ecc = { every = "5s" }
npu_usages = { every = "5s" }
npu_common = { every = "5s" }
npu_temp = { every = "5s" }
npu_hccs = { every = "5s" }
npu_pcie_err = { every = "5s" }
npu_board = { every = "5s" }
hccn_link = { every = "10s" }
hccn_link_stat = { every = "10s" }
hccn_stat = { every = "10s" }
hccn_net_health = { every = "10s" }
hccn_optical = { every = "10s" }
hccn_speed = { every = "10s" }
ibstat = { every = "2s" }
rdma_counters = { every = "2s" }
pcie_link = { every = "2s" }
pcie_aer = { every = "2s" }
"""
"""Periods for the simulated node, each of whose tools is a Python of its own."""


def until(claim: Callable[[], T | None], what: str, within_s: float = PATIENCE_S, every_s: float = 0.05) -> T:
    """The first true answer; AssertionError naming the claim when its time is over."""
    give_up_s = time.monotonic() + within_s
    while True:
        answer = claim()
        if answer:
            return answer
        assert time.monotonic() < give_up_s, f"not within {within_s:g} s: {what}"
        time.sleep(every_s)


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes
    took_s: float

    @property
    def text(self) -> str:
        return self.body.decode()


@dataclass
class Running:
    """A child process whose stderr is collected; `with` reaps it whatever happens."""

    process: subprocess.Popen[bytes]
    lines: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._drain = threading.Thread(target=self._collect, daemon=True)
        self._drain.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(8)
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._drain.join(5)
        for pipe in (self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()

    def _collect(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(line.decode(errors="replace").rstrip("\n"))

    def wait(self, within_s: float = 10.0) -> int:
        """The exit code."""
        code = self.process.wait(within_s)
        self._drain.join(5)
        return code

    def stop(self, number: signal.Signals = signal.SIGTERM, within_s: float = 10.0) -> tuple[int, float]:
        """Exit code after this signal, and the seconds it took."""
        began_s = time.monotonic()
        self.process.send_signal(number)
        return self.wait(within_s), time.monotonic() - began_s


class Daemon(Running):
    """`npu-watchd run`, or `demo`."""

    _url: str | None = None

    @property
    def url(self) -> str:
        if self._url is None:
            self._url = until(self._started, f"the daemon says that it started; it said: {self.lines}")
        return self._url

    def _started(self) -> str | None:
        assert self.process.poll() is None, f"exit code {self.process.returncode}: {self.lines}"
        return next((str(event["urls"][0]) for event in self.events("started")), None)

    @property
    def port(self) -> int:
        return int(self.url.rstrip("/").rpartition(":")[2])

    def events(self, name: str) -> list[dict[str, Any]]:
        """Lines of the log of this event."""
        found = [json.loads(line) for line in list(self.lines) if line.startswith("{")]
        return [event for event in found if event["event"] == name]

    def event(self, name: str, **facts: object) -> dict[str, Any]:
        """The first line of the log with this event and these facts; waits for it."""

        def there() -> dict[str, Any] | None:
            return next((event for event in self.events(name) if facts.items() <= event.items()), None)

        return until(there, f"log line {name} {facts}; the log: {self.lines[-20:]}")

    def get(self, path: str = "/metrics", timeout_s: float = 10.0, **headers: str) -> Answer:
        """One request on a connection of its own; `_` in header names stands for `-`."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=timeout_s)
        with contextlib.closing(connection):
            began_s = time.monotonic()
            connection.request("GET", path, headers={name.replace("_", "-"): text for name, text in headers.items()})
            response = connection.getresponse()
            body = response.read()
            took_s = time.monotonic() - began_s
        if response.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        return Answer(response.status, dict(response.headers), body, took_s)

    def ready(self, within_s: float = PATIENCE_S) -> Self:
        def answers() -> bool:
            try:
                return self.get("/-/ready").status == 200
            except (OSError, HTTPException):
                return False

        assert self.url
        until(answers, f"/-/ready; the log: {self.lines[-20:]}", within_s)
        return self

    def page(self) -> Page:
        answer = self.get("/metrics")
        assert answer.status == 200
        return parsed(answer.text)

    def shows(self, claim: Callable[[Page], object], what: str, within_s: float = PATIENCE_S) -> Page:
        """The first page of which the claim is true."""
        newest: list[Page] = []

        def holds() -> Page | None:
            newest[:] = [self.page()]
            return newest[0] if claim(newest[0]) else None

        try:
            return until(holds, what, within_s)
        except AssertionError as error:
            page = "\n".join(line for line in newest[0].text.splitlines() if line[0] != "#") if newest else ""
            raise AssertionError(f"{error}\n{page}\nthe log: {self.lines[-30:]}") from error

    def snapshot(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self.get("/api/v1/snapshot").body)
        return document

    def findings(self) -> list[dict[str, Any]]:
        document: dict[str, Any] = json.loads(self.get("/api/v1/findings").body)
        findings: list[dict[str, Any]] = document["findings"]
        return findings

    def finding(self, rule: str) -> dict[str, Any] | None:
        """The first finding of this rule; None: there is none."""
        return next((finding for finding in self.findings() if finding["rule"] == rule), None)

    def journal(self, kind: str | None = None) -> list[dict[str, Any]]:
        """Its lines of one kind, or all, oldest first."""
        lines: list[dict[str, Any]] = json.loads(self.get("/api/v1/events").body)["events"]
        return [line for line in lines if kind in (None, line["kind"])]

    def device(self, device_id: str) -> dict[str, Any]:
        devices: list[dict[str, Any]] = self.snapshot()["devices"]
        return next(device for device in devices if device["device_id"] == device_id)

    def all_read(self, within_s: float = PATIENCE_S) -> Page:
        """Once every probe of every device that is there has had its turn."""

        def waiting() -> bool:
            snapshot = self.snapshot()
            answered = {(state["probe"], state["device_id"]) for state in snapshot["probes"]}
            return not snapshot["devices"] or any(
                (probe, device["device_id"]) not in answered and probe not in device["unsupported"]
                for device in snapshot["devices"]
                if device["present"] is not False
                for probe in profile_of(device["name"]).probes - OF_THE_CROWDED
            )

        until(lambda: not waiting(), f"all probes read once; the log: {self.lines[-10:]}", within_s)
        return self.page()


def launch(*arguments: str | Path, env: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
    """`python -m npu_watchd ARGUMENTS`, with pipes."""
    return subprocess.Popen(
        [*PROGRAM, *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, **(env or {})},
    )


@contextlib.contextmanager
def running(config: Path, env: Mapping[str, str] | None = None) -> Iterator[Daemon]:
    """The daemon on this config, ready."""
    with Daemon(launch("run", "--config", config, env=env)) as daemon:
        yield daemon.ready()


@dataclass(frozen=True)
class Said:
    code: int
    out: str
    err: str


def command(*arguments: str | Path, stdin: bytes = b"", env: Mapping[str, str] | None = None) -> Said:
    """One command of the program, to its end."""
    done = subprocess.run(
        [*PROGRAM, *map(str, arguments)],
        input=stdin,
        capture_output=True,
        timeout=20,
        check=False,
        env={**os.environ, **(env or {})},
    )
    return Said(done.returncode, done.stdout.decode(), done.stderr.decode())


def processes_below(directory: Path) -> list[str]:
    """Command lines of processes that name something in DIRECTORY; zombies have none."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):
                words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
                if str(directory) in words:
                    found.append(f"{entry.name}: {words}")
    return found


def children_of(pid: int) -> list[int]:
    """Its children, zombies included."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):
            found += map(int, (task / "children").read_text().split())
    return found
