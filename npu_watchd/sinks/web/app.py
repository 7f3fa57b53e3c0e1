"""The paths, who may have them, and the headers of every answer: a WSGI application that never shows a traceback."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs

from werkzeug.exceptions import HTTPException, MethodNotAllowed, NotFound
from werkzeug.http import HTTP_STATUS_CODES
from werkzeug.routing import Map, Rule

from npu_watchd.sinks.instants import instant
from npu_watchd.sinks.web.access import Admission, BasicAuth, RateLimit
from npu_watchd.sinks.web.api import encoded
from npu_watchd.sinks.web.events import Log
from npu_watchd.sinks.web.history import PARAMETERS, CounterHistory, answer
from npu_watchd.sinks.web.negotiation import gzip_accepted, metrics_format
from npu_watchd.sinks.web.page import CONTENT_SECURITY_POLICY, SCRIPT, SCRIPT_PATH
from npu_watchd.sinks.web.publication import Documents, Published
from npu_watchd.sinks.web.settings import LiveSettings

PATHS = (
    *("/", "/metrics", "/-/healthy", "/-/ready"),
    *("/api/v1/snapshot", "/api/v1/findings", "/api/v1/verdicts", "/api/v1/events", "/api/v1/history"),
)

TEXT = "text/plain; charset=utf-8"
HTML = "text/html; charset=utf-8"
JAVASCRIPT = "text/javascript; charset=utf-8"
JSON = "application/json; charset=utf-8"

NOT_YET = "nothing was seen yet: the first cycle is still under way"
_REPORTED_MAX = 100
_KEPT = "max-age=604800, immutable"
"""The page names the script together with a hash of it, so what a browser has kept is never an old one."""

Environ = dict[str, Any]
StartResponse = Callable[[str, list[tuple[str, str]]], object]


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole answer in memory."""

    status: int
    body: bytes
    content_type: str = TEXT
    headers: tuple[tuple[str, str], ...] = ()


class Application:
    """Serves the newest publication; asks for it at each request and keeps nothing else."""

    def __init__(
        self,
        publication: Callable[[], Published | None],
        settings: LiveSettings,
        monotonic: Callable[[], float],
        log: Log,
        counters: CounterHistory | None = None,
    ) -> None:
        """counters: None where no history is kept."""
        self._publication = publication
        self._counters = counters
        self._settings = settings
        self._monotonic = monotonic
        self._log = log
        self._auth = BasicAuth()
        limit = settings.now().config.rate_limit
        self._rate_limit = RateLimit(limit.interval_s, limit.burst, monotonic) if limit else None
        self._lock = threading.Lock()
        self._documents: Documents | None = None
        self._reported: set[str] = set()
        self._handlers: dict[str, Callable[[Environ], Reply]] = {
            "/": self._page,
            SCRIPT_PATH: lambda _: Reply(200, SCRIPT, JAVASCRIPT, (("Cache-Control", _KEPT),)),
            "/metrics": self._metrics,
            "/api/v1/snapshot": lambda _: self._document(Documents.snapshot),
            "/api/v1/findings": lambda _: self._document(Documents.findings),
            "/api/v1/verdicts": lambda _: self._document(Documents.verdicts),
            "/api/v1/events": self._events,
            "/api/v1/history": self._history,
            "/-/healthy": lambda _: text(200, "healthy: the process answers"),
            "/-/ready": lambda _: self._ready(),
        }
        rules = [Rule(path, endpoint=path, methods=["GET"]) for path in (*PATHS, SCRIPT_PATH)]
        self._routes = Map(rules, strict_slashes=False, merge_slashes=False).bind("npu-watchd")

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        reply = self._answer(environ)
        headers = {
            "Content-Type": reply.content_type,
            "Content-Length": str(len(reply.body)),
            "X-Content-Type-Options": "nosniff",
            "Cache-Control": "no-store",
            **dict(reply.headers),
            **self._settings.now().config.headers,
        }
        start_response(f"{reply.status} {HTTP_STATUS_CODES[reply.status]}", list(headers.items()))
        return [] if environ["REQUEST_METHOD"] == "HEAD" else [reply.body]

    def _answer(self, environ: Environ) -> Reply:
        try:
            return self._refusal(environ) or self._routed(environ)
        except Exception as error:  # noqa: BLE001  # whatever it is, the client sees none of it
            self._report(environ, error)
            return text(500, "internal error: the daemon's log has the details")

    def _report(self, environ: Environ, error: Exception) -> None:
        """Logs a fault once, however often it is scraped."""
        trace = error.__traceback__
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
        place = f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}" if trace else ""
        with self._lock:
            fault = f"{type(error).__name__} {place}"
            if fault in self._reported or len(self._reported) >= _REPORTED_MAX:
                return
            self._reported.add(fault)
        self._log("web_request_failed", path=environ.get("PATH_INFO"), error=repr(error), exc_info=error)

    def _refusal(self, environ: Environ) -> Reply | None:
        if self._rate_limit is not None and not self._rate_limit.allow():
            return text(429, "too many requests: see rate_limit in the web configuration file")
        users = self._settings.now().config.users
        admission = self._auth.admit(users, environ.get("HTTP_AUTHORIZATION"), environ.get("REMOTE_ADDR", ""))
        if admission is Admission.REFUSED:
            return text(401, "user and password needed", ("WWW-Authenticate", 'Basic realm="npu-watchd"'))
        if admission is Admission.LATER:
            return text(503, "too many passwords are being checked; try again", ("Retry-After", "1"))
        return None

    def _routed(self, environ: Environ) -> Reply:
        path = environ["PATH_INFO"].encode("latin-1").decode(errors="replace")
        try:
            endpoint, _ = self._routes.match(path, environ["REQUEST_METHOD"])
        except NotFound:
            return text(404, "no such path; there are:\n" + "\n".join(PATHS))
        except MethodNotAllowed:
            return text(405, "read-only: GET and HEAD", ("Allow", "GET, HEAD"))
        except HTTPException:
            return text(400, "this path cannot be read")
        return self._handlers[endpoint](environ)

    def _newest(self) -> Documents | None:
        published = self._publication()
        with self._lock:
            if published is None:
                return None
            if self._documents is None or self._documents.published is not published:
                self._documents = Documents(published)
            return self._documents

    def _page(self, environ: Environ) -> Reply:
        documents = self._newest()
        if documents is None:
            return text(503, NOT_YET, ("Retry-After", "5"), ("Refresh", "5"))
        age_s = self._monotonic() - documents.published.outcome.snapshot.at.mono_s
        gzipped = gzip_accepted(environ.get("HTTP_ACCEPT_ENCODING"))
        encoding = (("Content-Encoding", "gzip"),) if gzipped else ()
        headers = (("Content-Security-Policy", CONTENT_SECURITY_POLICY), ("Vary", "Accept-Encoding"), *encoding)
        return Reply(200, documents.page(age_s, gzipped=gzipped), HTML, headers)

    def _metrics(self, environ: Environ) -> Reply:
        published = self._publication()
        if published is None:
            # Not an empty 200: Prometheus would take it for a node without devices.
            return text(503, NOT_YET, ("Retry-After", "5"))
        form = metrics_format(environ.get("HTTP_ACCEPT"))
        gzipped = gzip_accepted(environ.get("HTTP_ACCEPT_ENCODING"))
        encoding = (("Content-Encoding", "gzip"),) if gzipped else ()
        body = published.exposition.body(form, gzipped=gzipped)
        return Reply(200, body, form.value, (*encoding, ("Vary", "Accept, Accept-Encoding")))

    def _document(self, made: Callable[[Documents], bytes]) -> Reply:
        documents = self._newest()
        if documents is None:
            return Reply(503, encoded({"error": NOT_YET}), JSON, (("Retry-After", "5"),))
        return Reply(200, made(documents), JSON)

    def _events(self, environ: Environ) -> Reply:
        given = query(environ, ("since", "device_id"))
        if isinstance(given, Reply):
            return given
        published = self._publication()
        now_s = published.outcome.snapshot.at.wall_s if published else 0.0
        try:
            since_s = instant(given["since"], now_s) if "since" in given else None
        except ValueError as error:
            return Reply(400, encoded({"error": str(error)}), JSON)
        device_id = given.get("device_id")
        return self._document(lambda documents: documents.events(since_s, device_id))

    def _history(self, environ: Environ) -> Reply:
        given = query(environ, PARAMETERS)
        if isinstance(given, Reply):
            return given
        published = self._publication()
        if published is None:
            return Reply(503, encoded({"error": NOT_YET}), JSON, (("Retry-After", "5"),))
        status, document = answer(self._counters, published.outcome, given)
        return Reply(status, encoded(document), JSON, (("Retry-After", "5"),) if status == 503 else ())

    def _ready(self) -> Reply:
        if self._publication() is None:
            return text(503, f"not ready: {NOT_YET}", ("Retry-After", "5"))
        return text(200, "ready: at least one cycle was published")


def query(environ: Environ, names: tuple[str, ...]) -> dict[str, str] | Reply:
    """The request's parameters, the last of each name; a refusal where there are others, or it cannot be read."""
    try:
        given = parse_qs(environ.get("QUERY_STRING", ""), keep_blank_values=True, max_num_fields=20)
    except ValueError as error:
        return Reply(400, encoded({"error": f"this query cannot be read: {error}"}), JSON)
    unknown = sorted(given.keys() - set(names))
    if unknown:
        there_are = f"{', '.join(names[:-1])} and {names[-1]}"
        return Reply(400, encoded({"error": f"{unknown[0][:100]!r}: there are {there_are}"}), JSON)
    return {name: texts[-1] for name, texts in given.items()}


def text(status: int, message: str, *headers: tuple[str, str]) -> Reply:
    """A plain text answer."""
    return Reply(status, f"{message}\n".encode(), TEXT, headers)
