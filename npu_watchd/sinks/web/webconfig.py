"""The web configuration file of Prometheus' exporter-toolkit (TLS, basic auth, headers), read strictly.

The format is that of `--web.config.file` (exporter-toolkit, docs/web-configuration.md). An unknown key, a wrong type
and anything that Python's TLS cannot honour is an error that names the file, the key and the cure.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

CLIENT_AUTH_TYPES = ("NoClientCert", "VerifyClientCertIfGiven", "RequireAndVerifyClientCert")
"""The policies that Python's TLS can honour."""

_UNVERIFIED_TYPES = ("RequestClientCert", "RequireAnyClientCert", "RequireClientCert")
_TLS_VERSIONS = ("TLS12", "TLS13")
_OLD_TLS_VERSIONS = ("TLS10", "TLS11")
_BCRYPT = re.compile(r"\$2[abxy]\$(?:0[4-9]|[12]\d|3[01])\$[./A-Za-z0-9]{53}")
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}

HEADERS: Mapping[str, tuple[str, ...]] = {
    "Content-Security-Policy": (),
    "Strict-Transport-Security": (),
    "X-Content-Type-Options": ("nosniff",),
    "X-Frame-Options": ("deny", "sameorigin"),
    "X-XSS-Protection": (),
}
"""Headers that the format allows, and their values where it limits them."""


class WebConfigError(Exception):
    """The web configuration cannot be used; the message names file, key and cure."""

    def __init__(self, path: Path, key: str, problem: str) -> None:
        super().__init__(f"{path}: {key}: {problem}" if key else f"{path}: {problem}")


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
    try:
        document = yaml.load(path.read_text(encoding="utf-8"), _StrictLoader)  # noqa: S506  # a SafeLoader
    except OSError as error:
        raise WebConfigError(
            path, "", f"cannot be read ({error.strerror}); check [web] config_file and the permissions"
        ) from error
    except UnicodeDecodeError:
        raise WebConfigError(path, "", "is not UTF-8 text") from None
    except yaml.YAMLError as error:
        raise WebConfigError(path, "", f"is not YAML: {' '.join(str(error).split())}") from error
    top = _Section(path, "", document)
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


class _StrictLoader(yaml.SafeLoader):
    """YAML's safe loader, which also refuses a key given twice: which of the two holds would be a guess."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen:
                    raise yaml.constructor.ConstructorError(
                        None, None, f"the key {key.value} is given twice", key.start_mark
                    )
                seen.add(key.value)
        return super().construct_mapping(node, deep)


class _Section:
    """One mapping of the file; remembers which keys were asked for, so that the rest are unknown ones."""

    def __init__(self, path: Path, name: str, document: Any) -> None:
        self.path = path
        self.name = name
        self.values: dict[str, Any] = {}
        self._asked: list[str] = []
        if document is None:
            return
        if not isinstance(document, dict):
            raise WebConfigError(path, name, f"must be a mapping of keys to values, not {_kind(document)}")
        for key, value in document.items():
            if not isinstance(key, str):
                raise WebConfigError(path, name, f"the key {key!r} must be text; put it in quotes")
            self.values[key] = value

    def error(self, key: str, problem: str) -> WebConfigError:
        return WebConfigError(self.path, ".".join(part for part in (self.name, key) if part), problem)

    def section(self, key: str) -> _Section:
        return _Section(self.path, ".".join(part for part in (self.name, key) if part), self._take(key))

    def text(self, key: str) -> str | None:
        value = self._take(key)
        if value is not None and not isinstance(value, str):
            raise self.error(key, f"must be text, not {_kind(value)}; put it in quotes")
        if value and "\0" in value:
            raise self.error(key, "contains a NUL character")
        return value or None

    def file(self, key: str) -> Path | None:
        value = self.text(key)
        return None if value is None else self.path.parent / value

    def boolean(self, key: str, *, default: bool) -> bool:
        value = self._take(key)
        if value is not None and not isinstance(value, bool):
            raise self.error(key, f"must be true or false, not {value!r}")
        return default if value is None else value

    def texts(self, key: str) -> tuple[str, ...]:
        value = self._take(key)
        if value is None:
            return ()
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self.error(key, "must be a list of texts")
        return tuple(value)

    def integer(self, key: str) -> int:
        value = self._take(key)
        if isinstance(value, bool) or not isinstance(value, int | None) or (value or 0) < 0:
            raise self.error(key, f"must be a whole number of 0 or more, not {value!r}")
        return value or 0

    def duration(self, key: str) -> float:
        """Seconds of a duration in Go's form (`1s`, `100ms`, `1m30s`); 0 where the key is absent or 0."""
        value = self._take(key)
        if value in (None, 0, "0"):
            return 0.0
        parts = _DURATION.findall(value) if isinstance(value, str) else []
        if not parts or "".join(number + unit for number, unit in parts) != value:
            raise self.error(key, f"must be a duration such as 1s, 100ms or 1m30s, not {value!r}")
        return sum(float(number) * _SECONDS[unit] for number, unit in parts)

    def finish(self) -> None:
        for key in self.values:
            if key not in self._asked:
                raise self.error(key, f"is not a known key; known here: {', '.join(self._asked)}")

    def _take(self, key: str) -> Any:
        self._asked.append(key)
        return self.values.get(key)


def _kind(value: object) -> str:
    return {bool: "true/false", int: "a number", float: "a number", str: "text", list: "a list", dict: "a mapping"}.get(
        type(value), type(value).__name__
    )


def _tls(section: _Section) -> TlsSettings | None:
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


def _client_auth_type(section: _Section) -> str:
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


def _check_client_auth(section: _Section, settings: TlsSettings) -> None:
    if settings.client_auth_type == "NoClientCert" and (settings.client_ca or settings.client_ca_file):
        raise section.error(
            "client_auth_type", "is missing, though a client CA is given; use RequireAndVerifyClientCert"
        )
    if settings.client_allowed_sans and settings.client_auth_type != "RequireAndVerifyClientCert":
        raise section.error("client_allowed_sans", "needs client_auth_type: RequireAndVerifyClientCert")


def _tls_version(section: _Section, key: str, default: str) -> str:
    version = section.text(key) or default
    if version in _OLD_TLS_VERSIONS:
        raise section.error(key, f"{version} is refused by this machine's OpenSSL; use TLS12 or TLS13")
    if version not in _TLS_VERSIONS:
        raise section.error(key, f"{version!r} is not one of TLS12, TLS13")
    return version


def _headers(section: _Section) -> Mapping[str, str]:
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


def _users(section: _Section) -> Mapping[str, str]:
    users = {}
    for name in section.values:
        hashed = section.text(name)
        if hashed is None or not _BCRYPT.fullmatch(hashed):
            raise section.error(name, "the password is no bcrypt hash; make one with: htpasswd -nBC 10 USER")
        users[name] = hashed
    return users


def _rate_limit(section: _Section) -> RateLimitSettings | None:
    interval_s = section.duration("interval")
    burst = section.integer("burst")
    section.finish()
    if not interval_s:
        return None
    if not burst:
        raise section.error("burst", "is missing or 0, so that no request could ever pass; give at least 1")
    return RateLimitSettings(interval_s, burst)
