"""TLS settings as an ssl.SSLContext, and the check of a client's names."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from npu_watchd.sinks.web.webconfig import TlsSettings
from npu_watchd.sinks.web.yaml_section import WebConfigError

CIPHER_SUITES = {
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA": "ECDHE-ECDSA-AES128-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA": "ECDHE-ECDSA-AES256-SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA": "ECDHE-RSA-AES128-SHA",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA": "ECDHE-RSA-AES256-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256": "ECDHE-ECDSA-AES128-GCM-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384": "ECDHE-ECDSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256": "ECDHE-RSA-AES128-GCM-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384": "ECDHE-RSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-RSA-CHACHA20-POLY1305",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-ECDSA-CHACHA20-POLY1305",
}
"""Go's names (crypto/tls.CipherSuites, TLS 1.2) and OpenSSL's."""

TLS13_SUITES = ("TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256")
"""Always on with TLS 1.3, in Go as in Python; naming them changes nothing."""

CURVES = {"CurveP256": "prime256v1", "CurveP384": "secp384r1", "CurveP521": "secp521r1", "X25519": "X25519"}

_VERSIONS = {"TLS12": ssl.TLSVersion.TLSv1_2, "TLS13": ssl.TLSVersion.TLSv1_3}
_VERIFY = {
    "NoClientCert": ssl.CERT_NONE,
    "VerifyClientCertIfGiven": ssl.CERT_OPTIONAL,
    "RequireAndVerifyClientCert": ssl.CERT_REQUIRED,
}


@dataclass(frozen=True, slots=True)
class Tls:
    """What a new connection needs: the context, and the names of clients that may enter."""

    context: ssl.SSLContext
    allowed_sans: frozenset[str]
    """Empty: any client that the context accepts."""

    def admits(self, certificate: dict[str, Any] | None) -> bool:
        """True where the client's certificate (as SSLSocket.getpeercert has it) bears one of the allowed names."""
        return not self.allowed_sans or not self.allowed_sans.isdisjoint(_names(certificate or {}))


def make_tls(settings: TlsSettings, path: Path) -> Tls:
    """The settings as a context; `path` is the web configuration file, for messages. Raises WebConfigError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = _VERSIONS[settings.min_version]
    context.maximum_version = _VERSIONS[settings.max_version]
    context.options |= ssl.OP_NO_RENEGOTIATION
    if not settings.prefer_server_cipher_suites:
        context.options &= ~ssl.OP_CIPHER_SERVER_PREFERENCE
    _set_ciphers(context, settings, path)
    _set_curve(context, settings, path)
    _load_key_pair(context, settings, path)
    context.verify_mode = _VERIFY[settings.client_auth_type]
    if context.verify_mode is not ssl.CERT_NONE:
        _load_client_ca(context, settings, path)
    return Tls(context, frozenset(_normal(name) for name in settings.client_allowed_sans))


def _set_ciphers(context: ssl.SSLContext, settings: TlsSettings, path: Path) -> None:
    key = "tls_server_config.cipher_suites"
    for name in settings.cipher_suites:
        if name not in CIPHER_SUITES and name not in TLS13_SUITES:
            raise WebConfigError(path, key, f"{name!r} is not one of {', '.join((*CIPHER_SUITES, *TLS13_SUITES))}")
    chosen = [CIPHER_SUITES[name] for name in settings.cipher_suites if name in CIPHER_SUITES]
    if settings.cipher_suites and not chosen and settings.min_version != "TLS13":
        raise WebConfigError(path, key, "names suites of TLS 1.3 only; set min_version: TLS13 as well")
    if not chosen:
        return
    try:
        context.set_ciphers(":".join(chosen))
    except ssl.SSLError as error:
        raise WebConfigError(path, key, "none of them is known to this machine's OpenSSL") from error


def _set_curve(context: ssl.SSLContext, settings: TlsSettings, path: Path) -> None:
    key = "tls_server_config.curve_preferences"
    for name in settings.curve_preferences:
        if name not in CURVES:
            raise WebConfigError(path, key, f"{name!r} is not one of {', '.join(CURVES)}")
    if len(settings.curve_preferences) > 1:
        raise WebConfigError(path, key, "Python's TLS takes one curve or its own list; name one, or drop the key")
    for name in settings.curve_preferences:
        context.set_ecdh_curve(CURVES[name])


def _load_key_pair(context: ssl.SSLContext, settings: TlsSettings, path: Path) -> None:
    for key, file in (("cert_file", settings.cert_file), ("key_file", settings.key_file)):
        if file is not None:
            _check_readable(path, f"tls_server_config.{key}", file)
    where = "tls_server_config.key_file" if settings.key_file else "tls_server_config.key"
    with _as_file(settings.cert_file, settings.cert) as cert, _as_file(settings.key_file, settings.key) as key_path:
        try:
            context.load_cert_chain(cert, key_path, password=_no_password)
        except _EncryptedKeyError:
            raise WebConfigError(path, where, "the key is encrypted; give one without a passphrase") from None
        except ssl.SSLError as error:
            if error.reason == "KEY_VALUES_MISMATCH":
                raise WebConfigError(path, where, "the key does not belong to the certificate") from error
            raise WebConfigError(path, where, f"certificate or key is not usable PEM ({_words(error)})") from error
        except OSError as error:
            raise WebConfigError(path, where, f"certificate or key cannot be read ({error.strerror})") from error


def _load_client_ca(context: ssl.SSLContext, settings: TlsSettings, path: Path) -> None:
    if settings.client_ca_file is None and settings.client_ca is None:
        # Go verifies against the system's authorities when no client CA is given.
        context.load_default_certs(ssl.Purpose.CLIENT_AUTH)
        return
    key = "tls_server_config.client_ca_file" if settings.client_ca_file else "tls_server_config.client_ca"
    if settings.client_ca_file is not None:
        _check_readable(path, key, settings.client_ca_file)
    try:
        if settings.client_ca_file is not None:
            context.load_verify_locations(cafile=settings.client_ca_file)
        else:
            context.load_verify_locations(cadata=settings.client_ca)
    except (ssl.SSLError, ValueError) as error:
        raise WebConfigError(path, key, f"holds no usable PEM certificate ({_words(error)})") from error


def _check_readable(path: Path, key: str, file: Path) -> None:
    try:
        with file.open("rb"):
            pass
    except OSError as error:
        raise WebConfigError(path, key, f"{file} cannot be read ({error.strerror})") from error


class _EncryptedKeyError(Exception):
    """OpenSSL asked for a passphrase."""


def _no_password() -> str:
    # Without this OpenSSL would ask on the terminal, and the daemon would wait for ever.
    raise _EncryptedKeyError


@contextlib.contextmanager
def _as_file(file: Path | None, text: str | None) -> Iterator[str]:
    """A path to the file, or to the inline text in memory: ssl takes only paths, and a key must not touch the disk."""
    if file is not None:
        yield str(file)
        return
    descriptor = os.memfd_create("npu-watchd-tls")
    with open(descriptor, "w", encoding="utf-8") as memory:
        memory.write(text or "")
        memory.flush()
        yield f"/proc/self/fd/{descriptor}"


def _words(error: Exception) -> str:
    reason = getattr(error, "reason", None)
    return str(reason).lower().replace("_", " ") if reason else str(error)


def _names(certificate: dict[str, Any]) -> set[str]:
    return {_normal(value) for _, value in certificate.get("subjectAltName", ())}


def _normal(name: str) -> str:
    try:
        return str(ipaddress.ip_address(name.strip()))
    except ValueError:
        return name
