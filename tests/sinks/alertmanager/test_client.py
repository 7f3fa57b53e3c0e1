"""One POST against real servers, good and bad: what arrives, and what is said when it fails."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from npu_watchd import __version__
from npu_watchd.model.reading import FailureKind
from npu_watchd.sinks.alertmanager.client import Access, Client, target_of
from tests.sinks.alertmanager.servers import Answer, answers, closed_port, hangs, says, serving, trickles
from tests.sinks.certificates import Authority, encrypted, make_authority

BODY = b'[{"labels":{"alertname":"A"}}]'
USUAL, QUICK = Access(), Access(timeout_s=0.3)


def post(url: str, access: Access = USUAL) -> tuple[FailureKind | None, str]:
    """Kind and words of the failure, without the target that begins them."""
    failure = Client(url, access).post(BODY)
    if failure is None:
        return None, ""
    target = f"{target_of(url)}: "
    assert failure.detail.startswith(target)
    return failure.kind, failure.detail.removeprefix(target)


def test_a_list_of_alerts_arrives_as_api_v2_wants_it() -> None:
    with serving(answers()) as server:
        assert Client(server.url, USUAL).post(BODY) is None
    (request,) = server.requests
    assert request.line == "POST /api/v2/alerts HTTP/1.1"
    assert request.headers["content-type"] == "application/json"
    assert request.headers["host"] == f"127.0.0.1:{server.port}"
    assert request.headers["user-agent"] == f"npu-watchd/{__version__}"
    assert "authorization" not in request.headers
    assert request.body == BODY


@pytest.mark.parametrize("prefix", ["/am", "/am/", "/a/b"])
def test_a_path_in_the_address_is_a_prefix(prefix: str) -> None:
    with serving(answers()) as server:
        assert post(server.url + prefix) == (None, "")
    assert server.requests[0].line == f"POST {prefix.rstrip('/')}/api/v2/alerts HTTP/1.1"


ANSWERS: list[tuple[Answer, FailureKind, str]] = [
    (
        answers("400 Bad Request", '"invalid label set: invalid name \\"bad-label\\""'),
        FailureKind.EXIT,
        'refused an alert (400: invalid label set: invalid name "bad-label"); '
        "please report this, with the alert that it names",
    ),
    (
        answers("400 Bad Request", '{"code":400,"message":"parsing alerts body failed"}'),
        FailureKind.EXIT,
        "refused an alert (400: parsing alerts body failed); please report this, with the alert that it names",
    ),
    (
        answers("401 Unauthorized"),
        FailureKind.DENIED,
        "wants credentials, or others (401); "
        "set alertmanager.basic_auth_user and basic_auth_password_file, or bearer_token_file",
    ),
    (
        answers("403 Forbidden", "no\u202e way"),
        FailureKind.DENIED,
        "does not let this node in (403: no\ufffd way); ask who runs it for the right",
    ),
    (
        answers("404 Not Found", "404 page not found\n"),
        FailureKind.MISSING,
        "has no /api/v2/alerts there (404: 404 page not found); is it Alertmanager 0.16 or later, with a path prefix?",
    ),
    (
        answers("413 Payload Too Large"),
        FailureKind.EXIT,
        "takes no request of this size (413); what stands before it must let 1 MB through",
    ),
    (
        answers("418 I'm a teapot", "x" * 400),
        FailureKind.EXIT,
        f"gave no answer of an Alertmanager (418: {'x' * 299}…); check the address",
    ),
    (
        answers("500 Internal Server Error", "disk full"),
        FailureKind.EXIT,
        "failed (500: disk full); look at its log, and at that of what stands before it",
    ),
    (
        answers("503 Service Unavailable"),
        FailureKind.EXIT,
        "failed (503); look at its log, and at that of what stands before it",
    ),
    (
        answers("301 Moved Permanently", Location="https://user:secret@sso.example:8443/login?token=secret"),
        FailureKind.EXIT,
        "redirects to sso.example:8443 (301); "
        "redirects are not followed: write that address into alertmanager.urls if it is the one",
    ),
    (
        answers("307 Temporary Redirect", Location="/elsewhere"),
        FailureKind.EXIT,
        "redirects to another path of the same host (307); "
        "redirects are not followed: write that address into alertmanager.urls if it is the one",
    ),
    (
        answers("302 Found", Location="http://[nonsense"),
        FailureKind.EXIT,
        "redirects to an address that cannot be read (302); "
        "redirects are not followed: write that address into alertmanager.urls if it is the one",
    ),
    (
        answers("200 OK", "<html>Log in</html>", Content_Type="text/html; charset=utf-8"),
        FailureKind.UNPARSEABLE,
        "answered with a web page (200), as no Alertmanager does; "
        "check the address: a login page, perhaps, or another program",
    ),
    (
        says(b"220 mail.example ESMTP\r\n"),
        FailureKind.UNPARSEABLE,
        "answered no HTTP (BadStatusLine); is this an Alertmanager, and is it http (not https) there?",
    ),
    (
        says(b"HTTP/1.1 500 Oh\r\nContent-Length: 100\r\n\r\nhalf"),
        FailureKind.EXIT,
        "failed (500: half); look at its log, and at that of what stands before it",
    ),
    (
        hangs,
        FailureKind.TIMEOUT,
        "silent for 0.3 s; is it overloaded?",
    ),
    (
        trickles,
        FailureKind.TIMEOUT,
        "no whole answer within 0.9 s; look at its load, or at what stands between; "
        "[alertmanager] timeout may be longer",
    ),
]


@pytest.mark.parametrize(
    ("answer", "kind", "words"), ANSWERS, ids=[f"{number} {kind.value}" for number, (_, kind, _) in enumerate(ANSWERS)]
)
def test_a_bad_answer_is_named_with_its_cure(answer: Answer, kind: FailureKind, words: str) -> None:
    with serving(answer) as server:
        assert post(server.url, QUICK if answer in (hangs, trickles) else USUAL) == (kind, words)


def test_a_closed_connection_is_no_success() -> None:
    with serving(says(b"")) as server:
        assert post(server.url) == (
            FailureKind.EXIT,
            "the connection broke (RemoteDisconnected); is it up, and reachable from this node?",
        )


def test_an_answer_without_end_is_read_up_to_its_limit_and_no_further() -> None:
    with serving(answers("500 Oh", "x" * (1 << 20))) as server:
        kind, words = post(server.url)
    assert (kind, len(words)) == (FailureKind.EXIT, 369)


def test_a_port_where_nobody_listens_refuses() -> None:
    assert post(f"http://127.0.0.1:{closed_port()}") == (
        FailureKind.MISSING,
        "it refuses connections; is it running, and is the port right?",
    )


@pytest.mark.parametrize("url", ["http://alertmanager.invalid:9093", f"http://{'a' * 70}.invalid"])
def test_a_name_that_does_not_exist_is_named(url: str) -> None:
    assert post(url) == (
        FailureKind.MISSING,
        "its name is not known here; check the name in alertmanager.urls and the node's DNS",
    )


def test_a_password_is_read_from_its_file_at_each_request(tmp_path: Path) -> None:
    file = tmp_path / "password"
    client_access = Access(user="watch", password_file=file)
    with serving(answers()) as server:
        client = Client(server.url, client_access)
        for password in ("one\n", "zwö"):
            file.write_text(password)
            assert client.post(BODY) is None
    assert [request.headers["authorization"] for request in server.requests] == [
        "Basic d2F0Y2g6b25l",
        "Basic d2F0Y2g6enfDtg==",
    ]


def test_a_token_is_read_from_its_file_at_each_request(tmp_path: Path) -> None:
    file = tmp_path / "token"
    with serving(answers()) as server:
        client = Client(server.url, Access(bearer_token_file=file))
        for token in ("eyJ.1\n", "eyJ.2\n"):
            file.write_text(token)
            assert client.post(BODY) is None
    assert [request.headers["authorization"] for request in server.requests] == ["Bearer eyJ.1", "Bearer eyJ.2"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "cannot be read (No such file or directory); mend [alertmanager] bearer_token_file"),
        (b" \n", "is empty; write the secret alone into it"),
        (b"two\r\nlines", "holds more than one plain line; write the secret alone into it"),
        (b"\xff\xfe", "is not UTF-8; write it anew"),
    ],
)
def test_a_bad_token_file_is_named_and_nothing_is_sent(tmp_path: Path, content: bytes | None, words: str) -> None:
    file = tmp_path / "token"
    if content is not None:
        file.write_bytes(content)
    with serving(answers()) as server:
        assert post(server.url, Access(bearer_token_file=file))[1] == f"{file} {words}"
    assert server.requests == []


def test_the_environments_proxy_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{closed_port()}")
    with serving(answers()) as server:
        assert post(server.url) == (None, "")


def test_a_proxy_that_is_named_is_asked_for_the_whole_address() -> None:
    with serving(answers()) as proxy:
        assert post("http://am1.invalid:9093/x", Access(proxy=proxy.url)) == (None, "")
    assert proxy.requests[0].line == "POST http://am1.invalid:9093/x/api/v2/alerts HTTP/1.1"
    assert proxy.requests[0].headers["host"] == "am1.invalid:9093"


def test_a_proxy_is_asked_for_a_tunnel_to_a_tls_server() -> None:
    with serving(answers("403 Forbidden")) as proxy:
        kind, words = post("https://am1.invalid", Access(proxy=proxy.url))
    assert proxy.requests[0].line == "CONNECT am1.invalid:443 HTTP/1.0"
    assert (kind, words) == (
        FailureKind.EXIT,
        f"the proxy 127.0.0.1:{proxy.port} opens no way to it (Tunnel connection failed: 403 Forbidden); "
        "ask who runs the proxy",
    )


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return make_authority(tmp_path_factory.mktemp("tls"))


def server_context(authority: Authority, *names: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.issue(names[0], *names))
    return context


def test_a_certificate_of_a_known_authority_is_trusted(authority: Authority) -> None:
    with serving(answers(), server_context(authority, "127.0.0.1")) as server:
        assert post(server.url, Access(ca_file=authority.file)) == (None, "")


def test_a_certificate_of_an_unknown_authority_is_not(authority: Authority) -> None:
    with serving(answers(), server_context(authority, "127.0.0.1")) as server:
        kind, words = post(server.url)
    assert server.requests == []
    assert (kind, words) == (
        FailureKind.DENIED,
        "its certificate is not trusted (unable to get local issuer certificate); "
        "alertmanager.ca_file names the authority, alertmanager.server_name another name",
    )


def test_the_name_on_the_certificate_counts_unless_another_is_named(authority: Authority) -> None:
    with serving(answers(), server_context(authority, "am.example")) as server:
        kind, words = post(server.url, Access(ca_file=authority.file))
        assert kind is FailureKind.DENIED
        assert "IP address mismatch" in words
        assert post(server.url, Access(ca_file=authority.file, server_name="am.example")) == (None, "")


def test_without_verification_any_certificate_will_do(authority: Authority) -> None:
    with serving(answers(), server_context(authority, "am.example")) as server:
        assert post(server.url, Access(insecure_skip_verify=True)) == (None, "")


def test_our_own_certificate_is_shown_where_one_is_asked_for(authority: Authority) -> None:
    context = server_context(authority, "127.0.0.1")
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(authority.file)
    certificate, key = authority.issue("node17")
    with serving(answers(), context) as server:
        access = Access(ca_file=authority.file, cert_file=certificate, key_file=key)
        assert post(server.url, access) == (None, "")
        kind, _ = post(server.url, Access(ca_file=authority.file))
        assert kind is FailureKind.EXIT
    assert len(server.requests) == 1


def test_tls_spoken_to_in_plain_http_is_a_broken_connection(authority: Authority) -> None:
    with serving(answers(), server_context(authority, "127.0.0.1")) as server:
        kind, words = post(f"http://127.0.0.1:{server.port}")
    assert (kind, server.requests) == (FailureKind.EXIT, [])
    assert words.startswith("the connection broke (")


def test_bad_tls_files_are_named(authority: Authority, tmp_path: Path) -> None:
    certificate, key = authority.issue("node18")
    rubbish = tmp_path / "rubbish.pem"
    rubbish.write_text("rubbish")
    absent = tmp_path / "absent.pem"
    cases = [
        (Access(ca_file=absent), f"{absent} cannot be read (No such file or directory); mend [alertmanager] ca_file"),
        (
            Access(ca_file=rubbish),
            f"{rubbish} holds no usable PEM certificate (no certificate or crl found); mend [alertmanager] ca_file",
        ),
        (
            Access(cert_file=certificate, key_file=absent),
            f"{absent} cannot be read (No such file or directory); mend [alertmanager] key_file",
        ),
        (
            Access(cert_file=certificate, key_file=encrypted(key)),
            f"the key in {encrypted(key)} is encrypted; give one without a passphrase",
        ),
        (
            Access(cert_file=certificate, key_file=authority.folder / "ca.key"),
            f"{certificate} and its key are not usable (key values mismatch); "
            "mend [alertmanager] cert_file and key_file",
        ),
    ]
    for access, words in cases:
        assert post("https://127.0.0.1:9", access)[1] == words


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("http://am1:9093", "am1:9093"),
        ("http://am1", "am1:80"),
        ("https://am1/", "am1:443"),
        ("https://proxy.example/am/", "proxy.example:443/am"),
        ("http://[::1]:9093", "[::1]:9093"),
        ("http://user:secret@am1:9093", "am1:9093"),
    ],
)
def test_a_target_is_host_and_port_and_never_a_secret(url: str, target: str) -> None:
    assert target_of(url) == target
