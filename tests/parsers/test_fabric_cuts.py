"""Cut, shuffle and spoil the fabric's captures: an error or a subset, never another number, never another exception."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from npu_watchd.model.fabric import RdmaPorts
from npu_watchd.model.reading import Output
from npu_watchd.parsers import ibstat
from npu_watchd.parsers.hccn_words import is_busy, read
from npu_watchd.parsers.lines import ParseError
from tests.parsers.fabric_texts import FILES, PARSERS, kind_of
from tests.parsers.test_cuts import cuts, excesses

TEXTS = {path.stem: path.read_text(encoding="utf-8") for path in FILES}
QUIET = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
EVERY_PARSER = pytest.mark.parametrize("parse", PARSERS.values(), ids=PARSERS.keys())
EVERY_FILE = pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
K = 1024


def unremarked(parse: Callable[[str], Any]) -> Callable[[str], Any]:
    """The record without the words about a cut, of which a cut text has more than the whole."""

    def parsed(text: str) -> Any:
        record = parse(text)
        return dataclasses.replace(record, errors=()) if isinstance(record, RdmaPorts) else record

    return parsed


def outcome(parse: Callable[[str], Any], text: str) -> Any:
    try:
        return parse(text)
    except ParseError as error:
        return error.kind, error.problem


def tolerated(parse: Callable[[str], Any], text: str) -> None:
    with suppress(ParseError):
        parse(text)


@EVERY_FILE
def test_every_cut_is_an_error_or_a_subset(path: Path) -> None:
    text = TEXTS[path.stem]
    # From the first byte on: of no byte at all only the exit code can tell that it is not a node without ports.
    some = ((end, part) for end, part in cuts(text) if part)
    assert excesses(unremarked(PARSERS[kind_of(path)]), text, some) == []


@EVERY_FILE
def test_a_text_that_was_cut_to_something_is_not_the_silence_of_a_node_without_ports(path: Path) -> None:
    text = TEXTS[path.stem]
    parse = PARSERS[kind_of(path)]
    for end in range(1, len(text)):
        found = outcome(parse, text[:end])
        assert found != RdmaPorts(), text[:end]


@EVERY_FILE
def test_ends_of_lines_tabs_and_blanks_as_a_paste_changes_them_change_nothing(path: Path) -> None:
    text = TEXTS[path.stem]
    parse = PARSERS[kind_of(path)]
    changes = [
        text.replace("\n", "\r\n"),
        text.replace("\t", "        "),
        text.replace("\t", ""),
        text.replace("\n", "  \t\n"),
        text.replace("\n", "\n\n") if "Power" not in text else text,
    ]
    assert [unnumbered(outcome(parse, change)) for change in changes] == [unnumbered(outcome(parse, text))] * len(
        changes
    )


def unnumbered(found: Any) -> Any:
    return found if isinstance(found, tuple) else dataclasses.asdict(found)


@EVERY_PARSER
@given(raw=st.binary(max_size=400))
@QUIET
def test_bytes_never_raise_anything_else(parse: Callable[[str], Any], raw: bytes) -> None:
    tolerated(parse, raw.decode("utf-8", "replace"))


@EVERY_PARSER
@given(name=st.sampled_from(sorted(TEXTS)), seed=st.integers(0, 2**32))
@QUIET
def test_lines_shuffled_lost_or_doubled_never_raise_anything_else(
    parse: Callable[[str], Any], name: str, seed: int
) -> None:
    chance = random.Random(seed)
    lines = TEXTS[name].splitlines(keepends=True)
    tolerated(parse, "".join(chance.sample(lines, len(lines))))
    tolerated(parse, "".join(line for line in lines if chance.random() > 0.1))
    tolerated(parse, "".join(line * chance.choice([1, 1, 1, 2]) for line in lines))


@EVERY_PARSER
@given(name=st.sampled_from(sorted(TEXTS)), at=st.floats(0, 1), rubbish=st.text(min_size=1, max_size=20))
@QUIET
def test_rubbish_in_the_middle_never_raises_anything_else(
    parse: Callable[[str], Any], name: str, at: float, rubbish: str
) -> None:
    text = TEXTS[name]
    position = int(len(text) * at)
    tolerated(parse, text[:position] + rubbish + text[position:])
    tolerated(parse, text[:position] + rubbish + text[position + len(rubbish) :])


HOSTILE = {
    "one long word": "a" * 256 * K,
    "blanks inside": "a" + " " * 256 * K + "b",
    "a long key": "State" + " " * 256 * K + ": Active\n",
    "a redacted value": "CA 'a'\nNode GUID: " + "x" * 256 * K + "!\n",
    "prompts": "$" * 256 * K + "hccn_tool -i\n",
    "bars": "|" * 256 * K + "\n",
    "cells": "+-\n" + "| a " * 64 * K + "|\n" + ("| a " * 64 * K + "|\n"),
    "digits": "a_num:" + "1" * 256 * K + "\n",
    "counters": "".join(f"a{number}_num:{number}\n" for number in range(20 * K)),
    "panics": "ibpanic: [1] main: " * 13 * K + "\n",
    "ports": "CA 'a'\n" + "".join(f"Port {number}:\nState: Active\n" for number in range(10 * K)),
    "links": "link a/1 " + "state " * 40 * K + "\n",
    "brackets": "[" * 256 * K,
    "open json": '[{"a":' * 40 * K,
    "records": "[devid 0]    Sat Feb 28 23:59:59 2026    LINK UP\n" * 5 * K,
    "flags": "Items \nRxLos Flag " + "Normal|" * 32 * K + "\n",
}


@pytest.mark.timeout(20)
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_quarter_of_a_mebibyte_of_malice_is_read_or_refused_in_seconds(text: str) -> None:
    for parse in PARSERS.values():
        tolerated(parse, text)
        read(Output(text, text), parse)
    ibstat.read(Output(text, text, 1))
    is_busy(Output(text, text))
