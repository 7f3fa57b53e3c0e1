"""Subjects, labels, events and findings as text in the database, and back."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from npu_watchd.memory.rows import Labels, Life, PeakRow, SeriesRow, Standing, StateRow, TransitionRow, WitnessRow
from npu_watchd.model.fabric import PortKey
from npu_watchd.model.finding import Action, Event, Evidence, Finding, Severity
from npu_watchd.model.ids import NODE, DeviceKey, Subject

WITNESSES = "witnesses "
"""Before a device: names in the table `meta`, since these rows are few and are written whole."""
EVENT_COLUMNS = "number, at_s, kind, text, device_id, rule, facts"


def text_of_subject(subject: Subject) -> str:
    """`device:NPU:CHIP`, `port:RDMA_DEVICE:PORT` or `node`."""
    if isinstance(subject, DeviceKey):
        return f"device:{subject.npu}:{subject.chip}"
    if isinstance(subject, PortKey):
        return f"port:{_writable(subject.rdma_device)}:{subject.port}"
    return "node"


def subject_of_text(text: str) -> Subject:
    """Raises ValueError for what `text_of_subject` does not write."""
    if text == "node":
        return NODE
    kind, _, rest = text.partition(":")
    name, _, number = rest.rpartition(":")
    if kind == "device":
        return DeviceKey(int(name), int(number))
    if kind == "port":
        return PortKey(name, int(number))
    raise ValueError(f"no subject: {text!r}")


def text_of_labels(labels: Labels) -> str:
    return json_of(labels)


def labels_of_text(text: str) -> Labels:
    return msgspec.json.decode(text, type=Labels)


def json_of(value: object) -> str:
    """What UTF-8 cannot hold (a file's name that is no UTF-8) becomes a question mark: it must not cost the rest."""
    try:
        return msgspec.json.encode(value).decode()
    except UnicodeEncodeError:
        return json.dumps(msgspec.to_builtins(value), ensure_ascii=False).encode(errors="replace").decode()


def _writable(text: str) -> str:
    return text.encode(errors="replace").decode()


def row_of_event(event: Event) -> tuple[object, ...]:
    facts = json_of(dict(event.facts))
    return event.number, event.at_s, event.kind, _writable(event.text), event.device_id, event.rule, facts


def event_of_row(row: tuple[Any, ...]) -> Event:
    """Raises msgspec.DecodeError, a ValueError."""
    facts = msgspec.json.decode(row[6], type=dict[str, str | bool | int | float])
    return Event(row[0], row[1], row[2], row[3], row[4], row[5], facts)


def row_of_finding(finding: Finding) -> tuple[str, str, str]:
    body = msgspec.to_builtins(finding)
    del body["rule"], body["subject"]
    return finding.rule, text_of_subject(finding.subject), json_of(body)


def finding_of_row(rule: str, subject: str, body: str) -> Finding:
    """Raises ValueError, KeyError or TypeError for what this version does not write."""
    fields = msgspec.json.decode(body, type=dict[str, Any])
    fields["severity"] = Severity(fields["severity"])
    fields["action"] = Action(fields["action"])
    fields["evidence"] = msgspec.convert(fields["evidence"], tuple[Evidence, ...])
    fields["jobs"] = tuple(fields["jobs"])
    return Finding(rule=rule, subject=subject_of_text(subject), **fields)


def standing_of_text(text: str) -> Standing:
    return msgspec.json.decode(text, type=Standing)


def row_of_series(row: SeriesRow) -> tuple[object, ...]:
    who, labels, life = text_of_subject(row.subject), text_of_labels(row.labels), row.life
    seen = (row.first_s, row.seen_s, row.here, row.value, row.low)
    return (row.number, row.metric, who, labels, *seen, life.boot_id, life.driver, life.run)


def series_of_row(number: int, metric: str, subject: str, labels: str, *rest: Any) -> SeriesRow:
    first_s, seen_s, here, value, low, boot_id, driver, run = rest
    who, life = subject_of_text(subject), Life(boot_id, driver, run)
    return SeriesRow(number, metric, who, labels_of_text(labels), first_s, seen_s, bool(here), value, low, life)


def state_of_row(number: int, name: str, subject: str, current: int | None) -> StateRow:
    return StateRow(number, name, subject_of_text(subject), None if current is None else bool(current))


def transition_of_row(state: int, at_s: float, value: int) -> TransitionRow:
    return TransitionRow(state, at_s, bool(value))


def row_of_peak(row: PeakRow) -> tuple[object, ...]:
    return row.metric, text_of_subject(row.subject), text_of_labels(row.labels), row.value


def peak_of_row(metric: str, subject: str, labels: str, value: float) -> PeakRow:
    return PeakRow(metric, subject_of_text(subject), labels_of_text(labels), value)


def row_of_witnesses(told: tuple[Subject, tuple[WitnessRow, ...]]) -> tuple[str, str]:
    return WITNESSES + text_of_subject(told[0]), json_of(told[1])


def witnesses_of_row(name: str, text: str) -> tuple[Subject, tuple[WitnessRow, ...]]:
    rows = msgspec.json.decode(text, type=tuple[tuple[str, float, tuple[str, ...]], ...])
    return subject_of_text(name.removeprefix(WITNESSES)), tuple(map(WitnessRow._make, rows))
