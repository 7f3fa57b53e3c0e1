"""What is asked of hccn_tool, for the NPUs' own RoCE ports (910A, 910B and A3: one a logic id)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from npu_watchd.model.ids import DeviceKey
from npu_watchd.model.reading import Failure, FailureKind, Output
from npu_watchd.parsers import hccn, hccn_optical, hccn_stat, hccn_words
from npu_watchd.sources.probe import Probe, Scope, Target, Understood

_DEADLINE_S = 10.0


def _probe(name: str, question: str, every_s: float, parse: Callable[[str], Any]) -> Probe:
    """`hccn_tool -i N -QUESTION -g`, where N is the logic id. A failed query is a failure, never a link down."""

    def arguments(target: Target) -> tuple[str, ...]:
        return ("-i", str(target.logic_id), f"-{question}", "-g")

    def read(answer: Output, target: Target) -> Understood | Failure:
        assert target.npu is not None
        assert target.chip is not None
        if answer.exit_code < 0:
            return Failure(FailureKind.EXIT, f"hccn_tool was ended by signal {-answer.exit_code}")
        found = hccn_words.read(answer, parse)
        if isinstance(found, Failure):
            # A tool that was there to be started and lacks its libraries is broken; it is not one that nobody needs.
            unusable = found.kind is FailureKind.MISSING and "shared libraries" in found.detail
            return replace(found, kind=FailureKind.EXIT) if unusable else found
        return Understood({DeviceKey(target.npu, target.chip): found}, getattr(found, "unknown_keys", ()))

    return Probe(name, "hccn_tool", arguments, Scope.PORT, every_s, _DEADLINE_S, read, hccn_words.is_busy)


HCCN_PROBES: tuple[Probe, ...] = (
    _probe("hccn_link", "link", 60, hccn.link),
    _probe("hccn_link_stat", "link_stat", 60, hccn.link_history),
    _probe("hccn_stat", "stat", 60, hccn_stat.parse),
    _probe("hccn_net_health", "net_health", 60, hccn.net_health),
    _probe("hccn_optical", "optical", 60, hccn_optical.parse),
    # What was negotiated changes only when the link comes up, and then it may be half of what it was.
    _probe("hccn_speed", "speed", 120, hccn.speed),
)
