"""/proc/PID/net/tcp and tcp6: the sockets of a network namespace that listen."""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address

from npu_watchd.model.hccl import Listener
from npu_watchd.parsers.lines import ParseError

_HEAD = re.compile(r" *sl +local_address +")
_LISTENS = re.compile(
    # State 0A is TCP_LISTEN; then queues, timer, retransmits, uid, timeout and the inode (Documentation/networking/
    # proc_net_tcp.rst). A line without its end may have been cut.
    r"^ *[0-9]+: (?P<address>[0-9A-F]{8}|[0-9A-F]{32}):(?P<port>[0-9A-F]{4}) [0-9A-F]+:[0-9A-F]{4} 0A "
    r"[0-9A-F]{8}:[0-9A-F]{8} [0-9A-F]{2}:[0-9A-F]{8} [0-9A-F]{8} +[0-9]+ +[0-9]+ (?P<inode>[0-9]+) .*\n",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class ListeningSocket:
    listener: Listener
    inode: int
    """N of `socket:[N]` in the fd folder of whoever holds it."""


def listening(text: str) -> tuple[ListeningSocket, ...]:
    """In the order of the file. Raises ParseError where it is no such file."""
    if not _HEAD.match(text):
        raise ParseError(1, "no /proc/net/tcp")
    return tuple(
        ListeningSocket(Listener(_address(match["address"]), int(match["port"], 16)), int(match["inode"]))
        for match in _LISTENS.finditer(text)
    )


def _address(text: str) -> str:
    """The kernel prints words of four bytes as numbers of its own byte order; every Ascend host is little-endian."""
    words = [bytes.fromhex(text[at : at + 8])[::-1] for at in range(0, len(text), 8)]
    if len(words) == 1:
        return str(IPv4Address(words[0]))
    address = IPv6Address(b"".join(words))
    return str(address.ipv4_mapped or address)
