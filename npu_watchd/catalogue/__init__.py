"""Every exported metric, declared once, with the getter that reads it.

Names, labels and units are DESIGN section 7's: a contract with other people's dashboards.
"""

from __future__ import annotations

from npu_watchd.catalogue import devices, fabric, host, node, npu_exporter, verdicts
from npu_watchd.catalogue.family import DeviceFamily, Family, Kind, NodeFamily, Sample

__all__ = [
    "CATALOGUE",
    "DEVICE_FAMILIES",
    "NODE_FAMILIES",
    "DeviceFamily",
    "Family",
    "Kind",
    "NodeFamily",
    "Sample",
    "exported",
]

DEVICE_FAMILIES: tuple[DeviceFamily, ...] = (*devices.DEVICE_FAMILIES, *fabric.DEVICE_FAMILIES)
NODE_FAMILIES: tuple[NodeFamily, ...] = (
    *(*node.NODE_FAMILIES, *host.HOST_FAMILIES, *fabric.NODE_FAMILIES),
    *verdicts.VERDICT_FAMILIES,
)
CATALOGUE: tuple[Family, ...] = (*DEVICE_FAMILIES, *NODE_FAMILIES)


def exported(*, npu_exporter_names: bool) -> tuple[Family, ...]:
    """What `/metrics` holds: the catalogue, and on demand the same under the names of Huawei's npu-exporter."""
    return (*CATALOGUE, *npu_exporter.FAMILIES) if npu_exporter_names else CATALOGUE
