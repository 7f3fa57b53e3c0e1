"""Cases and acknowledgements as text, so that a restart forgets none."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from npu_watchd.decide.case import Case, Word
from npu_watchd.memory.stored import json_of, subject_of_text, text_of_subject
from npu_watchd.model.ids import Subject

NAME = "verdicts"
"""Under which it lies in state.db's table `meta`."""

Acks = Mapping[tuple[str, Subject], Word]


class _Memo(msgspec.Struct):
    cases: dict[str, Case]
    acks: list[tuple[str, str, Word]]


def text_of(cases: Mapping[Subject, Case], acks: Acks) -> str:
    written = {text_of_subject(subject): case for subject, case in cases.items()}
    return json_of(_Memo(written, [(rule, text_of_subject(who), word) for (rule, who), word in acks.items()]))


def cases_of(text: str) -> tuple[dict[Subject, Case], Acks]:
    """Raises ValueError for what this version does not write."""
    memo = msgspec.json.decode(text, type=_Memo)
    cases = {subject_of_text(subject): case for subject, case in memo.cases.items()}
    return cases, {(rule, subject_of_text(who)): word for rule, who, word in memo.acks}
