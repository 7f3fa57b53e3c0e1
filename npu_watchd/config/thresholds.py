"""`[limits]`: the rules' thresholds as the config changes them, for all chips or for one silicon."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from npu_watchd.config.sections import Config
from npu_watchd.config.values import BadValue, Seconds, Size, described
from npu_watchd.limits import BY_NAME, Limit, Limits

_ORDERED = (
    ("isolated_pages_warning", "isolated_pages_critical"),
    ("chip_warning_celsius", "chip_critical_celsius"),
    ("hbm_warning_celsius", "hbm_critical_celsius"),
    ("optical_transmit_low_watts", "optical_transmit_high_watts"),
    ("optical_receive_low_watts", "optical_receive_high_watts"),
)
"""Limits of which the first must be below the second."""

Problem = tuple[str, str, str]
"""Key, what is wrong, what to write instead."""


def limits_of(config: Config) -> Limits:
    """The limits as they hold. Raises KeyError or BadValue for what `problems` names."""
    general = {name: _value(BY_NAME[name], raw) for name, raw in config.limits.items() if name != "chip"}
    by_chip = {
        chip: {name: _value(BY_NAME[name], raw) for name, raw in own.items()}
        for chip, own in config.limits.get("chip", {}).items()
    }
    return Limits(general, by_chip)


def problems(given: Mapping[str, Any]) -> Iterator[Problem]:
    """What is wrong with the table `[limits]`."""
    chips = given.get("chip", {})
    found = list(_of_table("limits", {name: raw for name, raw in given.items() if name != "chip"}))
    if not isinstance(chips, dict) or not all(isinstance(own, dict) for own in chips.values()):
        found.append(("limits.chip", "is no table of tables", 'write [limits.chip."910B3"]'))
        chips = {}
    for chip, own in chips.items():
        found += _of_table(f'limits.chip."{chip}"', own)
    yield from found
    if not found:
        yield from _order(Limits(_values(given), {chip: _values(own) for chip, own in chips.items()}))


def _of_table(prefix: str, given: Mapping[str, Any]) -> Iterator[Problem]:
    for name, raw in given.items():
        limit = BY_NAME.get(name)
        if limit is None:
            near = get_close_matches(name, BY_NAME, 1)
            cure = f'did you mean "{near[0]}"?' if near else "the keys are in docs/limits.md"
            yield f"{prefix}.{name}", "is no limit", cure
            continue
        try:
            _value(limit, raw)
        except BadValue as error:
            yield f"{prefix}.{name}", error.problem, error.cure


def _order(limits: Limits) -> Iterator[Problem]:
    for low, high in _ORDERED:
        for chip in (None, *limits.given_by_chip):
            below, above = limits.of(low, chip), limits.of(high, chip)
            if below >= above:
                prefix = f'limits.chip."{chip}"' if chip else "limits"
                yield f"{prefix}.{low}", f"is {below:g}, and {high} is {above:g}", f"{low} must be below {high}"


def _values(given: Mapping[str, Any]) -> dict[str, float]:
    return {name: _value(BY_NAME[name], raw) for name, raw in given.items() if name != "chip"}


def _value(limit: Limit, raw: object) -> float:
    if limit.unit == "s":
        return float(Seconds.parse(raw))
    if limit.unit == "bytes":
        return float(Size.parse(raw))
    if isinstance(raw, bool) or not isinstance(raw, int | float):
        raise BadValue(f"is {described(raw)}", f"write a number, in {limit.unit}")
    if not 0 < raw < float("inf"):
        raise BadValue(f"is {raw}", "write a number above 0; a rule is switched off in [rules] off")
    if limit.unit == "count" and limit.name.endswith("polls") and raw != int(raw):
        raise BadValue(f"is {raw}", "write a whole number")
    return float(raw)
