"""Cases and acknowledgements as text, so that a restart forgets none."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from npu_watchd.decide.case import Case, Word
from npu_watchd.memory.stored import json_of, subject_of_text, text_of_subject
from npu_watchd.model.fabric import PortKey
from npu_watchd.model.finding import Action
from npu_watchd.model.ids import NODE, DeviceKey, Subject
from npu_watchd.model.verdict import Reason, State

NAME = "verdicts"
"""Under which it lies in state.db's table `meta`."""

Acks = Mapping[tuple[str, Subject], Word]


class _Memo(msgspec.Struct):
    cases: dict[str, Case]
    acks: list[tuple[str, str, Word]]


def text_of(cases: Mapping[Subject, Case], acks: Acks) -> str:
    written = {text_of_subject(subject): case for subject, case in cases.items()}
    return json_of(_Memo(written, [(rule, text_of_subject(who), word) for (rule, who), word in acks.items()]))


def cases_of_document(document: Mapping[str, Any]) -> dict[Subject, Case]:
    """Who is in quarantine or on probation by verdict.json, for a start without state.db: the rest is judged anew."""
    found: dict[Subject, Case] = {}
    for verdict in document["verdicts"]:
        state = verdict["own_state"] or verdict["state"]
        if state in (State.QUARANTINE, State.PROBATION):
            subject = _subject(verdict)
            reasons = tuple(Reason(str(one["text"]), one["rule"]) for one in verdict["reasons"])
            action = Action(verdict["action"]) if verdict["action"] is not None else None
            device_id = verdict["device_id"]
            found[subject] = Case(State(state), float(verdict["since"]), device_id, reasons, action)
    return found


def _subject(verdict: Mapping[str, Any]) -> Subject:
    if verdict["rdma_device"] is not None:
        return PortKey(verdict["rdma_device"], int(verdict["port"]))
    match = re.fullmatch(r"npu (\d+) chip (\d+)", verdict["subject"])
    return DeviceKey(int(match[1]), int(match[2])) if match else NODE


def cases_of(text: str) -> tuple[dict[Subject, Case], Acks]:
    """Raises ValueError for what this version does not write."""
    memo = msgspec.json.decode(text, type=_Memo)
    cases = {subject_of_text(subject): case for subject, case in memo.cases.items()}
    return cases, {(rule, subject_of_text(who)): word for rule, who, word in memo.acks}
