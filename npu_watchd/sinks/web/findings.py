"""What is wrong, and the journal: `/api/v1/findings`, `/api/v1/events`, and findings on the page."""

from __future__ import annotations

import math
from typing import Any

from markupsafe import Markup

from npu_watchd.model.fabric import PortKey
from npu_watchd.model.finding import Event, Evidence, Finding
from npu_watchd.model.snapshot import Outcome
from npu_watchd.sinks.plaintext import clean
from npu_watchd.sinks.web.table import section

_TEXT_MAX = 500


def finding_document(finding: Finding) -> dict[str, Any]:
    """One finding as docs/api.md describes it."""
    port = finding.subject if isinstance(finding.subject, PortKey) else None
    return {
        "rule": finding.rule,
        "alert": finding.alert,
        "severity": finding.severity.value,
        "quarantines": finding.quarantines,
        "action": finding.action.value,
        "subject": str(finding.subject),
        "device_id": finding.device_id,
        "rdma_device": port.rdma_device if port else None,
        "port": port.port if port else None,
        "since": finding.since_s,
        "summary": finding.summary,
        "evidence": [_evidence_document(evidence) for evidence in finding.evidence],
        "held": finding.held,
        "held_because": finding.held_because,
        "jobs": list(finding.jobs),
        "acknowledged": finding.acknowledged,
    }


def _evidence_document(evidence: Evidence) -> dict[str, Any]:
    return {
        "metric": evidence.metric,
        "observed": _finite(evidence.observed),
        "limit": _finite(evidence.limit),
        "unit": evidence.unit,
        "window_seconds": evidence.window_s,
        "source": evidence.source,
    }


def _finite(value: float | str | None) -> float | str | None:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def event_document(event: Event) -> dict[str, Any]:
    """One line of the journal as docs/api.md describes it."""
    return {
        "number": event.number,
        "at": event.at_s,
        "kind": event.kind,
        "text": event.text,
        "device_id": event.device_id,
        "rule": event.rule,
        "facts": dict(event.facts),
    }


def findings_document(outcome: Outcome) -> dict[str, Any]:
    """`/api/v1/findings`."""
    return {
        "at": outcome.snapshot.at.wall_s,
        "node": outcome.snapshot.node,
        "findings": [finding_document(finding) for finding in outcome.findings],
    }


def events_document(outcome: Outcome, since_s: float | None, device_id: str | None) -> dict[str, Any]:
    """`/api/v1/events`: the newest lines, oldest first. since_s: Unix seconds; lines of that instant are included."""
    chosen = [
        event_document(event)
        for event in outcome.journal
        if (since_s is None or event.at_s >= since_s) and (device_id is None or event.device_id == device_id)
    ]
    return {"at": outcome.snapshot.at.wall_s, "node": outcome.snapshot.node, "events": chosen}


def findings_section(outcome: Outcome) -> Markup:
    """What is wrong, the worst first; a sentence where nothing is."""
    if not outcome.findings:
        words = "No rule has found anything in what can be seen."
        body = Markup('<p class="none">{}</p>').format(words)
    else:
        body = Markup("\n").join(_finding(finding, outcome.snapshot.at.wall_s) for finding in outcome.findings)
    return section("findings", "What is wrong", body)


def _finding(finding: Finding, now_s: float) -> Markup:
    marks = [
        finding.severity.value,
        "quarantine" if finding.quarantines else "",
        "held" if finding.held else "",
        "acknowledged" if finding.acknowledged is not None else "",
    ]
    said = Markup()
    if finding.held:
        said += Markup("<p>Held: it was found before, and now cannot be seen ({}).</p>\n").format(
            clean(finding.held_because or "", _TEXT_MAX)
        )
    if finding.acknowledged is not None:
        said += Markup("<p>Acknowledged {}</p>\n").format(clean(finding.acknowledged, _TEXT_MAX))
    return Markup(
        '<article class="finding {look}"><h3>{summary}</h3>\n'
        "<p>{alert} · {marks} · since {since} · next: {action}</p>\n{said}<ul>\n{evidence}</ul></article>"
    ).format(
        look=f"state-{'critical' if finding.severity.value == 'critical' else 'warning'}",
        summary=clean(finding.summary, _TEXT_MAX),
        alert=finding.alert,
        marks=", ".join(mark for mark in marks if mark),
        since=_ago(now_s - finding.since_s),
        action=finding.action.value.replace("_", " "),
        said=said,
        evidence=Markup("").join(_evidence(evidence) for evidence in finding.evidence),
    )


def _evidence(evidence: Evidence) -> Markup:
    window = "" if evidence.window_s is None else f" in {span(evidence.window_s)}"
    limit = "" if evidence.limit is None else f" (limit {_value(evidence.limit, evidence.unit)})"
    return Markup("<li>{metric}: <strong>{value}</strong>{window}{limit}. Check: <code>{source}</code></li>\n").format(
        metric=clean(evidence.metric, _TEXT_MAX),
        value=_value(evidence.observed, evidence.unit),
        window=window,
        limit=limit,
        source=clean(evidence.source, _TEXT_MAX),
    )


def _value(value: float | str, unit: str) -> str:
    if isinstance(value, str):
        return clean(value, _TEXT_MAX)
    if unit == "ratio":
        return f"{value:.0%}"
    if unit == "bytes":
        return f"{value / (1 << 30):.1f} GiB"
    shown = f"{value:.6g}" if abs(value) < 1e6 else f"{value:g}"
    return f"{shown} {unit}".rstrip()


def span(seconds: float) -> str:
    """A duration in its largest fitting unit."""
    for unit, length_s in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length_s:
            return f"{seconds / length_s:.3g} {unit}"
    return f"{seconds:.3g} s"


def _ago(seconds: float) -> str:
    return f"{span(max(0.0, seconds))} ago"
