"""What a client's Accept and Accept-Encoding ask for (RFC 9110, 12.4.2 and 12.5)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from npu_watchd.sinks.metrics import Format

_OPENMETRICS = "application/openmetrics-text"


@dataclass(frozen=True, slots=True)
class _Choice:
    name: str
    parameters: dict[str, str]
    quality: float


def metrics_format(accept: str | None) -> Format:
    """OpenMetrics 1.0.0 where the client names it and likes it at least as well as text; else text 0.0.4.

    A client that accepts neither gets text too: a scraper with an odd header is better served than refused.
    """
    openmetrics = text = 0.0
    for choice in _choices(accept):
        if choice.name == _OPENMETRICS and choice.parameters.get("version", "1.0.0") == "1.0.0":
            openmetrics = max(openmetrics, choice.quality)
        elif choice.name in ("text/plain", "text/*", "*/*"):
            text = max(text, choice.quality)
    return Format.OPENMETRICS if openmetrics > 0 and openmetrics >= text else Format.TEXT


def gzip_accepted(accept_encoding: str | None) -> bool:
    """True where gzip (or, with no word on gzip, `*`) is listed with a quality above 0."""
    qualities = {choice.name: choice.quality for choice in _choices(accept_encoding)}
    return qualities.get("gzip", qualities.get("x-gzip", qualities.get("*", 0.0))) > 0


def _choices(header: str | None) -> Iterator[_Choice]:
    for part in (header or "").split(","):
        name, *rest = part.split(";")
        parameters = {}
        for parameter in rest:
            key, _, value = parameter.partition("=")
            parameters[key.strip().lower()] = value.strip().strip('"').lower()
        if name.strip():
            yield _Choice(name.strip().lower(), parameters, _quality(parameters.get("q", "1")))


def _quality(text: str) -> float:
    """0 for what is no number from 0 to 1: a choice that cannot be read is not a wish."""
    try:
        quality = float(text)
    except ValueError:
        return 0.0
    return quality if 0 <= quality <= 1 else 0.0
