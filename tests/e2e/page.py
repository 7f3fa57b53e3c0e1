"""/metrics as a test reads it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from prometheus_client.parser import text_string_to_metric_families

Labels = frozenset[tuple[str, str]]


@dataclass(frozen=True)
class Page:
    """/metrics in text 0.0.4, parsed by Prometheus' own library."""

    text: str
    samples: Mapping[str, Mapping[Labels, float]]

    def value(self, name: str, **labels: str) -> float | None:
        """None: no such series."""
        return self.samples.get(name, {}).get(frozenset(labels.items()))

    def by_device(self, name: str, **labels: str) -> dict[str, float]:
        """device_id → value, of the series that have exactly these labels beside it."""
        found = {}
        for names, value in self.samples.get(name, {}).items():
            given = dict(names)
            device_id = given.pop("device_id", None)
            if device_id is not None and given == labels:
                found[device_id] = value
        return found

    def states(self) -> dict[str, str]:
        """device_id → health."""
        series = self.samples.get("npu_device_health", {})
        return {dict(names)["device_id"]: dict(names)["state"] for names, value in series.items() if value == 1}

    def about_devices(self) -> set[str]:
        """Names of the families that speak of a device's hardware."""
        return {name for name in self.samples if name.startswith("npu_device_")}


def parsed(text: str) -> Page:
    samples: dict[str, dict[Labels, float]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            series = samples.setdefault(sample.name, {})
            labels = frozenset(sample.labels.items())
            assert labels not in series, f"twice on one page: {sample.name}{sample.labels}"
            series[labels] = sample.value
    return Page(text, samples)
