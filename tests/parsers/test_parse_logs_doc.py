"""docs/parse_logs.md: its example is what the parser says, and every key is explained."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path

from npu_watchd.model.log_event import LogEvent
from npu_watchd.parsers import ascend_log
from tests.parsers.texts import plain

PAGE = (Path(__file__).parents[2] / "docs" / "parse_logs.md").read_text(encoding="utf-8")


def test_the_example_is_what_the_parser_says() -> None:
    match = re.search(r"Example of `ascend-log`:\n\n```text\n(.*?)```\n\n```json\n(.*?)\n```\n", PAGE, re.DOTALL)
    assert match is not None
    assert plain(ascend_log.parse(match[1])) == json.loads(match[2])


def test_every_key_is_explained() -> None:
    explained = set(re.findall(r"`([a-z_]+)`", PAGE))
    fields = [*dataclasses.fields(LogEvent), *dataclasses.fields(ascend_log.AscendLog)]
    assert {field.name for field in fields} - {"events"} <= explained
