"""docs/metrics.md."""

from __future__ import annotations

from collections.abc import Iterable

from npu_watchd.catalogue import DeviceFamily, Family
from npu_watchd.reference.markdown import made, table


def metrics_page(catalogue: Iterable[Family]) -> str:
    families = sorted(catalogue, key=lambda family: family.name)
    lines = [
        made("npu_watchd/catalogue/"),
        "",
        "# Metrics",
        "",
        "What `/metrics` serves. Base units; ratios are 0..1; a value that nobody knows has no sample. Counters of the",
        "hardware start again when a device is reset: use `increase()` or `rate()`.",
        *table(("metric", "type", "labels", "what, and where it is from"), (_row(family) for family in families)),
    ]
    return "\n".join(lines) + "\n"


def _row(family: Family) -> tuple[str, ...]:
    labels = (("device_id",) if isinstance(family, DeviceFamily) else ()) + family.labels
    return f"`{family.name}`", family.kind.value, ", ".join(f"`{label}`" for label in labels), family.help
