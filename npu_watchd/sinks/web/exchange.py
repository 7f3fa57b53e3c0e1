"""What happens on one connection, step by step, each without blocking: handshake, head, reply, goodbye."""

from __future__ import annotations

import io
import re
import selectors
import socket
import ssl
from collections.abc import Callable

from npu_watchd.sinks.web.client import Client, Flow, Phase, plain_response
from npu_watchd.sinks.web.events import Log
from npu_watchd.sinks.web.registry import Limits, Registry
from npu_watchd.sinks.web.settings import LiveSettings

_HEAD_END = re.compile(rb"\r?\n\r?\n")
_CHUNK = 16384
_LINGER_BYTES = 1 << 20


class Exchange:
    """Takes a connection as far as it goes now; `work` gets it when a whole request head is there."""

    def __init__(
        self, registry: Registry, settings: LiveSettings, limits: Limits, work: Callable[[Client], object], log: Log
    ) -> None:
        self._registry = registry
        self._settings = settings
        self._limits = limits
        self._work = work
        self._log = log

    def step(self, client: Client) -> None:
        try:
            {
                Phase.HANDSHAKE: self._shake_hands,
                Phase.HEAD: self._read_head,
                Phase.REPLY: self._send_reply,
                Phase.LINGER: self._linger,
            }[client.phase](client)
        except Exception as error:  # noqa: BLE001  # one connection's fault must not end the others
            self._log("web_connection_failed", error=repr(error), exc_info=error)
            self._registry.close(client)

    def _shake_hands(self, client: Client) -> None:
        try:
            client.socket.do_handshake()
        except ssl.SSLWantReadError:
            self._registry.watch(client, selectors.EVENT_READ)
        except ssl.SSLWantWriteError:
            self._registry.watch(client, selectors.EVENT_WRITE)
        except ssl.SSLError as error:
            self._refuse_handshake(client, error)
        except OSError:
            self._registry.close(client)
        else:
            tls = self._settings.now().tls
            if tls is None or not tls.admits(client.socket.getpeercert()):
                self._registry.close(client)
                return
            # The handshake's deadline goes on: it is one time for both.
            client.phase = Phase.HEAD
            self._read_head(client)

    def _refuse_handshake(self, client: Client, error: ssl.SSLError) -> None:
        if error.reason != "HTTP_REQUEST":
            self._registry.close(client)
            return
        self._registry.watch(client, 0)
        client.socket = socket.socket(fileno=client.socket.detach())
        self.refuse(client, "400 Bad Request", "This port speaks HTTPS only; use https://.")

    def _read_head(self, client: Client) -> None:
        while True:
            end = _HEAD_END.search(client.buffer)
            if end is not None and end.end() <= self._limits.head_bytes:
                self._dispatch(client, end.end())
                return
            if len(client.buffer) > self._limits.head_bytes:
                text = f"The request head exceeds {self._limits.head_bytes} bytes."
                self.refuse(client, "431 Request Header Fields Too Large", text)
                return
            if client.buffer and not (client.buffer[:1].isalpha() or client.buffer[:1] in b"\r\n"):
                # No method begins like this (a TLS greeting to a plain port, say): cheroot's parser will refuse it.
                self._dispatch(client, len(client.buffer))
                return
            if not self._receive(client):
                return

    def _receive(self, client: Client) -> bool:
        """True where bytes came; else the client is watched, or closed where it has gone."""
        try:
            data = client.socket.recv(_CHUNK)
        except (BlockingIOError, InterruptedError, ssl.SSLWantReadError):
            self._registry.watch(client, selectors.EVENT_READ)
            return False
        except ssl.SSLWantWriteError:
            self._registry.watch(client, selectors.EVENT_WRITE)
            return False
        except OSError:
            data = b""
        if not data:
            self._registry.close(client)
            return False
        if client.served and not client.buffer:
            self._registry.enter(client, Phase.HEAD, self._limits.head_s)
        client.buffer += data
        return True

    def _dispatch(self, client: Client, size: int) -> None:
        client.rfile = io.BytesIO(bytes(client.buffer[:size]))
        del client.buffer[:size]
        self._registry.watch(client, 0)
        client.phase = Phase.WORK
        self._work(client)

    def refuse(self, client: Client, status: str, text: str) -> None:
        client.wfile.write(plain_response(status, text))
        client.keep = False
        self._registry.enter(client, Phase.REPLY, self._limits.linger_s)
        self._send_reply(client)

    def _send_reply(self, client: Client) -> None:
        flow = client.wfile.send(client.socket)
        if flow is Flow.WANTS_WRITE or flow is Flow.WANTS_READ:
            self._registry.watch(client, selectors.EVENT_WRITE if flow is Flow.WANTS_WRITE else selectors.EVENT_READ)
        elif flow is Flow.BROKEN:
            self._registry.close(client)
        elif client.keep:
            client.served = True
            self._registry.enter(client, Phase.HEAD, self._limits.head_s if client.buffer else self._limits.idle_s)
            self._read_head(client)
        else:
            self._say_goodbye(client)

    def _say_goodbye(self, client: Client) -> None:
        try:
            if isinstance(client.socket, ssl.SSLSocket):
                client.socket.unwrap()
        except (OSError, ValueError):
            pass  # the notice is sent; the peer's own comes later or never
        try:
            client.socket.shutdown(socket.SHUT_WR)
        except OSError:
            self._registry.close(client)
            return
        self._registry.enter(client, Phase.LINGER, self._limits.linger_s)
        self._linger(client)

    def _linger(self, client: Client) -> None:
        while client.discarded < _LINGER_BYTES:
            try:
                data = client.socket.recv(_CHUNK)
            except (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
                self._registry.watch(client, selectors.EVENT_READ)
                return
            except (OSError, ValueError):
                break
            if not data:
                break
            client.discarded += len(data)
        self._registry.close(client)
