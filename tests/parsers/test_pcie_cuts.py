"""PCIe texts cut, shuffled or wrong: an error or a subset, never another number, and nothing but a ParseError."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from npu_watchd.parsers import dcmi
from npu_watchd.parsers.lines import ParseError
from tests.parsers.pcie_kinds import KINDS
from tests.parsers.test_cuts import cuts, excesses, without_a_line
from tests.parsers.texts import CAPTURES

FILES = [path for path in sorted((CAPTURES / "pcie").glob("*.txt")) if path.name.partition("__")[0] in KINDS]
TEXTS = {path.stem: path.read_text() for path in FILES}
PARSERS = {**KINDS, "dcmi": dcmi.parse}
QUIET = settings(max_examples=60, deadline=None, derandomize=True)


def kind_of(name: str) -> str:
    return name.partition("__")[0]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_cut_is_an_error_or_a_subset(path: Path) -> None:
    text = path.read_text()
    assert excesses(KINDS[kind_of(path.name)], text, cuts(text)) == []


@pytest.mark.parametrize(
    "path", [path for path in FILES if kind_of(path.name) not in ("pcm-pcie", "lspci")], ids=lambda path: path.stem
)
def test_a_lost_line_is_an_error_or_a_subset(path: Path) -> None:
    """Not of lspci and pcm-pcie: there a device's or an interval's first line says whose the rest is."""
    text = path.read_text()
    assert excesses(KINDS[kind_of(path.name)], text, without_a_line(text)) == []


@pytest.mark.parametrize("kind", PARSERS)
@given(raw=st.binary(max_size=300))
@QUIET
def test_bytes_never_raise_anything_else(kind: str, raw: bytes) -> None:
    with suppress(ParseError):
        PARSERS[kind](raw.decode("utf-8", "replace"))


@pytest.mark.parametrize("kind", PARSERS)
@given(name=st.sampled_from(sorted(TEXTS)), order=st.randoms(use_true_random=False), rubbish=st.text(max_size=12))
@QUIET
def test_shuffled_lines_and_rubbish_never_raise_anything_else(
    kind: str, name: str, order: object, rubbish: str
) -> None:
    lines = TEXTS[name].splitlines(keepends=True)
    order.shuffle(lines)  # type: ignore[attr-defined]
    middle = len(lines) // 2
    with suppress(ParseError):
        PARSERS[kind]("".join([*lines[:middle], rubbish, *lines[middle:]]))


HOSTILE = {
    "one word": "a" * 262144,
    "blanks": "0" + " " * 262144 + "x\n",
    "digits": "1" * 262144 + "\n",
    "separators": "1" + ";" * 262144 + "\n",
    "commas": "Skt," + "," * 262144 + "\n",
    "terms": "1;;a/" + "b," * 131072 + ";5;100.00\n",
    "link": "\tLnkSta:\tSpeed " + "1" * 262144 + "\n",
    "marks": "c1:00.0 A: B" + " (rev x)" * 32768 + "x\n",
    "braces": '{"' + "[" * 262144 + "\n",
    "totals": "RxErr 1\n" * 32768,
}


@pytest.mark.timeout(20)
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_quarter_of_a_mebibyte_of_malice_is_read_or_refused_in_seconds(text: str) -> None:
    for parse in PARSERS.values():
        with suppress(ParseError):
            parse(text)
