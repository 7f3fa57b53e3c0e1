"""From a file's bytes to checked sections: syntax, unknown keys, types, in this order, each with its place named."""

from __future__ import annotations

import codecs
import difflib
import re
import stat
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from npu_watchd.config.error import ConfigError
from npu_watchd.config.keys import BY_NAME, KEYS
from npu_watchd.config.sections import Sections
from npu_watchd.config.values import BadValue, decoded, described

_LARGEST_BYTES = 1 << 20
_PLACE = re.compile(r"(?P<problem>.*) \(at (?P<place>line \d+, column \d+|end of document)\)", re.DOTALL)
_AT = re.compile(r"(?P<problem>.*) - at `\$\.?(?P<path>[^`]*)`", re.DOTALL)

Table = Mapping[str, Any]


def read(file: Path) -> dict[str, Any]:
    """The file as TOML. Raises ConfigError, or FileNotFoundError where there is none."""
    return _parsed(file, _text(file))


def sections(file: Path, table: Table) -> Sections:
    """The file's table as checked sections. Raises ConfigError."""
    _refuse_unknown(file, table, "")
    try:
        return msgspec.convert(table, Sections, dec_hook=decoded)
    except msgspec.ValidationError as error:
        raise _in_our_words(file, table, error) from error


def given(table: Table, prefix: str = "") -> Iterator[tuple[str, object]]:
    """The dotted name and the raw value of every key that the file sets, limits' own included."""
    for name, value in table.items():
        written = name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else f'"{name}"'
        if isinstance(value, dict):
            yield from given(value, f"{prefix}{written}.")
        else:
            yield f"{prefix}{written}", value


def _text(file: Path) -> str:
    try:
        if not stat.S_ISREG(file.stat().st_mode):
            raise ConfigError(file, "", "is no regular file", "name a TOML file")
        with file.open("rb") as opened:
            data = opened.read(_LARGEST_BYTES + 1)
    except FileNotFoundError:
        raise
    except OSError as error:
        cure = "let the user that runs npu-watchd read it, or name another with --config"
        raise ConfigError(file, "", f"cannot be read ({error.strerror})", cure) from error
    if len(data) > _LARGEST_BYTES:
        raise ConfigError(file, "", "is larger than 1 MiB", "name a config file")
    return _decoded_text(file, data)


def _decoded_text(file: Path, data: bytes) -> str:
    for mark in (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        if data.startswith(mark):
            raise ConfigError(file, "", "starts with a byte order mark", "save it as UTF-8 without one")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = error.start - data.rfind(b"\n", 0, error.start)
        raise ConfigError(file, f"line {line}, column {column}", "is not UTF-8", "save the file as UTF-8") from error


def _parsed(file: Path, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        match = _PLACE.fullmatch(str(error))
        place, problem = (match["place"], match["problem"]) if match else ("", str(error))
        if place == "end of document":
            place = f"line {len(text.splitlines()) or 1}, the last"
        problem = problem[:1].lower() + problem[1:]
        raise ConfigError(file, place, f"no TOML: {problem}", "mend this line") from error
    except RecursionError as error:
        raise ConfigError(file, "", "is nested too deeply", "write plain tables") from error
    except ValueError as error:
        # Python itself refuses to read a number of more than 4300 digits.
        raise ConfigError(file, "", "a number in it is too long to read", "write a shorter one") from error


def _refuse_unknown(file: Path, table: Table, prefix: str) -> None:
    for name, value in table.items():
        key = f"{prefix}{name}"
        known = BY_NAME.get(key)
        if known is None:
            raise ConfigError(file, key, "unknown key", _suggestion(name, prefix))
        if known.section and not known.free and isinstance(value, dict):
            _refuse_unknown(file, value, f"{key}.")


def _suggestion(name: str, prefix: str) -> str:
    siblings = [key.name.removeprefix(prefix) for key in KEYS if key.name.rpartition(".")[0] == prefix.rstrip(".")]
    close = difflib.get_close_matches(name, siblings, n=1)
    if close:
        return f"did you mean {close[0]}?"
    homes = [key.name.rpartition(".")[0] for key in KEYS if key.name.rpartition(".")[2] == name]
    elsewhere = dict.fromkeys(home for home in homes if home and not home.startswith("probes."))
    if elsewhere:
        return f"it belongs in [{next(iter(elsewhere))}]"
    if len(siblings) > 12:
        return "docs/config.md lists the keys"
    return f"known here: {', '.join(siblings)}"


def _in_our_words(file: Path, table: Table, error: msgspec.ValidationError) -> ConfigError:
    match = _AT.fullmatch(str(error))
    path = match["path"] if match else ""
    key = re.sub(r"\[\d+\]", "", path)
    cause = error.__cause__
    if isinstance(cause, BadValue):
        return ConfigError(file, path, cause.problem, cause.cure)
    expected = BY_NAME[key].expected if key in BY_NAME else "something else"
    if path != key:
        expected = expected.removeprefix("a list, each of ")
    return ConfigError(file, path, f"is {described(_value_at(table, path))}", f"write {expected}")


def _value_at(table: Table, path: str) -> object:
    value: Any = table
    for step in re.findall(r"[^.\[\]]+", path):
        value = value[int(step)] if isinstance(value, list) else value[step]
    return value
