"""The page's table of the host's RDMA ports."""

from __future__ import annotations

from collections.abc import Mapping

from markupsafe import Markup

from npu_watchd.model.ids import Subject
from npu_watchd.model.snapshot import Port, Snapshot
from npu_watchd.sinks.plaintext import clean
from npu_watchd.sinks.web.table import UNKNOWN, Cell, Column, badge, counts_cell, note, table_section

_NAME_MAX = 64
_FAILURES_SHOWN = 20


def ports_section(snapshot: Snapshot, verdicts: Mapping[Subject, Markup]) -> Markup:
    """The table, a row a port; nothing where the host has none and none is expected."""
    if not snapshot.ports:
        return Markup()
    verdict: Column[Port] = Column("Verdict", "health", lambda port: verdicts.get(port.key, UNKNOWN))
    columns = (*_COLUMNS[:1], verdict, *_COLUMNS[1:])
    return table_section("ports", "Ports of the host", columns, (snapshot.ports[key] for key in sorted(snapshot.ports)))


def _state(port: Port) -> Cell:
    """A port that never was up need not be: it is shown, and marked as nothing."""
    if port.present is False:
        return badge("missing", "missing")
    word = port.facts.state if port.facts else None
    if port.up:
        return badge("ok", "Active")
    if port.up is False and not port.expected:
        return Markup("{}{}").format(word, note("not up since we started"))
    if port.up is False:
        return badge("alarm", "no link" if word == "Active" else str(word))
    return badge("unknown", word or "not known")


def _physical(port: Port) -> Cell:
    return (port.facts.physical_state if port.facts else None) or UNKNOWN


def _rate(port: Port) -> Cell:
    """What a port that is not up is said to do is a leftover or a default."""
    rate = port.facts.rate_gbps if port.facts and port.up is not False else None
    return UNKNOWN if rate is None else f"{rate:g} Gb/s"


def _downs(port: Port) -> Cell:
    downs = port.counters.link_downs if port.counters else None
    return UNKNOWN if downs is None else str(downs)


def _errors(port: Port) -> Cell:
    if port.counters is None:
        return UNKNOWN
    cell = counts_cell(port.counters.errors)
    failures = port.counters.failures
    if not failures:
        return cell
    why = "\n".join(f"{file}: {words}" for file, words in list(failures.items())[:_FAILURES_SHOWN])
    words = "1 file cannot be read" if len(failures) == 1 else f"{len(failures)} files cannot be read"
    return Markup("{}{}").format(cell, note(words, "\n".join(clean(line, 300) for line in why.splitlines())))


def _text(value: str | None) -> Cell:
    return clean(value, _NAME_MAX) if value else UNKNOWN


_COLUMNS: tuple[Column[Port], ...] = (
    Column("Port", "id", lambda port: clean(str(port.key), _NAME_MAX)),
    Column("Net device", "name", lambda port: _text(port.netdev)),
    Column("State", "health", _state),
    Column("Physical", "", _physical),
    Column("Rate", "number", _rate),
    Column("Link layer", "", lambda port: _text(port.facts.link_layer if port.facts else None)),
    Column("Link downs", "number", _downs),
    Column("Errors", "tally", _errors),
)
