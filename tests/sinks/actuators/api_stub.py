"""An API server on loopback that knows Nodes and behaves as kube-apiserver 1.20 was seen to: tokens, RBAC, patches."""

from __future__ import annotations

import copy
import json
import re
import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

Document = dict[str, Any]
Answer = tuple[int, Document]
Hook = Callable[[str, str], bytes | None]
"""Given method and path before the request is done: None, or what to send instead (b"": close without a word)."""

_PATH = re.compile(r"/api/v1/nodes(?:/(?P<name>[^/]+))?(?P<status>/status)?")
PEER = "name in the client's certificate"
"""No header can be called so."""
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
MERGE, STRATEGIC = "application/merge-patch+json", "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
_REASONS = {401: "Unauthorized", 403: "Forbidden", 404: "NotFound", 409: "Conflict", 415: "UnsupportedMediaType"}


def refused(code: int, message: str) -> Answer:
    reason = _REASONS.get(code, "Invalid")
    return code, {"kind": "Status", "status": "Failure", "message": message, "reason": reason, "code": code}


@dataclass
class ApiStub:
    """The store and its rules; `serve` puts it behind a port."""

    tokens: dict[str, str] = field(default_factory=dict)
    """Token → user."""
    rights: dict[str, set[tuple[str, str]]] = field(default_factory=dict)
    """User → (verb, resource); `admin` may do everything."""
    nodes: dict[str, Document] = field(default_factory=dict)
    requests: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)
    """Method, path with query, headers in lower case."""
    hook: Hook | None = None
    lock: threading.RLock = field(default_factory=threading.RLock)
    _version: int = 100

    def user(self, headers: dict[str, str]) -> str | None:
        scheme, _, token = headers.get("authorization", "").partition(" ")
        return self.tokens.get(token) if scheme == "Bearer" else headers.get(PEER, "system:anonymous")

    def answer(self, method: str, target: str, headers: dict[str, str], body: bytes) -> Answer:
        user = self.user(headers)
        if user is None:
            return refused(401, "Unauthorized")
        parts = urlsplit(target)
        match = _PATH.fullmatch(parts.path)
        if match is None:
            return refused(404, "the server could not find the requested resource")
        resource, name = f"nodes{match['status'] or ''}", match["name"] or ""
        verb = {"GET": "get", "PATCH": "patch", "POST": "create", "DELETE": "delete"}[method]
        if user != "admin" and (verb, resource) not in self.rights.get(user, set()):
            what = f'User "{user}" cannot {verb} resource "{resource}" in API group "" at the cluster scope'
            return refused(403, f'nodes "{name}" is forbidden: {what}')
        with self.lock:
            if method == "POST":
                return self._create(json.loads(body))
            if name not in self.nodes:
                return refused(404, f'nodes "{name}" not found')
            if method == "DELETE":
                return 200, self.nodes.pop(name)
            if method == "PATCH":
                manager = parse_qs(parts.query).get("fieldManager", [headers.get("user-agent", "").partition("/")[0]])[
                    0
                ]
                return self._patch(name, json.loads(body), headers.get("content-type", ""), match["status"], manager)
            return 200, self.nodes[name]

    def _create(self, node: Document) -> Answer:
        name = node["metadata"]["name"]
        if name in self.nodes:
            return refused(409, f'nodes "{name}" already exists')
        node = {"kind": "Node", "apiVersion": "v1", **node}
        # Admission does this to every new node.
        taints = node.setdefault("spec", {}).setdefault("taints", [])
        taints.append({"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"})
        self.nodes[name] = node
        self._touch(node)
        return 201, node

    def _patch(self, name: str, patch: Document, content_type: str, status: str | None, manager: str) -> Answer:
        if content_type not in (MERGE, STRATEGIC, APPLY):
            return refused(415, "the body of the request was in an unknown format - accepted media types include: ...")
        old = self.nodes[name]
        wanted = patch.get("metadata", {}).get("resourceVersion")
        if wanted is not None and wanted != old["metadata"]["resourceVersion"]:
            said = "the object has been modified; please apply your changes to the latest version and try again"
            return refused(409, f'Operation cannot be fulfilled on nodes "{name}": {said}')
        new = _merged(copy.deepcopy(old), patch, by_type=content_type == STRATEGIC)
        # The main resource does not write the status, and the status nothing else.
        for part in ("spec",) if status else ("status",):
            new.pop(part, None)
            if part in old:
                new[part] = old[part]
        problem = _invalid(new)
        if problem is not None:
            return refused(422, f'Node "{name}" is invalid: {problem}')
        if new != old or content_type == APPLY:
            was, now = (bool(each.get("spec", {}).get("unschedulable")) for each in (old, new))
            if content_type == APPLY:
                # Only from the first apply on does this version keep books of who set what.
                applied: Document = (
                    {"f:spec": {"f:unschedulable": {}}} if "unschedulable" in patch.get("spec", {}) else {}
                )
                entry = {"manager": manager, "operation": "Apply", "fieldsV1": applied}
                new["metadata"].setdefault("managedFields", []).append(entry)
            elif was != now and "managedFields" in old["metadata"]:
                _book(new, manager, cordoned=now)
            self.nodes[name] = new
            self._touch(new)
        return 200, self.nodes[name]

    def _touch(self, node: Document) -> None:
        self._version += 1
        node["metadata"]["resourceVersion"] = str(self._version)


def _merged(old: Any, patch: Any, *, by_type: bool) -> Any:
    """RFC 7386: null takes away, a list replaces; with `by_type` conditions are merged, as Kubernetes does."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(old) if isinstance(old, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        elif by_type and key == "conditions":
            known = {each["type"]: each for each in merged.get(key, [])}
            for each in value:
                known[each["type"]] = {**known.get(each["type"], {}), **each}
            merged[key] = list(known.values())
        else:
            merged[key] = _merged(merged.get(key), value, by_type=by_type)
    return merged


def _invalid(node: Document) -> str | None:
    seen = set()
    for index, taint in enumerate(node.get("spec", {}).get("taints", [])):
        place = f"metadata.taints[{index}]"
        if not re.fullmatch(r"([a-z0-9.-]+/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?", taint.get("key", "")):
            return (
                f"{place}.key: Invalid value: {taint.get('key')!r}: name part must consist of alphanumeric characters"
            )
        if not re.fullmatch(r"([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?", taint.get("value", "")):
            return (
                f"{place}.value: Invalid value: {taint['value']!r}: a valid label must be an empty string or consist of"
            )
        if taint.get("effect") not in _EFFECTS:
            return f"{place}.effect: Unsupported value: {taint.get('effect')!r}: supported values: ..."
        pair = (taint["key"], taint["effect"])
        if pair in seen:
            return f"{place}: Duplicate value: taints must be unique by key and effect pair"
        seen.add(pair)
    return None


def _book(node: Document, manager: str, *, cordoned: bool) -> None:
    kept = [each for each in node["metadata"]["managedFields"] if not each["fieldsV1"]]
    if cordoned:
        kept.append({"manager": manager, "operation": "Update", "fieldsV1": {"f:spec": {"f:unschedulable": {}}}})
    node["metadata"]["managedFields"] = kept


class _Silent(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up, as one does that finds no trust, is no news."""


def serve(stub: ApiStub, tls: ssl.SSLContext | None) -> ThreadingHTTPServer:
    """Behind a port of 127.0.0.1; the caller runs and closes it."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 30
        disable_nagle_algorithm = True

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class' name
            """Silence."""

        def _all(self) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            shown: Any = self.connection.getpeercert() if isinstance(self.connection, ssl.SSLSocket) else None
            if shown:
                headers[PEER] = shown["subject"][0][0][1]
            body = self.rfile.read(int(headers.get("content-length", "0")))
            with stub.lock:
                stub.requests.append((self.command, self.path, headers))
            instead = stub.hook(self.command, self.path) if stub.hook else None
            if instead is not None:
                self.wfile.write(instead)
                self.close_connection = True
                return
            code, document = stub.answer(self.command, self.path, headers, body)
            data = json.dumps(document).encode()
            head = f"HTTP/1.1 {code} {document.get('reason', 'OK')}\r\nContent-Type: application/json\r\n"
            self.wfile.write(f"{head}Content-Length: {len(data)}\r\n\r\n".encode() + data)

        do_GET = do_PATCH = do_POST = do_DELETE = _all  # noqa: N815 - the base class' names

    server = _Silent(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    return server
