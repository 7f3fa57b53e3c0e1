"""Versions that do not belong together, by the vendor's own tables; what they do not know is no finding."""

from __future__ import annotations

from collections.abc import Iterable

from npu_watchd.compatibility.matching import misfits
from npu_watchd.model.finding import Action, Evidence, Severity
from npu_watchd.model.ids import NODE
from npu_watchd.rules.rule import Judgement, Rule, Unseen, Verified, View

_SHOWN = 4
"""Pairs that are named one by one."""


def _mismatch(view: View) -> Iterable[Judgement]:
    snapshot = view.snapshot
    if snapshot.installed is None:
        because = snapshot.blind.get("versions")
        if because is not None:
            yield Unseen(NODE, because)
        return
    found = misfits(snapshot.installed)
    if found:
        told = [f"{one.part} and {one.beside}: {one.why}" for one in found[:_SHOWN]]
        more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        evidence = tuple(
            Evidence(one.part, one.beside, one.would, "", None, one.where or one.source or "") for one in found[:_SHOWN]
        )
        yield Verified(NODE, f"versions that do not belong together: {'; '.join(told)}{more}", evidence)
    elif ("version_mismatch", NODE) in view.active and snapshot.installed.failures:
        # A file that cannot be read any more has not been mended.
        yield Unseen(NODE, next(iter(snapshot.installed.failures.values())))


VERSIONS: tuple[Rule, ...] = (
    Rule(
        "version_mismatch",
        "NpuVersionMismatch",
        Severity.WARNING,
        False,
        Action.ALIGN_VERSIONS,
        ("versions",),
        (),
        "Driver and firmware, CANN and a framework, or two packages are in no row of the vendor's tables together.",
        _mismatch,
    ),
)
