"""docs/parse_pcie.md: each example in it is what the parser says, and each key is explained."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path

import pytest

from npu_watchd.model import pcie, pcie_tools
from tests.parsers.pcie_kinds import KINDS
from tests.parsers.texts import plain, refused

PAGE = (Path(__file__).parents[2] / "docs" / "parse_pcie.md").read_text(encoding="utf-8")
_BLOCKS = r" `(?P<kind>[a-z-]+)`:\n\n```text\n(?P<text>.*?)```\n\n```(?:json|text)\n(?P<answer>.*?)\n```\n"
EXAMPLES = [match.group("kind", "text", "answer") for match in re.finditer("Example of" + _BLOCKS, PAGE, re.DOTALL)]
REFUSALS = [match.group("kind", "text", "answer") for match in re.finditer("Refusal by" + _BLOCKS, PAGE, re.DOTALL)]


def test_every_kind_has_an_example_a_refusal_and_a_line_in_the_table() -> None:
    assert [kind for kind, _, _ in EXAMPLES] == list(KINDS)
    assert [kind for kind, _, _ in REFUSALS] == list(KINDS)
    assert re.findall(r"^\| `([a-z-]+)` \| `(?:cat|lspci|perf|pcm)", PAGE, re.MULTILINE) == list(KINDS)


@pytest.mark.parametrize(("kind", "text", "answer"), EXAMPLES, ids=[kind for kind, _, _ in EXAMPLES])
def test_an_example_is_what_the_parser_says(kind: str, text: str, answer: str) -> None:
    assert plain(KINDS[kind](text)) == json.loads(answer)


@pytest.mark.parametrize(("kind", "text", "answer"), REFUSALS, ids=[kind for kind, _, _ in REFUSALS])
def test_a_refusal_is_what_the_parser_says(kind: str, text: str, answer: str) -> None:
    assert str(refused(KINDS[kind], text)) == answer


@pytest.mark.parametrize(
    "record",
    [
        pcie.AerReport,
        pcie.AerCounts,
        pcie_tools.LspciList,
        pcie_tools.LspciDevice,
        pcie_tools.PerfStat,
        pcie_tools.PerfCounter,
        pcie_tools.PcmTable,
        pcie_tools.PcieSocketLoad,
    ],
)
def test_every_key_of_a_record_is_explained(record: type) -> None:
    explained = {name.removesuffix("[]") for name in re.findall(r"`([a-z_\[\]]+)`", PAGE)}
    assert {field.name for field in dataclasses.fields(record)} - explained == set()
