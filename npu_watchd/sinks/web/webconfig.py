"""The web configuration file of Prometheus' exporter-toolkit (TLS, basic auth, headers), read strictly.

The format is that of `--web.config.file` (exporter-toolkit, docs/web-configuration.md). An unknown key, a wrong type
and anything that Python's TLS cannot honour is an error that names the file, the key and the cure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from npu_watchd.sinks.web.yaml_section import Section, read_document

CLIENT_AUTH_TYPES = ("NoClientCert", "VerifyClientCertIfGiven", "RequireAndVerifyClientCert")
"""The policies that Python's TLS can honour."""

_UNVERIFIED_TYPES = ("RequestClientCert", "RequireAnyClientCert", "RequireClientCert")
_TLS_VERSIONS = ("TLS12", "TLS13")
_OLD_TLS_VERSIONS = ("TLS10", "TLS11")
_BCRYPT = re.compile(r"\$2[abxy]\$(?:0[4-9]|[12]\d|3[01])\$[./A-Za-z0-9]{53}")

HEADERS: Mapping[str, tuple[str, ...]] = {
    "Content-Security-Policy": (),
    "Strict-Transport-Security": (),
    "X-Content-Type-Options": ("nosniff",),
    "X-Frame-Options": ("deny", "sameorigin"),
    "X-XSS-Protection": (),
}
"""Headers that the format allows, and their values where it limits them."""


@dataclass(frozen=True, slots=True)
class TlsSettings:
    """`tls_server_config`, as written; paths are resolved against the folder of the file."""

    cert: str | None = None
    key: str | None = field(default=None, repr=False)
    client_ca: str | None = None
    cert_file: Path | None = None
    key_file: Path | None = None
    client_ca_file: Path | None = None
    client_auth_type: str = "NoClientCert"
    client_allowed_sans: tuple[str, ...] = ()
    min_version: str = "TLS12"
    max_version: str = "TLS13"
    cipher_suites: tuple[str, ...] = ()
    prefer_server_cipher_suites: bool = True
    curve_preferences: tuple[str, ...] = ()

    @property
    def files(self) -> tuple[Path, ...]:
        """The files whose change means new certificates."""
        return tuple(path for path in (self.cert_file, self.key_file, self.client_ca_file) if path is not None)


@dataclass(frozen=True, slots=True)
class RateLimitSettings:
    interval_s: float
    burst: int


@dataclass(frozen=True, slots=True)
class WebConfig:
    """All of the file."""

    tls: TlsSettings | None = None
    """None: plain HTTP."""
    http2_asked: bool = False
    """The file says `http2: true`: noted, not honoured; clients fall back to HTTP/1.1 by themselves."""
    headers: Mapping[str, str] = field(default_factory=dict)
    users: Mapping[str, str] = field(default_factory=dict, repr=False)
    """User → bcrypt hash."""
    rate_limit: RateLimitSettings | None = None


def load_web_config(path: Path) -> WebConfig:
    """The file's settings. Raises WebConfigError; does not open the certificates (tls.py does)."""
    top = read_document(path)
    http = top.section("http_server_config")
    config = WebConfig(
        tls=_tls(top.section("tls_server_config")),
        http2_asked=http.boolean("http2", default=False),
        headers=_headers(http.section("headers")),
        users=_users(top.section("basic_auth_users")),
        rate_limit=_rate_limit(top.section("rate_limit")),
    )
    http.finish()
    top.finish()
    return config


def _tls(section: Section) -> TlsSettings | None:
    settings = TlsSettings(
        cert=section.text("cert"),
        key=section.text("key"),
        client_ca=section.text("client_ca"),
        cert_file=section.file("cert_file"),
        key_file=section.file("key_file"),
        client_ca_file=section.file("client_ca_file"),
        client_auth_type=_client_auth_type(section),
        client_allowed_sans=section.texts("client_allowed_sans"),
        min_version=_tls_version(section, "min_version", "TLS12"),
        max_version=_tls_version(section, "max_version", "TLS13"),
        cipher_suites=section.texts("cipher_suites"),
        prefer_server_cipher_suites=section.boolean("prefer_server_cipher_suites", default=True),
        curve_preferences=section.texts("curve_preferences"),
    )
    section.finish()
    if not section.values:
        return None
    for inline in ("cert", "key", "client_ca"):
        if getattr(settings, inline) and getattr(settings, f"{inline}_file"):
            raise section.error(inline, f"contradicts {inline}_file; give one of the two")
    for needed in ("cert", "key"):
        if not getattr(settings, needed) and not getattr(settings, f"{needed}_file"):
            raise section.error(f"{needed}_file", f"is missing; give {needed}_file, or {needed} as inline PEM text")
    _check_client_auth(section, settings)
    if settings.min_version > settings.max_version:
        raise section.error("min_version", f"{settings.min_version} is above max_version {settings.max_version}")
    return settings


def _client_auth_type(section: Section) -> str:
    policy = section.text("client_auth_type") or "NoClientCert"
    if policy in _UNVERIFIED_TYPES:
        raise section.error(
            "client_auth_type",
            f"{policy} asks for certificates without verifying them, which Python's TLS cannot do; "
            "use VerifyClientCertIfGiven or RequireAndVerifyClientCert",
        )
    if policy not in CLIENT_AUTH_TYPES:
        raise section.error("client_auth_type", f"{policy!r} is not one of {', '.join(CLIENT_AUTH_TYPES)}")
    return policy


def _check_client_auth(section: Section, settings: TlsSettings) -> None:
    if settings.client_auth_type == "NoClientCert" and (settings.client_ca or settings.client_ca_file):
        raise section.error(
            "client_auth_type", "is missing, though a client CA is given; use RequireAndVerifyClientCert"
        )
    if settings.client_allowed_sans and settings.client_auth_type != "RequireAndVerifyClientCert":
        raise section.error("client_allowed_sans", "needs client_auth_type: RequireAndVerifyClientCert")


def _tls_version(section: Section, key: str, default: str) -> str:
    version = section.text(key) or default
    if version in _OLD_TLS_VERSIONS:
        raise section.error(key, f"{version} is refused by this machine's OpenSSL; use TLS12 or TLS13")
    if version not in _TLS_VERSIONS:
        raise section.error(key, f"{version!r} is not one of TLS12, TLS13")
    return version


def _headers(section: Section) -> Mapping[str, str]:
    headers = {}
    for name, allowed in HEADERS.items():
        value = section.text(name)
        if value is None:
            continue
        if allowed and value not in allowed:
            raise section.error(name, f"{value!r} is not allowed; use {' or '.join(allowed)}")
        if not value.isascii() or not value.isprintable():
            raise section.error(name, "must be one line of ASCII text")
        headers[name] = value
    section.finish()
    return headers


def _users(section: Section) -> Mapping[str, str]:
    users = {}
    for name in section.values:
        hashed = section.text(name)
        if hashed is None or not _BCRYPT.fullmatch(hashed):
            raise section.error(name, "the password is no bcrypt hash; make one with: htpasswd -nBC 10 USER")
        users[name] = hashed
    return users


def _rate_limit(section: Section) -> RateLimitSettings | None:
    interval_s = section.duration("interval")
    burst = section.integer("burst")
    section.finish()
    if not interval_s:
        return None
    if not burst:
        raise section.error("burst", "is missing or 0, so that no request could ever pass; give at least 1")
    return RateLimitSettings(interval_s, burst)
