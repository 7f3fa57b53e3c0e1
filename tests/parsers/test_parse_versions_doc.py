"""docs/parse_versions.md: its examples are what the parser says, and every key is explained."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path

from npu_watchd.model.versions import ComponentVersion, VersionFile, VersionSpan
from npu_watchd.parsers import versions
from tests.parsers.texts import plain, refused

PAGE = (Path(__file__).parents[2] / "docs" / "parse_versions.md").read_text(encoding="utf-8")
_BLOCKS = r" `version-info`:\n\n```text\n(?P<text>.*?)```\n\n```(?:json|text)\n(?P<answer>.*?)\n```\n"


def _block(heading: str) -> tuple[str, str]:
    match = re.search(heading + _BLOCKS, PAGE, re.DOTALL)
    assert match is not None
    return match["text"], match["answer"]


def test_the_example_is_what_the_parser_says() -> None:
    text, answer = _block("Example of")
    assert plain(versions.parse(text)) == json.loads(answer)


def test_the_refusal_is_what_the_parser_says() -> None:
    text, answer = _block("Refusal by")
    assert str(refused(versions.parse, text)) == answer


def test_every_key_is_explained() -> None:
    explained = set(re.findall(r"`([a-z_]+)`", PAGE))
    records = (VersionFile, ComponentVersion, VersionSpan)
    assert {field.name for record in records for field in dataclasses.fields(record)} <= explained
