"""The web configuration file: what is understood, and what stops the start with file, key and cure."""

from __future__ import annotations

from pathlib import Path

import pytest

from npu_watchd.sinks.web.webconfig import RateLimitSettings, TlsSettings, WebConfig, load_web_config
from npu_watchd.sinks.web.yaml_section import WebConfigError

HASH = "$2y$10$X0h1gDsPszWURQaxFh.zoubFi6DXncSjhoQNJgRrnGs7EsimhC7zG"


def _load(tmp_path: Path, text: str) -> WebConfig:
    path = tmp_path / "web.yml"
    path.write_text(text)
    return load_web_config(path)


def test_an_empty_file_is_plain_http_for_all(tmp_path: Path) -> None:
    assert _load(tmp_path, "") == WebConfig()


def test_every_key_is_understood(tmp_path: Path) -> None:
    text = f"""
tls_server_config:
  cert_file: tls/server.crt
  key_file: /etc/keys/server.key
  client_auth_type: RequireAndVerifyClientCert
  client_ca_file: ca.crt
  client_allowed_sans: [prometheus.example, 10.0.0.1]
  min_version: TLS12
  max_version: TLS13
  cipher_suites: [TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256]
  prefer_server_cipher_suites: false
  curve_preferences: [X25519]
http_server_config:
  http2: true
  headers:
    Content-Security-Policy: "default-src 'self'"
    X-Frame-Options: deny
    X-Content-Type-Options: nosniff
    X-XSS-Protection: "0"
    Strict-Transport-Security: max-age=31536000
basic_auth_users:
  prometheus: {HASH}
rate_limit:
  interval: 1m0.5s
  burst: 20
"""
    assert _load(tmp_path, text) == WebConfig(
        tls=TlsSettings(
            cert_file=tmp_path / "tls/server.crt",
            key_file=Path("/etc/keys/server.key"),
            client_ca_file=tmp_path / "ca.crt",
            client_auth_type="RequireAndVerifyClientCert",
            client_allowed_sans=("prometheus.example", "10.0.0.1"),
            cipher_suites=("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",),
            prefer_server_cipher_suites=False,
            curve_preferences=("X25519",),
        ),
        http2_asked=True,
        headers={
            "Content-Security-Policy": "default-src 'self'",
            "Strict-Transport-Security": "max-age=31536000",
            "X-Content-Type-Options": "nosniff",
            "X-Frame-Options": "deny",
            "X-XSS-Protection": "0",
        },
        users={"prometheus": HASH},
        rate_limit=RateLimitSettings(interval_s=60.5, burst=20),
    )


PAIR = "cert_file: a\n  key_file: b\n  "


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("- a list", "must be a mapping of keys to values, not a list"),
        ("a: b: c", "is not YAML: mapping values are not allowed here"),
        ("basic_auth_users: {}\nbasic_auth_users: {}", "the key basic_auth_users is given twice"),
        ('tls_server_config:\n  cert_file: "a\\0b"', "tls_server_config.cert_file: contains a NUL character"),
        ("tls: {}", "tls: is not a known key; known here: http_server_config, tls_server_config,"),
        ("tls_server_config: yes", "tls_server_config: must be a mapping of keys to values, not true/false"),
        ("tls_server_config:\n  cert_file: a", "tls_server_config.key_file: is missing; give key_file, or key as"),
        ("tls_server_config:\n  key_file: a", "tls_server_config.cert_file: is missing; give cert_file, or cert as"),
        (f"tls_server_config:\n  {PAIR}cert: x", "tls_server_config.cert: contradicts cert_file"),
        (f"tls_server_config:\n  {PAIR}certfile: x", "tls_server_config.certfile: is not a known key"),
        (
            f"tls_server_config:\n  {PAIR}client_auth_type: RequireAnyClientCert",
            "tls_server_config.client_auth_type: RequireAnyClientCert asks for certificates without verifying them, "
            "which Python's TLS cannot do; use VerifyClientCertIfGiven or RequireAndVerifyClientCert",
        ),
        (f"tls_server_config:\n  {PAIR}client_auth_type: RequestClientCert", "which Python's TLS cannot do"),
        (f"tls_server_config:\n  {PAIR}client_auth_type: Maybe", "'Maybe' is not one of NoClientCert,"),
        (f"tls_server_config:\n  {PAIR}client_ca_file: c", "tls_server_config.client_auth_type: is missing, though"),
        (f"tls_server_config:\n  {PAIR}client_allowed_sans: [a]", "client_allowed_sans: needs client_auth_type:"),
        (f"tls_server_config:\n  {PAIR}client_allowed_sans: a", "client_allowed_sans: must be a list of texts"),
        (f"tls_server_config:\n  {PAIR}min_version: TLS10", "min_version: TLS10 is refused by this machine's OpenSSL"),
        (f"tls_server_config:\n  {PAIR}min_version: 1.2", "min_version: must be text, not a number"),
        (f"tls_server_config:\n  {PAIR}max_version: SSL3", "max_version: 'SSL3' is not one of TLS12, TLS13"),
        (
            f"tls_server_config:\n  {PAIR}min_version: TLS13\n  max_version: TLS12",
            "tls_server_config.min_version: TLS13 is above max_version TLS12",
        ),
        (f"tls_server_config:\n  {PAIR}prefer_server_cipher_suites: 1", "must be true or false, not 1"),
        ("http_server_config:\n  http2: maybe", "http_server_config.http2: must be true or false, not 'maybe'"),
        ("http_server_config:\n  headers:\n    Server: x", "http_server_config.headers.Server: is not a known key"),
        (
            "http_server_config:\n  headers:\n    X-Frame-Options: allow",
            "'allow' is not allowed; use deny or sameorigin",
        ),
        ('http_server_config:\n  headers:\n    X-XSS-Protection: "0\\r\\nX: y"', "must be one line of ASCII text"),
        ("basic_auth_users:\n  ops: secret", "basic_auth_users.ops: the password is no bcrypt hash; make one with:"),
        (f"basic_auth_users:\n  ops: {HASH[:-1]}", "basic_auth_users.ops: the password is no bcrypt hash"),
        (f"basic_auth_users:\n  1: {HASH}", "basic_auth_users: the key 1 must be text; put it in quotes"),
        ("rate_limit:\n  interval: 5\n  burst: 1", "rate_limit.interval: must be a duration such as 1s"),
        ("rate_limit:\n  interval: 5s\n  burst: -1", "rate_limit.burst: must be a whole number of 0 or more, not -1"),
        ("rate_limit:\n  interval: 5s", "rate_limit.burst: is missing or 0"),
    ],
)
def test_a_bad_file_is_refused_with_file_key_and_cure(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(WebConfigError) as refused:
        _load(tmp_path, text)
    assert str(refused.value).startswith(f"{tmp_path / 'web.yml'}: ")
    assert complaint in str(refused.value)


def test_a_password_in_clear_is_not_repeated(tmp_path: Path) -> None:
    with pytest.raises(WebConfigError) as refused:
        _load(tmp_path, "basic_auth_users:\n  ops: hunter2")
    assert "hunter2" not in str(refused.value)
    assert HASH not in repr(_load(tmp_path, f"basic_auth_users:\n  ops: {HASH}"))


def test_an_unreadable_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(WebConfigError, match=r"web\.yml: cannot be read \(No such file or directory\)"):
        load_web_config(tmp_path / "web.yml")


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    (tmp_path / "web.yml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(WebConfigError, match="is not UTF-8 text"):
        load_web_config(tmp_path / "web.yml")
