"""The namespaces of a simulated node's processes, and the TCP sockets on which they listen, as /proc shows them."""

from __future__ import annotations

import re
import socket
from collections.abc import Mapping
from zlib import crc32

HOST_NETWORK, HOST_MOUNT = "net:[4026531840]", "mnt:[4026531841]"
"""Of the node; a pod has its own of both."""
_HEAD = (
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode"
    "                                                     \n"
)
_HEAD_6 = (
    "  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when"
    " retrnsmt   uid  timeout inode\n"
)
_LISTENER = re.compile(r"(?P<address>[0-9]{1,3}(?:\.[0-9]{1,3}){3}):(?P<port>[1-9][0-9]{0,4})", re.ASCII)


def is_listener(text: str) -> bool:
    """Whether a process can listen there: `10.0.0.1:60000`."""
    match = _LISTENER.fullmatch(text)
    return match is not None and int(match["port"]) <= 65535 and all(int(n) < 256 for n in match["address"].split("."))


def files(listens: Mapping[int, tuple[str, ...]], pods: Mapping[int, str]) -> dict[str, str]:
    """listens: pid → where it listens. pods: pid → the pod that it is in, if any."""
    tables: dict[str, str] = {}
    for pid in sorted(listens):
        rows = [(mate, one) for mate in sorted(listens) if pods.get(mate) == pods.get(pid) for one in listens[mate]]
        lines = (_line(number, mate, one) for number, (mate, one) in enumerate(rows))
        tables |= {f"{pid}/net/tcp": _HEAD + "".join(lines), f"{pid}/net/tcp6": _HEAD_6}
    return tables


def links(listens: Mapping[int, tuple[str, ...]], pods: Mapping[int, str]) -> dict[str, str]:
    """As `files`; what /proc/PID/ns and /proc/PID/fd show."""
    found = {"1/ns/mnt": HOST_MOUNT}
    for pid, ones in listens.items():
        network, mount = _namespaces(pods.get(pid))
        found |= {f"{pid}/ns/net": network, f"{pid}/ns/mnt": mount, f"{pid}/fd/0": "/dev/null"}
        found |= {f"{pid}/fd/{3 + at}": f"socket:[{_inode(pid, one)}]" for at, one in enumerate(ones)}
    return found


def _namespaces(pod: str | None) -> tuple[str, str]:
    if pod is None:
        return HOST_NETWORK, HOST_MOUNT
    number = 4_026_532_000 + crc32(pod.encode()) % 100_000
    return f"net:[{number}]", f"mnt:[{number + 100_000}]"


def _line(number: int, pid: int, listener: str) -> str:
    address, _, port = listener.partition(":")
    local = f"{socket.inet_aton(address)[::-1].hex().upper()}:{int(port):04X}"
    zeros = "00000000:00000000 00:00000000 00000000     0        0"
    return f"{number:4}: {local} 00000000:0000 0A {zeros} {_inode(pid, listener)} 1 0000000000000000 100 0 0 10 0\n"


def _inode(pid: int, listener: str) -> int:
    return 1 + crc32(f"{pid} {listener}".encode())


def is_entry(text: str) -> bool:
    """Whether it can be an entry of an environment, `NAME=value`."""
    return re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*=[^\0]*", text) is not None
