"""Whether the fleet can spare one more node: one question to Prometheus. Why it is asked like this: decision 0031."""

from __future__ import annotations

import contextlib
import json
import math
import ssl
from http.client import HTTPException
from typing import Any
from urllib.parse import quote, urlsplit

import msgspec
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import HTTPError

from npu_watchd import __version__
from npu_watchd.model.acting import Allowance
from npu_watchd.model.reading import Failure, FailureKind
from npu_watchd.sinks.alertmanager.client import bounded
from npu_watchd.sinks.plaintext import clean

LEAST_NODES = 3
"""Who sees fewer is rather looking in the wrong place than at a fleet (assumption)."""
_WHOLE = 2
"""The exchange may take this many times the timeout of one step."""
_ANSWER_MAX_BYTES = 1 << 16
_HEADERS = {"Accept": "application/json", "Connection": "close", "User-Agent": f"npu-watchd/{__version__}"}
_QUESTION = """\
label_replace(sum(last_over_time(npu_watchd_node_verdict{state="quarantine"}[1h])), "npu_budget", "out", "", "")
or label_replace(count(count by (node) (npu_node_info)), "npu_budget", "nodes", "", "")
or label_replace(
  max(npu_watchd_node_verdict{state="quarantine"} * on (instance, job) group_left (node) npu_node_info{node=%s}),
  "npu_budget", "here", "", "")
"""
_SCRAPED = "is the job npu-watchd scraped there, for the whole fleet?"


def question(node: str) -> str:
    """PromQL: how many nodes are in quarantine, how many answer now, and whether this one's quarantine is seen there.

    A node that fell silent within the hour is what it was.
    """
    return _QUESTION % json.dumps(node, ensure_ascii=False)


class Budget:
    """The fleet as one Prometheus sees it."""

    def __init__(self, url: str, node: str, max_share: float, timeout_s: float = 5.0) -> None:
        """url: http or https, a path in it is a prefix. node: as npu_node_info names this one."""
        self._url = urlsplit(url)
        self._node = node
        self._max_share = max_share
        self._timeout_s = timeout_s

    def ask(self) -> Allowance | Failure:
        """A Failure: nobody knows, which is no permission."""
        answer = self._get()
        counts = answer if isinstance(answer, Failure) else counts_of(answer)
        found = counts if isinstance(counts, Failure) else allowance_of(counts, self._max_share)
        return Failure(found.kind, f"{self._url.netloc}: {found.detail}") if isinstance(found, Failure) else found

    def _get(self) -> bytes | Failure:
        """Never raises for what the network or the other side does."""
        url = self._url
        target = f"{url.path.rstrip('/')}/api/v1/query?query={quote(question(self._node), safe='')}"
        host, port = url.hostname or "", url.port or (443 if url.scheme == "https" else 80)
        connection: HTTPConnection
        if url.scheme == "https":
            context = ssl.create_default_context()
            connection = HTTPSConnection(host, port, timeout=self._timeout_s, ssl_context=context)
        else:
            connection = HTTPConnection(host, port, timeout=self._timeout_s)
        whole_s = _WHOLE * self._timeout_s
        with contextlib.closing(connection), bounded(connection, whole_s) as late:
            try:
                connection.connect()
                connection.request("GET", target, headers=_HEADERS, preload_content=False)
                response = connection.getresponse()
                body = response.read(_ANSWER_MAX_BYTES + 1, decode_content=False)
            except (HTTPError, HTTPException, OSError, ValueError) as error:
                words = "no whole answer in time" if late.is_set() else clean(str(error.__cause__ or error), 200)
                kind = FailureKind.TIMEOUT if late.is_set() or "timed out" in words else FailureKind.EXIT
                return Failure(kind, f"{words}; is [quarantine] prometheus the right address, and is it up?")
        if late.is_set():
            return Failure(FailureKind.TIMEOUT, f"no whole answer within {whole_s:g} s; is it overloaded?")
        if response.status != 200:
            said = clean(body.decode("utf-8", "replace").strip(), 200)
            return Failure(FailureKind.EXIT, f"HTTP {response.status}: {said}; is this a Prometheus (2.26 or newer)?")
        if len(body) > _ANSWER_MAX_BYTES:
            return Failure(FailureKind.UNPARSEABLE, f"answered more than {_ANSWER_MAX_BYTES} bytes to three numbers")
        return body


def counts_of(body: bytes) -> dict[str, int] | Failure:
    """`out`, `nodes` and `here` as far as the answer has them. Anything that is not a whole count is no answer."""
    try:
        document: Any = msgspec.json.decode(body)
        if document["status"] != "success":
            return Failure(FailureKind.EXIT, f"it says {clean(str(document.get('error')), 200)}")
        if document.get("warnings"):
            return Failure(FailureKind.UNPARSEABLE, f"only part of it answers: {clean(str(document['warnings']), 200)}")
        found: dict[str, int] = {}
        for series in document["data"]["result"]:
            value = float(series["value"][1])
            if not math.isfinite(value) or value < 0 or value != int(value):
                return Failure(
                    FailureKind.UNPARSEABLE, f"{series['metric']['npu_budget']} is {value}, which is no count"
                )
            found[series["metric"]["npu_budget"]] = int(value)
        return found
    except (msgspec.DecodeError, RecursionError, LookupError, TypeError, ValueError, AttributeError) as error:
        problem = f"its answer is none to a query ({type(error).__name__}); is this a Prometheus?"
        return Failure(FailureKind.UNPARSEABLE, problem)


def allowance_of(counts: dict[str, int], max_share: float) -> Allowance | Failure:
    """This node is among those that are out, since it waits until its own quarantine is seen there."""
    nodes, out, here = counts.get("nodes"), counts.get("out"), counts.get("here")
    if nodes is None or out is None:
        return Failure(FailureKind.MISSING, f"it knows of no node; {_SCRAPED}")
    if here is None:
        return Failure(FailureKind.MISSING, f"it does not see this node; {_SCRAPED}")
    if here != 1:
        return Failure(FailureKind.STALE, "it has not seen this node's quarantine yet; it is asked again")
    if nodes < LEAST_NODES:
        return Failure(FailureKind.MISSING, f"it sees {nodes} nodes, fewer than {LEAST_NODES} are no fleet; {_SCRAPED}")
    most = max(1, math.floor(max_share * nodes + 1e-9))
    return Allowance(
        out <= most, f"{out} of {nodes} nodes are in quarantine, this one among them, and at most {most} may be"
    )
