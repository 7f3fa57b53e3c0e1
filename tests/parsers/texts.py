"""The texts that the parser tests read, and which parser reads which kind of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

from npu_watchd.model.reading import FailureKind
from npu_watchd.parsers import (
    blocks,
    card_list,
    device_map,
    ecc,
    health,
    info_table,
    measures,
    process_memory,
)
from npu_watchd.parsers.lines import ParseError

CAPTURES = Path(__file__).parent.parent / "captures"
TYPED = CAPTURES / "npu-smi-typed"
MIB = 1024 * 1024

# By the first part of a capture's name, which is the `-t` type where there is one.
PARSERS: dict[str, Callable[[str], Any]] = {
    "info": info_table.parse,
    "list": card_list.parse,
    "map": device_map.parse,
    "ecc": ecc.parse,
    "health": health.parse,
    "proc-mem": process_memory.parse,
    "usages": measures.usages,
    "common": measures.clocks,
    "memory": measures.memory_temperature,
    "board": measures.board,
    "hccs": measures.hccs,
    "pcie-err": measures.pcie_link_errors,
}


def parser_of(kind: str) -> Callable[[str], Any]:
    return PARSERS.get(kind, blocks.parse)


def typed(name: str) -> str:
    return (TYPED / f"{name}.txt").read_text(encoding="utf-8")


def refused(parse: Callable[[str], Any], text: str) -> ParseError:
    """The error that `parse` raises; anything else is the test's failure."""
    try:
        record = parse(text)
    except ParseError as error:
        return error
    raise AssertionError(f"not refused, but read as {record}")


def said(parse: Callable[[str], Any], text: str) -> tuple[FailureKind, str]:
    failure = refused(parse, text).failure()
    return failure.kind, failure.detail


def plain(value: Any) -> Any:
    """A record as what JSON has: dicts, lists and scalars, keys as text."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value
