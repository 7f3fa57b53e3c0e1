"""The diagnosis as text for a terminal, and as a document."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from npu_watchd.diagnose.cause import ADVICE, Cause
from npu_watchd.diagnose.clue import Clue, Origin
from npu_watchd.diagnose.first import First, first_failure
from npu_watchd.diagnose.incident import Incident
from npu_watchd.diagnose.ranking import Point, Ranked, ranking
from npu_watchd.model.log_event import Role

_HEAD = re.compile(r"^\[[A-Z]{4,9}\] ?[A-Z_]{2,24}\([^)]{1,160}\):\S{1,40} {0,2}\[[^\]]{1,200}\] ?(?:\[?\d+\]?)? ?")
"""What stands before the message in the vendor's logs; time, place and device are told apart from it."""
_MOST_POINTS = 5
_MOST_ROWS = 40
_MOST_CANDIDATES = 3


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """One incident, judged."""

    incident: Incident
    causes: tuple[Ranked, ...]
    first: First | None


def diagnosis(incident: Incident) -> Diagnosis:
    return Diagnosis(incident, ranking(incident), first_failure(incident.clues))


def document(found: Diagnosis) -> dict[str, Any]:
    """The JSON of docs/diagnose.md. null: not known."""
    incident, first = found.incident, found.first
    return {
        "cause": found.causes[0].cause.value,
        "device_ids": list(found.causes[0].device_ids),
        "causes": [_cause_document(ranked) for ranked in found.causes],
        "first": None if first is None else _first_document(first),
        "ended_at": incident.ended_s,
        "devices": sorted(incident.devices),
        "devices_by_pid": incident.devices_by_pid,
        "watched": incident.watched,
        "jobs": list(incident.jobs),
        "versions": dict(incident.versions),
        "timeline": [_clue_document(clue) for clue in incident.clues],
        "notes": list(incident.notes),
    }


def _cause_document(ranked: Ranked) -> dict[str, Any]:
    advice = ADVICE[ranked.cause]
    return {
        "cause": ranked.cause.value,
        "score": ranked.score,
        "title": advice.title,
        "device_ids": list(ranked.device_ids),
        "for": [_point_document(point) for point in ranked.points],
        "against": [_point_document(point) for point in ranked.against],
        "do": list(advice.do),
        "verify": list(advice.verify),
    }


def _point_document(point: Point) -> dict[str, Any]:
    return {
        "text": point.text,
        "where": point.where or None,
        "at": point.at_s,
        "strength": round(point.strength, 2),
        "why": point.why,
        "device_id": point.device_id,
    }


def _first_document(first: First) -> dict[str, Any]:
    return {
        "rank": first.rank,
        "device_id": first.device_id,
        "at": first.clue.at_s,
        "where": first.clue.where,
        "kind": first.clue.kind,
        "text": first.clue.text,
        "blamed": list(first.blamed),
        "uncertain": first.close is not None,
    }


def _clue_document(clue: Clue) -> dict[str, Any]:
    return {
        "at": clue.at_s,
        "origin": clue.origin.value,
        "kind": clue.kind,
        "role": clue.role.value,
        "device_id": clue.device_id,
        "rank": clue.rank,
        "code": clue.code,
        "where": clue.where,
        "text": clue.text,
    }


def lines(found: Diagnosis, width: int) -> Iterator[str]:
    """Text of at most `width` columns, but for words that are longer."""
    best = found.causes[0]
    yield from _head(best, width)
    yield from _who(found, width)
    yield ""
    others = [ranked for ranked in found.causes if ranked.cause is not Cause.NOT_ENOUGH_EVIDENCE]
    named = best.cause is not Cause.NOT_ENOUGH_EVIDENCE
    yield "causes, by evidence" if named else "candidates, none with enough evidence"
    for ranked in others[:_MOST_CANDIDATES]:
        yield from _cause_lines(ranked, width)
    if not others:
        yield "  none: no line of the logs, and no finding, speaks for any"
    yield ""
    yield "what to do"
    yield from _listed(ADVICE[best.cause].do, width)
    yield "how to see that it was that"
    yield from _commands(ADVICE[best.cause].verify)
    yield ""
    yield from _timeline(found.incident, width)
    for note in found.incident.notes:
        yield from textwrap.wrap(f"note: {note}", width, subsequent_indent="      ")


def _head(best: Ranked, width: int) -> Iterator[str]:
    advice = ADVICE[best.cause]
    devices = f" (device {', '.join(best.device_ids)})" if best.device_ids else ""
    words = best.cause.value.replace("_", " ")
    score = f", score {best.score:.2f}" if best.cause is not Cause.NOT_ENOUGH_EVIDENCE else ""
    yield from textwrap.wrap(f"{words}{devices}{score}: {advice.title}", width)


def _who(found: Diagnosis, width: int) -> Iterator[str]:
    first, incident = found.first, found.incident
    if first is not None:
        rank = f"rank {first.rank}" if first.rank is not None else "a rank that the log does not name"
        device = f", device {first.device_id}" if first.device_id is not None else ""
        close = f"; {first.close.where} is so close that the order is not certain" if first.close else ""
        text = (
            f"first to fail: {rank}{device}, {_moment(first.clue.at_s)}, {first.clue.kind} ({first.clue.where}){close}"
        )
        yield from textwrap.wrap(text, width, subsequent_indent="  ")
        if first.blamed:
            yield from textwrap.wrap(f"the logs point at: {'; '.join(first.blamed)}", width, subsequent_indent="  ")
    if incident.devices:
        how = "by its pids" if incident.devices_by_pid else "by its log's own numbers"
        ids = ", ".join(sorted(incident.devices, key=lambda one: (len(one), one)))
        yield from textwrap.wrap(f"devices of the job ({how}): {ids}", width)
    if incident.jobs:
        yield from textwrap.wrap(f"jobs on them: {', '.join(incident.jobs)}", width)
    if incident.versions:
        yield "versions: " + ", ".join(f"{name} {version}" for name, version in incident.versions.items())


def _cause_lines(ranked: Ranked, width: int) -> Iterator[str]:
    yield f"  {ranked.score:.2f}  {ranked.cause.value.replace('_', ' ')}"
    for sign, points in (("+", ranked.points), ("-", ranked.against)):
        for point in points[:_MOST_POINTS]:
            why = f"; {point.why}" if point.why else ""
            where = f"  [{point.where}{why}]" if point.where else ""
            text = point.text if point.clue is None or point.clue.says is None else _in_our_words(point.clue)
            yield from _wrapped(f"{text}{where}", f"    {sign} ", width, most=4)
        if len(points) > _MOST_POINTS:
            yield f"      and {len(points) - _MOST_POINTS} more"


def _timeline(incident: Incident, width: int) -> Iterator[str]:
    shown = _telling(incident.clues)
    yield "what happened (UTC)"
    if not shown:
        yield "  nothing that we know of"
    for clue, times in shown:
        again = f" (and {times - 1} more like it)" if times > 1 else ""
        who = "".join(
            part
            for part in (
                f" rank {clue.rank}" if clue.rank is not None else "",
                f" device {clue.device_id}" if clue.device_id is not None else "",
            )
        )
        row = f"  {_moment(clue.at_s):19}  {clue.kind}{who}{again}  {clue.where}"
        yield from textwrap.wrap(row, width, subsequent_indent=" " * 23) if len(row) > width else (row,)
        yield from _wrapped(_HEAD.sub("", clue.text), "      ", width, most=2)


def _in_our_words(clue: Clue) -> str:
    code = f" {clue.code}" if clue.code else ""
    return f"{clue.kind.replace('_', ' ')}{code}: {clue.says}"


def _telling(clues: Sequence[Clue]) -> list[tuple[Clue, int]]:
    """The first of each kind, place and device, with how often; at most 40, the first and the last ones."""
    counted: dict[tuple[str, str, str | None], list[Clue]] = {}
    for clue in clues:
        place = clue.where.rpartition(":")[0] if clue.origin is Origin.LOG else clue.text
        if clue.role is not Role.NOTE or clue.origin is Origin.JOURNAL:
            counted.setdefault((clue.kind, place, clue.device_id), []).append(clue)
    shown = [(some[0], len(some)) for some in counted.values()]
    return shown if len(shown) <= _MOST_ROWS else [*shown[: _MOST_ROWS // 2], *shown[-_MOST_ROWS // 2 :]]


def _moment(at_s: float | None) -> str:
    if at_s is None:
        return "time unknown"
    try:
        return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (ValueError, OverflowError, OSError):
        return "time unknown"


def _wrapped(text: str, head: str, width: int, *, most: int) -> Iterator[str]:
    found = textwrap.wrap(text, width, initial_indent=head, subsequent_indent=" " * len(head))
    yield from found[:most]
    if len(found) > most:
        yield " " * len(head) + "…"


def _listed(sentences: Sequence[str], width: int) -> Iterator[str]:
    for sentence in sentences:
        yield from textwrap.wrap(sentence, width, initial_indent="  * ", subsequent_indent="    ")


def _commands(commands: Sequence[str]) -> Iterator[str]:
    """Not wrapped: they are there to be copied."""
    for command in commands:
        yield f"  {command}"
