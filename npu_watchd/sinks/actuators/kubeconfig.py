"""A kubeconfig: the server, the authority and the credentials of one context; what would run a program is refused."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Protocol, TypeVar

import msgspec
import yaml

from npu_watchd.model.reading import FailureKind
from npu_watchd.sinks.actuators.kube_access import (
    Access,
    Credentials,
    Pem,
    Unready,
    checked_server,
    read,
    token_in,
)

_MEND = "mend it, or name another in [kubernetes] kubeconfig"


class _Cluster(msgspec.Struct, frozen=True, rename="kebab"):
    server: str
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    insecure_skip_tls_verify: bool = False
    tls_server_name: str = ""
    proxy_url: str = ""


class _User(
    msgspec.Struct,
    frozen=True,
    rename={
        "token_file": "tokenFile",
        "client_certificate": "client-certificate",
        "client_certificate_data": "client-certificate-data",
        "client_key": "client-key",
        "client_key_data": "client-key-data",
        "auth_provider": "auth-provider",
        "as_user": "as",
    },
):
    token: str = ""
    token_file: str = ""
    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    exec: Any = None
    auth_provider: Any = None
    as_user: str = ""
    username: str = ""


class _Context(msgspec.Struct, frozen=True):
    cluster: str
    user: str = ""


class _NamedCluster(msgspec.Struct, frozen=True):
    name: str
    cluster: _Cluster


class _NamedUser(msgspec.Struct, frozen=True):
    name: str
    user: _User | None = None


class _NamedContext(msgspec.Struct, frozen=True):
    name: str
    context: _Context


class _Document(msgspec.Struct, frozen=True):
    clusters: tuple[_NamedCluster, ...] | None = None
    users: tuple[_NamedUser, ...] | None = None
    contexts: tuple[_NamedContext, ...] | None = None
    current_context: str = msgspec.field(default="", name="current-context")


class _Named(Protocol):
    @property
    def name(self) -> str: ...


N = TypeVar("N", bound=_Named)


def from_kubeconfig(access: Access, file: Path) -> Credentials:
    """Of the context that `access` names, or the current one; its own keys go before the file's. Raises Unready."""
    document = _document(file, read(file, _MEND))
    context = _context(document, file, access.context)
    cluster = _named(document.clusters, context.cluster, file, "cluster").cluster
    user = (_named(document.users, context.user, file, "user").user if context.user else None) or _User()
    for present, what in (
        (cluster.proxy_url, "a proxy-url"),
        (user.exec, "an exec plugin: it would be run as root at each request"),
        (user.auth_provider, "an auth-provider"),
        (user.username, "a user name and password"),
        (user.as_user, "impersonation (as)"),
    ):
        if present:
            cure = "name a kubeconfig with a token, a tokenFile or a client certificate in [kubernetes] kubeconfig"
            raise Unready(FailureKind.UNSUPPORTED, f"{file} asks for {what}, which is not supported", cure)
    certificate = _pem(file, "client-certificate", user.client_certificate, user.client_certificate_data)
    key = _pem(file, "client-key", user.client_key, user.client_key_data)
    if (certificate is None) != (key is None):
        lacking = "client-key" if key is None else "client-certificate"
        raise Unready(FailureKind.UNPARSEABLE, f"{file}: the user has no {lacking}", "write both, or neither")
    return Credentials(
        server=checked_server(access.api_url or cluster.server, f"{file}: server"),
        origin=str(file),
        ca=_authority(access, file, cluster),
        token=_token(file, user),
        certificate=certificate,
        key=key,
        verify=not cluster.insecure_skip_tls_verify,
        server_name=cluster.tls_server_name or None,
    )


def _document(file: Path, data: bytes) -> _Document:
    try:
        return msgspec.convert(yaml.safe_load(data), _Document)
    except yaml.YAMLError as error:
        # Only the place: the text that YAML shows may be a secret.
        mark = getattr(error, "problem_mark", None)
        place = f" (line {mark.line + 1})" if mark is not None else ""
        raise Unready(FailureKind.UNPARSEABLE, f"{file} is not YAML{place}", _MEND) from None
    except (RecursionError, UnicodeDecodeError, ValueError) as error:
        words = str(error) if isinstance(error, msgspec.ValidationError) else type(error).__name__
        raise Unready(FailureKind.UNPARSEABLE, f"{file} is no kubeconfig ({words})", _MEND) from None


def _context(document: _Document, file: Path, chosen: str | None) -> _Context:
    name = chosen or document.current_context
    if not name:
        cure = "name one in [kubernetes] context"
        raise Unready(FailureKind.UNPARSEABLE, f"{file} has no current-context", cure)
    return _named(document.contexts, name, file, "context").context


def _named(entries: Iterable[N] | None, name: str, file: Path, what: str) -> N:
    entries = tuple(entries or ())
    for entry in entries:
        if entry.name == name:
            return entry
    known = ", ".join(entry.name for entry in entries) or "none"
    raise Unready(FailureKind.MISSING, f"{file} has no {what} {name!r}", f"there are: {known}")


def _authority(access: Access, file: Path, cluster: _Cluster) -> Pem | None:
    if access.ca_file is not None:
        return Pem(str(access.ca_file), read(access.ca_file, "mend [kubernetes] ca_file"))
    return _pem(file, "certificate-authority", cluster.certificate_authority, cluster.certificate_authority_data)


def _token(file: Path, user: _User) -> str | None:
    # As kubectl has it: the file goes before the token beside it, because it is the one that is renewed.
    if user.token_file:
        named = file.parent / user.token_file
        return token_in(read(named, f"mend tokenFile in {file}"), str(named))
    return token_in(user.token.encode(), f"{file}: token") if user.token else None


def _pem(file: Path, key: str, name: str, data: str) -> Pem | None:
    """The data go before the file, as kubectl has it; names are relative to the kubeconfig."""
    if data:
        try:
            return Pem(f"{file}: {key}-data", base64.b64decode("".join(data.split()), validate=True))
        except (binascii.Error, ValueError):
            problem = f"{file}: {key}-data is no base64"
            raise Unready(FailureKind.UNPARSEABLE, problem, "write it anew") from None
    if not name:
        return None
    named = file.parent / name
    return Pem(str(named), read(named, f"mend {key} in {file}"))
