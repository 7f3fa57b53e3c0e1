"""The page's table of probes: whether each answers, how long it takes, and how it has failed."""

from __future__ import annotations

from markupsafe import Markup

from npu_watchd.model.snapshot import ProbeState, ProbeTally, Snapshot
from npu_watchd.sinks.web.table import UNKNOWN

_HEADS = (
    ("Probe", ""),
    ("Answers", ""),
    ("Last success", "number"),
    ("Took", "number"),
    ("Failures since the start", ""),
    ("Unknown keys", "number"),
)

_ROW = Markup(
    '<tr><td data-title="Probe">{probe}</td><td data-title="Answers">{answers}</td>'
    '<td class="number" data-title="Last success">{age}</td><td class="number" data-title="Took">{took}</td>'
    '<td data-title="Failures">{failures}</td><td class="number" data-title="Unknown keys">{unknown}</td></tr>'
)


def probes_section(snapshot: Snapshot) -> Markup:
    """The table, a row a probe, in the order in which the snapshot names them."""
    states: dict[str, list[ProbeState]] = {}
    for state in snapshot.probes:
        states.setdefault(state.probe, []).append(state)
    tallies = {tally.probe: tally for tally in snapshot.tallies}
    names = dict.fromkeys([*states, *tallies])
    if not names:
        return Markup('<section id="probes">\n<h2>Probes</h2>\n<p>None was asked yet.</p>\n</section>')
    rows = Markup("\n").join(_row(name, states.get(name, []), tallies.get(name), snapshot.at.wall_s) for name in names)
    heads = Markup("").join(Markup('<th scope="col" class="{}">{}</th>').format(kind, head) for head, kind in _HEADS)
    return Markup(
        '<section id="probes">\n<h2>Probes</h2>\n<div class="scroll"><table>\n<thead><tr>{}</tr></thead>\n'
        "<tbody>\n{}\n</tbody>\n</table></div>\n</section>"
    ).format(heads, rows)


def _row(name: str, states: list[ProbeState], tally: ProbeTally | None, now_s: float) -> Markup:
    return _ROW.format(
        probe=name,
        answers=_answers(states),
        age=UNKNOWN if tally is None else _age(tally.last_success_wall_s, now_s),
        took=UNKNOWN if tally is None or tally.duration_s is None else f"{tally.duration_s:.2f} s",
        failures=UNKNOWN if tally is None else _failures(tally),
        unknown=UNKNOWN if tally is None else str(tally.unknown_keys),
    )


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
