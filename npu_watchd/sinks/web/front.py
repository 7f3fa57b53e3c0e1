"""The one thread that talks to sockets: accepts, reads request heads, sends replies, keeps deadlines.

cheroot gives a connection to a worker as soon as it is accepted, so a few silent clients hold all workers, and one
silent TLS client holds the accept loop. Here no worker ever waits for a client: it gets a request when its head is
complete, and what it answers is sent from here, never blocking. So clients can be slow only at their own cost.
"""

from __future__ import annotations

import contextlib
import errno
import selectors
import socket
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from npu_watchd.sinks.web.client import Client, Phase
from npu_watchd.sinks.web.events import Log
from npu_watchd.sinks.web.exchange import Exchange
from npu_watchd.sinks.web.registry import Limits, Registry
from npu_watchd.sinks.web.settings import LiveSettings

_ACCEPTS_A_TURN = 64
_NO_ROOM = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


class Front:
    """Runs in its own thread until `stop`; `server.requests.put` gets each connection with a whole request head."""

    def __init__(
        self,
        server: Any,
        listeners: Sequence[socket.socket],
        settings: LiveSettings,
        limits: Limits,
        monotonic: Callable[[], float],
        log: Log,
    ) -> None:
        self._server = server
        self._listeners = listeners
        self._settings = settings
        self._limits = limits
        self._monotonic = monotonic
        self._log = log
        self._selector = selectors.DefaultSelector()
        self._registry = Registry(self._selector, limits, monotonic)
        self._exchange = Exchange(self._registry, settings, limits, server.requests.put, log)
        self._returned: deque[Client] = deque()
        self._stopping = threading.Event()
        self._accept_again_at: float | None = None
        self._wake_reader, self._wake_writer = socket.socketpair()
        for end in (self._wake_reader, self._wake_writer):
            end.setblocking(False)
        self._selector.register(self._wake_reader, selectors.EVENT_READ, lambda reader: reader.recv(4096))
        self._accept_on()

    @property
    def connections(self) -> int:
        """Open now."""
        return len(self._registry)

    @property
    def accepting(self) -> bool:
        """False while no file descriptor is left for a new connection."""
        return self._accept_again_at is None

    def run(self) -> None:
        """The loop; returns after `stop`, when the replies under way are sent or their time is up."""
        while not self._stopping.is_set():
            try:
                self._turn(self._timeout())
            except Exception as error:  # noqa: BLE001  # whatever it was, the next scrape must be answered
                self._log("web_front_failed", error=repr(error), exc_info=error)
                self._stopping.wait(self._limits.accept_pause_s)
        self._accept_off()
        for listener in self._listeners:
            listener.close()
        grace_until = self._monotonic() + self._limits.linger_s
        while self._monotonic() < grace_until and self._registry.busy():
            self._turn(0.05)
        self._registry.close_all()
        self._selector.close()
        self._wake_reader.close()
        self._wake_writer.close()

    def stop(self) -> None:
        """Asks `run` to end; from any thread."""
        self._stopping.set()
        self._wake()

    def hand_back(self, client: Client, keep: bool) -> None:
        """A worker is done with the client: its reply is in the outbox. `keep`: more requests may follow."""
        client.keep = keep and not self._stopping.is_set()
        client.since = self._monotonic()
        client.deadline = client.since + self._limits.reply_s
        # Sending from here saves a scrape the way through the loop; what the socket does not take is left to it.
        client.wfile.send(client.socket)
        client.phase = Phase.REPLY
        self._returned.append(client)
        self._wake()

    def _turn(self, timeout: float | None) -> None:
        for key, _ in self._selector.select(timeout):
            if isinstance(key.data, Client):
                self._exchange.step(key.data)
            else:
                key.data(key.fileobj)
        while self._returned:
            client = self._returned.popleft()
            if client in self._registry:
                self._exchange.step(client)
        self._expire()

    def _timeout(self) -> float | None:
        deadlines = [at for at in (self._registry.next_deadline(), self._accept_again_at) if at is not None]
        return max(0.0, min(deadlines) - self._monotonic()) if deadlines else None

    def _expire(self) -> None:
        again_at = self._accept_again_at
        if again_at is not None and self._monotonic() >= again_at and not self._stopping.is_set():
            self._accept_on()
        for client in self._registry.overdue():
            if client.phase is Phase.HEAD and client.buffer:
                self._exchange.refuse(client, "408 Request Timeout", "The request did not come in time.")
            else:
                self._registry.close(client)

    def _wake(self) -> None:
        # Full: the loop is awake already. Closed: it has ended.
        with contextlib.suppress(OSError):
            self._wake_writer.send(b"\0")

    def _accept_on(self) -> None:
        for listener in self._listeners:
            self._selector.register(listener, selectors.EVENT_READ, self._accept)
        self._accept_again_at = None

    def _accept_off(self) -> None:
        if self.accepting:
            for listener in self._listeners:
                self._selector.unregister(listener)

    def _accept(self, listener: socket.socket) -> None:
        for _ in range(_ACCEPTS_A_TURN):
            try:
                sock, address = listener.accept()
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno in _NO_ROOM and not self._registry.evict():
                    # The descriptors are with others. The listener stays readable, so looking on would spin.
                    self._accept_off()
                    self._accept_again_at = self._monotonic() + self._limits.accept_pause_s
                    return
                continue
            self._welcome(sock, address)

    def _welcome(self, sock: socket.socket, address: tuple[Any, ...]) -> None:
        tls = self._settings.now().tls
        try:
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if tls is not None:
                sock = tls.context.wrap_socket(sock, server_side=True, do_handshake_on_connect=False)
        except (OSError, ValueError):
            sock.close()  # gone before we looked
            return
        client = Client(self._server, sock, address, self.hand_back)
        client.ssl_env = {"wsgi.url_scheme": "https"} if tls else {}
        if self._registry.add(client, Phase.HANDSHAKE if tls else Phase.HEAD, self._limits.head_s):
            self._exchange.step(client)
        else:
            sock.close()
