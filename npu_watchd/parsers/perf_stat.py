"""`perf stat -x` and `perf stat -j`: counters of the uncore units, of which the daemon reads `hisi_pcie*_core*`.

Source: perf-stat(1), sections CSV FORMAT and JSON FORMAT; perf 4.18 (no JSON) to 6.12.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from npu_watchd.model.pcie_tools import PerfCounter, PerfStat
from npu_watchd.model.reading import FailureKind
from npu_watchd.parsers.lines import Line, ParseError, lines_of, quoted

# perf does not quote: an event holds the separator where that is a comma, so it is known by its slashes.
_CSV = re.compile(
    r"(?P<value>\d{1,20}(?:\.\d{1,9})?|<not (?:counted|supported)>)(?P<sep>[^\w\s.<>/%-])"
    r"(?P<unit>[^,;|:]{0,20})(?P=sep)(?P<event>\{?[\w.-]+/[^/]*/\w*\}?|[\w.:-]+?)(?P=sep)"
    r"(?P<run>\d{1,20})(?P=sep)(?P<percent>\d{1,3}\.\d\d)(?:(?P=sep).*)?$"
)
_EVENT = re.compile(r"(?P<pmu>[\w.-]+)/(?P<terms>[^/]*)/\w*$")
_COUNT = re.compile(r"\d{1,20}(?:\.\d{1,9})?$")
_WORDS: tuple[tuple[str, FailureKind, str], ...] = (
    (
        "Cannot find PMU",
        FailureKind.UNSUPPORTED,
        "the kernel has no such unit: load hisi_pcie_pmu, or this is no Kunpeng",
    ),
    ("event syntax error", FailureKind.UNSUPPORTED, "this kernel or perf does not know the event"),
    ("is limited", FailureKind.DENIED, "run npu-watchd as root, or give it CAP_PERFMON"),
    ("You may not have permission", FailureKind.DENIED, "run npu-watchd as root, or give it CAP_PERFMON"),
    ("No permission to enable", FailureKind.DENIED, "run npu-watchd as root, or give it CAP_PERFMON"),
    ("perf not found for kernel", FailureKind.MISSING, "install the perf of this kernel"),
)


def parse(text: str) -> PerfStat:
    """Every counter, in perf's order. Raises ParseError; not of kind UNPARSEABLE where perf itself refused."""
    counters: list[PerfCounter] = []
    for line in lines_of(text):
        if line.text.startswith("#"):
            continue
        refused = refusal(line)
        if refused is not None:
            raise refused
        if not line.ended:
            continue  # it may have been cut in the middle of a number
        counters.append(_of_json(line) if line.text.startswith('{"') else _of_csv(line))
    if not counters:
        raise ParseError(1, "no counter in a whole line")
    return PerfStat(tuple(counters))


def refusal(line: Line) -> ParseError | None:
    """What perf says, mostly on stderr, when it does not count at all; None for any other line."""
    for words, kind, cure in _WORDS:
        if words in line.text:
            return ParseError(line.number, f"perf: {quoted(line.text)[1:-1]} ({cure})", kind)
    return None


def _of_csv(line: Line) -> PerfCounter:
    match = _CSV.match(line.text)
    if match is None:
        raise line.refuse("no counter of perf stat -x")
    return _counter(line, match["event"], match["value"], int(match["run"]), float(match["percent"]))


def _of_json(line: Line) -> PerfCounter:
    try:
        entry = json.loads(line.text)
    except (ValueError, RecursionError) as error:
        raise line.refuse("no JSON") from error
    match entry:
        case {
            "counter-value": str(value),
            "event": str(event),
            "event-runtime": int(run),
            "pcnt-running": int() | float() as percent,
        } if not isinstance(run, bool) and not isinstance(percent, bool):
            return _counter(line, event, value, run, float(percent))
    raise line.refuse("no counter of perf stat -j")


def _counter(line: Line, event: str, value: str, run_ns: int, percent: float) -> PerfCounter:
    absence = value.strip("<>") if value in ("<not supported>", "<not counted>") else None
    if absence is None and _COUNT.match(value) is None:
        raise line.refuse(f"{quoted(value)} is no count")
    if run_ns < 0 or not 0 <= percent <= 100:
        raise line.refuse("counted for no possible time")
    counted = absence is None and run_ns > 0 and percent > 0
    if absence is None and not counted:
        raise line.refuse("a value of a counter that never ran")
    pmu, terms = _split(event)
    return PerfCounter(
        event=event,
        pmu=pmu,
        terms=terms,
        value=float(value) if counted else None,
        absence=absence,
        enabled_s=run_ns / 1e9 / (percent / 100) if counted else None,
        running_ratio=percent / 100 if counted else None,
    )


def _split(event: str) -> tuple[str | None, Mapping[str, str | None]]:
    match = _EVENT.match(event.strip("{}"))
    if match is None:
        return None, {}
    terms: dict[str, str | None] = {}
    for term in match["terms"].split(","):
        name, equals, value = term.strip().partition("=")
        terms[name] = value if equals else None
    return match["pmu"], terms
