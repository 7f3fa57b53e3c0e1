"""The page's table of probes: whether each answers, how long it takes, and how it has failed."""

from __future__ import annotations

from collections.abc import Callable

from markupsafe import Markup

from npu_watchd.model.snapshot import ProbeState, ProbeTally, Snapshot
from npu_watchd.sinks.web.table import UNKNOWN, Column, section, table_section

_Row = tuple[str, list[ProbeState], ProbeTally | None, float]
"""Its name, how it stands by device, its sums, and the time now in Unix seconds."""


def probes_section(snapshot: Snapshot) -> Markup:
    """The table, a row a probe, in the order in which the snapshot names them."""
    states: dict[str, list[ProbeState]] = {}
    for state in snapshot.probes:
        states.setdefault(state.probe, []).append(state)
    tallies = {tally.probe: tally for tally in snapshot.tallies}
    names = dict.fromkeys([*states, *tallies])
    if not names:
        return section("probes", "Probes", Markup("<p>None was asked yet.</p>"))
    rows = [(name, states.get(name, []), tallies.get(name), snapshot.at.wall_s) for name in names]
    return table_section("probes", "Probes", _COLUMNS, rows)


def _of_tally(read: Callable[[ProbeTally], str | None]) -> Callable[[_Row], str]:
    def cell(row: _Row) -> str:
        said = None if row[2] is None else read(row[2])
        return UNKNOWN if said is None else said

    return cell


def _answers(states: list[ProbeState]) -> Markup:
    if not states:
        return Markup('<span class="quiet">not asked</span>')
    up = sum(1 for state in states if state.up)
    text = ("yes" if up else "no") if len(states) == 1 else f"{up} of {len(states)}"
    return Markup('<span class="state state-{}">{}</span>').format("ok" if up == len(states) else "unknown", text)


def _age(last_s: float | None, now_s: float) -> str:
    return "never" if last_s is None else f"{max(0.0, now_s - last_s):.0f} s before"


def _failures(tally: ProbeTally) -> str:
    return ", ".join(f"{kind} {times}" for kind, times in tally.failures.items() if times) or "none"


_COLUMNS: tuple[Column[_Row], ...] = (
    Column("Probe", "", lambda row: row[0]),
    Column("Answers", "", lambda row: _answers(row[1])),
    Column(
        "Last success", "number", lambda row: UNKNOWN if row[2] is None else _age(row[2].last_success_wall_s, row[3])
    ),
    Column("Took", "number", _of_tally(lambda one: None if one.duration_s is None else f"{one.duration_s:.2f} s")),
    Column("Failures since the start", "", _of_tally(_failures)),
    Column("Unknown keys", "number", _of_tally(lambda one: str(one.unknown_keys))),
)
