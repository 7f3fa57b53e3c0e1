"""What Grafana would show of a panel, by the words of its file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from npu_watchd.reference.grafana.panel import Kind, Panel

Series = tuple[Mapping[str, str], float]


def substituted(expr: str, instance: str) -> str:
    """As Grafana fills in the variables: one node, all of its devices, any cluster."""
    values = {"cluster": ".*", "job": "npu-watchd", "instance": instance, "device_id": ".*", "__rate_interval": "10s"}
    return re.sub(r"\$(\w+)", lambda found: values[found[1]], expr)


def named(legend: str, labels: Mapping[str, str]) -> str:
    return re.sub(r"{{(\w+)}}", lambda found: labels.get(found[1], ""), legend)


def series(panel: Panel, results: Iterable[Iterable[Series]]) -> dict[str, float | str]:
    """Name in the legend → value, or the word that stands for it."""
    words = {one.value: one.text for one in panel.states}
    shown: dict[str, float | str] = {}
    for query, result in zip(panel.queries, results, strict=True):
        for labels, value in result:
            name = named(query.legend, labels)
            assert name not in shown, f"{panel.title}: two series are called {name!r}"
            shown[name] = words[int(value)] if words else value
    return shown


def rows(panel: Panel, result: Iterable[Series]) -> set[tuple[str, ...]]:
    """A table's lines; values as plain numbers."""
    assert panel.kind is Kind.TABLE
    return {
        tuple(f"{value:g}" if column == "Value" else labels.get(column, "") for column in panel.columns)
        for labels, value in result
    }
