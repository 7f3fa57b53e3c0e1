"""One POST to one Alertmanager, and why it failed, in words for the person who has to mend it."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import (
    ConnectTimeoutError,
    HTTPError,
    LocationParseError,
    NameResolutionError,
    NewConnectionError,
)
from urllib3.response import BaseHTTPResponse

from npu_watchd import __version__
from npu_watchd.model.reading import Failure, FailureKind
from npu_watchd.sinks.alertmanager.answer import ANSWER_MAX_BYTES, verdict
from npu_watchd.sinks.alertmanager.tls import TlsError, client_context

PATH = "/api/v2/alerts"
WHOLE = 3
"""All of a POST may take this many times the timeout of one step: a server that trickles its answer is ended then."""
_HEADERS = {"Content-Type": "application/json", "Connection": "close", "User-Agent": f"npu-watchd/{__version__}"}
_SECRET_MAX_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class Access:
    """How every Alertmanager of the set is reached. Files are read anew for each POST, so that they may be renewed."""

    timeout_s: float = 5.0
    """For connecting, and for each wait on the other side."""
    user: str | None = None
    password_file: Path | None = None
    bearer_token_file: Path | None = None
    ca_file: Path | None = None
    """None: the system's authorities."""
    cert_file: Path | None = None
    key_file: Path | None = None
    insecure_skip_verify: bool = False
    server_name: str | None = None
    """The name that the certificate must bear; None: the host of the address."""
    proxy: str | None = None
    """http://host:port; None: no proxy, whatever the environment says."""


class _Unready(Exception):
    """The POST was not even begun."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.detail)
        self.failure = failure


class Client:
    """One Alertmanager below one address. For one thread."""

    def __init__(self, url: str, access: Access) -> None:
        """url: http or https, without credentials; a path in it is a prefix."""
        self._url = urlsplit(url)
        self._access = access
        self.target = target_of(url)

    def post(self, body: bytes) -> Failure | None:
        """Send a list of alerts; None: it was taken. Never raises for what the network or the other side does."""
        try:
            connection, request_target = self._connection()
            headers = _HEADERS | self._credentials()
        except _Unready as unready:
            return self._named(unready.failure)
        answer = self._exchange(connection, request_target, body, headers)
        return self._named(answer) if isinstance(answer, Failure) else None

    def _exchange(
        self, connection: HTTPConnection, request_target: str, body: bytes, headers: dict[str, str]
    ) -> Failure | None:
        with contextlib.closing(connection), bounded(connection, WHOLE * self._access.timeout_s) as late:
            try:
                connection.connect()
                if late.is_set():
                    return self._too_slow("no answer")
                connection.request("POST", request_target, body, headers, preload_content=False)
                judged = self._judged(connection.getresponse())
                # What was cut off reads like an answer that ended: half a header is no success.
                return self._too_slow("no whole answer") if late.is_set() else judged
            except (HTTPError, HTTPException, OSError, ValueError) as error:
                return self._too_slow("no whole answer") if late.is_set() else self._failure(error)

    def _judged(self, response: BaseHTTPResponse) -> Failure | None:
        good = 200 <= response.status < 300
        text = b"" if good else response.read(ANSWER_MAX_BYTES, decode_content=False)
        headers = {name.lower(): value for name, value in response.headers.items()}
        return verdict(response.status, headers, text.decode("utf-8", "replace"))

    def _connection(self) -> tuple[HTTPConnection, str]:
        """Not yet connected, and what to ask it for. Raises _Unready."""
        url, access = self._url, self._access
        host, port = url.hostname or "", _port(url)
        path = url.path.rstrip("/") + PATH
        via = urlsplit(access.proxy) if access.proxy else None
        first_host, first_port = (via.hostname or "", _port(via)) if via else (host, port)
        if url.scheme == "http":
            plain = HTTPConnection(first_host, first_port, timeout=access.timeout_s)
            return plain, f"http://{url.netloc}{path}" if via else path
        try:
            context = client_context(
                access.ca_file, access.cert_file, access.key_file, verify=not access.insecure_skip_verify
            )
        except TlsError as error:
            raise _Unready(Failure(error.kind, str(error))) from error
        secure = HTTPSConnection(
            first_host,
            first_port,
            timeout=access.timeout_s,
            ssl_context=context,
            server_hostname=access.server_name,
        )
        if via:
            secure.set_tunnel(host, port)
        return secure, path

    def _credentials(self) -> dict[str, str]:
        access = self._access
        if access.bearer_token_file is not None:
            return {"Authorization": f"Bearer {_secret(access.bearer_token_file, 'bearer_token_file')}"}
        if access.user is not None and access.password_file is not None:
            pair = f"{access.user}:{_secret(access.password_file, 'basic_auth_password_file')}"
            return {"Authorization": f"Basic {b64encode(pair.encode()).decode('ascii')}"}
        return {}

    def _named(self, failure: Failure) -> Failure:
        return Failure(failure.kind, f"{self.target}: {failure.detail}")

    def _too_slow(self, what: str) -> Failure:
        cure = "look at its load, or at what stands between; [alertmanager] timeout may be longer"
        return Failure(FailureKind.TIMEOUT, f"{what} within {WHOLE * self._access.timeout_s:g} s; {cure}")

    def _failure(self, error: Exception) -> Failure:
        """What ended the exchange, from the most to the least particular."""
        root = error.__cause__ or error
        timeout_s = self._access.timeout_s
        where = f"the proxy {urlsplit(self._access.proxy).netloc}" if self._access.proxy else "it"
        if isinstance(error, NameResolutionError | LocationParseError):
            cure = "check the name in alertmanager.urls and the node's DNS"
            return Failure(FailureKind.MISSING, f"its name is not known here; {cure}")
        if isinstance(root, ssl.SSLCertVerificationError):
            cure = "alertmanager.ca_file names the authority, alertmanager.server_name another name"
            return Failure(FailureKind.DENIED, f"its certificate is not trusted ({root.verify_message}); {cure}")
        if isinstance(root, ssl.SSLError):
            cure = "is it https there, and does it ask for alertmanager.cert_file?"
            return Failure(FailureKind.EXIT, f"no TLS with it ({_reason(root)}); {cure}")
        if isinstance(error, ConnectTimeoutError) and not isinstance(error, NewConnectionError):
            cure = "is the address right, and is a firewall dropping packets?"
            return Failure(FailureKind.TIMEOUT, f"no connection to {where} within {timeout_s:g} s; {cure}")
        if isinstance(root, ConnectionRefusedError):
            cure = "is it running, and is the port right?"
            return Failure(FailureKind.MISSING, f"{where} refuses connections; {cure}")
        if isinstance(root, TimeoutError):
            return Failure(FailureKind.TIMEOUT, f"silent for {timeout_s:g} s; is it overloaded?")
        if isinstance(error, OSError) and "Tunnel connection failed" in str(error):
            return Failure(FailureKind.EXIT, f"{where} opens no way to it ({error}); ask who runs the proxy")
        if isinstance(error, NewConnectionError | OSError) and isinstance(root, OSError):
            words = root.strerror or type(root).__name__
            return Failure(FailureKind.EXIT, f"the connection broke ({words}); is it up, and reachable from this node?")
        cure = "is this an Alertmanager, and is it http (not https) there?"
        return Failure(FailureKind.UNPARSEABLE, f"answered no HTTP ({type(error).__name__}); {cure}")


def target_of(url: str) -> str:
    """`host:port`, with the path where there is one; never credentials. The label `target` on /metrics."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    return f"{f'[{host}]' if ':' in host else host}:{_port(parts)}{parts.path.rstrip('/')}"


def _port(url: SplitResult) -> int:
    return url.port or (443 if url.scheme == "https" else 80)


@contextlib.contextmanager
def bounded(connection: HTTPConnection, whole_s: float) -> Iterator[threading.Event]:
    """Cut the connection after `whole_s`, and say so in the event; socket timeouts bound only a single wait."""
    late = threading.Event()

    def cut() -> None:
        late.set()
        sock: socket.socket | None = connection.sock
        if sock is not None:
            with contextlib.suppress(OSError):
                # The plain socket's own method: that of TLS would pull the session from under the reading thread.
                socket.socket.shutdown(sock, socket.SHUT_RDWR)

    timer = threading.Timer(whole_s, cut)
    timer.daemon = True
    timer.start()
    try:
        yield late
    finally:
        timer.cancel()


def _secret(file: Path, key: str) -> str:
    """The file's one line. Raises _Unready."""
    try:
        with file.open("rb") as opened:
            text = opened.read(_SECRET_MAX_BYTES).decode().strip()
    except OSError as error:
        kind = FailureKind.MISSING if isinstance(error, FileNotFoundError) else FailureKind.DENIED
        cure = f"mend [alertmanager] {key}"
        raise _Unready(Failure(kind, f"{file} cannot be read ({error.strerror}); {cure}")) from error
    except UnicodeDecodeError as error:
        raise _Unready(Failure(FailureKind.UNPARSEABLE, f"{file} is not UTF-8; write it anew")) from error
    if not text or not text.isprintable() or (key == "bearer_token_file" and not text.isascii()):
        problem = f"{file} is empty" if not text else f"{file} holds more than one plain line"
        raise _Unready(Failure(FailureKind.UNPARSEABLE, f"{problem}; write the secret alone into it"))
    return text


def _reason(error: ssl.SSLError) -> str:
    return str(error.reason).lower().replace("_", " ") if error.reason else str(error)
