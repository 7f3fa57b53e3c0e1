"""What systemd is told: ready, alive, stopping (sd_notify(3)); nothing where it did not ask."""

from __future__ import annotations

import socket
from collections.abc import Mapping

_CYCLES = 4
"""How many cycles may be missed before the daemon counts as stuck."""


class Notifier:
    """Sends to the socket of $NOTIFY_SOCKET; a send that fails is lost, since nothing may depend on it."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._address = environ.get("NOTIFY_SOCKET", "")
        watchdog_usec = environ.get("WATCHDOG_USEC", "")
        self._unit_patience_s = int(watchdog_usec) / 1e6 if watchdog_usec.isdecimal() else None
        # Abstract sockets are written with an @ and begin with a NUL byte.
        if self._address.startswith("@"):
            self._address = "\0" + self._address[1:]

    def patience(self, cycle_s: float) -> tuple[str, ...]:
        """What to send for systemd to wait as long as cycles of `cycle_s` seconds need; nothing without a watchdog.

        The unit's WatchdogSec= holds where it is four cycles or more (sd_notify(3), WATCHDOG_USEC=).
        """
        if self._unit_patience_s is None:
            return ()
        return (f"WATCHDOG_USEC={round(max(self._unit_patience_s, _CYCLES * cycle_s) * 1e6)}",)

    def send(self, *assignments: str) -> bool:
        """Send lines such as `READY=1`; False where nobody listens, or there is nothing to say."""
        if not self._address or not assignments:
            return False
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as channel:
                channel.setblocking(False)
                channel.sendto("\n".join(assignments).encode(), self._address)
        except OSError:
            return False
        return True
