"""The unix socket over which people decide: who may is a matter of its file's mode, who did the kernel says."""

from __future__ import annotations

import os
import pwd
import socket
import struct
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from grp import getgrnam
from pathlib import Path
from typing import Any, Protocol

import msgspec

from npu_watchd.model.fabric import PortKey
from npu_watchd.model.finding import Finding
from npu_watchd.model.ids import NODE, Subject
from npu_watchd.model.reading import Tick
from npu_watchd.model.verdict import Answer, Decision, Order, Verdict
from npu_watchd.sinks.plaintext import clean
from npu_watchd.sinks.web.verdicts import verdict_document

NAME = "control.sock"
GROUP = "npu-watchd"
_MODE = 0o660
_PATIENCE_S = 5.0
"""For a client to send its line, and to take the answer."""
_MOST_BYTES = 64 * 1024
_MOST_CLIENTS = 8
_QUEUE = 64
_REASON_MAX = 500
_CREDENTIALS = struct.Struct("3i")


class Request(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One line of JSON."""

    order: str
    """An Order, or `look`: the verdict alone."""
    subject: str | None = None
    """`node`, a device_id, or `mlx5_0/1`; None: whom `finding` is about."""
    finding: str | None = None
    """Of an ack: rule or alert."""
    reason: str = ""
    for_seconds: float | None = None
    force: bool = False
    seen: int | None = None
    """Revision of the verdict that the person saw."""
    on_behalf_of: str | None = None
    """Who became root for this (sudo); believed of root alone."""


class Decider(Protocol):
    """npu_watchd/docket.py."""

    def decide(self, decision: Decision) -> Answer: ...

    @property
    def verdicts(self) -> tuple[Verdict, ...]: ...

    @property
    def findings(self) -> tuple[Finding, ...]: ...


class ControlSocket:
    """`open` once, `close` once. Each client has a thread of its own, for one request."""

    def __init__(
        self,
        runtime_dir: Path,
        decider: Decider,
        clock: Callable[[], Tick],
        warn: Callable[..., None],
        decided: Callable[[], None] = lambda: None,
    ) -> None:
        """decided: called after each decision that was carried out, so that it shows at once."""
        self._path = runtime_dir / NAME
        self._decider = decider
        self._clock = clock
        self._warn = warn
        self._decided = decided
        self._socket: socket.socket | None = None
        self._clients = threading.BoundedSemaphore(_MOST_CLIENTS)

    def open(self) -> None:
        """Where that fails nobody can decide anything; it is said, and the daemon goes on watching."""
        try:
            self._socket = self._listen()
        except OSError as error:
            cure = "release, quarantine, ack and maintenance do not work until it is mended and the daemon started anew"
            self._warn("control_socket_failed", error=f"{self._path}: {error.strerror or error}", costs=cure)
            return
        threading.Thread(target=self._serve, args=(self._socket,), name="control", daemon=True).start()

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            with suppress(OSError):
                self._path.unlink()

    def _listen(self) -> socket.socket:
        self._path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        # What lies there is of a daemon that is gone: the lease of this folder is ours (npu_watchd/lease.py).
        self._path.unlink(missing_ok=True)
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        try:
            # Before bind, so that there is no moment in which it is open to all (Linux takes the socket's own mode).
            os.fchmod(listening.fileno(), _MODE)
            listening.bind(str(self._path))
            self._path.chmod(_MODE)
            _hand_to_group(self._path)
            listening.listen(_QUEUE)
        except OSError:
            listening.close()
            raise
        return listening

    def _serve(self, listening: socket.socket) -> None:
        while True:
            try:
                client, _ = listening.accept()
            except OSError:
                return
            # Who holds a place gives it up within its own patience; the others wait in the kernel's queue.
            if not self._clients.acquire(timeout=2 * _PATIENCE_S):
                client.close()
                continue
            threading.Thread(target=self._attend, args=(client,), name="control client", daemon=True).start()

    def _attend(self, client: socket.socket) -> None:
        try:
            with client:
                client.settimeout(_PATIENCE_S)
                document = self._answer(_line(client), _who(client))
                client.sendall(msgspec.json.encode(document) + b"\n")
        except OSError:
            return
        except Exception as error:  # noqa: BLE001  # a fault of ours costs this one request
            self._warn("control_request_failed", error=repr(error))
        finally:
            self._clients.release()

    def _answer(self, line: bytes, who: tuple[int, str]) -> dict[str, Any]:
        try:
            request = msgspec.json.decode(line, type=Request)
        except (msgspec.DecodeError, RecursionError) as error:
            return _refused(f"this request cannot be read: {error}")
        if request.order == "ack":
            finding = _finding(self._decider.findings, request.finding or "", request.subject)
            if isinstance(finding, str):
                return _refused(finding)
            return self._carry_out(request, finding.subject, who, finding)
        subject = _subject(self._decider.verdicts, request.subject or "node")
        if isinstance(subject, str):
            return _refused(subject)
        if request.order == "look":
            return {"accepted": True, "text": "", "overridden": [], "verdict": self._verdict(subject)}
        return self._carry_out(request, subject, who, None)

    def _carry_out(
        self, request: Request, subject: Subject, who: tuple[int, str], finding: Finding | None
    ) -> dict[str, Any]:
        reason = clean(request.reason, _REASON_MAX).strip()
        if not reason and request.order != Order.MAINTENANCE_OVER:
            return _refused("a reason is needed: whoever reads the journal wants to know it (--reason TEXT)")
        try:
            order = Order(request.order)
        except ValueError:
            return _refused(f"{request.order[:40]!r} is no order; there are {', '.join(Order)}")
        now_s = self._clock().wall_s
        decision = Decision(
            order=order,
            subject=subject,
            by=_by(who, request.on_behalf_of),
            reason=reason or "it is over",
            at_s=now_s,
            until_s=None if request.for_seconds is None else now_s + request.for_seconds,
            rule=finding.rule if finding else None,
            force=request.force,
            seen=request.seen,
        )
        answer = self._decider.decide(decision)
        if answer.accepted:
            self._decided()
        return {
            "accepted": answer.accepted,
            "text": answer.text,
            "overridden": list(answer.overridden),
            "verdict": self._verdict(subject),
            "alert": finding.alert if finding else None,
            "device_id": finding.device_id if finding else None,
        }

    def _verdict(self, subject: Subject) -> dict[str, Any] | None:
        return next((verdict_document(one) for one in self._decider.verdicts if one.subject == subject), None)


def _hand_to_group(path: Path) -> None:
    """Under the unit the socket has that group already, and nothing there may change owners (docs/decisions/0025)."""
    try:
        group = getgrnam(GROUP).gr_gid
        if path.stat().st_gid != group:
            os.chown(path, -1, group)
    except (KeyError, OSError):
        return


def _line(client: socket.socket) -> bytes:
    found = b""
    while not found.endswith(b"\n") and len(found) <= _MOST_BYTES:
        more = client.recv(4096)
        if not more:
            break
        found += more
    return found


def _who(client: socket.socket) -> tuple[int, str]:
    """Uid and name of whoever is at the other end (SO_PEERCRED, unix(7))."""
    _, uid, _ = _CREDENTIALS.unpack(client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
    try:
        return uid, pwd.getpwuid(uid).pw_name
    except KeyError:
        return uid, f"uid {uid}"


def _by(who: tuple[int, str], on_behalf_of: str | None) -> str:
    uid, name = who
    return f"{clean(on_behalf_of, 64)} (as root)" if uid == 0 and on_behalf_of else name


def _refused(why: str) -> dict[str, Any]:
    return {"accepted": False, "text": why, "overridden": [], "verdict": None}


def _subject(verdicts: Iterable[Verdict], text: str) -> Subject | str:
    """Or why it is nobody's name."""
    names = {_name(verdict): verdict.subject for verdict in verdicts}
    if text in names:
        return names[text]
    known = ", ".join(name for name in names) or "nothing yet"
    return f"{text[:60]!r} is not known here; known are {known}"


def _name(verdict: Verdict) -> str:
    if verdict.subject == NODE:
        return "node"
    return verdict.device_id if verdict.device_id is not None else str(verdict.subject)


def _finding(findings: Iterable[Finding], word: str, subject: str | None) -> Finding | str:
    """The one that stands under this rule or alert, about this subject where it is told; or why there is none."""
    alike = [finding for finding in findings if word in (finding.rule, finding.alert)]
    found = [finding for finding in alike if subject is None or _about(finding) == subject]
    if len(found) == 1:
        return found[0]
    if found:
        return f"{word} stands about {', '.join(map(_about, found))}: say which, as in {word}/{_about(found[0])}"
    there = ", ".join(f"{finding.alert}/{_about(finding)}" for finding in findings) or "none"
    return f"no such finding stands: {word[:60]!r}; there is {there}"


def _about(finding: Finding) -> str:
    if finding.device_id is not None:
        return finding.device_id
    return f"{finding.subject}" if isinstance(finding.subject, PortKey) else "node"


def ask(runtime_dir: Path, request: Mapping[str, Any]) -> dict[str, Any]:
    """The daemon's answer to one request. Raises OSError, TimeoutError among them, and ValueError for what is none."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        server.settimeout(_PATIENCE_S + 5.0)
        try:
            server.connect(str(runtime_dir / NAME))
        except BlockingIOError:
            raise ValueError("too many wait for the daemon already; try again in a moment") from None
        server.sendall(msgspec.json.encode(request) + b"\n")
        server.shutdown(socket.SHUT_WR)
        said = b""
        while chunk := server.recv(65536):
            said += chunk
    if not said:
        raise ValueError("the daemon closed the connection without an answer; try again")
    return msgspec.json.decode(said, type=dict[str, Any])
