"""Listening sockets, and an error that says who holds the port."""

from __future__ import annotations

import errno
import os
import re
import socket

import psutil

BACKLOG = 1024
"""Connections that the kernel keeps for us; a full backlog costs a scraper a second, TCP's first retry."""
_ADDRESS = re.compile(r"(?:\[(?P<v6>[0-9A-Fa-f:.%\w]+)\]|(?P<host>[^:\[\]]+)):(?P<port>\d{1,5})")


class ListenError(Exception):
    """An address cannot be listened on; the message names it, the reason and the cure."""


def split_address(address: str) -> tuple[str, int]:
    """Host and port of `0.0.0.0:18910`, `[::]:18910` or `name:18910`; port 0 lets the kernel choose.

    Raises ListenError where the text is none of these.
    """
    match = _ADDRESS.fullmatch(address)
    if match is None or int(match["port"]) > 65535:
        raise ListenError(
            f'[web] listen: "{address}" is not an address; write "0.0.0.0:18910" (IPv4), "[::]:18910" (IPv4 and IPv6) '
            'or "127.0.0.1:18910" (this machine only)'
        )
    return match["v6"] or match["host"], int(match["port"])


def open_listeners(addresses: tuple[str, ...]) -> tuple[socket.socket, ...]:
    """Non-blocking listening sockets, in the order of the addresses; none stays open when one fails.

    Raises ListenError.
    """
    if not addresses:
        raise ListenError("[web] listen: the list is empty; name at least one address")
    opened: list[socket.socket] = []
    try:
        for address in addresses:
            listener = _open(address, alone=not _shares_port_with_ipv4(address, addresses))
            opened.append(listener)
    except ListenError:
        for listener in opened:
            listener.close()
        raise
    return tuple(opened)


def bound_address(listener: socket.socket) -> str:
    """The address in the form of `[web] listen`, with the port that the kernel gave."""
    host, port = listener.getsockname()[:2]
    return f"[{host}]:{port}" if listener.family == socket.AF_INET6 else f"{host}:{port}"


def _open(address: str, *, alone: bool) -> socket.socket:
    host, port = split_address(address)
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except socket.gaierror as error:
        raise ListenError(f"[web] listen: {address}: the host name does not resolve ({error.strerror})") from error
    family, kind, protocol, _, target = found[0]
    listener: socket.socket | None = None
    try:
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0 if alone else 1)
        listener.bind(target)
        listener.listen(BACKLOG)
    except OSError as error:
        if listener is not None:
            listener.close()
        raise ListenError(f"[web] listen: {address}: {_reason(error, port)}") from error
    listener.setblocking(False)
    return listener


def _shares_port_with_ipv4(address: str, addresses: tuple[str, ...]) -> bool:
    """True where an IPv4 address of the list has the same port, so that an IPv6 socket must leave IPv4 alone."""
    port = split_address(address)[1]
    return port != 0 and any(not other.startswith("[") and split_address(other)[1] == port for other in addresses)


def _reason(error: OSError, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"port {port} is taken by {_holder(port)}; stop that, or set another port in [web] listen"
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"not permitted ({os.strerror(error.errno)}); set a port above 1023 in [web] listen"
    if error.errno == errno.EADDRNOTAVAIL:
        return "this machine has no such address; set one of its own, or 0.0.0.0, in [web] listen"
    if error.errno == errno.EAFNOSUPPORT:
        return "this machine has no IPv6; set an IPv4 address such as 0.0.0.0:18910 in [web] listen"
    return f"{error.strerror or error}; set another address in [web] listen"


def _holder(port: int) -> str:
    """The process that listens on the port, or what keeps us from knowing."""
    try:
        pids = {
            connection.pid
            for connection in psutil.net_connections(kind="tcp")
            if connection.status == psutil.CONN_LISTEN and connection.laddr and connection.laddr.port == port
        }
        names = [f"{psutil.Process(pid).name()} (pid {pid})" for pid in sorted(pid for pid in pids if pid)]
    except (psutil.Error, OSError):
        names = []
    return " and ".join(names) or "a process that only root may see (try: ss -ltnp)"
