"""Verdicts as lines for a terminal, from the document of `/api/v1/snapshot`; and what each state means."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from npu_watchd.model.verdict import State
from npu_watchd.sinks.plaintext import clean

Document = Mapping[str, Any]
"""The JSON of `/api/v1/snapshot`, or of one verdict in it (docs/api.md)."""

_LINE_MAX = 500
_NAME_MAX = 64


@dataclass(frozen=True, slots=True)
class Terms:
    """How long the states last here, in seconds, as the limits have it."""

    calm_s: float
    clean_s: float
    load_s: float


def of_node(document: Document) -> Document | None:
    """The node's verdict; None where nothing was judged."""
    return next((one for one in document["verdicts"] if one["subject"] == "node"), None)


def of_device(document: Document, device_id: str) -> Document | None:
    return next((one for one in document["verdicts"] if one["device_id"] == device_id), None)


def of_port(document: Document, rdma_device: str, port: int) -> Document | None:
    wanted = (rdma_device, port)
    return next((one for one in document["verdicts"] if (one["rdma_device"], one["port"]) == wanted), None)


def state_line(verdict: Document) -> str:
    """`quarantine since 2026-11-30 03:12:09Z; next: reset device`."""
    at = datetime.fromtimestamp(verdict["since"], UTC).strftime("%Y-%m-%d %H:%M:%SZ")
    action = "" if verdict["action"] is None else f"; next: {verdict['action'].replace('_', ' ')}"
    return f"{verdict['state']} since {at}{action}"


def reason_lines(verdict: Document, most: int = 20, width: int = _LINE_MAX) -> Iterator[str]:
    """Why, the worst first; then what else a reader must know of it. width: characters of a reason."""
    reasons = verdict["reasons"]
    yield from (clean(reason["text"], width) for reason in reasons[:most])
    if len(reasons) > most:
        yield f"and {len(reasons) - most} more"
    if verdict["held"]:
        yield "held: nothing of it is seen any longer; only a release ends it"
    if verdict["blind"]:
        yield "blind: something without which nobody may call it healthy cannot be seen now"


def verdict_lines(verdict: Document, most: int = 20) -> Iterator[str]:
    """As `explain device` begins, indented by two."""
    yield f"  verdict {state_line(verdict)}"
    yield from (f"    {line}" for line in reason_lines(verdict, most))


def unhealthy_parts(document: Document) -> Iterator[tuple[str, Document]]:
    """Devices and ports that are not healthy; those of which the same is to be said share a name."""
    alike: dict[str, list[Document]] = {}
    for one in document["verdicts"]:
        if one["subject"] != "node" and one["state"] != State.HEALTHY:
            said = [one[key] for key in ("state", "action", "held", "blind", "reasons")]
            alike.setdefault(repr(said), []).append(one)
    for group in alike.values():
        yield _names(group), min(group, key=lambda one: float(one["since"]))


def _names(verdicts: Iterable[Document]) -> str:
    ids, ports = [], []
    for one in verdicts:
        if one["device_id"] is not None:
            ids.append(one["device_id"])
        else:
            ports.append(f"port {clean(one['subject'], _NAME_MAX)}")
    devices = [f"device{'s' if len(ids) > 1 else ''} {', '.join(ids)}"] if ids else []
    return ", ".join([*devices, *ports])


def verdict_story(document: Document | None, age_s: float, stale_s: float, terms: Terms) -> Iterator[str]:
    """`explain verdict`: the node's verdict, the parts that are not healthy, and what the states mean.

    document: None where no daemon runs; then the states alone are explained.
    """
    if document is None:
        yield "no daemon runs here, so there is no verdict; what the states would mean:"
    else:
        yield from _node_story(document)
        if age_s > stale_s:
            yield f"STALE: the daemon last wrote this {age_s:.0f} s ago, so the node is unknown now"
        yield ""
        yield "what the states mean"
    for state, meaning, way_out in _meanings(terms):
        yield f"  {state:10}  {meaning}"
        yield f"  {'':10}  {way_out}"
    yield ""
    yield "A node's verdict is the worst of its own and its parts': quarantine, unknown, probation, watch, healthy."
    yield "[quarantine] node_when says how many quarantined devices quarantine the node; fewer are watched."


def _node_story(document: Document) -> Iterator[str]:
    verdict = of_node(document)
    yield clean(document["node"], _NAME_MAX)
    if verdict is None:
        yield "  nothing has been judged yet"
        return
    # Its parts tell their own below.
    yield from verdict_lines(verdict, 3)
    parts = list(unhealthy_parts(document))
    yield ""
    yield "parts that are not healthy"
    for name, part in parts:
        yield f"  {name}: {state_line(part)}"
        yield from (f"    {line}" for line in reason_lines(part))
    if not parts:
        yield "  none"


def _meanings(terms: Terms) -> Iterator[tuple[State, str, str]]:
    """Each state, what it means, and what leads out of it: as decide/judge.py has it."""
    yield (
        State.HEALTHY,
        "All that is vital is seen, and nothing is found. Jobs may run.",
        "Left when anything is found, or when something vital cannot be seen.",
    )
    yield (
        State.WATCH,
        "Something is found that does not quarantine, or was a moment ago. Jobs may run.",
        f"Healthy once nothing has been found for {_span(terms.calm_s)}; quarantine by a finding that quarantines.",
    )
    yield (
        State.QUARANTINE,
        "A finding that quarantines, or a person, put it there. No job should run on it.",
        "Left only by `npu-watchd release device N --reason TEXT`, for probation; no reset, reboot or restart ends it.",
    )
    yield (
        State.PROBATION,
        "A person released it. Jobs may run; half the usual repeats of a fault quarantine it again.",
        f"Healthy after {_span(terms.clean_s)} without a fault, {_span(terms.load_s)} of it at work; quarantine at once"
        " by a finding that quarantines.",
    )
    yield (
        State.UNKNOWN,
        "Something vital cannot be seen, was not read yet, or is under maintenance: nobody may call it healthy.",
        "Left as soon as it is seen again; what is seen meanwhile counts, and can quarantine.",
    )


def _span(seconds: float) -> str:
    for unit, length_s in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length_s and seconds % length_s == 0:
            return f"{seconds / length_s:g} {unit}"
    return f"{seconds:g} s"
