"""docs/parse.md: each example in it is what the command prints, and each key and each mark is in it."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from npu_watchd import cli
from npu_watchd.model import records

PAGE = (Path(__file__).parents[2] / "docs" / "parse.md").read_text(encoding="utf-8")
_BLOCKS = r" `(?P<kind>[a-z-]+)`:\n\n```text\n(?P<text>.*?)```\n\n```(?:json|text)\n(?P<answer>.*?)\n```\n"
EXAMPLES = [match.group("kind", "text", "answer") for match in re.finditer("Example of" + _BLOCKS, PAGE, re.DOTALL)]
REFUSALS = [match.group("kind", "text", "answer") for match in re.finditer("Refusal by" + _BLOCKS, PAGE, re.DOTALL)]
KINDS = [
    "npu-smi-info",
    "npu-smi-map",
    "npu-smi-list",
    "npu-smi-ecc",
    "npu-smi-health",
    "npu-smi-proc-mem",
    "npu-smi-block",
]


def test_every_kind_has_an_example_and_a_line_in_the_table() -> None:
    assert [kind for kind, _, _ in EXAMPLES] == KINDS
    assert re.findall(r"^\| `(npu-smi-[a-z-]+)` \|", PAGE, re.MULTILINE) == KINDS


@pytest.mark.parametrize(("kind", "text", "answer"), EXAMPLES, ids=[kind for kind, _, _ in EXAMPLES])
def test_an_example_is_what_the_command_prints(kind: str, text: str, answer: str) -> None:
    result = CliRunner().invoke(cli.main, ["parse", kind], input=text)
    assert (result.exit_code, result.stderr) == (0, "")
    assert json.loads(result.stdout) == json.loads(answer)


@pytest.mark.parametrize(("kind", "text", "answer"), REFUSALS, ids=[kind for kind, _, _ in REFUSALS])
def test_a_refusal_is_what_the_command_says(kind: str, text: str, answer: str) -> None:
    result = CliRunner().invoke(cli.main, ["parse", kind], input=text)
    assert (result.exit_code, result.stdout, result.stderr) == (1, "", answer + "\n")
    assert re.match(r"line [1-9]\d*: ", answer)


@pytest.mark.parametrize(
    "record",
    [
        records.InfoTable,
        records.DeviceRow,
        records.ProcessRow,
        records.DeviceMap,
        records.MapRow,
        records.CardList,
        records.Card,
        records.EccReport,
        records.EccChip,
        records.MemoryErrors,
        records.HealthReport,
        records.HealthChip,
        records.ProcessMemory,
        records.ProcessMemoryChip,
        records.Block,
        records.BlockChip,
    ],
)
def test_every_key_of_a_record_is_explained(record: type) -> None:
    explained = {
        name.removesuffix("[]").rpartition(".")[2].removesuffix("[]") for name in re.findall(r"`([a-z_.\[\]]+)`", PAGE)
    }
    assert {field.name for field in dataclasses.fields(record)} - explained == set()


def test_every_mark_of_distrust_is_explained() -> None:
    source = (Path(cli.__file__).parent / "parsers" / "device_rows.py").read_text(encoding="utf-8")
    marks = re.findall(r'marks\.append\(f?"([^"{]+)', source)
    assert len(marks) == 12
    assert [mark for mark in marks if mark.rstrip() not in PAGE] == []
