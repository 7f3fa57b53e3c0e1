"""What a reading or a finding can be about."""

from __future__ import annotations

from dataclasses import dataclass

from npu_watchd.model.fabric import PortKey


@dataclass(frozen=True, slots=True, order=True)
class DeviceKey:
    """One chip, numbered as `npu-smi info -m` numbers it: NPU id (not contiguous) and chip on that NPU.

    Chips without a chip id (Ascend 950) are chip 0. `-i` of npu-smi takes `npu`; `-i` of hccn_tool takes the logic id.
    """

    npu: int
    chip: int = 0

    def __str__(self) -> str:
        return f"npu {self.npu} chip {self.chip}"


@dataclass(frozen=True, slots=True, order=True)
class Node:
    """The node as a whole: the subject of what no single device owns."""

    def __str__(self) -> str:
        return "node"


NODE = Node()

Subject = DeviceKey | PortKey | Node
