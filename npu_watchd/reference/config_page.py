"""docs/config.md."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from npu_watchd.config.contradictions import ProbeDefaults
from npu_watchd.config.keys import BY_NAME, KEYS, Key
from npu_watchd.config.sections import DEFAULT_FILE, PROBE_NAMES, Config
from npu_watchd.config.text import UNUSED, probe_value
from npu_watchd.config.values import toml_text
from npu_watchd.reference.markdown import made, table
from npu_watchd.sources.probes import DEFAULTS


def probe_defaults() -> ProbeDefaults:
    """Each probe's own period and deadline, by name."""
    return DEFAULTS


def config_page(defaults: ProbeDefaults) -> str:
    lines = [
        made("npu_watchd/config/sections.py"),
        "",
        "# Config",
        "",
        f"`{DEFAULT_FILE}`, or the file that `--config` names. Every key is optional.",
        "`npu-watchd config init FILE` writes a commented file, `config check` looks one over, `config show` prints",
        "what holds and where it is from. SIGHUP makes the daemon read the file again; a bad file keeps the last good",
        "one.",
        "",
        'Durations carry their unit (`"15s"`, `"250ms"`, `"1h30m"`), sizes too (`"200MiB"`). An unknown key,',
        "a wrong type and a contradiction stop the start with exit code 2 and a line that names file, key and cure.",
        "",
        f"*Not used yet*: {UNUSED}; `config check` lists such keys where a file sets them.",
    ]
    for section in KEYS:
        if section.section and "." not in section.name:
            lines += ["", f"## [{section.name}]", "", _what(section), *_section_table(section, defaults)]
    return "\n".join(lines) + "\n"


def _what(key: Key) -> str:
    return key.what if key.used else f"{key.what} *Not used yet.*"


def _section_table(section: Key, defaults: ProbeDefaults) -> Iterator[str]:
    if section.name == "limits":
        return
    if section.name == "probes":
        yield from _probe_tables(defaults)
        return
    yield from _key_table(key for key in KEYS if key.name.startswith(f"{section.name}."))


def _key_table(keys: Iterable[Key]) -> Iterator[str]:
    return table(("key", "what", "write", "default"), (_key_row(key) for key in keys))


def _key_row(key: Key) -> tuple[str, ...]:
    default = f"`{toml_text(key.default)}`" if key.default not in (None, {}) else f"{key.unset}"
    expected = f"a table such as `{toml_text(key.example)}`" if key.free else key.expected
    return f"`{key.name.rpartition('.')[2]}`", _what(key), expected, default


def _probe_tables(defaults: ProbeDefaults) -> Iterator[str]:
    yield from ("", "Each probe is a table of its own, `[probes.NAME]`, with these keys:")
    yield from _key_table(BY_NAME[f"probes.{PROBE_NAMES[0]}.{setting}"] for setting in ("enabled", "every", "timeout"))
    yield from table(("NAME", "what", "every", "timeout"), (_probe_row(name, defaults) for name in PROBE_NAMES))


def _probe_row(name: str, defaults: ProbeDefaults) -> tuple[str, ...]:
    times = (probe_value(Config(), name, setting, defaults) for setting in ("every", "timeout"))
    return f"`{name}`", _what(BY_NAME[f"probes.{name}"]), *(str(time or "–") for time in times)
