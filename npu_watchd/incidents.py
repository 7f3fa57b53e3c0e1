"""Incidents that training programs report (npu_watchd/resilient): a socket to which anybody may write, and a spool.

Nothing that comes is believed: who sent it the kernel says, the rest is a line in the journal and no more.
"""

from __future__ import annotations

import os
import socket
import stat
import struct
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import msgspec

from npu_watchd.model.reading import Tick
from npu_watchd.sinks.plaintext import clean

SOCKET, SPOOL = "incidents.sock", "spool"
KIND = "job_incident"
_MOST_BYTES = 4096
_MOST_FILES = 100
_BURST, _PER_SECOND = 20.0, 0.2
"""Of lines in the journal; assumption: 16 ranks fail together, and then not for a while."""
_CREDENTIALS = struct.Struct("3i")


class Report(msgspec.Struct, frozen=True):
    """One incident; what else it has is ignored."""

    error: str
    action: str
    attempt: int
    device_id: str | None = None
    rank: str | None = None
    text: str = ""


class Note(Protocol):
    """Docket.note."""

    def __call__(self, kind: str, text: str, wall_s: float, **facts: str | float | bool) -> None: ...


class IncidentSocket:
    """`open` once, `close` once."""

    def __init__(self, runtime_dir: Path, note: Note, clock: Callable[[], Tick], warn: Callable[..., None]) -> None:
        self._dir = runtime_dir
        self._note = note
        self._clock = clock
        self._warn = warn
        self._socket: socket.socket | None = None
        self._room, self._room_at_s = _BURST, clock().mono_s
        self._dropped = 0

    def open(self) -> None:
        """Where that fails nobody can report; it is said, and the daemon goes on watching."""
        path = self._dir / SOCKET
        try:
            self._dir.mkdir(mode=0o755, parents=True, exist_ok=True)
            self._read_spool(self._dir / SPOOL)
            path.unlink(missing_ok=True)
            heard = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
            heard.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
            heard.bind(str(path))
            path.chmod(0o666)
        except OSError as error:
            self._warn(
                "incident_socket_failed", error=f"{path}: {error.strerror}", costs="jobs cannot report incidents"
            )
            return
        self._socket = heard
        threading.Thread(target=self._listen, args=(heard,), name="incidents", daemon=True).start()

    def close(self) -> None:
        if self._socket is not None:
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)
            self._socket.close()
            with suppress(OSError):
                (self._dir / SOCKET).unlink()

    def _listen(self, heard: socket.socket) -> None:
        while True:
            try:
                raw, ancillary, flags, _ = heard.recvmsg(_MOST_BYTES, socket.CMSG_SPACE(_CREDENTIALS.size))
            except OSError:
                return
            if not raw and not ancillary:
                return  # shut down
            whole = not flags & socket.MSG_TRUNC
            uid = next(
                (_CREDENTIALS.unpack(data)[1] for _, kind, data in ancillary if kind == socket.SCM_CREDENTIALS), None
            )
            self.take(raw if whole else b"", uid)

    def take(self, raw: bytes, uid: int | None) -> None:
        """One report; what is none, or too much, is dropped. Never raises. uid: None where the kernel did not tell."""
        now = self._clock()
        self._room = min(_BURST, self._room + (now.mono_s - self._room_at_s) * _PER_SECOND)
        self._room_at_s = now.mono_s
        if self._room < 1.0:
            self._dropped += 1
            return
        try:
            report = msgspec.json.decode(raw, type=Report)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            self._dropped += 1
            return
        self._room -= 1.0
        device, rank = (clean(one or "", 16) for one in (report.device_id, report.rank))
        error, action, words = clean(report.error, 40), clean(report.action, 10), clean(report.text, 200)
        who = f"device {device}" if device else "a device that it does not name"
        lost = f" ({self._dropped} more reports were dropped)" if self._dropped else ""
        self._dropped = 0
        whose = "a job of an unknown user" if uid is None else f"a job of uid {uid}"
        text = f"{whose} on {who} reports {error} (attempt {report.attempt}, {action}): {words}{lost}"
        facts: dict[str, str | float | bool] = {"device": device, "rank": rank, "error": error, "action": action}
        if uid is not None:
            facts["uid"] = float(uid)
        self._note(KIND, text, now.wall_s, **facts)

    def _read_spool(self, folder: Path) -> None:
        """What was reported while no daemon ran. Everybody may put files there, and remove only his own."""
        with suppress(FileExistsError):
            folder.mkdir()
        if not stat.S_ISDIR(folder.lstat().st_mode):
            return
        folder.chmod(0o1733)
        for name in sorted(os.listdir(folder))[: 2 * _MOST_FILES]:
            path = folder / name
            with suppress(OSError):
                if name.endswith(".json"):
                    self._take_file(path)
                path.unlink()

    def _take_file(self, path: Path) -> None:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(fd, "rb") as file:
            found = os.fstat(fd)
            if stat.S_ISREG(found.st_mode):
                self.take(file.read(_MOST_BYTES), found.st_uid)
