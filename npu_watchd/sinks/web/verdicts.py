"""What to make of each part: `/api/v1/verdicts`, and verdicts on the page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from markupsafe import Markup

from npu_watchd.model.fabric import PortKey
from npu_watchd.model.ids import NODE, Subject
from npu_watchd.model.snapshot import Outcome
from npu_watchd.model.verdict import State, Verdict
from npu_watchd.sinks.plaintext import clean
from npu_watchd.sinks.web.findings import span
from npu_watchd.sinks.web.table import UNKNOWN, Cell, Column, badge, note, table_section

_TEXT_MAX = 500
_REASONS_SHOWN = 12
_IN_ROW_MAX = 90
_ON_TOP = 3
"""Reasons of the node: its parts tell their own below."""

LOOKS: Mapping[State, str] = {
    State.HEALTHY: "ok",
    State.WATCH: "warning",
    State.QUARANTINE: "critical",
    State.PROBATION: "probation",
    State.UNKNOWN: "unknown",
}
"""The style sheet's name of each state's colour and sign."""
HELD = "nothing of it is seen any longer; only a person's release ends it"
BLIND = "something without which nobody may call it healthy cannot be seen now"


def verdict_document(verdict: Verdict) -> dict[str, Any]:
    """One verdict as docs/api.md describes it."""
    port = verdict.subject if isinstance(verdict.subject, PortKey) else None
    return {
        "subject": str(verdict.subject),
        "device_id": verdict.device_id,
        "rdma_device": port.rdma_device if port else None,
        "port": port.port if port else None,
        "state": verdict.state.value,
        "own_state": None if verdict.own_state is None else verdict.own_state.value,
        "since": verdict.since_s,
        "action": None if verdict.action is None else verdict.action.value,
        "held": verdict.held,
        "blind": verdict.blind,
        "revision": verdict.revision,
        "reasons": [{"text": reason.text, "rule": reason.rule} for reason in verdict.reasons],
    }


def verdicts_document(outcome: Outcome) -> dict[str, Any]:
    """`/api/v1/verdicts`."""
    return {
        "at": outcome.snapshot.at.wall_s,
        "node": outcome.snapshot.node,
        "verdicts": [verdict_document(verdict) for verdict in outcome.verdicts],
    }


def node_verdict(outcome: Outcome) -> Verdict | None:
    """None before anything was judged."""
    return next((verdict for verdict in outcome.verdicts if verdict.subject == NODE), None)


def verdict_cells(outcome: Outcome) -> Mapping[Subject, Markup]:
    """What the row of each device and port says of its verdict: in a word, and the first reason where it is ill."""
    return {verdict.subject: _cell(verdict) + _first_reason(verdict) for verdict in outcome.verdicts}


def node_section(outcome: Outcome) -> Markup:
    """What to make of the node: the first thing on the page."""
    verdict = node_verdict(outcome)
    if verdict is None:
        return Markup('<section id="verdict" class="verdict state-unknown">\n<p>No verdict yet.</p>\n</section>')
    lines = [Markup("<p>{}</p>").format(words) for words in _marks(verdict)]
    reasons = Markup("").join(Markup("<li>{}</li>\n").format(words) for words in _reasons(verdict, _ON_TOP))
    return Markup(
        '<section id="verdict" class="verdict state-{look}">\n'
        '<p class="verdict-state"><span class="state state-{look}">{state}</span></p>\n'
        '<p class="verdict-since">{since} · next: {action}</p>\n{lines}{reasons}</section>'
    ).format(
        look=LOOKS[verdict.state],
        state=verdict.state.value,
        since=_since(verdict, outcome.snapshot.at.wall_s),
        action=_action(verdict),
        lines=Markup("\n").join([*lines, Markup()]),
        reasons=Markup("<ul>\n{}</ul>\n").format(reasons) if reasons else Markup(),
    )


def parts_section(outcome: Outcome) -> Markup:
    """Devices and ports that are not healthy, with why; those of which the same is to be said share a row."""
    rows = list(_shared([one for one in outcome.verdicts if one.subject != NODE and one.state is not State.HEALTHY]))
    if not rows:
        return Markup()
    now_s = outcome.snapshot.at.wall_s
    columns: tuple[Column[tuple[str, Verdict]], ...] = (
        Column("Whom", "id", lambda row: row[0]),
        Column("Verdict", "health", lambda row: _cell(row[1])),
        Column("Since", "", lambda row: _since(row[1], now_s).removeprefix("since ")),
        Column("Next", "", lambda row: _action(row[1])),
        Column("Why", "reasons", lambda row: _why(row[1])),
    )
    return table_section("verdicts", "Not healthy", columns, rows)


def _shared(verdicts: Iterable[Verdict]) -> Iterable[tuple[str, Verdict]]:
    """Names, and the verdict that they have in common: the one that has held longest."""
    alike: dict[Verdict, list[Verdict]] = {}
    for verdict in verdicts:
        sort = replace(verdict, subject=NODE, device_id=None, since_s=0.0, revision=0)
        alike.setdefault(sort, []).append(verdict)
    for group in alike.values():
        yield _names(group), min(group, key=lambda one: one.since_s)


def _names(verdicts: Iterable[Verdict]) -> str:
    ids, ports = [], []
    for verdict in verdicts:
        if verdict.device_id is not None:
            ids.append(verdict.device_id)
        else:
            ports.append(clean(str(verdict.subject), 64))
    devices = [f"device{'s' if len(ids) > 1 else ''} {', '.join(ids)}"] if ids else []
    return ", ".join([*devices, *ports])


def _cell(verdict: Verdict) -> Markup:
    shown = badge(LOOKS[verdict.state], verdict.state.value)
    for word, title in (("held", HELD if verdict.held else ""), ("blind", BLIND if verdict.blind else "")):
        if title:
            shown += note(word, title)
    return shown


def _first_reason(verdict: Verdict) -> Markup:
    if verdict.state is State.HEALTHY or not verdict.reasons:
        return Markup()
    words = clean(verdict.reasons[0].text.removeprefix(f"device {verdict.device_id}: "), _IN_ROW_MAX)
    return Markup(' <span class="why">{}</span>').format(words)


def _why(verdict: Verdict) -> Cell:
    lines = [*_reasons(verdict), *_marks(verdict)]
    return Markup("<br>\n").join(lines) if lines else UNKNOWN


def _reasons(verdict: Verdict, most: int = _REASONS_SHOWN) -> list[str]:
    shown = [clean(reason.text, _TEXT_MAX) for reason in verdict.reasons[:most]]
    more = len(verdict.reasons) - most
    return [*shown, *((f"and {more} more",) if more > 0 else ())]


def _marks(verdict: Verdict) -> Iterable[str]:
    if verdict.held:
        yield f"Held: {HELD}."
    if verdict.blind:
        yield f"Blind: {BLIND}."


def _action(verdict: Verdict) -> str:
    return "nothing" if verdict.action is None else verdict.action.value.replace("_", " ")


def _since(verdict: Verdict, now_s: float) -> str:
    at = datetime.fromtimestamp(verdict.since_s, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
    return f"since {at} ({span(max(0.0, now_s - verdict.since_s))})"
