"""What a site says about codes: a TOML file that changes tier and text, adds codes, or silences them."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from npu_watchd.codes.layout import decode
from npu_watchd.codes.tiers import BY_NAME, Tier

_LARGEST_BYTES = 1 << 20
_KEYS = ("tier", "text", "unit", "silent")
_EXAMPLE = '[80E18405]\ntier = "hint"'


class OverridesError(ValueError):
    """The file is refused as a whole: which file, which key, what is wrong with it, what to write instead."""

    def __init__(self, file: Path, key: str, problem: str, cure: str) -> None:
        super().__init__(file, key, problem, cure)
        self.file = file
        self.key = key
        """`CODE.key`, a place in the file, or empty where the file as a whole is wrong."""
        self.problem = problem
        self.cure = cure

    def __str__(self) -> str:
        where = ": ".join(part for part in (str(self.file), self.key) if part)
        return f"{where}: {self.problem}; {self.cure}"


@dataclass(frozen=True, slots=True)
class Override:
    """What a site says about one code; None where it says nothing."""

    tier: Tier | None = None
    text: str | None = None
    unit: str | None = None
    silent: bool = False
    """Shown, but no finding and no quarantine comes of it."""


@dataclass(frozen=True, slots=True)
class Overrides:
    """All that a site says."""

    file: Path | None = None
    """None: there is none."""
    by_code: Mapping[str, Override] = field(default_factory=dict)
    """By the code's text as `decode` makes it."""


NO_OVERRIDES = Overrides()


def load_overrides(file: Path) -> Overrides:
    """Read and check the file: one table a code, its name as npu-smi prints it, 0x and case as one likes.

    Raises OverridesError: not there, no TOML, a name that is no code, a code twice, an unknown key, a wrong value.
    """
    by_code: dict[str, Override] = {}
    for name, table in _parsed(file).items():
        try:
            code = decode(name).text
        except ValueError as error:
            problem, _, cure = str(error).partition("; ")
            raise OverridesError(file, name[:60], problem, cure) from error
        if code in by_code:
            raise OverridesError(
                file, name, "says something about this code a second time", "make one table of the two"
            )
        if not isinstance(table, dict):
            raise OverridesError(file, name, "is no table", f"write a table a code, such as {_EXAMPLE!r}")
        by_code[code] = _override(file, name, table)
    return Overrides(file, by_code)


def _override(file: Path, name: str, table: Mapping[str, Any]) -> Override:
    for key in table:
        if key not in _KEYS:
            close = difflib.get_close_matches(key, _KEYS, n=1)
            cure = f"did you mean {close[0]}?" if close else f"known here: {', '.join(_KEYS)}"
            raise OverridesError(file, f"{name}.{key}", "unknown key", cure)
    silent = table.get("silent", False)
    if not isinstance(silent, bool):
        raise OverridesError(file, f"{name}.silent", f"is {silent!r}", "write true or false")
    override = Override(
        _tier(file, name, table), _text(file, name, table, "text"), _text(file, name, table, "unit"), silent
    )
    if override == Override():
        raise OverridesError(file, name, "changes nothing", f"set one of {', '.join(_KEYS)}, or take the table out")
    return override


def _tier(file: Path, name: str, table: Mapping[str, Any]) -> Tier | None:
    value = table.get("tier")
    if value is None:
        return None
    tier = BY_NAME.get(value) if isinstance(value, str) else None
    if tier is None:
        close = difflib.get_close_matches(str(value), BY_NAME, n=1)
        cure = f"did you mean {close[0]}?" if close else f"write one of {', '.join(tier.value for tier in Tier)}"
        raise OverridesError(file, f"{name}.tier", f"is {value!r}, which is no tier", cure)
    return tier


def _text(file: Path, name: str, table: Mapping[str, Any], key: str) -> str | None:
    value = table.get(key)
    if value is None:
        return None
    if not isinstance(value, str):
        raise OverridesError(file, f"{name}.{key}", f"is {value!r}", "write text in quotes")
    if not value.strip() or not value.isprintable():
        raise OverridesError(file, f"{name}.{key}", "is no printable text of one line", "write one plain sentence")
    return value.strip()


def _parsed(file: Path) -> dict[str, Any]:
    try:
        with file.open("rb") as opened:
            data = opened.read(_LARGEST_BYTES + 1)
    except OSError as error:
        cure = "let the user that runs npu-watchd read it, or name another"
        raise OverridesError(file, "", f"cannot be read ({error.strerror})", cure) from error
    if len(data) > _LARGEST_BYTES:
        raise OverridesError(file, "", "is larger than 1 MiB", "name a file of error codes")
    try:
        return tomllib.loads(data.decode())
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise OverridesError(file, f"line {line}", "is not UTF-8", "save the file as UTF-8") from error
    except RecursionError as error:
        raise OverridesError(file, "", "is nested too deeply", "write plain tables") from error
    except ValueError as error:
        problem = str(error)
        raise OverridesError(file, "", f"no TOML: {problem[:1].lower()}{problem[1:]}", "mend this place") from error
