"""For training programs: try a step again after an error that may pass, and tell the node's daemon.

Needs the standard library alone, and neither MindSpore nor torch (docs/resilient.md).
"""

from __future__ import annotations

from npu_watchd.resilient.errors import Error, Kind, classify
from npu_watchd.resilient.retry import Policy, Retrier
from npu_watchd.resilient.watchd import Incident, Watchd

__all__ = ["Error", "Incident", "Kind", "Policy", "Retrier", "Watchd", "classify"]
