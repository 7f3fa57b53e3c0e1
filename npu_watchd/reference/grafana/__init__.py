"""deploy/grafana/*.json: two dashboards, made from tables so that their limits, states and metrics stay true."""

from __future__ import annotations

from npu_watchd.reference.grafana.dashboard import Dashboard, dashboard_json
from npu_watchd.reference.grafana.fleet import FLEET
from npu_watchd.reference.grafana.node import NODE
from npu_watchd.reference.grafana.without_panel import WITHOUT_PANEL

__all__ = ["DASHBOARDS", "FLEET", "NODE", "WITHOUT_PANEL", "Dashboard", "dashboard_json"]

DASHBOARDS: dict[str, Dashboard] = {"node": NODE, "fleet": FLEET}
"""File name below deploy/grafana/, without .json → the dashboard."""
