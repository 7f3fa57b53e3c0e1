"""What the kernel's log said of PCIe errors, by the NPU that each concerns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from npu_watchd.model.ids import DeviceKey
from npu_watchd.model.pcie import AerLine, devices_below

_MOST_UNCLAIMED = 1024
"""Addresses and severities kept for an NPU that may yet turn up; a node has some hundred PCI functions (assumption)."""

Counts = dict[tuple[str, DeviceKey | None], int]
"""Severity and chip; None: a port that several NPUs share."""


@dataclass(slots=True)
class PcieMessages:
    """Counts since boot, as far as the kernel's ring reached back when we began to read it."""

    counts: Counts = field(default_factory=dict)
    before: Counts = field(default_factory=dict)
    """Of these, those that stood in the ring before we began: evidence, and no news."""
    lost: int | None = None
    """Records that were overwritten before we read them; None: the log has not been read."""
    _unclaimed: dict[tuple[str, str, bool], int] = field(default_factory=dict)
    """Severity, address and whether it is old → count, of devices that are no NPU's as far as we know."""
    _paths: dict[DeviceKey, tuple[str, ...]] = field(default_factory=dict)
    """The newest path of each chip, also of one that has since fallen off the bus."""

    def take(
        self, lines: Iterable[AerLine], paths: Mapping[DeviceKey, tuple[str, ...]], *, old: bool = False, lost: int = 0
    ) -> None:
        """paths: of each chip, from the root port down. Errors of other devices are none of ours.

        Lines come before the first path is known, so they wait until somebody's is. A port's notice that a message came
        is left out: the error itself has a line of its own.
        """
        self.lost = (self.lost or 0) + lost
        self._paths.update(paths)
        for key, count in list(self._unclaimed.items()):
            if self._count(*key, count):
                del self._unclaimed[key]
        for line in lines:
            key = (line.severity or "unknown", line.address, old)
            if line.announces or self._count(*key, 1):
                continue
            if key in self._unclaimed or len(self._unclaimed) < _MOST_UNCLAIMED:
                self._unclaimed[key] = self._unclaimed.get(key, 0) + 1

    def _count(self, severity: str, address: str, old: bool, count: int) -> bool:
        """False: the address is no NPU's, and no port's above one, as far as we know."""
        concerned = devices_below(address, self._paths)
        if not concerned:
            return False
        key = (severity, concerned[0] if len(concerned) == 1 else None)
        for counts in (self.counts, self.before) if old else (self.counts,):
            counts[key] = counts.get(key, 0) + count
        return True


def by_device_id(counts: Counts, ids: Mapping[DeviceKey, tuple[str, str]]) -> dict[tuple[str, str], int]:
    """Severity and device_id ("": a port that several share) → count. ids: of each chip, its device_id first."""
    found: dict[tuple[str, str], int] = {}
    for (severity, key), count in counts.items():
        named = (severity, ids[key][0] if key is not None and key in ids else "")
        found[named] = found.get(named, 0) + count
    return found
