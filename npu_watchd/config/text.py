"""The config as text for people: the commented default file, the effective values, the keys without effect."""

from __future__ import annotations

from collections.abc import Iterator

from npu_watchd.config.contradictions import ProbeDefaults, probe_times
from npu_watchd.config.file import given
from npu_watchd.config.keys import KEYS, Key
from npu_watchd.config.limit_text import by_chip, written
from npu_watchd.config.sections import DEFAULT_FILE, PROBE_NAMES, Config
from npu_watchd.config.values import Seconds, toml_text
from npu_watchd.limits import LIMITS, Limit

UNUSED = "accepted, not used by this version"

_HEAD = f"""\
# {DEFAULT_FILE}: the config of npu-watchd. Every key is optional; a commented line shows its default.
# Durations are written "15s", "250ms", "1h30m"; sizes "200MiB". An unknown key stops the start and is named.
# `npu-watchd config check` looks this file over; SIGHUP makes the running daemon read it again.
"""


def effective(config: Config, defaults: ProbeDefaults) -> list[tuple[str, str, str]]:
    """Every key, its value as TOML text (in brackets: what its absence means), and its source: default or file."""
    rows = [_row(key, config, defaults) for key in KEYS if not key.section]
    for key in KEYS:
        if key.free:
            own = given(key.value_in(config))  # type: ignore[arg-type]  # a table
            rows += [(f"{key.name}.{name}", toml_text(value), "file") for name, value in own]
    return rows


def unused(config: Config) -> list[str]:
    """The keys that the file sets and that no part of this version acts on."""
    idle = {key.name for key in KEYS if not key.used}
    return sorted(config.given & idle)


def template(defaults: ProbeDefaults) -> str:
    """The commented default file. Loaded as it is, it says what no file says."""
    sections = (key for key in KEYS if key.section and "." not in key.name)
    return "\n".join([_HEAD, *("\n".join(_section_lines(section, defaults)) + "\n" for section in sections)])


def probe_value(config: Config, name: str, setting: str, defaults: ProbeDefaults) -> object:
    """What holds for `enabled`, `every` or `timeout` of a probe; None: none, or not known here."""
    if setting == "enabled":
        chosen = config.probe(name).enabled
        return True if chosen is None and name in defaults else chosen
    seconds = probe_times(config, defaults, name)[0 if setting == "every" else 1]
    return None if seconds is None else Seconds(seconds)


def _row(key: Key, config: Config, defaults: ProbeDefaults) -> tuple[str, str, str]:
    source = "file" if key.name in config.given else "default"
    if key.name.startswith("probes."):
        _, probe, setting = key.name.split(".")
        value = probe_value(config, probe, setting, defaults)
    else:
        value = key.value_in(config)
    text = f"({key.unset})" if value is None else toml_text(value)
    return key.name, text, source


def _section_lines(section: Key, defaults: ProbeDefaults) -> Iterator[str]:
    yield f"# {section.what}{'' if section.used else ' (Not used by this version.)'}"
    yield f"[{section.name}]"
    if section.name == "probes":
        yield from _probe_lines(defaults)
    if section.name == "limits":
        for limit in LIMITS:
            yield from _limit_lines(limit)
    for key in KEYS:
        if key.name.rpartition(".")[0] == section.name and (key.free or not key.section):
            yield from _key_lines(key, section)


def _key_lines(key: Key, section: Key) -> Iterator[str]:
    note = " (Not used by this version.)" if section.used and not key.used else ""
    absent = f" Without it: {key.unset}." if key.unset else ""
    yield f"# {key.what}{absent}{note}"
    shown = key.example if key.default in (None, {}) else key.default
    yield f"# {key.name.rpartition('.')[2]} = {toml_text(shown)}"


def _limit_lines(limit: Limit) -> Iterator[str]:
    own = by_chip(limit)
    yield f"# {limit.why}{f' Unless it is set here, {own}.' if own else ''}"
    yield f"# Unit: {limit.unit}. Source: {limit.source}."
    yield f"# {written(limit)}"


def _probe_lines(defaults: ProbeDefaults) -> Iterator[str]:
    by_name = {key.name: key for key in KEYS}
    for setting in ("enabled", "every", "timeout"):
        key = by_name[f"probes.{PROBE_NAMES[0]}.{setting}"]
        yield f"# {setting}: {key.what}"
    for name in PROBE_NAMES:
        probe = by_name[f"probes.{name}"]
        known = {setting: probe_value(Config(), name, setting, defaults) for setting in ("enabled", "every", "timeout")}
        shown = ", ".join(f"{setting} = {toml_text(value)}" for setting, value in known.items() if value is not None)
        yield f"# {probe.what}{'' if probe.used else ' (Not used by this version.)'}"
        yield f"# {name} = {{ {shown or 'enabled = true'} }}"
