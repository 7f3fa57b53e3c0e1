"""One panel of a dashboard, and its JSON as Grafana 11 reads it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from npu_watchd.config.limit_text import by_chip, number
from npu_watchd.limits import BY_NAME, Limit

SOURCE = {"type": "prometheus", "uid": "${datasource}"}
NO_DATA = "no data"
"""What a panel says of a series that is absent, which is neither 0 nor healthy."""


class Kind(StrEnum):
    STAT = "stat"
    SERIES = "timeseries"
    STATES = "state-timeline"
    TABLE = "table"


@dataclass(frozen=True, slots=True)
class Query:
    """One PromQL query; stats and tables ask for this moment, the others for the range."""

    expr: str
    legend: str = ""
    """Of Grafana: `{{device_id}}`; a table needs none."""


@dataclass(frozen=True, slots=True)
class Shown:
    """What stands for one value: a state's word and colour."""

    value: int
    text: str
    colour: str


@dataclass(frozen=True, slots=True)
class Line:
    """A limit, drawn as a dashed line; its value is the default of limits.py."""

    limit: Limit
    colour: str
    value: float
    """Where it is drawn."""

    @classmethod
    def of(cls, name: str, colour: str = "red") -> Line:
        return cls(BY_NAME[name], colour, BY_NAME[name].default)

    @classmethod
    def at_once(cls, name: str, colour: str = "red") -> Line:
        """For queries that show how many times the limit a rate is."""
        return cls(BY_NAME[name], colour, 1)


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel; rows of a dashboard put them side by side, 24 columns wide."""

    title: str
    kind: Kind
    what: str
    """For the person who asks what this is: one or two sentences."""
    queries: tuple[Query, ...]
    unit: str = "none"
    """Of Grafana: bytes, celsius, percentunit, …; `none` is a plain number."""
    width: int = 8
    height: int = 7
    lines: tuple[Line, ...] = ()
    states: tuple[Shown, ...] = ()
    """What stands for the values."""
    coloured: tuple[Shown, ...] = ()
    """Series that are named so have these colours."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """Of a table: label → heading, in this order; `Value` is the value. Labels that are not named are hidden."""
    custom: Mapping[str, Any] = field(default_factory=dict)
    """What this kind of panel has beside the rest, as Grafana names it."""
    colours: tuple[tuple[float | None, str], ...] = ()
    """From which value on a value has which colour; the first one from below any."""
    bounds: tuple[float | None, float | None] = (None, None)
    link: tuple[str, str] | None = None
    """Title and address behind each value, or behind a table's first column."""


def panel_json(panel: Panel, at: tuple[int, int], number_: int) -> dict[str, Any]:
    """at: column and row of its upper left corner. number_: unique in the dashboard."""
    return {
        "id": number_,
        "type": panel.kind.value,
        "title": panel.title,
        "description": _description(panel),
        "datasource": SOURCE,
        "gridPos": {"x": at[0], "y": at[1], "w": panel.width, "h": panel.height},
        "targets": [_target(panel.kind, *pair) for pair in zip(panel.queries, "ABCDEFGH", strict=False)],
        "transformations": _columns(panel) if panel.kind is Kind.TABLE else [],
        "fieldConfig": {"defaults": _defaults(panel), "overrides": list(_overrides(panel))},
        "options": _OPTIONS[panel.kind] | ({} if panel.kind in _BY_FIELD else dict(panel.custom)),
    }


_BY_FIELD = (Kind.SERIES, Kind.STATES)
"""Their `custom` belongs to the fields, that of the others to the panel."""
_LEGEND = {"showLegend": True, "displayMode": "list", "placement": "bottom", "calcs": []}
_OPTIONS: Mapping[Kind, dict[str, Any]] = {
    Kind.STAT: {
        "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
        "colorMode": "background",
        "graphMode": "none",
        "justifyMode": "auto",
        "orientation": "auto",
        "textMode": "auto",
        "wideLayout": True,
    },
    Kind.SERIES: {"legend": _LEGEND, "tooltip": {"mode": "multi", "sort": "desc"}},
    Kind.STATES: {
        "legend": _LEGEND | {"showLegend": False},
        "tooltip": {"mode": "single", "sort": "none"},
        "mergeValues": True,
        "showValue": "auto",
        "alignValue": "left",
        "rowHeight": 0.85,
    },
    Kind.TABLE: {"showHeader": True, "cellHeight": "sm"},
}
_CUSTOM: Mapping[Kind, dict[str, Any]] = {
    Kind.STAT: {},
    Kind.SERIES: {
        "drawStyle": "line",
        "lineInterpolation": "stepAfter",
        "lineWidth": 1,
        "fillOpacity": 0,
        "showPoints": "auto",
        "pointSize": 4,
        "spanNulls": False,
        "axisSoftMin": 0,
    },
    Kind.STATES: {"fillOpacity": 80, "lineWidth": 0, "spanNulls": False},
    Kind.TABLE: {"align": "auto", "minWidth": 60, "cellOptions": {"type": "auto"}, "filterable": True},
}


def _description(panel: Panel) -> str:
    lines = [panel.what]
    if panel.lines:
        drawn = ", ".join(_drawn(line) for line in panel.lines)
        lines.append(f"Dashed: {drawn}, the defaults of docs/limits.md; a node's own config does not move them.")
    return "\n\n".join(lines)


def _drawn(line: Line) -> str:
    own = by_chip(line.limit)
    return f"{line.limit.name} = {number(line.limit)} {line.limit.unit}{f' ({own})' if own else ''}"


def _target(kind: Kind, query: Query, ref: str) -> dict[str, Any]:
    instant = kind in (Kind.STAT, Kind.TABLE)
    shape = {"format": "table" if kind is Kind.TABLE else "time_series"}
    legend = {"legendFormat": query.legend} if query.legend else {}
    return (
        {"refId": ref, "datasource": SOURCE, "expr": query.expr, "instant": instant, "range": not instant}
        | shape
        | legend
    )


def _defaults(panel: Panel) -> dict[str, Any]:
    low, high = panel.bounds
    custom = _CUSTOM[panel.kind] | (dict(panel.custom) if panel.kind in _BY_FIELD else {})
    if panel.lines:
        custom |= {"thresholdsStyle": {"mode": "dashed"}, "axisSoftMax": 1.1 * max(line.value for line in panel.lines)}
    return {
        "noValue": NO_DATA,
        # A table's numbers are words of a label too: units and colours there belong to the column of the value.
        **({} if panel.kind is Kind.TABLE else _look(panel)),
        "color": {"mode": "thresholds" if panel.kind is not Kind.SERIES else "palette-classic"},
        "thresholds": {"mode": "absolute", "steps": _steps(panel)},
        "custom": custom,
        **({} if low is None else {"min": low}),
        **({} if high is None else {"max": high}),
        **({} if panel.kind is Kind.TABLE else _links(panel)),
    }


def _look(panel: Panel) -> dict[str, Any]:
    options = {
        str(one.value): {"text": one.text, "color": one.colour, "index": at} for at, one in enumerate(panel.states)
    }
    mappings = [{"type": "value", "options": options}] if options else []
    return {"unit": panel.unit, "mappings": mappings}


def _links(panel: Panel) -> dict[str, Any]:
    return (
        {} if panel.link is None else {"links": [{"title": panel.link[0], "url": panel.link[1], "targetBlank": False}]}
    )


def _steps(panel: Panel) -> list[dict[str, Any]]:
    if panel.colours:
        return [{"value": value, "color": colour} for value, colour in panel.colours]
    base: list[dict[str, Any]] = [{"value": None, "color": "transparent" if panel.lines else "text"}]
    drawn = {line.value: line.colour for line in panel.lines}
    return base + [{"value": value, "color": colour} for value, colour in sorted(drawn.items())]


def _columns(panel: Panel) -> list[dict[str, Any]]:
    order = {label: at for at, label in enumerate(panel.columns)}
    return [
        {"id": "filterFieldsByName", "options": {"include": {"names": list(panel.columns)}}},
        {
            "id": "organize",
            "options": {"excludeByName": {}, "indexByName": order, "renameByName": dict(panel.columns)},
        },
    ]


def _overrides(panel: Panel) -> Iterator[dict[str, Any]]:
    if panel.kind is Kind.TABLE:
        if "Value" in panel.columns:
            look = _look(panel) | ({"custom.cellOptions": {"type": "color-background"}} if panel.states else {})
            yield _override(panel.columns["Value"], look)
        if panel.link is not None:
            yield _override(next(iter(panel.columns.values())), _links(panel))
    for one in panel.coloured:
        if panel.kind is Kind.STAT:
            # None in quarantine must not shine red.
            steps = [{"value": None, "color": "transparent"}, {"value": 1, "color": one.colour}]
            yield _override(one.text, {"thresholds": {"mode": "absolute", "steps": steps}})
        else:
            yield _override(one.text, {"color": {"mode": "fixed", "fixedColor": one.colour}})


def _override(name: str, properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "matcher": {"id": "byName", "options": name},
        "properties": [{"id": key, "value": value} for key, value in properties.items()],
    }
