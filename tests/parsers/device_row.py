"""A row of the table, of which a test names only what the text says."""

from __future__ import annotations

from typing import Any

from npu_watchd.model.records import DeviceRow


def device(npu: int | None, chip: int | None, name: str | None, health: str | None, **known: Any) -> DeviceRow:
    """A row whose other values are all unknown."""
    others: dict[str, Any] = dict.fromkeys(
        (
            "logic_id",
            "phy_id",
            "pci_address",
            "power_watts",
            "temperature_celsius",
            "aicore_utilization_ratio",
            "memory_used_bytes",
            "memory_total_bytes",
            "hbm_used_bytes",
            "hbm_total_bytes",
            "hugepages_used",
            "hugepages_total",
        )
    )
    distrust: tuple[str, ...] = known.get("distrust", ())
    return DeviceRow(npu=npu, chip=chip, name=name, health=health, trusted=not distrust, **(others | known))
