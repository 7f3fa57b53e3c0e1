"""The web configuration as it is now: read again when a file changes, the last good one kept when it is bad."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from npu_watchd.sinks.web.events import Log
from npu_watchd.sinks.web.tls import Tls, make_tls
from npu_watchd.sinks.web.webconfig import WebConfig, load_web_config
from npu_watchd.sinks.web.yaml_section import WebConfigError

_Mark = tuple[tuple[int, int, int] | None, ...]


@dataclass(frozen=True, slots=True)
class WebSettings:
    """The file's settings with the TLS context made from them."""

    config: WebConfig
    tls: Tls | None
    """None: plain HTTP."""


def load_settings(path: Path | None) -> WebSettings:
    """Settings of this file, certificates opened; without a file, plain HTTP for all. Raises WebConfigError."""
    if path is None:
        return WebSettings(WebConfig(), None)
    config = load_web_config(path)
    return WebSettings(config, make_tls(config.tls, path) if config.tls else None)


class LiveSettings:
    """The settings for the connection or request at hand.

    Each look compares the files' marks (mtime, size, inode), a few microseconds; a change is read again at once, so a
    renewed certificate serves the next connection. What cannot be used is logged once a change and the last good
    settings stay. TLS cannot be turned on or off this way: that needs a restart, and the log says so.
    """

    def __init__(self, path: Path | None, log: Log) -> None:
        """Raises WebConfigError."""
        self._path = path
        self._log = log
        self._lock = threading.Lock()
        self._settings = load_settings(path)
        self._mark = self._look(self._settings)
        if self._settings.config.http2_asked:
            log("web_http2_not_spoken", reason="HTTP/1.1 only; clients fall back to it by themselves", file=str(path))

    def now(self) -> WebSettings:
        if self._path is None:
            return self._settings
        with self._lock:
            mark = self._look(self._settings)
            if mark != self._mark:
                self._mark = mark
                self._reload(self._path)
            return self._settings

    def _reload(self, path: Path) -> None:
        try:
            fresh = load_settings(path)
        except (WebConfigError, OSError, ValueError) as error:
            self._log("web_config_not_reloaded", error=str(error), kept="the last good settings")
            return
        if (fresh.tls is None) != (self._settings.tls is None):
            self._log("web_config_not_reloaded", error=f"{path}: TLS turned on or off", cure="restart the daemon")
            return
        self._settings = fresh
        self._mark = self._look(fresh)
        self._log("web_config_reloaded", file=str(path))

    def _look(self, settings: WebSettings) -> _Mark:
        if self._path is None:
            return ()
        return _mark((self._path, *(settings.config.tls.files if settings.config.tls else ())))


def _mark(paths: Iterable[Path]) -> _Mark:
    return tuple(_stat(path) for path in paths)


def _stat(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
