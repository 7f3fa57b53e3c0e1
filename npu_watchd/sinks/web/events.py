"""How the web server reports: one call an event, facts as keywords."""

from __future__ import annotations

from typing import Protocol


class Log(Protocol):
    """A structlog logger's bound method, such as `log.warning`."""

    def __call__(self, event: str, /, **facts: object) -> object: ...
