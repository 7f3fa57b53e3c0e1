"""A finding as Alertmanager's API v2 takes it: labels that name it, annotations that explain it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

import msgspec

from npu_watchd import chinese
from npu_watchd.model.fabric import PortKey
from npu_watchd.model.finding import Evidence, Finding
from npu_watchd.sinks.plaintext import clean

LABEL_MAX = 256
"""Characters of a label value, as on /metrics."""
LINE_MAX = 512
"""Characters of one line of an annotation."""
LINES_MAX = 20
"""Lines of an annotation: what a person reads, not what a finding may gather."""

Labels = tuple[tuple[str, str], ...]
"""Sorted by name: two alerts with the same labels are the same alert to Alertmanager."""


@dataclass(frozen=True, slots=True)
class Alert:
    """What is told of one finding, whatever the time of telling."""

    labels: Labels
    annotations: Mapping[str, str]
    starts_at_s: float
    """Unix seconds, by the wall clock as it was then."""


@dataclass(frozen=True, slots=True)
class Posting:
    """One alert as it is sent at one instant."""

    alert: Alert
    ends_at_s: float
    """Unix seconds: in the future while it fires, the time of its end once it is resolved."""
    resolved_mono_s: float | None = None
    """When it was resolved, by the monotonic clock; None while it fires."""

    @property
    def starts_at_s(self) -> float:
        """Never after its end, whatever became of the wall clock: Alertmanager refuses that with 400."""
        start_s = self.alert.starts_at_s
        return start_s if 0 <= start_s <= self.ends_at_s else self.ends_at_s


def alert_of(finding: Finding, node: str, runbook_base: str = "", language: str = "en") -> Alert:
    """The finding as an alert; `runbook_base` is the address of the folder of runbooks, "" for none.

    language: "zh" puts the rule's Chinese sentence before the summary; names, values and commands stay.
    """
    labels = {
        "alertname": finding.alert,
        "severity": finding.severity.value,
        "node": node,
        "device_id": finding.device_id or "",
    }
    if isinstance(finding.subject, PortKey):
        labels |= {"rdma_device": finding.subject.rdma_device, "port": str(finding.subject.port)}
    cleaned = {name: clean(text, LABEL_MAX) for name, text in labels.items() if text}
    return Alert(tuple(sorted(cleaned.items())), _annotations(finding, runbook_base, language), finding.since_s)


def document(postings: Iterable[Posting]) -> bytes:
    """The body of a POST to /api/v2/alerts."""
    return msgspec.json.encode(
        [
            {
                "labels": dict(posting.alert.labels),
                "annotations": posting.alert.annotations,
                "startsAt": rfc3339(posting.starts_at_s),
                "endsAt": rfc3339(posting.ends_at_s),
            }
            for posting in postings
        ]
    )


def rfc3339(wall_s: float) -> str:
    """Unix seconds as text, in UTC with milliseconds."""
    return datetime.fromtimestamp(wall_s, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _annotations(finding: Finding, runbook_base: str, language: str) -> dict[str, str]:
    in_chinese = language == "zh"
    told = {
        "summary": clean((in_chinese and chinese.summary(finding)) or finding.summary, LINE_MAX),
        "description": _lines(_told(evidence) for evidence in finding.evidence),
        "check": _lines(dict.fromkeys(evidence.source for evidence in finding.evidence)),
        "action": finding.action.value,
        "action_zh": (in_chinese and chinese.action(finding)) or "",
        "runbook_url": f"{runbook_base.rstrip('/')}/{finding.alert}.md" if runbook_base else "",
        "jobs": clean(", ".join(finding.jobs), LINE_MAX),
        "held": "true" if finding.held else "",
        "held_because": clean(finding.held_because or "", LINE_MAX) if finding.held else "",
    }
    return {name: text for name, text in told.items() if text}


def _lines(texts: Iterable[str]) -> str:
    lines = [clean(text, LINE_MAX) for text in texts if text]
    if len(lines) > LINES_MAX:
        lines[LINES_MAX - 1 :] = [f"… and {len(lines) - LINES_MAX + 1} more"]
    return "\n".join(lines)


def _told(evidence: Evidence) -> str:
    limit = "" if evidence.limit is None else f" (limit {_value(evidence.limit, evidence.unit)})"
    window = "" if evidence.window_s is None else f" within {_span(evidence.window_s)}"
    return f"{evidence.metric}: {_value(evidence.observed, evidence.unit)}{window}{limit}"


def _value(value: float | str, unit: str) -> str:
    number = value if isinstance(value, str) else _number(value)
    return f"{number} {unit}" if unit else number


def _number(value: float) -> str:
    """Counts and bytes to the last one, the rest to six digits."""
    return str(int(value)) if float(value).is_integer() else f"{value:g}"


def _span(seconds: float) -> str:
    """As the config writes durations: 1h30m. Below a second: 0.5s."""
    if not math.isfinite(seconds) or seconds < 1:
        return f"{seconds:g}s"
    return "".join(_parts(round(seconds)))


def _parts(left_s: int) -> Iterator[str]:
    for unit, unit_s in (("d", 86400), ("h", 3600), ("m", 60), ("s", 1)):
        count, left_s = divmod(left_s, unit_s)
        if count:
            yield f"{count}{unit}"
