"""The daemon as a training program meets it: told of incidents, asked for its verdict, and never waited for."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

RUNTIME_DIR = Path("/run/npu-watchd")
SOCKET, SPOOL, VERDICT = "incidents.sock", "spool", "verdict.json"
WAIT_S = 0.005
"""How long a training step may be held up by us."""
_MOST_SPOOLED = 100
_MOST_BYTES = 4 << 20
_TEXT_MAX = 500


@dataclass(frozen=True, slots=True)
class Incident:
    """What is reported: one datagram of JSON, or one file of the spool."""

    error: str
    """Name of a row in resilient/errors.py."""
    action: str
    """retry or stop."""
    attempt: int
    device_id: str | None = None
    rank: str | None = None
    text: str = ""
    at: float = 0.0
    """Unix seconds."""
    pid: int = 0


class Watchd:
    """Whatever is wrong with the daemon, its files or its socket: both calls return in milliseconds, and say less."""

    def __init__(self, runtime_dir: Path = RUNTIME_DIR) -> None:
        self._dir = runtime_dir
        self._busy = threading.Lock()
        """Held by the one thread of ours that may hang at a file."""

    def report(self, incident: Incident) -> None:
        """To the daemon's socket; where nobody takes it, into the spool, which the daemon reads when it starts."""
        raw = json.dumps({**asdict(incident), "text": incident.text[-_TEXT_MAX:]}).encode()
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as channel:
                channel.setblocking(False)
                channel.sendto(raw, str(self._dir / SOCKET))
        except OSError:
            self._aside(lambda: self._spool(raw))

    def sick(self, device_id: str) -> str | None:
        """Why the daemon wants the device, or the node, in quarantine; None: it does not, or nobody knows."""
        found: list[str | None] = []
        self._aside(lambda: found.append(self._verdict(device_id)))
        return found[0] if found else None

    def _aside(self, work: Callable[[], None]) -> None:
        """In a thread that is waited for 5 ms; not at all while the last one still hangs."""
        if not self._busy.acquire(blocking=False):
            return

        def guarded() -> None:
            try:
                with contextlib.suppress(Exception):
                    work()
            finally:
                self._busy.release()

        thread = threading.Thread(target=guarded, name="npu-watchd", daemon=True)
        try:
            thread.start()
        except RuntimeError:
            self._busy.release()
            return
        thread.join(WAIT_S)

    def _spool(self, raw: bytes) -> None:
        folder = self._dir / SPOOL
        if len(os.listdir(folder)) >= _MOST_SPOOLED:
            return
        name = f"{time.time_ns()}-{os.getpid()}"
        beside = folder / f".{name}"
        fd = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644)
        with os.fdopen(fd, "wb") as file:
            file.write(raw)
        beside.rename(folder / f"{name}.json")

    def _verdict(self, device_id: str) -> str | None:
        with (self._dir / VERDICT).open("rb") as file:
            document: Any = json.loads(file.read(_MOST_BYTES))
        age_s = time.time() - document["at"]
        if not -5.0 <= age_s <= document["stale_after_seconds"]:
            return None
        for one in document["verdicts"]:
            about = one["device_id"] == device_id or (one["subject"] == "node" and one["own_state"] == "quarantine")
            if about and one["state"] == "quarantine":
                reasons = [str(reason["text"]) for reason in one["reasons"]]
                return reasons[0] if reasons else "quarantine"
        return None
