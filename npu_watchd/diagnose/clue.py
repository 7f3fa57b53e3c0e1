"""One thing that was seen, wherever it was seen: a line of a log, a finding, a line of the journal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from npu_watchd.model.finding import Event
from npu_watchd.model.log_event import LogEvent, Role

Document = Mapping[str, Any]
"""The JSON of `/api/v1/snapshot` (docs/api.md)."""

_JOBS_OWN = (
    "python",
    "ccec",
    "te_",
    "bisheng",
    "cce",
    "ld.lld",
    "ray",
    "torchrun",
    "vllm",
    "mindspore",
    "pt_data",
    "pt_main",
)
"""How the processes of a training job begin their names."""
_WARNINGS = frozenset({"WARNING", "WARN", "INFO"})


class Origin(StrEnum):
    """Where it was seen."""

    LOG = "log"
    KERNEL = "kernel"
    FINDING = "finding"
    """Of the daemon, open now or in the journal."""
    JOURNAL = "journal"
    """Any other line of the journal: told in the timeline, never weighed."""


@dataclass(frozen=True, slots=True)
class Clue:
    """What was seen, when, and about whom."""

    origin: Origin
    kind: str
    """Of a log line its kind; of a finding its rule."""
    text: str
    where: str
    """`train.log:12`, or `npu-watchd`: for a person who wants to see it himself."""
    at_s: float | None
    """Unix seconds; None: no telling."""
    role: Role = Role.FAULT
    device_id: str | None = None
    """Of a log line: as the job numbers its devices."""
    rank: int | None = None
    pid: int | None = None
    blames: str | None = None
    code: str | None = None
    says: str | None = None
    critical: bool = False
    until_s: float | None = None
    """A finding's end; None: it stands, or it is no finding."""


def of_log(name: str, events: Iterable[LogEvent], offset_s: float, origin: Origin = Origin.LOG) -> Iterator[Clue]:
    """The clues of one log. offset_s: what its clock was ahead of UTC, where its own lines do not say."""
    for event in events:
        ahead_s = offset_s if event.utc_offset_s is None else event.utc_offset_s
        yield Clue(
            origin=origin,
            kind=_kind(event),
            text=event.text,
            where=f"{name}:{event.line}",
            at_s=None if event.local_s is None else event.local_s - ahead_s,
            role=event.role,
            device_id=None if event.device_id is None else str(event.device_id),
            rank=event.rank,
            pid=event.pid,
            blames=event.blames,
            code=event.code,
            says=event.says,
        )


def _kind(event: LogEvent) -> str:
    """Two kinds weigh less than their words: a warning that versions differ, and the end of a stranger's process."""
    if event.kind == "versions_do_not_fit" and event.level in _WARNINGS:
        return "versions_warned"
    if event.kind == "oom_kill" and not (event.process or "").lower().startswith(_JOBS_OWN):
        return "oom_kill_of_other"
    return event.kind


def of_journal(events: Iterable[Event]) -> Iterator[Clue]:
    """Findings from their opening to their end, and all else as it stands."""
    opened: dict[tuple[str, str], Clue] = {}
    for event in events:
        key = (event.rule or "", str(event.facts.get("subject", event.device_id)))
        if event.kind == "finding_opened" and event.rule:
            critical = event.facts.get("severity") == "critical"
            opened[key] = _finding(event.rule, event.text, event.at_s, event.device_id, critical=critical)
        elif event.kind == "finding_resolved" and event.rule:
            clue = opened.pop(key, None) or _finding(
                event.rule, event.text, event.at_s, event.device_id, critical=False
            )
            yield _ended(clue, event.at_s)
        elif event.kind not in _DULL:
            yield Clue(
                Origin.JOURNAL, event.kind, event.text, "npu-watchd events", event.at_s, Role.NOTE, event.device_id
            )
    yield from opened.values()


_DULL = frozenset({"finding_changed", "finding_held", "finding_seen_again", "device_seen", "port_seen"})


def of_document(document: Document) -> Iterator[Clue]:
    """The findings that stand now."""
    for finding in document.get("findings") or ():
        critical = finding.get("severity") == "critical"
        since_s = finding.get("since")
        yield _finding(
            str(finding.get("rule")),
            str(finding.get("summary")),
            float(since_s) if isinstance(since_s, int | float) else None,
            finding.get("device_id"),
            critical=critical,
        )


def once(clues: Iterable[Clue]) -> tuple[Clue, ...]:
    """Without the second telling of one finding: the journal and the snapshot both have those that stand."""
    kept: dict[object, Clue] = {}
    for number, clue in enumerate(clues):
        standing = clue.origin is Origin.FINDING and clue.until_s is None
        subject = clue.device_id or clue.text
        key: object = (clue.kind, subject) if standing else number
        kept.setdefault(key, clue)
    return tuple(sorted(kept.values(), key=lambda clue: (clue.at_s is None, clue.at_s or 0.0)))


def _finding(rule: str, text: str, at_s: float | None, device_id: str | None, *, critical: bool) -> Clue:
    return Clue(Origin.FINDING, rule, text, "npu-watchd status", at_s, Role.FAULT, device_id, critical=critical)


def _ended(clue: Clue, at_s: float) -> Clue:
    return replace(clue, until_s=at_s, where="npu-watchd events")
