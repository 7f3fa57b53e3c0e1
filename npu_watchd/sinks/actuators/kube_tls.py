"""TLS with an API server from certificates in memory: a kubeconfig holds them inline."""

from __future__ import annotations

import contextlib
import os
import ssl
from collections.abc import Iterator

from npu_watchd.model.reading import FailureKind
from npu_watchd.sinks.actuators.kube_access import Credentials, Pem, Unready


def context_of(credentials: Credentials) -> ssl.SSLContext:
    """TLS as the credentials want it. Raises Unready."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if not credentials.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif credentials.ca is None:
        context.load_default_certs()
    else:
        _trust(context, credentials.ca)
    if credentials.certificate is not None and credentials.key is not None:
        _show(context, credentials.certificate, credentials.key)
    return context


def _trust(context: ssl.SSLContext, ca: Pem) -> None:
    try:
        context.load_verify_locations(cadata=ca.data.decode("ascii"))
    except (ssl.SSLError, ValueError) as error:
        problem = f"{ca.origin} holds no usable PEM certificate"
        raise Unready(
            FailureKind.UNPARSEABLE, problem, "it must be the authority that signed the API server's"
        ) from error


class _EncryptedKeyError(Exception):
    """OpenSSL asked for a passphrase."""


def _no_password() -> str:
    # Without this OpenSSL would ask on the terminal, and the daemon would wait for ever.
    raise _EncryptedKeyError


def _show(context: ssl.SSLContext, certificate: Pem, key: Pem) -> None:
    try:
        with _in_memory(certificate) as certificate_file, _in_memory(key) as key_file:
            context.load_cert_chain(certificate_file, key_file, password=_no_password)
    except _EncryptedKeyError:
        problem, cure = f"the key in {key.origin} is encrypted", "give one without a passphrase"
        raise Unready(FailureKind.UNPARSEABLE, problem, cure) from None
    except (ssl.SSLError, OSError) as error:
        problem = f"{certificate.origin} and {key.origin} are no certificate and its key in PEM"
        raise Unready(FailureKind.UNPARSEABLE, problem, "write them anew") from error


@contextlib.contextmanager
def _in_memory(pem: Pem) -> Iterator[str]:
    """A name under which OpenSSL, which takes only files, can read it: a key from a kubeconfig never lies on a disk."""
    number = os.memfd_create("pem", os.MFD_CLOEXEC)
    with open(number, "wb", buffering=0) as memory:
        memory.write(pem.data)
        yield f"/proc/self/fd/{number}"
