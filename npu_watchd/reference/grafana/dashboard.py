"""A whole dashboard: its variables, its rows of panels, and its JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from npu_watchd.reference.fleet_alerts import JOB
from npu_watchd.reference.grafana.panel import SOURCE, Panel, panel_json

COLUMNS = 24
SCHEMA_VERSION = 41
"""Of Grafana 11.6; a newer Grafana brings it up to its own when it loads the file."""


@dataclass(frozen=True, slots=True)
class Row:
    """Panels below one heading, set from left to right."""

    title: str
    """Empty: no heading, for the row that is on top."""
    panels: tuple[Panel, ...]


@dataclass(frozen=True, slots=True)
class Variable:
    """One choice on top of a dashboard."""

    name: str
    label: str
    query: str
    several: bool = False
    all_value: str | None = None
    """What stands for all of them; None: there is no such choice."""
    regex: str = ""
    default: str | None = None
    kind: str = "query"
    sort: int = 1
    """Of Grafana: 1 by name, 3 by number."""


@dataclass(frozen=True, slots=True)
class Link:
    title: str
    url: str
    elsewhere: bool = False
    """It leads out of Grafana."""


@dataclass(frozen=True, slots=True)
class Dashboard:
    """One file below deploy/grafana/."""

    uid: str
    """Stable: links and bookmarks rest on it."""
    title: str
    what: str
    variables: tuple[Variable, ...]
    links: tuple[Link, ...]
    rows: tuple[Row, ...]
    since: str

    @property
    def panels(self) -> tuple[Panel, ...]:
        return tuple(panel for row in self.rows for panel in row.panels)


DATASOURCE = Variable("datasource", "Data source", "prometheus", kind="datasource")
CLUSTER = Variable("cluster", "Cluster", "label_values(npu_node_info, cluster)", several=True, all_value=".*")
"""A label of the scrape's targets; `.*` holds where there is none."""
JOB_CHOICE = Variable("job", "Job", 'label_values(npu_node_info{cluster=~"$cluster"}, job)', several=True, default=JOB)
"""All of them would ask `up` of every job that Prometheus has, hence no such choice."""


def dashboard_json(dashboard: Dashboard) -> str:
    """The text of the file."""
    document = {
        "uid": dashboard.uid,
        "title": dashboard.title,
        "description": f"{dashboard.what} Made by `npu-watchd reference`: change "
        "npu_watchd/reference/grafana/ instead.",
        "tags": ["ascend", JOB],
        "schemaVersion": SCHEMA_VERSION,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": {"from": f"now-{dashboard.since}", "to": "now"},
        "timezone": "browser",
        "links": [_link(link) for link in dashboard.links],
        "templating": {"list": [_variable(one) for one in dashboard.variables]},
        "panels": _laid_out(dashboard),
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _laid_out(dashboard: Dashboard) -> list[dict[str, Any]]:
    panels: list[dict[str, Any]] = []
    top = 0
    for row in dashboard.rows:
        if row.title:
            place = {"x": 0, "y": top, "w": COLUMNS, "h": 1}
            number = len(panels) + 1
            panels.append(
                {"id": number, "type": "row", "title": row.title, "collapsed": False, "gridPos": place, "panels": []}
            )
            top += 1
        left = line = 0
        for panel in row.panels:
            if left + panel.width > COLUMNS:
                left, top, line = 0, top + line, 0
            panels.append(panel_json(panel, (left, top), len(panels) + 1))
            left += panel.width
            line = max(line, panel.height)
        top += line
    return panels


def _link(link: Link) -> dict[str, Any]:
    return {
        "type": "link",
        "title": link.title,
        "url": link.url,
        "icon": "external link" if link.elsewhere else "dashboard",
        "targetBlank": link.elsewhere,
        "includeVars": False,
        "keepTime": not link.elsewhere,
        "asDropdown": False,
        "tags": [],
        "tooltip": "",
    }


def _variable(one: Variable) -> dict[str, Any]:
    if one.kind == "datasource":
        return {"name": one.name, "label": one.label, "type": one.kind, "query": one.query, "refresh": 1}
    return {
        "name": one.name,
        "label": one.label,
        "type": one.kind,
        "datasource": SOURCE,
        "query": {"query": one.query, "refId": f"Variable-{one.name}"},
        "regex": one.regex,
        "refresh": 2,
        "sort": one.sort,
        "multi": one.several,
        "includeAll": one.all_value is not None,
        **({} if one.all_value is None else {"allValue": one.all_value}),
        **_current(one),
    }


def _current(one: Variable) -> dict[str, Any]:
    """What is chosen at first; nothing where Grafana is to take the first that its query finds."""
    text, value = ("All", "$__all") if one.all_value is not None else (one.default, one.default)
    if text is None:
        return {}
    return {"current": {"text": [text], "value": [value]} if one.several else {"text": text, "value": value}}
