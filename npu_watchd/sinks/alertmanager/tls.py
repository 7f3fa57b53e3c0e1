"""The client's side of TLS: whom to trust, and what to show."""

from __future__ import annotations

import ssl
from pathlib import Path

from npu_watchd.model.reading import FailureKind


class TlsError(Exception):
    """A file that cannot be used: which, why, and the key that names it."""

    def __init__(self, kind: FailureKind, problem: str, cure: str) -> None:
        super().__init__(f"{problem}; {cure}")
        self.kind = kind


def client_context(
    ca_file: Path | None, cert_file: Path | None, key_file: Path | None, *, verify: bool
) -> ssl.SSLContext:
    """A context from the files as they are now. ca_file: None for the system's authorities. Raises TlsError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif ca_file is None:
        context.load_default_certs()
    else:
        _trust(context, ca_file)
    if cert_file is not None:
        _show(context, cert_file, key_file)
    return context


def _trust(context: ssl.SSLContext, ca_file: Path) -> None:
    try:
        context.load_verify_locations(ca_file)
    except ssl.SSLError as error:
        problem = f"{ca_file} holds no usable PEM certificate ({_words(error)})"
        raise TlsError(FailureKind.UNPARSEABLE, problem, "mend [alertmanager] ca_file") from error
    except OSError as error:
        raise _unreadable(ca_file, error, "ca_file") from error


def _show(context: ssl.SSLContext, cert_file: Path, key_file: Path | None) -> None:
    for key, file in (("cert_file", cert_file), ("key_file", key_file)):
        if file is not None:
            _check_readable(file, key)
    try:
        context.load_cert_chain(cert_file, key_file, password=_no_password)
    except _EncryptedKeyError:
        cure = "give one without a passphrase"
        raise TlsError(FailureKind.UNPARSEABLE, f"the key in {key_file or cert_file} is encrypted", cure) from None
    except ssl.SSLError as error:
        problem = f"{cert_file} and its key are not usable ({_words(error)})"
        raise TlsError(FailureKind.UNPARSEABLE, problem, "mend [alertmanager] cert_file and key_file") from error


def _check_readable(file: Path, key: str) -> None:
    try:
        with file.open("rb"):
            pass
    except OSError as error:
        raise _unreadable(file, error, key) from error


def _unreadable(file: Path, error: OSError, key: str) -> TlsError:
    kind = FailureKind.MISSING if isinstance(error, FileNotFoundError) else FailureKind.DENIED
    return TlsError(kind, f"{file} cannot be read ({error.strerror})", f"mend [alertmanager] {key}")


class _EncryptedKeyError(Exception):
    """OpenSSL asked for a passphrase."""


def _no_password() -> str:
    # Without this OpenSSL would ask on the terminal, and the daemon would wait for ever.
    raise _EncryptedKeyError


def _words(error: ssl.SSLError) -> str:
    return str(error.reason).lower().replace("_", " ") if error.reason else str(error)
