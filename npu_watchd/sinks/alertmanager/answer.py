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


def verdict(status: int, headers: Mapping[str, str], text: str) -> Failure | None:
    """None where Alertmanager took the alerts. headers: names in lower case; text: the body of a bad answer."""
    said = _said(text)
    if 200 <= status < 300:
        # Alertmanager answers with an empty JSON body; a page means that something else stands there.
        if "text/html" in headers.get("content-type", "").lower():
            cure = "check the address: a login page, perhaps, or another program"
            return Failure(
                FailureKind.UNPARSEABLE, f"answered {status} with a web page, as no Alertmanager does; {cure}"
            )
        return None
    if 300 <= status < 400:
        host = _host(headers.get("location", ""))
        cure = "redirects are not followed: write that address into alertmanager.urls if it is the one"
        return Failure(FailureKind.EXIT, f"redirects to {host} ({status}); {cure}")
    match status:
        case 400:
            cure = "please report this, with the alert that it names"
            return Failure(FailureKind.EXIT, f"refused an alert (400{said}); {cure}")
        case 401:
            cure = "set alertmanager.basic_auth_user and basic_auth_password_file, or bearer_token_file"
            return Failure(FailureKind.DENIED, f"wants credentials, or others (401{said}); {cure}")
        case 403:
            return Failure(FailureKind.DENIED, f"does not let this node in (403{said}); ask who runs it for the right")
        case 404 | 405 | 410:
            cure = "is this an Alertmanager of version 0.16 or later, and does it have a path prefix?"
            return Failure(FailureKind.MISSING, f"has no /api/v2/alerts there ({status}{said}); {cure}")
        case 407:
            return Failure(FailureKind.DENIED, f"the proxy wants credentials (407{said}); none are sent to a proxy")
        case 413:
            cure = "what stands before it must let at least 1 MB through"
            return Failure(FailureKind.EXIT, f"takes no request of this size (413{said}); {cure}")
        case 429:
            return Failure(FailureKind.EXIT, f"asks to be left alone for a while (429{said}); look at its rate limits")
    if status >= 500:
        cure = "look at its log, and at that of what stands before it"
        return Failure(FailureKind.EXIT, f"failed ({status}{said}); {cure}")
    return Failure(FailureKind.EXIT, f"answered {status}{said}; is this an Alertmanager?")


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
