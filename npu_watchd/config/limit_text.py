"""Limits as a person reads and writes them."""

from __future__ import annotations

from npu_watchd.config.values import Seconds, Size, toml_text
from npu_watchd.limits import Limit


def written(limit: Limit, value: float | None = None) -> str:
    """As the config has it: `port_down_s = "4m"`. value: None for the default."""
    return f"{limit.name} = {number(limit, value)}"


def number(limit: Limit, value: float | None = None) -> str:
    """The right side of `written`."""
    of = limit.default if value is None else value
    if limit.unit == "s":
        return toml_text(Seconds(of))
    return toml_text(Size(of)) if limit.unit == "bytes" else f"{of:g}"


def by_chip(limit: Limit) -> str:
    """Silicons that have their own default; "" where none has."""
    return ", ".join(f"{chip}: {number(limit, value)}" for chip, value in sorted(limit.by_chip.items()))
