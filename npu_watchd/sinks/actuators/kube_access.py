"""Where the API server is, whom we trust to be it, and what we show it; read anew each time, as it rotates."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from npu_watchd.model.reading import Failure, FailureKind

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where the kubelet mounts a pod's token and the cluster's authority."""
FILE_MAX_BYTES = 1 << 20


class Unready(Exception):
    """Nothing was sent: what is missing for it."""

    def __init__(self, kind: FailureKind, problem: str, cure: str) -> None:
        super().__init__(f"{problem}; {cure}")
        self.failure = Failure(kind, str(self))


@dataclass(frozen=True, slots=True)
class Access:
    """What `[kubernetes]` and the environment say of the way to the API server."""

    kubeconfig: Path | None = None
    """None: the pod's service account, or the next three."""
    context: str | None = None
    """Of the kubeconfig; None: its current one."""
    api_url: str | None = None
    """None: as the kubeconfig or the environment says."""
    ca_file: Path | None = None
    """None: the kubeconfig's, or the service account's."""
    token_file: Path | None = None
    """None: the kubeconfig's, or the service account's."""
    service_host: str | None = None
    """KUBERNETES_SERVICE_HOST; None outside a pod."""
    service_port: str | None = None
    """KUBERNETES_SERVICE_PORT."""
    service_account: Path = SERVICE_ACCOUNT


@dataclass(frozen=True, slots=True)
class Pem:
    """Certificates or a key, and where they came from."""

    origin: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Credentials:
    """All that one exchange needs."""

    server: str
    """https://host[:port][/prefix], or http on loopback."""
    origin: str
    """Where the way is written, for messages."""
    ca: Pem | None = None
    """None: the system's authorities."""
    token: str | None = None
    certificate: Pem | None = None
    key: Pem | None = None
    verify: bool = True
    server_name: str | None = None
    """The name that the certificate must bear; None: the host of the address."""


class Settings(Protocol):
    """`[kubernetes]` of the config, which this layer may not import."""

    @property
    def node_name(self) -> str | None: ...

    @property
    def kubeconfig(self) -> Path | None: ...

    @property
    def context(self) -> str | None: ...

    @property
    def api_url(self) -> str | None: ...

    @property
    def ca_file(self) -> Path | None: ...

    @property
    def token_file(self) -> Path | None: ...

    @property
    def taint_effect(self) -> str: ...

    @property
    def timeout_s(self) -> float: ...


def access_from(environment: Mapping[str, str], settings: Settings) -> Access:
    """What the config says, and for the rest what the kubelet put into the environment."""
    return Access(
        kubeconfig=settings.kubeconfig,
        context=settings.context,
        api_url=settings.api_url,
        ca_file=settings.ca_file,
        token_file=settings.token_file,
        service_host=environment.get("KUBERNETES_SERVICE_HOST"),
        service_port=environment.get("KUBERNETES_SERVICE_PORT"),
    )


def in_pod(access: Access) -> Credentials:
    """By the mounted service account, or by the address and files that the config names. Raises Unready."""
    token_file = access.token_file or access.service_account / "token"
    ca_file = access.ca_file or access.service_account / "ca.crt"
    return Credentials(
        server=checked_server(access.api_url or _service(access), "kubernetes.api_url"),
        origin=str(token_file),
        ca=Pem(str(ca_file), read(ca_file, "[kubernetes] ca_file names another")),
        token=token_in(read(token_file, "[kubernetes] token_file or kubeconfig names another"), str(token_file)),
    )


def checked_server(url: str, origin: str) -> str:
    """The address without a slash at its end. Raises Unready."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        host = None
    else:
        if host and parts.scheme == "https" and "@" not in parts.netloc:
            return url.rstrip("/")
        if host and parts.scheme == "http" and _loopback(host):
            return url.rstrip("/")
        if host and parts.scheme == "http":
            cure = "anybody on the way could read the token: write https (http is for a proxy on loopback)"
            raise Unready(FailureKind.UNSUPPORTED, f"{origin} is plain http", cure)
    raise Unready(FailureKind.UNPARSEABLE, f"{origin} is no address of a server", "write https://host:port")


def read(file: Path, cure: str) -> bytes:
    """The whole file. Raises Unready."""
    try:
        with open(file, "rb", opener=_at_once) as opened:
            data = opened.read(FILE_MAX_BYTES + 1)
    except OSError as error:
        kind = FailureKind.MISSING if isinstance(error, FileNotFoundError) else FailureKind.DENIED
        raise Unready(kind, f"{file} cannot be read ({error.strerror})", cure) from error
    if not data or len(data) > FILE_MAX_BYTES:
        raise Unready(FailureKind.UNPARSEABLE, f"{file} is {'larger than 1 MiB' if data else 'empty'}", cure)
    return data


def _at_once(path: str, flags: int) -> int:
    # A pipe in the place of a file would keep us waiting for its writer.
    return os.open(path, flags | os.O_NONBLOCK)


def token_in(data: bytes, origin: str) -> str:
    """Raises Unready for what cannot stand in a header."""
    token = data.decode("ascii", "replace").strip()
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise Unready(FailureKind.UNPARSEABLE, f"{origin} holds no token", "it must be one line of plain characters")
    return token


def _service(access: Access) -> str:
    host, port = access.service_host, access.service_port
    if not host or not port:
        cure = "set [kubernetes] kubeconfig (or api_url, ca_file and token_file), or run npu-watchd in a pod"
        raise Unready(FailureKind.MISSING, "the environment names no API server (KUBERNETES_SERVICE_HOST)", cure)
    return f"https://{f'[{host}]' if ':' in host else host}:{port}"


def _loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
