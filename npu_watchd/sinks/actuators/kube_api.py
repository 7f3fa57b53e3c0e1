"""One exchange with an API server: a few requests over one connection, all of them within one deadline."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.client import HTTPException
from typing import Any
from urllib.parse import quote, urlsplit

import msgspec
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import HTTPError, LocationParseError, NameResolutionError
from urllib3.response import BaseHTTPResponse

from npu_watchd import __version__
from npu_watchd.model.reading import Failure, FailureKind
from npu_watchd.sinks.actuators.kube_access import Access, Credentials, Unready, in_pod
from npu_watchd.sinks.actuators.kube_answer import refusal
from npu_watchd.sinks.actuators.kube_node import MANAGER, KubeNode, NotANodeError, Patch, node_of
from npu_watchd.sinks.actuators.kube_tls import context_of
from npu_watchd.sinks.actuators.kubeconfig import from_kubeconfig

ANSWER_MAX_BYTES = 4 << 20
"""etcd stores no object above 1.5 MiB; a Node with all its images has some 50 KiB."""
CONFLICT = 409
_MERGE = "application/merge-patch+json"
_STRATEGIC = "application/strategic-merge-patch+json"
_HEADERS = {"Accept": "application/json", "User-Agent": f"{MANAGER}/{__version__}"}


class RequestError(Exception):
    """A request came to nothing."""

    def __init__(self, failure: Failure, status: int | None = None) -> None:
        super().__init__(failure.detail)
        self.failure = failure
        self.status = status


def credentials_of(access: Access) -> Credentials:
    """As the files are now. Raises Unready."""
    return from_kubeconfig(access, access.kubeconfig) if access.kubeconfig is not None else in_pod(access)


@contextlib.contextmanager
def exchange(access: Access, node_name: str, deadline_s: float) -> Iterator[Exchange]:
    """A connection about one Node, cut at the deadline. Raises RequestError, for missing credentials too."""
    try:
        credentials = credentials_of(access)
        connection = _connection(credentials, deadline_s)
    except Unready as unready:
        raise RequestError(unready.failure) from unready
    opened = Exchange(access, credentials, connection, node_name, deadline_s)
    timer = threading.Timer(deadline_s, opened.cut)
    timer.daemon = True
    timer.start()
    try:
        yield opened
    finally:
        timer.cancel()
        connection.close()


@dataclass(slots=True)
class Exchange:
    """Requests about one Node. For one thread."""

    access: Access
    credentials: Credentials
    connection: HTTPConnection
    node_name: str
    deadline_s: float
    late: threading.Event = field(default_factory=threading.Event)

    def node(self) -> KubeNode:
        """Raises RequestError."""
        return self._request("GET", "", None, _MERGE)

    def patch(self, patch: Patch) -> KubeNode:
        """A merge patch: what it does not name stays, lists are replaced. Raises RequestError."""
        return self._request("PATCH", "", patch, _MERGE)

    def patch_status(self, patch: Patch) -> KubeNode:
        """A strategic patch, which merges conditions by type. Raises RequestError."""
        return self._request("PATCH", "/status", patch, _STRATEGIC)

    def cut(self) -> None:
        """End the exchange: for the timer's thread."""
        self.late.set()
        sock: socket.socket | None = self.connection.sock
        if sock is not None:
            with contextlib.suppress(OSError):
                # The plain socket's own method: that of TLS would pull the session from under the reading thread.
                socket.socket.shutdown(sock, socket.SHUT_RDWR)

    def _request(self, method: str, below: str, patch: Patch | None, content_type: str) -> KubeNode:
        try:
            response, body = self._exchanged(method, below, patch, content_type)
        except Unready as unready:
            raise self._error(unready.failure) from unready
        except (HTTPError, HTTPException, OSError, ValueError) as error:
            raise self._error(self._failure(error)) from error
        if self.late.is_set():
            # What was cut off reads like an answer that ended.
            raise self._error(self._too_slow())
        if not 200 <= response.status < 300:
            verb, resource = method.lower(), f"nodes{below}"
            location = response.headers.get("location", "")
            told = refusal(response.status, location, body, verb, resource, self.credentials.origin)
            raise self._error(told, response.status)
        return self._node_in(body)

    def _exchanged(
        self, method: str, below: str, patch: Patch | None, content_type: str
    ) -> tuple[BaseHTTPResponse, bytes]:
        connection = self.connection
        headers = _HEADERS | self._authorization()
        body = None
        if patch is not None:
            headers["Content-Type"] = content_type
            body = msgspec.json.encode(patch)
        if connection.sock is None:
            connection.connect()
        if self.late.is_set():
            raise TimeoutError
        prefix = urlsplit(self.credentials.server).path.rstrip("/")
        query = f"?fieldManager={MANAGER}" if patch is not None else ""
        path = f"{prefix}/api/v1/nodes/{quote(self.node_name, safe='')}{below}{query}"
        connection.request(method, path, body, headers, preload_content=False, decode_content=False)
        response = connection.getresponse()
        return response, response.read(ANSWER_MAX_BYTES + 1, decode_content=False)

    def _authorization(self) -> dict[str, str]:
        """With the token as it stands now: the kubelet renews it. None over plain http."""
        if not self.credentials.server.startswith("https:"):
            return {}
        token = credentials_of(self.access).token
        return {"Authorization": f"Bearer {token}"} if token is not None else {}

    def _node_in(self, body: bytes) -> KubeNode:
        cure = "is [kubernetes] api_url that of an API server?"
        if len(body) > ANSWER_MAX_BYTES:
            raise self._error(Failure(FailureKind.UNPARSEABLE, f"answered with more than 4 MiB; {cure}"))
        try:
            document: Any = msgspec.json.decode(body)
            return node_of(document)
        except (msgspec.DecodeError, RecursionError, UnicodeError):
            raise self._error(Failure(FailureKind.UNPARSEABLE, f"answered no JSON; {cure}")) from None
        except NotANodeError:
            raise self._error(Failure(FailureKind.UNPARSEABLE, f"answered with no Node; {cure}")) from None

    def _error(self, failure: Failure, status: int | None = None) -> RequestError:
        server = clean_server(self.credentials.server)
        return RequestError(Failure(failure.kind, f"{server}: {failure.detail}"), status)

    def _too_slow(self) -> Failure:
        cure = "look at its load, or at what stands between; [kubernetes] timeout may be longer"
        return Failure(FailureKind.TIMEOUT, f"no whole answer within {self.deadline_s:g} s; {cure}")

    def _failure(self, error: Exception) -> Failure:
        """What ended the exchange, from the most to the least particular."""
        root = error.__cause__ or error
        if self.late.is_set() or isinstance(root, TimeoutError):
            return self._too_slow()
        if isinstance(error, NameResolutionError | LocationParseError):
            return Failure(FailureKind.MISSING, "its name is not known here; check it and the node's DNS")
        if isinstance(root, ssl.SSLCertVerificationError):
            cure = "[kubernetes] ca_file or the kubeconfig must name its authority, and its name must be right"
            return Failure(FailureKind.DENIED, f"its certificate is not trusted ({root.verify_message}); {cure}")
        if isinstance(root, ssl.SSLError):
            reason = str(root.reason).lower().replace("_", " ") if root.reason else str(root)
            return Failure(
                FailureKind.EXIT, f"no TLS with it ({reason}); is it https there, and is our certificate good?"
            )
        if isinstance(root, ConnectionRefusedError):
            return Failure(FailureKind.MISSING, "it refuses connections; is it running, and is the port right?")
        if isinstance(root, OSError):
            words = root.strerror or type(root).__name__
            return Failure(FailureKind.EXIT, f"the connection broke ({words}); is it up, and reachable from this node?")
        cure = "is [kubernetes] api_url that of an API server?"
        return Failure(FailureKind.UNPARSEABLE, f"answered no HTTP ({type(root).__name__}); {cure}")


def clean_server(server: str) -> str:
    """`host:port` for messages: never credentials."""
    parts = urlsplit(server)
    host = parts.hostname or ""
    return f"{f'[{host}]' if ':' in host else host}:{parts.port or (443 if parts.scheme == 'https' else 80)}"


def _connection(credentials: Credentials, timeout_s: float) -> HTTPConnection:
    parts = urlsplit(credentials.server)
    host = parts.hostname or ""
    if parts.scheme == "http":
        return HTTPConnection(host, parts.port or 80, timeout=timeout_s)
    return HTTPSConnection(
        host,
        parts.port or 443,
        timeout=timeout_s,
        ssl_context=context_of(credentials),
        server_hostname=credentials.server_name,
    )
