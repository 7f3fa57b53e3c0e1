"""What systemd is told: ready, alive, stopping (sd_notify(3)); nothing where it did not ask."""

from __future__ import annotations

import socket
from collections.abc import Mapping


class Notifier:
    """Sends to the socket of $NOTIFY_SOCKET; a send that fails is lost, since nothing may depend on it."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._address = environ.get("NOTIFY_SOCKET", "")
        # Abstract sockets are written with an @ and begin with a NUL byte.
        if self._address.startswith("@"):
            self._address = "\0" + self._address[1:]

    def send(self, *assignments: str) -> bool:
        """Send lines such as `READY=1`; False where nobody listens."""
        if not self._address:
            return False
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as channel:
                channel.setblocking(False)
                channel.sendto("\n".join(assignments).encode(), self._address)
        except OSError:
            return False
        return True
