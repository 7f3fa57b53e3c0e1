"""`npu-watchd explain ALERT`: what a rule looks at, what it compares with, and what it asks for."""

from __future__ import annotations

from npu_watchd.limits import BY_NAME, Limits
from npu_watchd.rules import RULES
from npu_watchd.rules.rule import Rule


def alert_explanation(name: str, limits: Limits, off: frozenset[str] = frozenset()) -> list[str] | None:
    """Lines for a person; None for what is no rule and no alert. Case does not matter."""
    wanted = name.lower()
    rule = next((rule for rule in RULES if wanted in (rule.id, rule.alert.lower())), None)
    return None if rule is None else list(_lines(rule, limits, off))


def _lines(rule: Rule, limits: Limits, off: frozenset[str]) -> list[str]:
    quarantine = "can take the device away from jobs" if rule.quarantines else "never quarantines"
    lines = [
        f"{rule.alert}  (rule {rule.id}{', switched off here' if rule.id in off else ''})",
        rule.summary,
        "",
        f"  severity  {rule.severity.value} at worst; {quarantine}",
        f"  action    {rule.action.value}",
        f"  probes    {', '.join(rule.needs)}; while one of them is blind, a finding is held and not resolved",
        f"  runbook   docs/runbooks/{rule.alert}.md",
    ]
    for key in rule.limits:
        limit = BY_NAME[key]
        here = "" if limits[key] == limit.default else f" (by default {limit.default:g})"
        lines.append(f"  limit     {key} = {limits[key]:g} {limit.unit}{here}: {limit.why} Source: {limit.source}")
    return lines
