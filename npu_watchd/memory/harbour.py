"""The host's RDMA ports: which there are, which there should be, and what is fresh about each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from npu_watchd.model.fabric import PortCounters, PortKey, RdmaPort, RdmaPorts
from npu_watchd.model.snapshot import Port


@dataclass(slots=True)
class Harbour:
    """Ports by what was seen of them. One that never was up is not missed when it goes: VFs come and go."""

    seen: dict[PortKey, RdmaPort] = field(default_factory=dict)
    """The newest answer's ports."""
    complete: bool = True
    """False: a port may exist that the newest answer does not show."""
    known: set[PortKey] = field(default_factory=set)
    """Every port that was up since we started: expected from then on."""

    def see(self, found: RdmaPorts) -> None:
        self.seen = {port.key: port for port in found.ports}
        self.complete = not found.errors
        self.known |= {port.key for port in found.ports if port.up}

    def ports(
        self,
        configured: frozenset[PortKey],
        *,
        fresh: bool,
        counters: Mapping[PortKey, PortCounters],
    ) -> dict[PortKey, Port]:
        """Every port that is there or should be.

        fresh: whether the newest answer is young enough to say what is there; else nobody can tell.
        counters: the fresh ones.
        """
        expected = configured | self.known
        keys = sorted(expected | set(self.seen) | (set() if fresh else set(counters)))
        return {
            key: Port(
                key=key,
                present=self._present(key) if fresh else None,
                expected=key in expected,
                facts=self.seen.get(key) if fresh else None,
                counters=counters.get(key) if not fresh or key in self.seen else None,
            )
            for key in keys
        }

    def _present(self, key: PortKey) -> bool | None:
        """None: the newest answer may have left it out."""
        if key in self.seen:
            return True
        return False if self.complete else None
