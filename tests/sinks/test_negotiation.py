"""What clients ask for in Accept and Accept-Encoding."""

from __future__ import annotations

import pytest

from npu_watchd.sinks.metrics import Format
from npu_watchd.sinks.web.negotiation import gzip_accepted, metrics_format

PROMETHEUS_2 = (
    "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
    "text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
)
PROMETHEUS_3 = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,"
    "application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,"
    "text/plain;version=0.0.4;q=0.2,*/*;q=0.1"
)


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        (PROMETHEUS_2, Format.OPENMETRICS),
        (PROMETHEUS_3, Format.OPENMETRICS),
        ("application/openmetrics-text", Format.OPENMETRICS),
        ("application/openmetrics-text; version=1.0.0; charset=utf-8", Format.OPENMETRICS),
        ("Application/OpenMetrics-Text;version=1.0.0", Format.OPENMETRICS),
        ("application/openmetrics-text;version=1.0.0;q=0", Format.TEXT),
        ("application/openmetrics-text;version=1.0.0;q=0.1,text/plain;q=0.9", Format.TEXT),
        ("application/openmetrics-text;version=9.9.9", Format.TEXT),
        ("application/openmetrics-text;q=nonsense", Format.TEXT),
        ("application/openmetrics-text;q=nan", Format.TEXT),
        ("text/plain", Format.TEXT),
        ("*/*", Format.TEXT),
        ("application/json", Format.TEXT),
        (",;,=;q", Format.TEXT),
        ("", Format.TEXT),
        (None, Format.TEXT),
    ],
)
def test_the_format_is_what_the_client_likes_best(accept: str | None, form: Format) -> None:
    assert metrics_format(accept) is form


@pytest.mark.parametrize(
    ("header", "accepted"),
    [
        ("gzip", True),
        ("GZIP;q=0.5", True),
        ("br, gzip;q=0.1", True),
        ("*", True),
        ("gzip;q=0", False),
        ("gzip;q=0.0, *", False),
        ("identity", False),
        ("*;q=0", False),
        ("", False),
        (None, False),
    ],
)
def test_gzip_needs_a_quality_above_0(header: str | None, accepted: bool) -> None:
    assert gzip_accepted(header) is accepted
