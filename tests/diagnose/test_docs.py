"""The pages about it speak of what is there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from npu_watchd.codes.log_codes import TABLE
from npu_watchd.diagnose.cause import Cause
from npu_watchd.diagnose.report import diagnosis, document
from npu_watchd.parsers import ascend_log
from npu_watchd.rules import RULES
from tests.diagnose.cases import composed_cases, log

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "diagnose.md").read_text(encoding="utf-8")
EMPTY = (DOCS / "response-is-empty.md").read_text(encoding="utf-8")


def keys(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            if key not in {"driver", "npu-smi"}:
                yield key
            yield from keys(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from keys(inner)


def test_every_key_of_the_document_is_explained() -> None:
    named = {word.removesuffix("[]") for word in re.findall(r"`([a-z_]+(?:\[\])?)`", PAGE)}
    for case in composed_cases():
        assert set(keys(document(diagnosis(case.incident)))) <= named


def test_every_cause_is_named() -> None:
    assert all(f"`{cause.value}" in PAGE for cause in Cause)


def test_the_page_of_the_error_names_alerts_and_codes_that_exist() -> None:
    alerts = {rule.alert for rule in RULES}
    assert set(re.findall(r"`((?:Npu|Roce)[A-Z]\w+)`", EMPTY)) <= alerts
    codes = set(re.findall(r"(?<!\w)(E[A-Z]\d{4}|[25]07\d{3})(?!\w)", EMPTY))
    assert codes - {"EB0000"} <= set(TABLE)


def test_the_message_on_the_page_is_one_that_we_know() -> None:
    text = EMPTY.partition("```text\n")[2].partition("```")[0]
    assert [event.kind for event in ascend_log.parse(text).events] == ["compile_child_silent"]
    assert log(text)
