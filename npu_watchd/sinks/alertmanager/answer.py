"""What an HTTP answer to a POST of alerts means, and what to do about it."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

import msgspec

from npu_watchd.model.reading import Failure, FailureKind
from npu_watchd.sinks.plaintext import clean

ANSWER_MAX_BYTES = 1 << 16
"""More of an answer is not read."""
_SHOWN_MAX = 300
"""Characters of it that a log line shows."""


_NOT_THERE = (
    FailureKind.MISSING,
    "has no /api/v2/alerts there",
    "is it Alertmanager 0.16 or later, with a path prefix?",
)
_MEANINGS: Mapping[int, tuple[FailureKind, str, str]] = {
    400: (FailureKind.EXIT, "refused an alert", "please report this, with the alert that it names"),
    401: (
        FailureKind.DENIED,
        "wants credentials, or others",
        "set alertmanager.basic_auth_user and basic_auth_password_file, or bearer_token_file",
    ),
    403: (FailureKind.DENIED, "does not let this node in", "ask who runs it for the right"),
    404: _NOT_THERE,
    405: _NOT_THERE,
    407: (FailureKind.DENIED, "is behind a proxy that wants credentials", "none are sent to a proxy"),
    410: _NOT_THERE,
    413: (FailureKind.EXIT, "takes no request of this size", "what stands before it must let 1 MB through"),
    429: (FailureKind.EXIT, "asks to be left alone for a while", "look at the rate limits before it"),
}


def verdict(status: int, headers: Mapping[str, str], text: str) -> Failure | None:
    """None where Alertmanager took the alerts. headers: names in lower case; text: the body of a bad answer."""
    if 200 <= status < 300:
        return _taken(status, headers)
    if 300 <= status < 400:
        host = _host(headers.get("location", ""))
        cure = "redirects are not followed: write that address into alertmanager.urls if it is the one"
        return Failure(FailureKind.EXIT, f"redirects to {host} ({status}); {cure}")
    failed = (FailureKind.EXIT, "failed", "look at its log, and at that of what stands before it")
    other = (FailureKind.EXIT, "gave no answer of an Alertmanager", "check the address")
    kind, problem, cure = _MEANINGS.get(status, failed if status >= 500 else other)
    return Failure(kind, f"{problem} ({status}{_said(text)}); {cure}")


def _taken(status: int, headers: Mapping[str, str]) -> Failure | None:
    """Alertmanager answers with an empty body; a page means that something else stands there."""
    if "text/html" not in headers.get("content-type", "").lower():
        return None
    cure = "check the address: a login page, perhaps, or another program"
    return Failure(FailureKind.UNPARSEABLE, f"answered with a web page ({status}), as no Alertmanager does; {cure}")


def _said(text: str) -> str:
    """The message in the answer: a JSON string, a JSON object with `message`, or the plain text."""
    try:
        found = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        found = text
    if isinstance(found, dict):
        found = found.get("message", text)
    shown = clean(" ".join(str(found).split()), _SHOWN_MAX)
    return f": {shown}" if shown else ""


def _host(location: str) -> str:
    """The host that a redirect names: not the whole address, in which a token may stand."""
    try:
        parts = urlsplit(location)
        host, port = parts.hostname, parts.port
    except ValueError:
        return "an address that cannot be read"
    if host is None:
        return "another path of the same host"
    return clean(f"{host}:{port}" if port else host, _SHOWN_MAX)
