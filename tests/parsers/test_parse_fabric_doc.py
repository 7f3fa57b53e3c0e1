"""docs/parse_fabric.md: each example is what the parser makes of its text, and each key and each kind is in it."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path

import msgspec
import pytest

from npu_watchd.model import fabric
from tests.parsers.fabric_texts import PARSERS
from tests.parsers.texts import refused

PAGE = (Path(__file__).parents[2] / "docs" / "parse_fabric.md").read_text(encoding="utf-8")
_BLOCKS = r" `(?P<kind>[a-z-]+)`:\n\n```text\n(?P<text>.*?)```\n\n```(?:json|text)\n(?P<answer>.*?)\n```\n"
EXAMPLES = [match.group("kind", "text", "answer") for match in re.finditer("Example of" + _BLOCKS, PAGE, re.DOTALL)]
REFUSALS = [match.group("kind", "text", "answer") for match in re.finditer("Refusal by" + _BLOCKS, PAGE, re.DOTALL)]
RECORDS = [
    fabric.RdmaPorts,
    fabric.RdmaPort,
    fabric.NpuLink,
    fabric.NpuLinkHistory,
    fabric.LinkChange,
    fabric.NpuLinkSpeed,
    fabric.NpuPortStatistics,
    fabric.NetHealth,
    fabric.OpticalModule,
    fabric.OpticalLane,
    fabric.Limits,
]


def test_every_kind_has_an_example_and_a_line_in_the_table() -> None:
    assert [kind for kind, _, _ in EXAMPLES] == list(PARSERS)
    assert re.findall(r"^\| `((?:ibstat|rdma|hccn)[a-z-]*)` \|", PAGE, re.MULTILINE) == list(PARSERS)


@pytest.mark.parametrize(("kind", "text", "answer"), EXAMPLES, ids=[kind for kind, _, _ in EXAMPLES])
def test_an_example_is_what_the_parser_makes_of_it(kind: str, text: str, answer: str) -> None:
    assert json.loads(msgspec.json.encode(PARSERS[kind](text))) == json.loads(answer)


@pytest.mark.parametrize(("kind", "text", "answer"), REFUSALS)
def test_a_refusal_is_what_the_parser_says(kind: str, text: str, answer: str) -> None:
    assert str(refused(PARSERS[kind], text)) == answer


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.__name__)
def test_every_key_is_in_the_page(record: type) -> None:
    missing = [field.name for field in dataclasses.fields(record) if not re.search(rf"[`\"]{field.name}[`\"]", PAGE)]
    assert missing == []


def test_the_contracts_keys_of_a_port_are_there() -> None:
    contract = ["ca", "ca_type", "firmware", "port", "state", "physical_state", "rate_gbps", "base_lid", "link_layer"]
    document = json.loads(msgspec.json.encode(PARSERS["ibstat"](EXAMPLES[0][1])))
    assert set(contract) <= document["ports"][0].keys()
    assert document["errors"][0].startswith("ibpanic: ")


def test_every_label_of_a_state_is_fit_for_a_metric() -> None:
    for labels in (fabric.PORT_STATE_LABELS, fabric.PHYSICAL_STATE_LABELS, fabric.NET_HEALTH_LABELS):
        assert len(set(labels.values())) == len(labels)
        assert all(re.fullmatch(r"[a-z_]+", label) for label in labels.values())
