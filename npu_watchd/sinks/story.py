"""The journal and one device's story as lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from npu_watchd.model.finding import Event
from npu_watchd.sinks import verdict_text
from npu_watchd.sinks.terminal import NOTHING, shown_safely

Document = Mapping[str, Any]
"""The JSON of `/api/v1/snapshot` (docs/api.md)."""


def event_line(event: Event) -> str:
    """One line of the journal, its time in UTC."""
    at = datetime.fromtimestamp(event.at_s, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
    return f"{at}  {event.kind:20}  {shown_safely(event.text)}"


def device_story(
    device_id: str, document: Document | None, events: Iterable[Event], stale_s: float | None = None
) -> Iterator[str]:
    """All that is known of one device: its verdict, who it is, what stands with its evidence, what happened.

    stale_s: the document is that old, and no newer one came. Nothing: not known.
    """
    device = next((one for one in (document or {}).get("devices", ()) if one["device_id"] == device_id), None)
    past = [event_line(event) for event in events]
    if device is None and not past:
        return
    yield f"device {device_id}"
    if device is None:
        yield "  no daemon that runs shows it: this is the journal alone"
    else:
        if stale_s is not None:
            yield f"  STALE: the daemon last wrote this {stale_s:.0f} s ago, so the device is unknown now"
        yield from _verdict(device_id, document or {})
        health = "not present" if device["present"] is False else device["health"]
        where = f"NPU {device['npu']} chip {device['chip']}, {shown_safely(device['pci_address'])}"
        yield f"  {shown_safely(device['name'])}, {where}"
        yield f"  health {health}; error codes {' '.join(device['error_codes'] or ()) or NOTHING}"
        for probe, failure in device["blind"].items():
            yield f"  cannot be seen: {probe}: {shown_safely(failure['detail'])}"
        yield from _story_of_findings([one for one in (document or {})["findings"] if one["device_id"] == device_id])
    yield ""
    yield "what happened"
    yield from (f"  {line}" for line in past or ("nothing is written of it",))


def _verdict(device_id: str, document: Document) -> Iterator[str]:
    verdict = verdict_text.of_device(document, device_id)
    if verdict is None:
        yield "  no verdict yet"
    else:
        yield from verdict_text.verdict_lines(verdict)


def _story_of_findings(findings: Iterable[Document]) -> Iterator[str]:
    for finding in findings:
        yield ""
        yield f"{finding['alert']} ({finding['severity']}): {shown_safely(finding['summary'])}"
        if finding["held"]:
            yield f"  held: it cannot be seen now: {shown_safely(finding['held_because'])}"
        if finding["acknowledged"] is not None:
            yield f"  acknowledged {shown_safely(finding['acknowledged'])}"
        for evidence in finding["evidence"]:
            limit = "" if evidence["limit"] is None else f", limit {evidence['limit']}"
            yield f"  {evidence['metric']}: {evidence['observed']}{limit} {evidence['unit']}".rstrip()
            yield f"    check: {shown_safely(evidence['source'])}"
        yield f"  next: {finding['action'].replace('_', ' ')}"
