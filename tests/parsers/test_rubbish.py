"""Whatever comes: a record or a ParseError, within a time that grows with the text and not faster."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from npu_watchd.model.reading import Output
from npu_watchd.parsers import blocks, info_table
from npu_watchd.parsers.lines import ParseError
from npu_watchd.parsers.tool_words import refusal_of
from tests.parsers.texts import PARSERS, TYPED, typed

ALL = {**PARSERS, "block": blocks.parse}
TEXTS = {path.stem: path.read_text(encoding="utf-8") for path in sorted(TYPED.glob("*.txt"))}
QUIET = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
EVERY_PARSER = pytest.mark.parametrize("parse", ALL.values(), ids=ALL.keys())

WORDS = ["|", "+", ":", "/", "-", "NA", "OK", "Health", "Bus-Id", "Chip ID", "NPU ID", "Chip Count", "-1", "0", "65536"]
WORDS += [
    "Process id",
    "MCU",
    "Failed to query npu chip: 0 info.",
    "ret is -8005",
    "\n",
    "\r\n",
    "\t",
    " ",
    "²",
    "٣",
    "\x00",
]


def _tolerated(parse: Callable[[str], Any], text: str) -> None:
    with suppress(ParseError):
        parse(text)


@EVERY_PARSER
@given(raw=st.binary(max_size=400))
@QUIET
def test_bytes_never_raise_anything_else(parse: Callable[[str], Any], raw: bytes) -> None:
    _tolerated(parse, raw.decode("utf-8", "replace"))


@EVERY_PARSER
@given(words=st.lists(st.sampled_from(WORDS), max_size=60))
@QUIET
def test_the_tools_own_words_in_any_order_never_raise_anything_else(
    parse: Callable[[str], Any], words: list[str]
) -> None:
    _tolerated(parse, "".join(words))
    _tolerated(parse, " ".join(words))


@EVERY_PARSER
@given(name=st.sampled_from(sorted(TEXTS)), seed=st.integers(0, 2**32))
@QUIET
def test_captures_with_their_lines_shuffled_lost_or_doubled_never_raise_anything_else(
    parse: Callable[[str], Any], name: str, seed: int
) -> None:
    chance = random.Random(seed)
    lines = TEXTS[name].splitlines(keepends=True)
    _tolerated(parse, "".join(chance.sample(lines, len(lines))))
    _tolerated(parse, "".join(chance.sample(lines, chance.randint(0, len(lines)))))
    _tolerated(parse, "".join(line for line in lines if chance.random() > 0.1))
    _tolerated(parse, "".join(line * chance.choice([1, 1, 1, 2]) for line in lines))


@EVERY_PARSER
@given(name=st.sampled_from(sorted(TEXTS)), at=st.floats(0, 1), rubbish=st.text(min_size=1, max_size=20))
@QUIET
def test_captures_with_rubbish_in_their_middle_never_raise_anything_else(
    parse: Callable[[str], Any], name: str, at: float, rubbish: str
) -> None:
    text = TEXTS[name]
    position = int(len(text) * at)
    _tolerated(parse, text[:position] + rubbish + text[position:])
    _tolerated(parse, text[:position] + rubbish + text[position + len(rubbish) :])


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_ends_of_lines_tabs_and_blanks_as_a_paste_changes_them_change_nothing(name: str) -> None:
    text = TEXTS[name]
    parse = ALL.get(name.partition("__")[0], blocks.parse)
    changes = [
        text.replace("\n", "\r\n"),
        text.replace("\t", "        "),
        text.replace("\t", "    "),
        text.replace("\t", ""),
        text.replace("\n", "  \t\n"),
    ]
    assert [_outcome(parse, change) for change in changes] == [_outcome(parse, text)] * len(changes)


def _outcome(parse: Callable[[str], Any], text: str) -> Any:
    try:
        return parse(text)
    except ParseError as error:
        return error.kind, error.problem


K = 1024
TABLE = typed("info__A3__26.0.rc1__container_pids")
HEADING = "\tNPU ID : 0\n\tChip Count : 1\n"
HOSTILE = {
    "one long word": "a" * 256 * K,
    "blanks inside": "a" + " " * 256 * K + "b",
    "blanks before a colon": "a" + " " * 256 * K + ": b\n",
    "bars": "|" * 256 * K,
    "bars with an end": "| NPU   Name | Health | " + "Power(W) " * 30 * K + "|\n| Chip | Bus-Id | x |\n",
    "open brackets": "| NPU | Health | " + "a(" * 128 * K + " |\n| Chip | Bus-Id | x |\n",
    "columns of a map": "\tNPU ID " + "Slot ID " * 32 * K + "\n",
    "digits": "\tHBM Single Bit Error Count : " + "1" * 256 * K + "\n",
    "values without keys": "\tError Information : a\n" + "\t : b\n" * 40 * K,
    "keys": "".join(f"\tkey {number} : 1\n" for number in range(20 * K)),
    "the same line": "\tHealth Status : OK\n" * 14 * K,
    "ids": HEADING + "\tChip ID : 0\n\n" * 16 * K,
    "failing chips": HEADING + "Failed to query npu chip: 0 info.\n" * 7 * K,
    "refusals": "dcmi ret " + "ret " * 64 * K + "is -8005x\n",
    "process lines": HEADING + "\tProcess id:1 Process name:" + "Process memory(MB):1 " * 12 * K + "\n",
    "rows": TABLE + "".join(f"| 7       0 | {number} | {'|' * 9} | 72 | NA |\n" for number in range(6 * K)),
    "lone first rows": TABLE[: TABLE.index("| 0     14")] + "| 7  Ascend910 | OK | 1 2 0 / 0 |\n" * 7 * K,
}


@pytest.mark.timeout(20)
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_quarter_of_a_mebibyte_of_malice_is_read_or_refused_in_seconds(text: str) -> None:
    for parse in ALL.values():
        _tolerated(parse, text)
    refusal_of(Output(text, text))


@pytest.mark.timeout(60)
def test_the_most_that_the_runner_hands_over_is_read() -> None:
    row = "| 7       0                 | {:7}       | name | 72 | NA |\n"
    rows = "".join(row.format(pid) for pid in range(4 * K * K // len(row.format(1))))
    table = info_table.parse(
        TABLE.replace("| 7       0                 | 33001", rows + "| 7       0                 | 33001")
    )
    assert table.processes is not None
    assert len(table.processes) == rows.count("\n") + 2
