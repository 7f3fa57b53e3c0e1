"""How the daemon logs: JSON lines where a machine reads (journald), text on a terminal; one line a change."""

from __future__ import annotations

import logging
import sys
from typing import TextIO

# structlog brings rich along for tracebacks in colour: 4 MiB that a daemon need not hold. Where there is none it does
# without.
_WITHOUT_RICH = "rich" not in sys.modules
if _WITHOUT_RICH:
    sys.modules["rich"] = None  # type: ignore[assignment]
import structlog  # noqa: E402

if _WITHOUT_RICH:
    del sys.modules["rich"]


def open_logbook(stream: TextIO = sys.stderr, *, debug: bool = False) -> structlog.typing.FilteringBoundLogger:
    """Set up logging for this process and return the logger."""
    # APScheduler reports each skipped run of a job that is still under way, which here is the normal case.
    logging.getLogger("apscheduler").setLevel(logging.CRITICAL)
    terminal = stream.isatty()
    renderer: structlog.typing.Processor = (
        structlog.dev.ConsoleRenderer() if terminal else structlog.processors.JSONRenderer(ensure_ascii=True)
    )
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=not terminal),
            _printable,
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.DEBUG if debug else logging.INFO),
        logger_factory=structlog.WriteLoggerFactory(file=_Unbreakable(stream)),  # type: ignore[arg-type]
        cache_logger_on_first_use=True,
    )
    logger: structlog.typing.FilteringBoundLogger = structlog.get_logger()
    return logger


def _printable(_logger: object, _method: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    """Facts are often a tool's own words, which could steer the terminal that shows them."""
    for key, value in event.items():
        if isinstance(value, str) and not value.isprintable():
            event[key] = "".join(char if char.isprintable() else "\ufffd" for char in value)
    return event


class _Unbreakable:
    """A stream whose reader may go away or whose disk may fill: a line is lost then, the daemon goes on."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except (OSError, ValueError):
            return 0

    def flush(self) -> None:
        try:
            self._stream.flush()
        except (OSError, ValueError):
            return
