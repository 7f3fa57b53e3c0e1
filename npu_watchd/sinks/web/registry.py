"""The connections that are open: what each waits for, until when, and which makes room when there are too many."""

from __future__ import annotations

import resource
import selectors
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from npu_watchd.sinks.web.client import Client, Phase

_ROOM_MIN = 8


@dataclass(frozen=True, slots=True)
class Limits:
    """What a client may take; each is far above what a scraper needs."""

    connections: int = 256
    """In all, and never more than a quarter of the process's descriptors, which the tools' pipes need as well.

    Above it a waiting connection of the address that holds most makes room, never one that is being answered.
    """
    head_bytes: int = 8192
    head_s: float = 10.0
    """From the accept (or the first byte of a further request) to the end of the head, TLS handshake included."""
    reply_s: float = 10.0
    idle_s: float = 120.0
    """Between two requests: above the usual scrape intervals."""
    linger_s: float = 2.0
    accept_pause_s: float = 0.5
    """Without a file descriptor left, until the next try."""


DEFAULT_LIMITS = Limits()


class Registry:
    """Used by the front's thread alone."""

    def __init__(self, selector: selectors.BaseSelector, limits: Limits, monotonic: Callable[[], float]) -> None:
        self._selector = selector
        self._monotonic = monotonic
        self._clients: set[Client] = set()
        self._room = limits.connections
        descriptors = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        if descriptors != resource.RLIM_INFINITY:
            self._room = min(self._room, max(_ROOM_MIN, descriptors // 4))

    def __len__(self) -> int:
        return len(self._clients)

    def __contains__(self, client: Client) -> bool:
        return client in self._clients

    def add(self, client: Client, phase: Phase, seconds: float) -> bool:
        """Takes the client in, making room where there is none; False where workers have all connections."""
        if len(self._clients) >= self._room and not self.evict():
            return False
        self._clients.add(client)
        self.enter(client, phase, seconds)
        return True

    def enter(self, client: Client, phase: Phase, seconds: float) -> None:
        """A new phase, which may last that long."""
        now = self._monotonic()
        client.phase, client.since, client.deadline = phase, now, now + seconds

    def watch(self, client: Client, events: int) -> None:
        """Has the selector report these events of the client; 0: none."""
        if events == client.watched:
            return
        if not events:
            self._selector.unregister(client.socket)
        elif not client.watched:
            self._selector.register(client.socket, events, client)
        else:
            self._selector.modify(client.socket, events, client)
        client.watched = events

    def close(self, client: Client) -> None:
        if client in self._clients:
            self.watch(client, 0)
            self._clients.discard(client)
            client.socket.close()

    def close_all(self) -> None:
        for client in list(self._clients):
            self.close(client)

    def evict(self) -> bool:
        """Closes a connection of the address that holds most: the one that has been in its phase longest.

        So whoever floods us pushes out its own connections and no one else's. False where workers have them all.
        """
        waiting = self._waiting()
        held = Counter(client.remote_addr for client in waiting)
        if waiting:
            self.close(min(waiting, key=lambda client: (-held[client.remote_addr], client.since)))
        return bool(waiting)

    def next_deadline(self) -> float | None:
        return min((client.deadline for client in self._waiting()), default=None)

    def overdue(self) -> list[Client]:
        now = self._monotonic()
        return [client for client in self._waiting() if client.deadline <= now]

    def busy(self) -> bool:
        """True while a request is being answered."""
        return any(client.phase in (Phase.WORK, Phase.REPLY) for client in self._clients)

    def _waiting(self) -> list[Client]:
        return [client for client in self._clients if client.phase is not Phase.WORK]
