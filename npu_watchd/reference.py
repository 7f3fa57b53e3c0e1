"""The generated pages of docs/: rendered from the tables that the program itself runs on, so that they cannot drift."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import click

from npu_watchd.catalogue import CATALOGUE, DeviceFamily, Family
from npu_watchd.config.contradictions import ProbeDefaults
from npu_watchd.config.keys import BY_NAME, KEYS, Key
from npu_watchd.config.sections import DEFAULT_FILE, PROBE_NAMES, Config
from npu_watchd.config.text import UNUSED, probe_value
from npu_watchd.config.values import toml_text
from npu_watchd.sources.probes import DEFAULTS

DOCS = Path(__file__).resolve().parents[1] / "docs"
"""Beside the package in a checkout; an installed package has none."""

_MADE = "<!-- Made by `npu-watchd reference`; change the table in {source} instead. -->"


def probe_defaults() -> ProbeDefaults:
    """Each probe's own period and deadline, by name."""
    return DEFAULTS


def pages() -> dict[str, str]:
    """File name below docs/ → its text."""
    return {"config.md": config_page(probe_defaults()), "metrics.md": metrics_page(CATALOGUE)}


def config_page(defaults: ProbeDefaults) -> str:
    """docs/config.md."""
    lines = [
        _MADE.format(source="npu_watchd/config/sections.py"),
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


def metrics_page(catalogue: Iterable[Family]) -> str:
    """docs/metrics.md."""
    families = sorted(catalogue, key=lambda family: family.name)
    lines = [
        _MADE.format(source="npu_watchd/catalogue/"),
        "",
        "# Metrics",
        "",
        "What `/metrics` serves. Base units; ratios are 0..1; a value that nobody knows has no sample. Counters of the",
        "hardware start again when a device is reset: use `increase()` or `rate()`.",
        "",
        "| metric | type | labels | what, and where it is from |",
        "|---|---|---|---|",
        *(_metric_row(family) for family in families),
    ]
    return "\n".join(lines) + "\n"


def differing(docs: Path) -> list[str]:
    """Names of the pages below `docs` that are missing or not as they would be made now."""
    return [name for name, text in pages().items() if not _says(docs / name, text)]


def write(docs: Path) -> list[str]:
    """Bring the pages below `docs` up to date; the names of those that changed."""
    changed = differing(docs)
    for name in changed:
        (docs / name).write_text(pages()[name], encoding="utf-8")
    return changed


def regenerate(*, check: bool) -> int:
    """Make the pages anew, or say which differ; the exit code of `npu-watchd reference`."""
    if not DOCS.is_dir():
        click.echo("npu-watchd: there is no docs/ beside the package; run this in a checkout of the sources", err=True)
        return 1
    names = differing(DOCS) if check else write(DOCS)
    for name in names:
        click.echo(f"docs/{name}: {'differs: run `npu-watchd reference`' if check else 'made anew'}", err=True)
    return 1 if check and names else 0


def _says(page: Path, text: str) -> bool:
    return page.is_file() and page.read_text(encoding="utf-8") == text


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


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
    yield from ("", "| key | what | write | default |", "|---|---|---|---|")
    for key in keys:
        default = f"`{toml_text(key.default)}`" if key.default is not None else f"{key.unset}"
        cells = (f"`{key.name.rpartition('.')[2]}`", _what(key), key.expected, default)
        yield f"| {' | '.join(_cell(cell) for cell in cells)} |"


def _probe_tables(defaults: ProbeDefaults) -> Iterator[str]:
    yield from ("", "Each probe is a table of its own, `[probes.NAME]`, with these keys:")
    yield from _key_table(BY_NAME[f"probes.{PROBE_NAMES[0]}.{setting}"] for setting in ("enabled", "every", "timeout"))
    yield from ("", "| NAME | what | every | timeout |", "|---|---|---|---|")
    for name in PROBE_NAMES:
        times = (probe_value(Config(), name, setting, defaults) for setting in ("every", "timeout"))
        cells = (f"`{name}`", _what(BY_NAME[f"probes.{name}"]), *(str(time or "–") for time in times))
        yield f"| {' | '.join(_cell(cell) for cell in cells)} |"


def _metric_row(family: Family) -> str:
    labels = (("device_id",) if isinstance(family, DeviceFamily) else ()) + family.labels
    shown = ", ".join(f"`{label}`" for label in labels)
    return f"| `{family.name}` | {family.kind.value} | {shown} | {_cell(family.help)} |"


if __name__ == "__main__":
    sys.exit(regenerate(check="--check" in sys.argv[1:]))
