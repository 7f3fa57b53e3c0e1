"""The node's page, its metrics and its API over HTTP."""

from npu_watchd.sinks.web.listen import ListenError
from npu_watchd.sinks.web.publication import Published
from npu_watchd.sinks.web.server import WebServer
from npu_watchd.sinks.web.yaml_section import WebConfigError

__all__ = ["ListenError", "Published", "WebConfigError", "WebServer"]
