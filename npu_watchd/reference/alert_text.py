"""`npu-watchd explain ALERT`: all that the tables say of one alert."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from npu_watchd.config.limit_text import by_chip, written
from npu_watchd.limits import BY_NAME, Limit, Limits
from npu_watchd.reference.fleet_alerts import FLEET_ALERTS, FleetAlert
from npu_watchd.reference.telling import SUBJECTS, VARIES
from npu_watchd.rules import RULES
from npu_watchd.rules.rule import Rule

_WIDTH = 12
BY_DEFAULT = Limits()


def alert_explanation(name: str, here: Limits = BY_DEFAULT, off: Collection[str] = ()) -> list[str] | None:
    """The lines for a person; name: a rule's id or an alert's name, in any case. None where there is no such alert.

    here, off: the limits as the config has them, and the rules that it switches off.
    """
    wanted = name.strip().casefold()
    rule = next((rule for rule in RULES if wanted in (rule.id.casefold(), rule.alert.casefold())), None)
    if rule is not None:
        return _laid_out(_head(rule, off), rule.summary, _of_rule(rule, here))
    alert = next((alert for alert in FLEET_ALERTS if wanted == alert.alert.casefold()), None)
    if alert is not None:
        return _laid_out(f"{alert.alert}  {alert.severity}", alert.summary, _of_fleet(alert))
    return None


def _laid_out(head: str, summary: str, facts: Iterator[tuple[str, str]]) -> list[str]:
    return [head, summary, "", *(f"  {name:{_WIDTH}}{text}" for name, text in facts)]


def _head(rule: Rule, off: Collection[str]) -> str:
    return f"{rule.alert}  {rule.id}  {rule.severity.value}{'  (switched off here)' if rule.id in off else ''}"


def _of_rule(rule: Rule, here: Limits) -> Iterator[tuple[str, str]]:
    yield "about a", " or ".join(SUBJECTS[rule.id])
    yield "severity", rule.severity.value
    yield "quarantines", "yes" if rule.quarantines else "no"
    yield "action", rule.action.value
    if rule.id in VARIES:
        yield "varies", VARIES[rule.id]
    yield "needs", ", ".join(rule.needs)
    yield from _limits(tuple(BY_NAME[name] for name in rule.limits), here)
    if rule.calm_s:
        yield "ends", f"once the condition has been gone for {rule.calm_s:g} s; held while what it needs cannot be read"
    else:
        yield "ends", "once the condition is gone; held while what it needs cannot be read"
    yield "runbook", f"docs/runbooks/{rule.alert}.md"


def _of_fleet(alert: FleetAlert) -> Iterator[tuple[str, str]]:
    yield "about a", alert.subject
    yield "severity", alert.severity
    yield "quarantines", "no"
    yield "action", alert.action
    yield "needs", "Prometheus with deploy/prometheus/npu-watchd.rules.yml"
    yield from _limits(alert.all_limits)
    yield "runbook", f"docs/runbooks/{alert.alert}.md"


def _limits(limits: tuple[Limit, ...], here: Limits = BY_DEFAULT) -> Iterator[tuple[str, str]]:
    for at, limit in enumerate(limits):
        own = f"; {by_chip(limit)}" if limit.by_chip else ""
        if limit.name in here.given:
            own += f"; here {here[limit.name]:g}"
        yield "limits" if at == 0 else "", f"{written(limit)}{own}  ({limit.unit}; {limit.source}) {limit.why}"
