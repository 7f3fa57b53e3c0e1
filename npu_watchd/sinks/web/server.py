"""The web server: cheroot's parser and workers behind our own front, started and stopped as one."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cheroot import wsgi

from npu_watchd.sinks.web.app import Application
from npu_watchd.sinks.web.client import Client
from npu_watchd.sinks.web.events import Log
from npu_watchd.sinks.web.front import Front
from npu_watchd.sinks.web.history import CounterHistory
from npu_watchd.sinks.web.listen import bound_address, open_listeners
from npu_watchd.sinks.web.publication import Published
from npu_watchd.sinks.web.registry import DEFAULT_LIMITS, Limits
from npu_watchd.sinks.web.settings import LiveSettings

WORKERS = 8
"""They only compute, so more would not serve faster; two may be busy with bcrypt and four wait for it."""

_STOP_TIMEOUT_S = 5.0
_LOOPBACK = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}  # noqa: S104  # read, not bound
_ANY_HOST = re.compile(r"^(?:0\.0\.0\.0|\[::\])(?=:)")


class WebServer:
    """Serves the newest publication on every address of `[web] listen`.

    The constructor reads the web configuration (WebConfigError) and `start` opens the ports (ListenError); both
    messages are for people. `monotonic` must be the clock of `Tick.mono_s`: the page tells the age of what it shows.
    """

    def __init__(
        self,
        listen: tuple[str, ...],
        config_file: Path | None,
        publication: Callable[[], Published | None],
        log: Log,
        *,
        monotonic: Callable[[], float],
        limits: Limits = DEFAULT_LIMITS,
        counters: CounterHistory | None = None,
    ) -> None:
        self._listen = listen
        self._settings = LiveSettings(config_file, log)
        self._application = Application(publication, self._settings, monotonic, log, counters)
        self._log = log
        self._monotonic = monotonic
        self._limits = limits
        self._workers: _Workers | None = None
        self._front: Front | None = None
        self._thread: threading.Thread | None = None
        self._addresses: tuple[str, ...] = ()

    @property
    def addresses(self) -> tuple[str, ...]:
        """The bound addresses in the order of `listen`, with the ports that the kernel gave; empty before `start`."""
        return self._addresses

    @property
    def urls(self) -> tuple[str, ...]:
        """The addresses with their scheme, as a person would type them on this machine."""
        scheme = "https" if self._settings.now().tls else "http"
        return tuple(
            f"{scheme}://{_ANY_HOST.sub(lambda host: _LOOPBACK[host[0]], address)}/" for address in self._addresses
        )

    def start(self) -> None:
        """Opens the ports and serves from threads of its own. Raises ListenError."""
        if self._thread is not None:
            raise RuntimeError("the web server runs already")
        listeners = open_listeners(self._listen)
        self._addresses = tuple(bound_address(listener) for listener in listeners)
        workers = _Workers(listeners[0].getsockname()[:2], self._application, self._log)
        front = Front(workers, listeners, self._settings, self._limits, self._monotonic, self._log)
        workers.front = front
        self._workers, self._front = workers, front
        self._thread = threading.Thread(target=self._serve, args=(workers, front), name="web-front", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Closes the ports, sends what is under way for up to two seconds, and ends the threads."""
        if self._thread is None or self._front is None or self._workers is None:
            return
        self._front.stop()
        self._thread.join(_STOP_TIMEOUT_S)
        self._workers.requests.stop(_STOP_TIMEOUT_S)
        self._thread = None

    @staticmethod
    def _serve(workers: _Workers, front: Front) -> None:
        # Threads inherit "daemon" from the one that starts them: so no worker keeps a dying process alive.
        workers.requests.start()
        front.run()


class _Workers(wsgi.Server):
    """cheroot's server reduced to its worker pool, its WSGI gateway and what they ask of a server."""

    front: Front

    def __init__(self, address: tuple[Any, ...], application: Application, log: Log) -> None:
        super().__init__(address, application, numthreads=WORKERS, max=WORKERS, server_name="npu-watchd")
        self.software = "npu-watchd"
        self.ready = True
        self._log = log

    @property
    def can_add_keepalive_connection(self) -> bool:
        return True

    def put_conn(self, conn: Client) -> None:
        self.front.hand_back(conn, True)

    def error_log(self, msg: str = "", level: int = 20, traceback: bool = False) -> None:
        self._log("web_request_failed", error=msg, level=level, exc_info=traceback)

    def stop(self) -> None:
        self.front.stop()
