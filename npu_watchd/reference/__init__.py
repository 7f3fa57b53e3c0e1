"""Generated pages and rules: rendered from the tables that the program itself runs on, so that they cannot drift."""

from __future__ import annotations

from npu_watchd.reference.alert_text import alert_explanation
from npu_watchd.reference.config_page import config_page, probe_defaults
from npu_watchd.reference.files import ROOT, differing, files, regenerate, write
from npu_watchd.reference.metrics_page import metrics_page

__all__ = [
    "ROOT",
    "alert_explanation",
    "config_page",
    "differing",
    "files",
    "metrics_page",
    "probe_defaults",
    "regenerate",
    "write",
]
