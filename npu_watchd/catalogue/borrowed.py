"""What a metric of Huawei's npu-exporter is here: its name, its unit, and where the same is in our own names."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from npu_watchd.catalogue.family import Kind, NodeFamily, Sample, one
from npu_watchd.model.snapshot import Device, Outcome

CARD_LABELS = ("id", "model_name", "pcie_bus_info")
"""Of theirs, those that we can fill: not vdie_id, namespace, pod_name and container_name."""


@dataclass(frozen=True, slots=True)
class Borrowed:
    """One of their metrics."""

    name: str
    unit: str
    """As theirs has it; "" for a count or a state."""
    ours: str
    """The same in PromQL on our own names."""
    read: Callable[[Device], Iterable[Sample]]
    labels: tuple[str, ...] = ()
    """Beside CARD_LABELS."""
    model_label: str = "model_name"

    def family(self) -> NodeFamily:
        unit = f" in {self.unit}" if self.unit else ""
        labels = (CARD_LABELS[0], self.model_label, *CARD_LABELS[2:], *self.labels)
        return NodeFamily(
            self.name, Kind.GAUGE, f"Of npu-exporter{unit}; here it is {self.ours}.", labels, self._samples
        )

    def _samples(self, outcome: Outcome) -> Iterable[Sample]:
        for device in outcome.snapshot.devices.values():
            number = physical_id(device)
            if not device.present or number is None:
                continue
            card = {
                "id": number,
                self.model_label: device.identity.name or "",
                "pcie_bus_info": (device.identity.pci_address or "").upper(),
            }
            for labels, value in self.read(device):
                yield {**card, **labels}, value


def physical_id(device: Device) -> str | None:
    """Theirs is the Phy-ID. Where no tool prints it (910B), the logic id, which is the same on a whole bare node.

    None: the device's number rests on its position in the table only, or is another chip's by now.
    """
    if device.identity.phy_id is not None:
        return str(device.identity.phy_id)
    return device.device_id if device.device_id_source == "logic_id" else None


def scaled(value: float | None, factor: float) -> Iterable[Sample]:
    """In another unit, without the digits that binary fractions add; no sample for None."""
    return one(None if value is None else round(value * factor, 6))
