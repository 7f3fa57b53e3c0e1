"""Subjects, labels, events and findings as text in the database, and back."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from npu_watchd.memory.rows import Labels
from npu_watchd.model.fabric import PortKey
from npu_watchd.model.finding import Action, Event, Evidence, Finding, Severity
from npu_watchd.model.ids import NODE, DeviceKey, Subject

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
