"""Every key of the config as one flat list: what the file's checks, the template and docs/config.md walk over."""

from __future__ import annotations

import operator
import types
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec

from npu_watchd.config.section import Section
from npu_watchd.config.sections import Sections
from npu_watchd.config.values import CHECKED, PATH_EXPECTED, toml_text


@dataclass(frozen=True, slots=True)
class Key:
    """One key, or one section."""

    name: str
    """Dotted, as in messages: `probes.npu_info.every`."""
    expected: str
    """What to write, in words."""
    what: str
    default: object
    """None: unset; `unset` says what that means."""
    unset: str
    example: object
    """Shown where the default is None."""
    used: bool
    """False: checked, but nothing in this version acts on it."""
    section: bool
    free: bool
    """A section whose keys are checked elsewhere: names of limits, devices."""
    attribute: tuple[str, ...]
    """The way to its value below a Config."""

    def value_in(self, config: Sections) -> object:
        return operator.attrgetter(".".join(self.attribute))(config)


def _expected(kind: Any) -> str:
    if get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    if get_origin(kind) in (types.UnionType, Union):
        return " or ".join(_expected(part) for part in get_args(kind) if part is not type(None))
    if get_origin(kind) is Literal:
        return " or ".join(toml_text(choice) for choice in get_args(kind))
    if get_origin(kind) is tuple:
        return f"a list, each of {_expected(get_args(kind)[0])}"
    if kind in CHECKED:
        return str(kind.EXPECTED)
    words = {bool: "true or false", int: "a whole number, 1 or more", Path: PATH_EXPECTED}
    return words.get(kind, "a table")


def _described(name: str, attribute: tuple[str, ...], kind: Any, default: object, parent_used: bool) -> Key:
    described, meta = get_args(kind)
    return Key(
        name=name,
        expected=_expected(described),
        what=meta.description,
        default=default,
        unset=meta.extra["unset"],
        example=meta.extra["example"],
        used=parent_used and meta.extra["used"],
        section=isinstance(default, Section | dict),
        free=isinstance(default, dict),
        attribute=attribute,
    )


def _walk(section: Section, prefix: str, way: tuple[str, ...], parent_used: bool) -> Iterator[Key]:
    for field in msgspec.structs.fields(section):
        default = getattr(section, field.name)
        name, attribute = f"{prefix}{field.encode_name}", (*way, field.name)
        key = _described(name, attribute, field.type, default, parent_used)
        yield key
        if isinstance(default, Section):
            yield from _walk(default, f"{name}.", attribute, key.used)


KEYS: tuple[Key, ...] = tuple(_walk(Sections(), "", (), True))
BY_NAME = {key.name: key for key in KEYS}
