"""The journal on the page: what happened, newest first, by day; the older part folded away."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import groupby

from markupsafe import Markup

from npu_watchd.model.finding import Event
from npu_watchd.sinks.plaintext import clean
from npu_watchd.sinks.web.table import section

SHOWN = 12
FOLDED = 48
"""Older ones; `npu-watchd events` has all."""
_TEXT_MAX = 500
_LOOKS = (
    ("finding_opened", "state-alarm"),
    ("finding_held", "state-unknown"),
    ("finding_resolved", "state-ok"),
    ("decided_", "state-probation"),
    ("device_vanished", "state-alarm"),
    ("device_back", "state-ok"),
)
"""Beginnings of kinds, and the class of their mark; the words say the same."""


def events_section(events: Iterable[Event]) -> Markup:
    """The newest lines of the journal, in UTC; nothing where there are none."""
    newest = list(events)[-SHOWN - FOLDED :][::-1]
    if not newest:
        return Markup()
    body = _days(newest[:SHOWN])
    older = newest[SHOWN:]
    if older:
        body += Markup("\n<details><summary>{} before that</summary>\n{}</details>").format(len(older), _days(older))
    return section("events", "What happened (UTC)", body)


def _days(events: Sequence[Event]) -> Markup:
    return Markup("\n").join(
        Markup('<h3 class="day">{}</h3>\n<ol class="events">\n{}</ol>').format(day, Markup("").join(_lines(those)))
        for day, those in groupby(events, lambda event: f"{_when(event):%Y-%m-%d}")
    )


def _lines(events: Iterable[Event]) -> Iterator[Markup]:
    for event in events:
        yield Markup('<li class="{look}"><time datetime="{iso}">{at}</time> {text}</li>\n').format(
            look=next((look for kind, look in _LOOKS if event.kind.startswith(kind)), "plain"),
            iso=_when(event).isoformat(timespec="seconds"),
            at=f"{_when(event):%H:%M:%S}",
            text=clean(event.text, _TEXT_MAX),
        )


def _when(event: Event) -> datetime:
    return datetime.fromtimestamp(event.at_s, UTC)
