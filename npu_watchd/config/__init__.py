"""config.toml → a frozen Config; an unknown key, a wrong type or a contradiction stops the start and is named."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import msgspec

from npu_watchd.config import contradictions, file
from npu_watchd.config.contradictions import ProbeDefault, ProbeDefaults, probe_times
from npu_watchd.config.error import ConfigError
from npu_watchd.config.sections import DEFAULT_FILE, PROBE_NAMES, Config, ProbeSettings, Sections
from npu_watchd.config.sharing import shares_of
from npu_watchd.config.text import effective, template, unused
from npu_watchd.config.thresholds import limits_of
from npu_watchd.config.values import Address, Seconds

__all__ = [
    "DEFAULT_FILE",
    "PROBE_NAMES",
    "Address",
    "Config",
    "ConfigError",
    "ProbeDefault",
    "ProbeDefaults",
    "ProbeSettings",
    "Seconds",
    "effective",
    "limits_of",
    "load",
    "probe_times",
    "shares_of",
    "template",
    "unused",
]

NO_DEFAULTS: ProbeDefaults = {}


def load(
    path: Path | None,
    *,
    defaults: ProbeDefaults = NO_DEFAULTS,
    rules: Collection[str] = (),
    default_file: Path = DEFAULT_FILE,
) -> Config:
    """Read and check the config.

    path: None means `default_file`, and the built-in values where that file does not exist.
    defaults: each probe's own period and deadline, so that a contradiction with them is seen too.
    rules: the rules that there are, so that a misspelt one is seen too.
    Raises ConfigError.
    """
    chosen = path or default_file
    try:
        table = file.read(chosen)
    except FileNotFoundError as error:
        if path is None:
            return Config()
        cure = "write it with `npu-watchd config init`, or leave out --config"
        raise ConfigError(chosen, "", "there is no such file", cure) from error
    sections = file.sections(chosen, table)
    config = _config(sections, chosen, frozenset(name for name, _ in file.given(table)))
    contradictions.refuse(config, defaults, rules)
    return config


def _config(sections: Sections, origin: Path, given: frozenset[str]) -> Config:
    return Config(**msgspec.structs.asdict(sections), file=origin, given=given)
