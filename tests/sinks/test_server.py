"""Paths, headers and refusals, asked of the running server."""

from __future__ import annotations

import gzip
import json
import os
import re
import socket
import threading
from collections.abc import Iterable, Iterator
from http.client import HTTPConnection

import pytest

from npu_watchd.catalogue import Kind, NodeFamily, Sample
from npu_watchd.model.snapshot import Outcome
from npu_watchd.sinks.metrics import Exposition
from npu_watchd.sinks.web import ListenError, Published
from tests.sinks.build import device, outcome
from tests.sinks.serving import FAMILIES, Serving, serving

METRICS = b'# HELP npu_node_info The node\n# TYPE npu_node_info gauge\nnpu_node_info{node="node-17"} 1.0\n'


@pytest.fixture(scope="module")
def run() -> Iterator[Serving]:
    with serving() as running:
        yield running


def test_metrics_are_text_by_default(run: Serving) -> None:
    answer = run.get("/metrics")
    assert (answer.status, answer.body) == (200, METRICS)
    assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert "Content-Encoding" not in answer.headers


def test_metrics_are_openmetrics_and_gzip_when_asked(run: Serving) -> None:
    answer = run.get("/metrics", Accept="application/openmetrics-text;version=1.0.0", Accept_Encoding="gzip")
    assert answer.headers["Content-Type"] == "application/openmetrics-text; version=1.0.0; charset=utf-8"
    assert answer.headers["Content-Encoding"] == "gzip"
    assert answer.headers["Vary"] == "Accept, Accept-Encoding"
    assert gzip.decompress(answer.body) == METRICS + b"# EOF\n"


@pytest.mark.parametrize(
    ("path", "content_type"),
    [
        ("/", "text/html; charset=utf-8"),
        ("/metrics", "text/plain; version=0.0.4; charset=utf-8"),
        ("/api/v1/snapshot", "application/json; charset=utf-8"),
        ("/-/healthy", "text/plain; charset=utf-8"),
        ("/-/ready", "text/plain; charset=utf-8"),
        ("/metrics?name[]=x", "text/plain; version=0.0.4; charset=utf-8"),
    ],
)
def test_every_path_answers_get_and_head_with_the_same_headers(run: Serving, path: str, content_type: str) -> None:
    got, head = run.get(path), run.get(path, "HEAD")
    assert (got.status, head.status, head.body) == (200, 200, b"")
    for answer in (got, head):
        assert answer.headers["Content-Type"] == content_type
        assert answer.headers["Content-Length"] == str(len(got.body))
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Cache-Control"] == "no-store"


def test_the_page_may_run_our_own_script_and_ask_nobody_but_us(run: Serving) -> None:
    policy = run.get("/").headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "; script-src 'self'; connect-src 'self'; " in policy
    assert "unsafe" not in policy
    assert "http" not in policy


def test_the_page_is_gzip_when_asked_and_the_same(run: Serving) -> None:
    plain, packed = run.get("/"), run.get("/", Accept_Encoding="gzip")
    assert "Content-Encoding" not in plain.headers
    assert (packed.headers["Content-Encoding"], packed.headers["Vary"]) == ("gzip", "Accept-Encoding")
    assert gzip.decompress(packed.body) == plain.body
    assert len(packed.body) < len(plain.body) / 2


def test_a_browser_keeps_the_script_for_as_long_as_it_is_the_pages_own(run: Serving) -> None:
    (path,) = re.findall(r'<script src="(/page[.]js[?][0-9a-f]{12})" defer></script>', run.get("/").body.decode())
    script = run.get(path)
    assert (script.status, script.headers["Content-Type"]) == (200, "text/javascript; charset=utf-8")
    assert script.headers["Cache-Control"] == "max-age=604800, immutable"
    assert len(script.body) < 16_000
    assert not re.search(
        rb"https?://(?!www[.]w3[.]org/2000/svg)|innerHTML|eval|insertAdjacentHTML|document[.]write", script.body
    )


def test_pages_that_keep_asking_leave_room_for_scrapes() -> None:
    stop = threading.Event()
    failed: list[str] = []

    def look() -> None:
        while not stop.is_set():
            if busy.get("/", Accept_Encoding="gzip").status != 200:
                failed.append("/")

    with serving(outcome([device(n) for n in range(64)])) as busy:
        lookers = [threading.Thread(target=look) for _ in range(12)]
        for looker in lookers:
            looker.start()
        scrapes = [busy.get("/metrics").status for _ in range(20)]
        stop.set()
        for looker in lookers:
            looker.join()
    assert (scrapes, failed) == ([200] * 20, [])


def test_an_unknown_path_is_answered_with_the_paths_there_are(run: Serving) -> None:
    answer = run.get("/nope")
    assert answer.status == 404
    assert answer.body.decode() == (
        "no such path; there are:\n/\n/metrics\n/-/healthy\n/-/ready\n"
        "/api/v1/snapshot\n/api/v1/findings\n/api/v1/verdicts\n/api/v1/events\n/api/v1/history\n"
    )


@pytest.mark.parametrize("path", ["/metrics/x", "/..%2fetc/passwd", "/%00", "/%ff", "/metrics%0d%0aX:1"])
def test_an_odd_path_is_no_path(run: Serving, path: str) -> None:
    assert run.get(path).status == 404


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH", "BREW"])
def test_other_methods_are_not_allowed(run: Serving, method: str) -> None:
    answer = run.get("/metrics", method)
    assert (answer.status, answer.headers["Allow"]) == (405, "GET, HEAD")


def test_a_body_is_not_read_and_ends_the_connection(run: Serving) -> None:
    answer = run.raw(b"GET /-/healthy HTTP/1.1\r\nHost: x\r\nContent-Length: 999999\r\n\r\nGET / HTTP/1.1\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"\r\nConnection: close\r\n" in answer
    assert answer.count(b"HTTP/1.1") == 1


def test_a_posted_body_is_answered_with_405(run: Serving) -> None:
    answer = run.raw(b"POST /metrics HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 405 ")


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 a TLS greeting", b"400"),
        (b"GET\r\n\r\n", b"400"),
        (b"GET / HTTP/x.y\r\n\r\n", b"400"),
        (b"GET / FTP/1.1\r\n\r\n", b"400"),
        (b"get / HTTP/1.1\r\n\r\n", b"400"),
        (b"GET http://[ HTTP/1.1\r\n\r\n", b"400"),
        (b"GET //[ HTTP/1.1\r\n\r\n", b"400"),
        (b"GET /\xff\xfe HTTP/1.1\r\n\r\n", b"400"),
        (b"GET metrics HTTP/1.1\r\n\r\n", b"400"),
        (b"GET //metrics HTTP/1.1\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\n\n", b"400"),
        (b"GET / HTTP/1.1\r\nno colon\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nContent-Length: many\r\n\r\n", b"400"),
        (b"GET / HTTP/3.0\r\n\r\n", b"505"),
        (b"CONNECT x:1 HTTP/1.1\r\n\r\n", b"405"),
        (b"\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nX: " + b"x" * 9000 + b"\r\n\r\n", b"431"),
        (b"GET /" + b"x" * 9000, b"431"),
    ],
)
def test_junk_is_refused_without_a_traceback(run: Serving, request_bytes: bytes, status: bytes) -> None:
    answer = run.raw(request_bytes)
    assert answer.startswith(b"HTTP/1.1 " + status)
    assert b"Content-Type: text/plain; charset=utf-8\r\n" in answer
    assert b"Traceback" not in answer
    assert run.logged == []


def test_requests_in_a_row_on_one_connection_are_all_answered(run: Serving) -> None:
    with run.connect() as sock:
        sock.sendall(b"GET /-/healthy HTTP/1.1\r\nHost: x\r\n\r\n" * 3 + b"GET /-/ready HTTP/1.0\r\n\r\n")
        answered = b""
        while part := sock.recv(65536):
            answered += part
    assert answered.count(b"HTTP/1.1 200 OK") == 4


def test_a_connection_is_kept_for_the_next_scrape(run: Serving) -> None:
    connection = HTTPConnection("127.0.0.1", run.port, timeout=10)
    ports = set()
    for _ in range(3):
        connection.request("GET", "/metrics")
        connection.getresponse().read()
        ports.add(connection.sock.getsockname()[1])
    connection.close()
    assert len(ports) == 1


def test_before_the_first_cycle_only_health_is_good() -> None:
    with serving(first_cycle=False) as early:
        assert early.get("/-/healthy").status == 200
        assert early.get("/").status == 503
        ready, metrics, snapshot = early.get("/-/ready"), early.get("/metrics"), early.get("/api/v1/snapshot")
        assert (ready.status, ready.body) == (
            503,
            b"not ready: nothing was seen yet: the first cycle is still under way\n",
        )
        assert (metrics.status, metrics.headers["Retry-After"]) == (503, "5")
        assert snapshot.status == 503
        assert json.loads(snapshot.body) == {"error": "nothing was seen yet: the first cycle is still under way"}
        shown = outcome([device(0)])
        early.published = Published(shown, Exposition(shown, FAMILIES))
        assert early.get("/-/ready").status == 200
        assert early.get("/metrics").body == METRICS


def test_each_request_shows_the_newest_publication() -> None:
    with serving() as run:
        for node in ("node-17", "node-18"):
            shown = outcome([device(0)], node=node)
            run.published = Published(shown, Exposition(shown, FAMILIES))
            assert f'node="{node}"' in run.get("/metrics").body.decode()
            assert json.loads(run.get("/api/v1/snapshot").body)["node"] == node
            assert f"<h1>{node}</h1>" in run.get("/").body.decode()


def test_fifty_scrapers_at_once_are_all_answered() -> None:
    asked = []

    def read(_: Outcome) -> Iterable[Sample]:
        asked.append(1)
        return [({"n": str(n)}, n) for n in range(2000)]

    with serving(families=(NodeFamily("x", Kind.GAUGE, "h", ("n",), read),)) as run:
        answers: list[tuple[int, int]] = []

        def scrape() -> None:
            answer = run.get("/metrics", Accept_Encoding="gzip")
            answers.append((answer.status, len(gzip.decompress(answer.body))))

        threads = [threading.Thread(target=scrape) for _ in range(50)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(answers) == 50
    assert {status for status, _ in answers} == {200}
    assert len({size for _, size in answers}) == 1
    assert asked == [1]


def test_a_fault_of_ours_is_a_500_logged_once() -> None:
    with serving() as run:
        run.published = "not a publication"  # type: ignore[assignment]
        for _ in range(3):
            answer = run.get("/metrics")
            assert (answer.status, answer.body) == (500, b"internal error: the daemon's log has the details\n")
        assert [event for event, _ in run.logged] == ["web_request_failed"]
        assert run.logged[0][1]["path"] == "/metrics"


def test_it_listens_on_every_address_and_says_which() -> None:
    with serving(listen=("127.0.0.1:0", "127.0.0.1:0")) as run:
        assert len(set(run.server.addresses)) == 2
        for address, url in zip(run.server.addresses, run.server.urls, strict=True):
            assert url == f"http://{address}/"
            connection = HTTPConnection(address)
            connection.request("GET", "/-/healthy")
            assert connection.getresponse().status == 200
            connection.close()


def test_ipv6_any_answers_ipv4_too() -> None:
    try:
        socket.socket(socket.AF_INET6).close()
        with serving(listen=("[::]:0",)) as run:
            assert run.server.addresses == (f"[::]:{run.port}",)
            assert run.server.urls == (f"http://[::1]:{run.port}/",)
            assert run.get("/-/healthy").status == 200
    except (OSError, ListenError) as error:
        pytest.skip(f"no IPv6 on this machine: {error}")


def test_a_taken_port_is_named_with_its_holder_and_the_cure() -> None:
    with serving() as run, pytest.raises(ListenError) as refused, serving(listen=(f"127.0.0.1:{run.port}",)):
        pass
    message = str(refused.value)
    assert message.startswith(f"[web] listen: 127.0.0.1:{run.port}: port {run.port} is taken by ")
    assert f"(pid {os.getpid()})" in message
    assert message.endswith("set another port in [web] listen")


def test_after_a_failed_start_no_port_stays_open() -> None:
    with socket.create_server(("127.0.0.1", 0)) as spare:
        free = spare.getsockname()[1]
    with serving() as run:
        with pytest.raises(ListenError), serving(listen=(f"127.0.0.1:{free}", f"127.0.0.1:{run.port}")):
            pass
        socket.create_server(("127.0.0.1", free)).close()


@pytest.mark.parametrize(
    "address", ["18910", ":18910", "127.0.0.1", "127.0.0.1:port", "127.0.0.1:70000", "::1:18910", ""]
)
def test_what_is_no_address_is_refused_with_the_right_form(address: str) -> None:
    with pytest.raises(ListenError, match=r'is not an address; write "0\.0\.0\.0:18910"'), serving(listen=(address,)):
        pass


def test_an_address_of_another_machine_is_refused() -> None:
    with pytest.raises(ListenError, match="this machine has no such address"), serving(listen=("192.0.2.1:0",)):
        pass


def test_stopping_ends_all_threads_and_frees_the_port() -> None:
    before = set(threading.enumerate())
    with serving() as run:
        port = run.port
        idle = run.connect()
        assert run.get("/-/healthy").status == 200
        assert set(threading.enumerate()) - before
    assert set(threading.enumerate()) - before == set()
    assert idle.recv(1) == b""
    idle.close()
    socket.create_server(("127.0.0.1", port)).close()


def test_no_thread_keeps_a_dying_process_alive() -> None:
    before = set(threading.enumerate())
    with serving():
        assert all(thread.daemon for thread in set(threading.enumerate()) - before)
