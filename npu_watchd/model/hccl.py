"""How the processes of a job find each other: the HCCL settings that they were started with, and where they listen."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

HCCL_VARIABLES = (
    *("HCCL_CONNECT_TIMEOUT", "HCCL_EXEC_TIMEOUT", "HCCL_RDMA_TIMEOUT", "HCCL_RDMA_RETRY_CNT"),
    *("HCCL_IF_BASE_PORT", "HCCL_HOST_SOCKET_PORT_RANGE", "HCCL_NPU_SOCKET_PORT_RANGE"),
    *("HCCL_IF_IP", "HCCL_SOCKET_IFNAME", "HCCL_INTRA_PCIE_ENABLE", "HCCL_INTRA_ROCE_ENABLE"),
)
"""Those that a person needs who asks why two processes do not find each other (CANN's list of variables)."""
DEFAULT_BASE_PORT = 60000
PORTS_FROM_BASE = 32
"""HCCL_IF_BASE_PORT's page of CANN 8.2 and later; up to 8.0 it was 16."""
ANY_ADDRESS = "0.0.0.0"  # noqa: S104  # not bound to: what /proc/net/tcp shows

_PORT = re.compile(r"[0-9]{1,5}", re.ASCII)
_DEVICE = re.compile(r"[0-9]{1,3}", re.ASCII)


class Choice(StrEnum):
    """How HCCL chooses the port on which a root process listens on the host."""

    FIXED = "fixed"
    """HCCL_IF_BASE_PORT and the chip's physical id: that port or none."""
    LISTED = "listed"
    """The first free one of HCCL_HOST_SOCKET_PORT_RANGE."""
    DEFAULT = "default"
    """60000 and the chip's physical id, or the first free one from 60000 on: that differs between versions of CANN."""
    AUTO = "auto"
    """Any that the kernel gives."""


@dataclass(frozen=True, slots=True)
class HostPorts:
    """The host's ports that HCCL may listen on; source: the pages of its two variables, and HCCL's public source."""

    choice: Choice
    ranges: tuple[tuple[int, int], ...]
    """First and last; () for AUTO."""

    @classmethod
    def of(cls, variables: Mapping[str, str]) -> HostPorts | None:
        """None: a value that HCCL refuses (EI0001), so that nobody knows what the process does."""
        listed, base = variables.get("HCCL_HOST_SOCKET_PORT_RANGE"), variables.get("HCCL_IF_BASE_PORT")
        if listed is not None:
            return cls._listed(listed.strip())
        if base is None:
            return cls(Choice.DEFAULT, (_from(DEFAULT_BASE_PORT),))
        number = _number(base.strip())
        return cls(Choice.FIXED, (_from(number),)) if number is not None and 1024 <= number <= 65520 else None

    @classmethod
    def _listed(cls, text: str) -> HostPorts | None:
        if text == "auto":
            return cls(Choice.AUTO, ())
        ranges: list[tuple[int, int]] = []
        for part in text.split(","):
            first, dash, last = (piece.strip() for piece in part.partition("-"))
            low, high = _number(first), _number(last if dash else first)
            if low is None or high is None or not 1 <= low <= high <= 65535:
                return None
            ranges.append((low, high))
        return cls(Choice.LISTED, tuple(ranges))

    def __contains__(self, port: int) -> bool:
        return any(first <= port <= last for first, last in self.ranges)

    def __len__(self) -> int:
        return sum(last - first + 1 for first, last in self.ranges)

    def __str__(self) -> str:
        """As the variable has it: `60000-60031`, `auto`."""
        return ",".join(f"{first}-{last}" if last > first else str(first) for first, last in self.ranges) or "auto"

    def fixed(self, phy_id: int) -> int:
        """The one port of a process on that chip; only FIXED has one."""
        return self.ranges[0][0] + phy_id


def _from(base: int) -> tuple[int, int]:
    return base, min(base + PORTS_FROM_BASE - 1, 65535)


def _number(text: str) -> int | None:
    return int(text) if _PORT.fullmatch(text) else None


@dataclass(frozen=True, slots=True, order=True)
class Listener:
    """A TCP socket that listens."""

    address: str
    """As text; 0.0.0.0 or :: for all of the namespace's."""
    port: int

    def __str__(self) -> str:
        return f"[{self.address}]:{self.port}" if ":" in self.address else f"{self.address}:{self.port}"


@dataclass(frozen=True, slots=True)
class ProcessPlace:
    """Where on the node a process lives, and what of it others can run into."""

    network: str | None
    """Its network namespace, `net:[4026531840]` (/proc/PID/ns/net); None: not readable."""
    on_host: bool | None
    """Whether it sees the host's files, and so the host's numbers of devices: the mount namespace of pid 1
    (/proc/PID/ns/mnt); None: not readable."""
    listening: tuple[Listener, ...] | None
    """Its sockets that listen on a port which HCCL of some process in that namespace may want (/proc/PID/net/tcp and
    /proc/PID/fd); None: not readable."""


def device_list(text: str) -> tuple[int, ...] | None:
    """ASCEND_RT_VISIBLE_DEVICES: the logic ids `0,1,3`.

    None: no ascending list of ids; of such a one the runtime takes a part, or nothing.
    """
    parts = [part.strip() for part in text.split(",")]
    if not all(_DEVICE.fullmatch(part) for part in parts):
        return None
    ids = tuple(int(part) for part in parts)
    return ids if list(ids) == sorted(set(ids)) else None


def values(some: Iterable[Mapping[str, str] | None], names: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Of each of these variables the distinct values that the processes have; without those that nobody has."""
    known = [variables for variables in some if variables is not None]
    found = {name: tuple(sorted({one[name] for one in known if name in one})) for name in names}
    return {name: those for name, those in found.items() if those}
