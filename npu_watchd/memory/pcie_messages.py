"""What the kernel's log said of PCIe errors, by the NPU that each concerns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from npu_watchd.model.ids import DeviceKey
from npu_watchd.model.pcie import AerLine, devices_below


@dataclass(slots=True)
class PcieMessages:
    """Counts since the daemon started, by severity and chip; chip None: a port that several NPUs share."""

    counts: dict[tuple[str, DeviceKey | None], int] = field(default_factory=dict)

    def take(self, lines: Iterable[AerLine], paths: Mapping[DeviceKey, tuple[str, ...]]) -> None:
        """paths: of each chip, from the root port down. Errors of other devices are none of ours.

        A port's notice that a message came is left out: the error itself has a line of its own.
        """
        for line in lines:
            concerned = () if line.announces else devices_below(line.address, paths)
            if concerned:
                key = (line.severity or "unknown", concerned[0] if len(concerned) == 1 else None)
                self.counts[key] = self.counts.get(key, 0) + 1
