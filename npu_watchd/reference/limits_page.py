"""docs/limits.md."""

from __future__ import annotations

from collections.abc import Iterable

from npu_watchd.config.limit_text import by_chip, number
from npu_watchd.limits import ASSUMPTION, Limit
from npu_watchd.reference.markdown import made, table
from npu_watchd.rules.rule import Rule

_HEAD = ("key", "default", "unit", "one silicon's own", "why", "source", "alerts")


def limits_page(limits: Iterable[Limit], rules: Iterable[Rule]) -> str:
    lines = [
        made("npu_watchd/limits.py"),
        "",
        "# Limits",
        "",
        "Every threshold of the daemon's rules. Change one for all chips in `[limits]`, for one silicon in",
        '`[limits.chip."910B3"]`. Durations are written with their unit (`port_down_s = "4m"`), the rest as plain',
        "numbers in the unit of the table. The limits of the alerts that only Prometheus can hold are in",
        "[alerts.md](alerts.md).",
        "",
        f"**{ASSUMPTION}**: nobody has published a number for this; ours is a guess, not yet checked on a fleet.",
        *table(_HEAD, (_row(limit, tuple(rules)) for limit in limits)),
    ]
    return "\n".join(lines) + "\n"


def _row(limit: Limit, rules: tuple[Rule, ...]) -> tuple[str, ...]:
    source = limit.source.replace(ASSUMPTION, f"**{ASSUMPTION}**")
    used = ", ".join(f"[{rule.alert}](runbooks/{rule.alert}.md)" for rule in rules if limit.name in rule.limits)
    default = f"`{number(limit)}`"
    return f"`{limit.name}`", default, limit.unit, by_chip(limit) or "–", limit.why, source, used or "–"
