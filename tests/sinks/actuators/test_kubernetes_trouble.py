"""An API server that misbehaves: what it costs, and what is said. On the stub only."""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from npu_watchd.model.reading import Failure, FailureKind
from npu_watchd.sinks.actuators.actuator import Hold, Holder, Intention
from npu_watchd.sinks.actuators.kube_access import Access
from npu_watchd.sinks.actuators.kube_api import ANSWER_MAX_BYTES
from npu_watchd.sinks.actuators.kubernetes import ATTEMPTS, Kubernetes
from tests.sinks.actuators.api_stub import ApiStub, Hook
from tests.sinks.actuators.clusters import READER, Cluster
from tests.sinks.alertmanager.servers import closed_port, hangs, serving, trickles
from tests.sinks.certificates import make_authority

INTENTION = Intention("q1", "device 3 is missing", b"{}")
NOBODY_HOLDS = Hold(Holder.NOBODY, "schedulable")


@pytest.fixture
def hooked(stub: Cluster) -> Iterator[ApiStub]:
    assert stub.stub is not None
    stub.stub.requests.clear()
    yield stub.stub
    stub.stub.hook = None


def failure(found: object) -> Failure:
    assert isinstance(found, Failure), found
    return found


def said(found: object, cluster: Cluster) -> tuple[FailureKind, str]:
    told = failure(found)
    return told.kind, told.detail.removeprefix(f"{cluster.url.removeprefix('https://')}: ")


def http(status: str, body: bytes = b"", *headers: str) -> bytes:
    head = "\r\n".join([f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers])
    return f"{head}\r\n\r\n".encode() + body


def always(answer: bytes) -> Hook:
    return lambda _method, _path: answer


def on(wanted: str, do: Callable[[], bytes | None]) -> Hook:
    return lambda method, path: do() if f"{method} {path.partition('?')[0]}".startswith(wanted) else None


ANSWERS = [
    (
        http("307 Temporary Redirect", b"", "Location: https://elsewhere.example/login"),
        FailureKind.EXIT,
        "redirects us (307, https://elsewhere.example/login); "
        "redirects are not followed: is [kubernetes] api_url that of the API server itself?",
    ),
    (
        http("404 Not Found", b"<html>nginx</html>"),
        FailureKind.MISSING,
        "has no Kubernetes API there (404); is [kubernetes] api_url that of an API server?",
    ),
    (
        http("403 Forbidden", b'{"kind":"Status","message":"admission webhook \\"no.cordon\\" denied the request"}'),
        FailureKind.DENIED,
        'does not let us get nodes (403: admission webhook "no.cordon" denied the request); '
        "an admission rule of the cluster forbids it: ask who runs the cluster",
    ),
    (
        http("429 Too Many Requests", b"Too many requests, please try again later."),
        FailureKind.EXIT,
        "asks to be left alone for a while (429: Too many requests, please try again later.); "
        "look at its load and its flow control",
    ),
    (
        http("503 Service Unavailable", b"etcd\x1b[31m is down\n"),
        FailureKind.EXIT,
        "failed (503: etcd\ufffd[31m is down); look at its log, and at that of what stands before it",
    ),
    (
        http("418 Teapot"),
        FailureKind.EXIT,
        "gave no answer of an API server (418); check [kubernetes] api_url",
    ),
    (
        http("200 OK", b"<html>Log in</html>"),
        FailureKind.UNPARSEABLE,
        "answered no JSON; is [kubernetes] api_url that of an API server?",
    ),
    (
        http("200 OK", b"[" * 100_000),
        FailureKind.UNPARSEABLE,
        "answered no JSON; is [kubernetes] api_url that of an API server?",
    ),
    (
        http("200 OK", b'{"kind":"Status","status":"Success"}'),
        FailureKind.UNPARSEABLE,
        "answered with no Node; is [kubernetes] api_url that of an API server?",
    ),
    (
        http("200 OK", b'{"kind":"Node","metadata":{"resourceVersion":"1"},"spec":{"taints":[7]}}'),
        FailureKind.UNPARSEABLE,
        "answered with no Node; is [kubernetes] api_url that of an API server?",
    ),
    (
        http("200 OK", b" " * (ANSWER_MAX_BYTES + 1)),
        FailureKind.UNPARSEABLE,
        "answered with more than 4 MiB; is [kubernetes] api_url that of an API server?",
    ),
    (
        b"220 mail.example ESMTP\r\n",
        FailureKind.UNPARSEABLE,
        "answered no HTTP (BadStatusLine); is [kubernetes] api_url that of an API server?",
    ),
    (
        b"",
        FailureKind.EXIT,
        "the connection broke (RemoteDisconnected); is it up, and reachable from this node?",
    ),
]


@pytest.mark.parametrize(("answer", "kind", "words"), ANSWERS, ids=[kind.value for _, kind, _ in ANSWERS])
def test_a_bad_answer_is_named_with_its_cure(
    stub: Cluster, hooked: ApiStub, answer: bytes, kind: FailureKind, words: str
) -> None:
    hooked.hook = always(answer)
    assert said(stub.actuator("node0").look(), stub) == (kind, words)


def test_a_node_that_keeps_changing_is_tried_again_and_then_left(stub: Cluster, hooked: ApiStub) -> None:
    node = stub.new_node()
    counter = itertools.count()

    def interferes() -> None:
        hooked.nodes[node]["metadata"]["resourceVersion"] = f"other-{next(counter)}"

    hooked.hook = on(f"PATCH /api/v1/nodes/{node}", interferes)
    kind, words = said(stub.actuator(node).hold(INTENTION), stub)
    assert (kind, next(counter)) == (FailureKind.EXIT, ATTEMPTS)
    assert words.startswith("says that the node changed meanwhile (409: Operation cannot be fulfilled")
    assert not stub.cordoned(node)


def test_what_changes_between_reading_and_patching_is_kept(stub: Cluster, hooked: ApiStub) -> None:
    node = stub.new_node()
    once = iter([True])

    def interferes() -> None:
        if next(once, False):
            stub.edit(node, taints=[{"key": "maintenance", "value": "fan", "effect": "NoSchedule"}])

    hooked.hook = on(f"PATCH /api/v1/nodes/{node}", interferes)
    assert stub.actuator(node).hold(INTENTION) is None
    assert stub.taints(node) == ["maintenance=fan:NoSchedule", "npu-watchd/quarantine=q1:NoSchedule"]


@pytest.mark.parametrize("where", ["GET /", "PATCH /api/v1/nodes/{node}", "PATCH /api/v1/nodes/{node}/status"])
def test_a_server_that_hangs_costs_one_deadline_and_the_next_call_completes_it(
    stub: Cluster, hooked: ApiStub, where: str
) -> None:
    node = stub.new_node()
    let_go = threading.Event()

    def hang() -> bytes:
        let_go.wait(60)
        return b""

    hooked.hook = on(where.format(node=node), hang)
    hooked.requests.clear()
    kubernetes = Kubernetes(stub.access(), node, lambda: 1.0, deadline_s=0.5)
    words = (
        "no whole answer within 0.5 s; look at its load, or at what stands between; [kubernetes] timeout may be longer"
    )
    assert said(kubernetes.hold(INTENTION), stub) == (FailureKind.TIMEOUT, words)
    # The one that hung was the last that was asked.
    asked = [f"{method} {path.partition('?')[0]}" for method, path, _ in hooked.requests]
    assert asked[-1].startswith(where.format(node=node))
    hooked.hook = None
    let_go.set()
    assert stub.actuator(node).hold(INTENTION) is None
    assert (stub.cordoned(node), (stub.condition(node) or {}).get("status")) == (True, "True")


@pytest.mark.parametrize("after", ["PATCH /api/v1/nodes/{node}", "PATCH /api/v1/nodes/{node}/status"])
@pytest.mark.parametrize("giving_back", [False, True])
def test_an_answer_that_is_lost_after_the_change_was_made_does_no_harm(
    stub: Cluster, hooked: ApiStub, after: str, *, giving_back: bool
) -> None:
    node = stub.new_node()
    if giving_back:
        assert stub.actuator(node).hold(INTENTION) is None
    wanted = after.format(node=node)
    seen: list[str] = []

    def hook(method: str, path: str) -> bytes | None:
        # Done, but the answer is lost: the request that comes after it meets a dead server.
        if seen:
            return b""
        if f"{method} {path.partition('?')[0]}" == wanted:
            seen.append(path)
        return None

    hooked.hook = hook
    actuator = stub.actuator(node)

    def act() -> Failure | None:
        return actuator.free("q1") if giving_back else actuator.hold(INTENTION)

    act()
    assert seen
    hooked.hook = None
    assert act() is None
    if giving_back:
        assert actuator.look() == NOBODY_HOLDS
    else:
        assert (stub.cordoned(node), (stub.condition(node) or {}).get("status")) == (True, "True")


def access(stub: Cluster, tmp_path: Path, url: str) -> Access:
    return Access(api_url=url, ca_file=stub.authority.file, token_file=stub.token_file())


def look(found: Access, deadline_s: float = 5) -> tuple[FailureKind, str]:
    told = failure(Kubernetes(found, "node0", lambda: 1.0, deadline_s=deadline_s).look())
    return told.kind, told.detail.partition(": ")[2]


@pytest.mark.parametrize("answer", [hangs, trickles])
def test_a_server_that_never_ends_its_answer_is_cut_at_the_deadline(
    stub: Cluster, tmp_path: Path, answer: Callable[..., None]
) -> None:
    # Plain http on loopback, as `kubectl proxy` serves it.
    with serving(answer) as server:
        kind, words = look(access(stub, tmp_path, server.url), 0.5)
    assert (kind, words.partition(";")[0]) == (FailureKind.TIMEOUT, "no whole answer within 0.5 s")


def test_over_plain_http_no_token_is_sent(stub: Cluster, tmp_path: Path) -> None:
    with serving(lambda _server, sock: sock.sendall(http("503 Down"))) as server:
        look(access(stub, tmp_path, server.url))
    assert "authorization" not in server.requests[0].headers


def test_a_server_that_is_not_there_is_named(stub: Cluster, tmp_path: Path) -> None:
    assert look(access(stub, tmp_path, f"https://127.0.0.1:{closed_port()}")) == (
        FailureKind.MISSING,
        "it refuses connections; is it running, and is the port right?",
    )
    assert look(access(stub, tmp_path, "https://kube.invalid")) == (
        FailureKind.MISSING,
        "its name is not known here; check it and the node's DNS",
    )


def test_a_server_without_tls_is_named(stub: Cluster, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            sock, _ = listener.accept()
            with sock:
                sock.recv(65536)
                sock.sendall(http("400 Bad Request"))

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        kind, words = look(access(stub, tmp_path, f"https://127.0.0.1:{listener.getsockname()[1]}"))
        thread.join(10)
    assert kind is FailureKind.EXIT
    assert words.startswith("no TLS with it (")


def test_a_server_of_another_authority_gets_no_token(stub: Cluster, hooked: ApiStub, tmp_path: Path) -> None:
    stranger = make_authority(tmp_path / "stranger")
    found = dataclasses.replace(stub.access(), ca_file=stranger.file)
    kind, words = look(found)
    assert kind is FailureKind.DENIED
    assert words.startswith("its certificate is not trusted (")
    assert hooked.requests == []


def test_a_server_by_another_name_gets_no_token(stub: Cluster, hooked: ApiStub) -> None:
    found = dataclasses.replace(stub.access(), api_url=stub.url.replace("127.0.0.1", "localhost"))
    kind, words = look(found)
    assert (kind, words.partition(" (")[0]) == (FailureKind.DENIED, "its certificate is not trusted")
    assert hooked.requests == []


def test_the_environments_proxy_is_not_used(stub: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    node = stub.new_node()
    for name in ("https_proxy", "HTTPS_PROXY", "all_proxy"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{closed_port()}")
    assert stub.actuator(node).look() == NOBODY_HOLDS


def test_every_request_says_who_asks_and_for_what(stub: Cluster, hooked: ApiStub) -> None:
    node = stub.new_node()
    hooked.requests.clear()
    assert stub.actuator(node).hold(INTENTION) is None
    lines = [(method, path, headers.get("content-type")) for method, path, headers in hooked.requests]
    assert lines == [
        ("GET", f"/api/v1/nodes/{node}", None),
        ("PATCH", f"/api/v1/nodes/{node}?fieldManager=npu-watchd", "application/merge-patch+json"),
        ("PATCH", f"/api/v1/nodes/{node}/status?fieldManager=npu-watchd", "application/strategic-merge-patch+json"),
    ]
    assert {headers["authorization"] for _, _, headers in hooked.requests} == {"Bearer watchd-token"}
    assert hooked.requests[0][2]["user-agent"].startswith("npu-watchd/")


def test_a_hold_that_stands_costs_one_request(stub: Cluster, hooked: ApiStub) -> None:
    node = stub.new_node()
    assert stub.actuator(node).hold(INTENTION) is None
    hooked.requests.clear()
    assert stub.actuator(node).hold(INTENTION) is None
    assert [method for method, _, _ in hooked.requests] == ["GET"]


def test_a_refusal_is_not_tried_again(stub: Cluster, hooked: ApiStub) -> None:
    node = stub.new_node()
    hooked.requests.clear()
    assert failure(stub.actuator(node, READER).hold(INTENTION)).kind is FailureKind.DENIED
    assert [method for method, _, _ in hooked.requests] == ["GET", "PATCH"]


def test_a_token_that_is_rotated_between_two_requests_is_used_for_the_second(stub: Cluster, hooked: ApiStub) -> None:
    node = stub.new_node()
    actuator = stub.actuator(node)
    hooked.requests.clear()

    def rotates() -> None:
        hooked.tokens["renewed"] = "watchd"
        stub.token_file().write_text("renewed")

    hooked.hook = on("GET ", rotates)
    assert actuator.hold(INTENTION) is None
    assert [headers["authorization"] for _, _, headers in hooked.requests] == [
        "Bearer watchd-token",
        "Bearer renewed",
        "Bearer renewed",
    ]
    stub.token_file()


def test_a_pipe_in_the_place_of_a_token_keeps_nobody_waiting(stub: Cluster, tmp_path: Path) -> None:
    pipe = tmp_path / "token"
    os.mkfifo(pipe)
    found = dataclasses.replace(stub.access(), token_file=pipe)
    assert Kubernetes(found, "node0", lambda: 1.0).look() == Failure(
        FailureKind.UNPARSEABLE, f"{pipe} is empty; [kubernetes] token_file or kubeconfig names another"
    )


def test_an_annotation_that_is_not_ours_to_read_is_replaced(stub: Cluster) -> None:
    node = stub.new_node()
    for text in ("{", "[]", '{"mark":7}', json.dumps({"mark": "x"})):
        stub.admin("PATCH", f"/api/v1/nodes/{node}", {"metadata": {"annotations": {"npu-watchd/quarantine": text}}})
        assert stub.actuator(node).look() == NOBODY_HOLDS
        assert stub.actuator(node).free("x") is None
    assert stub.actuator(node).hold(INTENTION) is None
    assert isinstance(found := stub.actuator(node).look(), Hold)
    assert found.mark == "q1"
