"""TLS for real: handshakes, client certificates, renewal, and clients that say nothing."""

from __future__ import annotations

import contextlib
import socket
import ssl
import textwrap
from pathlib import Path

import pytest

from npu_watchd.sinks.web import WebConfigError
from npu_watchd.sinks.web.registry import Limits
from npu_watchd.sinks.web.server import WORKERS
from npu_watchd.sinks.web.settings import load_settings
from tests.sinks.certificates import Authority, encrypted, make_authority
from tests.sinks.serving import read_all, serving, took_s, wait_until


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    made = make_authority(tmp_path_factory.mktemp("tls"))
    made.issue("server", "localhost", "127.0.0.1")
    made.issue("prometheus")
    made.issue("stranger")
    return made


def _config(authority: Authority, extra: str = "", *, name: str = "web.yml", server: str = "server") -> Path:
    path = authority.folder / name
    path.write_text(
        f"tls_server_config:\n  cert_file: {server}.crt\n  key_file: {server}.key\n" + textwrap.indent(extra, "  ")
    )
    return path


def _trusting(authority: Authority, client: str | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=authority.file)
    if client:
        context.load_cert_chain(authority.folder / f"{client}.crt", authority.folder / f"{client}.key")
    return context


def test_https_is_spoken_and_http_is_told_so(authority: Authority) -> None:
    with serving(config_file=_config(authority)) as run:
        answer = run.get_tls(_trusting(authority))
        assert (answer.status, answer.body[:6]) == (200, b"# HELP")
        assert run.server.urls == (f"https://127.0.0.1:{run.port}/",)
        plain = run.raw(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert plain.startswith(b"HTTP/1.1 400 ")
        assert plain.endswith(b"This port speaks HTTPS only; use https://.\n")
        assert run.logged == []


def test_silent_tls_clients_keep_nobody_waiting(authority: Authority) -> None:
    with serving(config_file=_config(authority)) as run, contextlib.ExitStack() as stack:
        half = [stack.enter_context(run.connect()) for _ in range(WORKERS * 4)]
        for sock in half[::2]:
            sock.sendall(b"\x16\x03\x01\x02\x00\x01")
        for _ in range(5):
            assert took_s(lambda: run.get_tls(_trusting(authority))) < 1.0


def test_a_handshake_has_a_deadline(authority: Authority) -> None:
    with serving(config_file=_config(authority), limits=Limits(head_s=1.0)) as run, run.connect() as sock:
        sock.sendall(b"\x16\x03\x01\x02\x00\x01")
        assert 0.8 < took_s(lambda: read_all(sock)) < 2.5


def test_a_big_answer_goes_through_tls_whole(authority: Authority) -> None:
    from tests.sinks.test_slow_clients import BIG

    with serving(config_file=_config(authority), families=(BIG,)) as run:
        answer = run.get_tls(_trusting(authority))
        assert len(answer.body) == int(answer.headers["Content-Length"]) > 5_000_000
        assert answer.body.endswith(b"19999.0\n")


def test_requests_in_one_tls_record_are_all_answered(authority: Authority) -> None:
    with serving(config_file=_config(authority)) as run, _greeted(authority, run.port) as sock:
        sock.sendall(b"GET /-/healthy HTTP/1.1\r\nHost: x\r\n\r\n" * 3 + b"GET /-/ready HTTP/1.0\r\n\r\n")
        assert read_all(sock).count(b"HTTP/1.1 200 OK") == 4


MUTUAL = "client_auth_type: RequireAndVerifyClientCert\nclient_ca_file: ca.crt\n"


def test_mutual_tls_admits_a_known_client_and_no_other(authority: Authority, tmp_path: Path) -> None:
    foreign = make_authority(tmp_path)
    foreign.issue("prometheus")
    impostor = _trusting(authority)
    impostor.load_cert_chain(tmp_path / "prometheus.crt", tmp_path / "prometheus.key")
    with serving(config_file=_config(authority, MUTUAL)) as run:
        assert run.get_tls(_trusting(authority, "prometheus")).status == 200
        for refused in (_trusting(authority), impostor):
            with pytest.raises(OSError):  # noqa: PT011  # an alert or a reset, as the race has it
                run.get_tls(refused)


def test_only_listed_names_of_clients_are_admitted(authority: Authority) -> None:
    config = _config(authority, MUTUAL + "client_allowed_sans: [prometheus]\n")
    with serving(config_file=config) as run:
        assert run.get_tls(_trusting(authority, "prometheus")).status == 200
        with pytest.raises((OSError, ConnectionError)):
            run.get_tls(_trusting(authority, "stranger"))


def test_a_certificate_is_verified_where_one_is_given(authority: Authority) -> None:
    config = _config(authority, MUTUAL.replace("RequireAndVerifyClientCert", "VerifyClientCertIfGiven"))
    with serving(config_file=config) as run:
        assert run.get_tls(_trusting(authority)).status == 200
        assert run.get_tls(_trusting(authority, "prometheus")).status == 200


def test_versions_ciphers_and_curve_are_honoured(authority: Authority) -> None:
    config = _config(
        authority,
        "max_version: TLS12\n"
        "cipher_suites: [TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384]\n"
        "curve_preferences: [CurveP384]\n",
    )
    with serving(config_file=config) as run, _greeted(authority, run.port) as sock:
        assert sock.version() == "TLSv1.2"
        assert (sock.cipher() or ("",))[0] == "ECDHE-ECDSA-AES256-GCM-SHA384"


def test_inline_certificate_and_key_work(authority: Authority, tmp_path: Path) -> None:
    cert, key = ((authority.folder / f"server.{end}").read_text() for end in ("crt", "key"))
    config = tmp_path / "web.yml"
    config.write_text(
        "tls_server_config:\n  cert: |\n" + textwrap.indent(cert, "    ") + "  key: |\n" + textwrap.indent(key, "    ")
    )
    with serving(config_file=config) as run:
        assert run.get_tls(_trusting(authority)).status == 200


def test_a_renewed_certificate_serves_the_next_connection(authority: Authority) -> None:
    authority.issue("renewed", "localhost")
    with serving(config_file=_config(authority, name="renew.yml", server="renewed")) as run:
        before = _serial(authority, run.port)
        authority.issue("renewed", "localhost")
        assert _serial(authority, run.port) != before
        assert [event for event, _ in run.logged] == ["web_config_reloaded"]


def test_a_half_renewed_pair_keeps_the_last_good_one(authority: Authority) -> None:
    authority.issue("halved", "localhost")
    with serving(config_file=_config(authority, name="halved.yml", server="halved")) as run:
        before = _serial(authority, run.port)
        (authority.folder / "halved.crt").write_bytes((authority.folder / "server.crt").read_bytes())
        assert _serial(authority, run.port) == before
        assert _serial(authority, run.port) == before
        assert [event for event, _ in run.logged] == ["web_config_not_reloaded"]
        assert "does not belong to the certificate" in str(run.logged[0][1]["error"])


def test_turning_tls_off_needs_a_restart(authority: Authority) -> None:
    path = _config(authority, name="off.yml")
    with serving(config_file=path) as run:
        path.write_text("{}\n")
        assert run.get_tls(_trusting(authority)).status == 200
        wait_until(lambda: [event for event, _ in run.logged] == ["web_config_not_reloaded"])


@pytest.mark.parametrize(
    ("extra", "key", "words"),
    [
        ("key_file: prometheus.key", "key_file", "does not belong to the certificate"),
        ("key_file: ca.crt", "key_file", "not usable PEM"),
        ("cert_file: server.key", "key_file", "not usable PEM"),
        ("key_file: server.locked", "key_file", "encrypted"),
        ("cert_file: nowhere.crt", "cert_file", "cannot be read (No such file or directory)"),
        ("client_auth_type: RequireAndVerifyClientCert\nclient_ca_file: server.key", "client_ca_file", "no usable PEM"),
        ("client_auth_type: RequireAndVerifyClientCert\nclient_ca_file: no.crt", "client_ca_file", "cannot be read"),
        ("client_auth_type: RequireAndVerifyClientCert\nclient_ca: junk", "client_ca", "no usable PEM"),
        ("cipher_suites: [RC4]", "cipher_suites", "'RC4' is not one of"),
        ("cipher_suites: [TLS_AES_128_GCM_SHA256]", "cipher_suites", "set min_version: TLS13"),
        ("curve_preferences: [X448]", "curve_preferences", "'X448' is not one of"),
        ("curve_preferences: [X25519, CurveP256]", "curve_preferences", "name one"),
    ],
)
def test_what_tls_cannot_use_stops_the_start(authority: Authority, extra: str, key: str, words: str) -> None:
    encrypted(authority.folder / "server.key")
    overridden = {line.partition(":")[0] for line in extra.splitlines()}
    lines = [f"{name}_file: server.{end}" for name, end in (("cert", "crt"), ("key", "key"))]
    text = "\n".join([line for line in lines if line.partition(":")[0] not in overridden] + [extra])
    path = authority.folder / "bad.yml"
    path.write_text("tls_server_config:\n" + textwrap.indent(text, "  "))
    with pytest.raises(WebConfigError) as refused:
        load_settings(path)
    assert str(refused.value).startswith(f"{path}: tls_server_config.{key}: ")
    assert words in str(refused.value)


def _greeted(authority: Authority, port: int) -> ssl.SSLSocket:
    """A TLS connection whose handshake is done."""
    raw = socket.create_connection(("127.0.0.1", port), timeout=10)
    return _trusting(authority).wrap_socket(raw, server_hostname="localhost")


def _serial(authority: Authority, port: int) -> str:
    """Of the certificate that a whole exchange was served with: nothing of it looks at the files any more."""
    with _greeted(authority, port) as sock:
        sock.sendall(b"GET /-/healthy HTTP/1.0\r\n\r\n")
        assert read_all(sock).startswith(b"HTTP/1.1 200 OK")
        return str((sock.getpeercert() or {})["serialNumber"])
