"""What an API server's refusal means, in words for the person who has to mend it."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from npu_watchd.model.reading import Failure, FailureKind
from npu_watchd.sinks.plaintext import clean

_SHOWN_MAX = 300
_ROLE = "deploy/kubernetes/rbac.yaml"
_MEANINGS: Mapping[int, tuple[FailureKind, str, str]] = {
    400: (FailureKind.EXIT, "did not understand us", "please report this"),
    409: (FailureKind.EXIT, "says that the node changed meanwhile", "it is tried again"),
    413: (FailureKind.EXIT, "takes no request of this size", "what stands before it must let 1 MB through"),
    415: (FailureKind.UNSUPPORTED, "knows no patch of this type", "is it Kubernetes 1.16 or later?"),
    422: (FailureKind.EXIT, "refused the change as invalid", "please report this"),
    429: (FailureKind.EXIT, "asks to be left alone for a while", "look at its load and its flow control"),
}


class _Status(msgspec.Struct, frozen=True):
    """`metav1.Status`: what a refusal looks like."""

    kind: str = ""
    message: str = ""


def refusal(status: int, location: str, body: bytes, verb: str, resource: str, origin: str) -> Failure:
    """status: anything but 2xx; location: of a redirect; verb and resource: as RBAC names what was asked for.

    origin: the file that our credentials are from.
    """
    answer = _status(body)
    said = clean(" ".join((answer.message if answer else body.decode("utf-8", "replace")).split()), _SHOWN_MAX)
    shown = f"{status}: {said}" if said else str(status)
    if 300 <= status < 400:
        cure = "redirects are not followed: is [kubernetes] api_url that of the API server itself?"
        return Failure(
            FailureKind.EXIT, f"redirects us ({status}{', ' + clean(location, 80) if location else ''}); {cure}"
        )
    if status == 401:
        cure = f"the credentials in {origin} have expired, or are another cluster's: give new ones"
        return Failure(FailureKind.DENIED, f"does not know us ({shown}); {cure}")
    if status == 403:
        return Failure(
            FailureKind.DENIED, f"does not let us {verb} {resource} ({shown}); {_right(said, verb, resource)}"
        )
    if status == 404 and answer is None:
        cure = "is [kubernetes] api_url that of an API server?"
        return Failure(FailureKind.MISSING, f"has no Kubernetes API there (404); {cure}")
    if status == 404:
        cure = (
            "set [kubernetes] node_name to a name that `kubectl get nodes` has (in a pod: NODE_NAME from spec.nodeName)"
        )
        return Failure(FailureKind.MISSING, f"has no such node ({shown}); {cure}")
    failed = (FailureKind.EXIT, "failed", "look at its log, and at that of what stands before it")
    other = (FailureKind.EXIT, "gave no answer of an API server", "check [kubernetes] api_url")
    kind, problem, cure = _MEANINGS.get(status, failed if status >= 500 else other)
    return Failure(kind, f"{problem} ({shown}); {cure}")


def _right(said: str, verb: str, resource: str) -> str:
    """How to get the right. RBAC says "cannot VERB resource"; a webhook or an admission plugin has other words."""
    if "admission webhook" in said or "not allowed to modify" in said:
        return "an admission rule of the cluster forbids it: ask who runs the cluster"
    return f"give its role the verb {verb} on {resource} ({_ROLE})"


def _status(body: bytes) -> _Status | None:
    """None: no API server wrote this."""
    try:
        answer = msgspec.json.decode(body, type=_Status)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return None
    return answer if answer.kind == "Status" else None
