"""Findings pushed to every Alertmanager of an HA set, over its API v2."""

from npu_watchd.sinks.alertmanager.pusher import Log, Pusher, Settings

__all__ = ["Log", "Pusher", "Settings"]
