"""What "an error or a subset, never another number" means for a record that was read from less text."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any


def excess(cut: Any, whole: Any, where: str = "record") -> str | None:
    """The first thing that `cut` says and `whole` does not; None where it is a subset.

    A scalar is absent (None) or the same, ids included; of mappings and sequences items may be missing, in their order;
    `trusted` may only go from True to False, the count of lost cards may only shrink; a text of several lines may
    lose its last lines. `distrust`, `warnings` and `complete` are words about the cut itself.
    """
    if cut is None or cut == whole:
        return None
    if isinstance(cut, Mapping) and isinstance(whole, Mapping):
        return _mapping(cut, whole, where)
    if isinstance(cut, (tuple, list)) and isinstance(whole, (tuple, list)):
        return _sequence(cut, whole, where)
    if dataclasses.is_dataclass(cut) and type(cut) is type(whole):
        return _record(cut, whole, where)
    if isinstance(cut, str) and isinstance(whole, str) and whole.startswith(cut + "\n"):
        return None
    return f"{where}: {cut!r} is not {whole!r}"


def _mapping(cut: Mapping[Any, Any], whole: Mapping[Any, Any], where: str) -> str | None:
    for key, value in cut.items():
        if key is None and None not in whole:
            if all(excess(value, other) for other in whole.values()):
                return f"{where}[None]: {value!r} is no value of the whole"
            continue
        if key not in whole:
            return f"{where}: {key!r} is not in the whole"
        found = excess(value, whole[key], f"{where}[{key!r}]")
        if found is not None:
            return found
    return None


def _sequence(cut: Any, whole: Any, where: str) -> str | None:
    position = 0
    for item in cut:
        reason = "there is none left"
        while position < len(whole):
            candidate = whole[position]
            position += 1
            if _may_be(item, candidate):
                found = excess(item, candidate, where)
                if found is None:
                    break
                reason = found
        else:
            return f"{where}: {item!r} is not in the whole: {reason}"
    return None


def _may_be(item: Any, candidate: Any) -> bool:
    if not dataclasses.is_dataclass(item):
        return bool(item == candidate)
    ids = ((getattr(item, name, None), getattr(candidate, name, None)) for name in ("npu", "chip", "pid"))
    return all(ours in (None, theirs) for ours, theirs in ids)


def _record(cut: Any, whole: Any, where: str) -> str | None:
    for field in dataclasses.fields(cut):
        ours, theirs = getattr(cut, field.name), getattr(whole, field.name)
        if field.name in ("distrust", "warnings", "complete"):
            continue
        if field.name == "trusted":
            if ours and not theirs:
                return f"{where}.trusted became True"
            continue
        if field.name == "lost_cards" and ours <= theirs:
            continue
        found = excess(ours, theirs, f"{where}.{field.name}")
        if found is not None:
            return found
    return None
