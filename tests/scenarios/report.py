"""The campaign as a table for people: each case with what it brought, and precision and recall of them all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from npu_watchd.rules import RULES
from tests.scenarios.label import Case, Text
from tests.scenarios.score import Score


def lines(played: Iterable[tuple[Case, Score]]) -> Iterator[str]:
    """The table, the rules, and the sum. What is wrong stands below its case."""
    rows = tuple(played)
    width = max(len(case.name) for case, _ in rows)
    yield f"{'':4}{'case':<{width}}  {'node':<9}  {'through':<9}  labels"
    for case, score in rows:
        mark = "" if not score.complaints else "BAD"
        through = "tool text" if isinstance(case.how, Text) else "snapshots"
        yield f"{mark:<4}{case.name:<{width}}  {case.how.generation:<9}  {through:<9}  {_labels(case)}"
        yield from (f"{'':4}  {complaint}" for complaint in score.complaints)
    yield ""
    for rule in RULES:
        mine = [(case, label) for case, score in rows for label in score.right if label.rule == rule.id]
        nodes = ", ".join(sorted({case.how.generation for case, _ in mine}))
        yield f"{rule.id:<20} {len(mine):>3} found in {len({case.name for case, _ in mine}):>2} cases: {nodes}"
    yield ""
    yield total(rows)


def total(rows: Iterable[tuple[Case, Score]]) -> str:
    """One line with the sum."""
    rows = tuple(rows)
    found = sum((score for _, score in rows), Score())
    faults = sum(bool(case.expected) for case, _ in rows)
    return (
        f"{faults} faulty cases and {len(rows) - faults} healthy ones, {len(found.right) + len(found.missed)} findings "
        f"expected: precision {found.precision:.3f}, recall {found.recall:.3f}"
    )


def _labels(case: Case) -> str:
    found = [f"{label.rule} {label.subject} {_weight(label.weights[-1])}" for label in case.expected]
    return "; ".join(found) or "healthy"


def _weight(weight: tuple[str, bool]) -> str:
    return "quarantine" if weight[1] else weight[0]
