"""`explain device N` and `explain verdict`: what a person reads."""

from __future__ import annotations

from dataclasses import replace

import pytest

from npu_watchd.model.finding import Action, Event, Evidence, Finding, Severity
from npu_watchd.model.ids import DeviceKey
from npu_watchd.model.verdict import Reason, State
from npu_watchd.sinks.story import device_story
from npu_watchd.sinks.verdict_text import Terms, verdict_story
from npu_watchd.sinks.web.api import snapshot_document
from tests.sinks.build import AT, device, outcome
from tests.sinks.judged import BROKEN, PROGRESS, UNSEEN, judged, of_device, of_node, quarantined

TERMS = Terms(calm_s=600, clean_s=86400, load_s=5400)
FINDING = Finding(
    rule="hbm_double_bit",
    alert="NpuMemoryUncorrectableErrors",
    subject=DeviceKey(3),
    device_id="3",
    severity=Severity.CRITICAL,
    quarantines=True,
    action=Action.RESET_DEVICE,
    since_s=AT.wall_s - 7200,
    summary="device 3: 2 uncorrectable HBM errors since its last reset",
    evidence=(Evidence("npu_x", 2, 1, "", None, "npu-smi info -t ecc -i 3: HBM Double Bit Error Count"),),
    acknowledged="by alice: ticket 123",
)
OUT = of_node(State.QUARANTINE, BROKEN, action=Action.RESET_DEVICE)


def test_a_devices_story_begins_with_its_verdict_and_says_who_has_taken_on_what() -> None:
    shown = replace(judged(outcome([device(3)]), OUT, quarantined(3)), findings=(FINDING,))
    past = (Event(7, AT.wall_s, "decided_ack", "taken on by alice: ticket 123", "3"),)
    assert list(device_story("3", snapshot_document(shown), past)) == [
        "device 3",
        "  verdict quarantine since 2026-09-21 12:13:20Z; next: reset device",
        "    device 3: 2 uncorrectable HBM errors since its last reset",
        "  910B3, NPU 3 chip 0, 0000:83:00.0",
        "  health ok; error codes –",
        "",
        "NpuMemoryUncorrectableErrors (critical): device 3: 2 uncorrectable HBM errors since its last reset",
        "  acknowledged by alice: ticket 123",
        "  npu_x: 2, limit 1",
        "    check: npu-smi info -t ecc -i 3: HBM Double Bit Error Count",
        "  next: reset device",
        "",
        "what happened",
        "  2026-09-21 14:13:20Z  decided_ack           taken on by alice: ticket 123",
    ]


def test_a_held_quarantine_and_a_blind_device_say_so() -> None:
    document = snapshot_document(judged(outcome([device(3)]), OUT, quarantined(3, held=True, blind=True)))
    assert list(device_story("3", document, ()))[3:5] == [
        "    held: nothing of it is seen any longer; only a release ends it",
        "    blind: something without which nobody may call it healthy cannot be seen now",
    ]


def test_a_device_that_was_never_judged_has_no_verdict_and_is_not_called_healthy() -> None:
    assert list(device_story("0", snapshot_document(outcome([device(0)])), ()))[1] == "  no verdict yet"


def test_a_verdict_of_the_past_is_told_as_one() -> None:
    document = snapshot_document(judged(outcome([device(0)]), of_node(), of_device(0)))
    assert list(device_story("0", document, (), stale_s=61.0))[1:3] == [
        "  STALE: the daemon last wrote this 61 s ago, so the device is unknown now",
        "  verdict healthy since 2026-09-21 12:13:20Z",
    ]


def test_a_device_that_only_the_journal_knows_is_told_from_it_alone() -> None:
    past = (Event(7, AT.wall_s, "device_vanished", "device 9: vanished", "9"),)
    lines = list(device_story("9", None, past))
    assert lines[1] == "  no daemon that runs shows it: this is the journal alone"
    assert list(device_story("9", None, ())) == []


def test_the_nodes_story_names_what_makes_it_so_and_the_parts_that_are_not_healthy() -> None:
    shown = judged(
        outcome([device(n) for n in range(5)]),
        replace(OUT, blind=True),
        of_device(0, State.UNKNOWN, UNSEEN, blind=True, action=Action.CHECK_DRIVER),
        of_device(1, State.UNKNOWN, UNSEEN, blind=True, action=Action.CHECK_DRIVER),
        of_device(2),
        quarantined(3),
        of_device(4, State.PROBATION, PROGRESS, action=Action.OBSERVE),
    )
    lines = list(verdict_story(snapshot_document(shown), 1.0, 60.0, TERMS))
    assert lines[: lines.index("what the states mean")] == [
        "node-17",
        "  verdict quarantine since 2026-09-21 12:13:20Z; next: reset device",
        "    device 3: 2 uncorrectable HBM errors since its last reset",
        "    blind: something without which nobody may call it healthy cannot be seen now",
        "",
        "parts that are not healthy",
        "  devices 0, 1: unknown since 2026-09-21 12:13:20Z; next: check driver",
        "    cannot be seen: npu-smi info -t ecc -i 1: no answer within 10 s",
        "    blind: something without which nobody may call it healthy cannot be seen now",
        "  device 3: quarantine since 2026-09-21 12:13:20Z; next: reset device",
        "    device 3: 2 uncorrectable HBM errors since its last reset",
        "  device 4: probation since 2026-09-21 12:13:20Z; next: observe",
        "    on probation: 3.5 h of 24 h without a fault, 0.5 h of 1 h at work; released by alice: reset",
        "",
    ]


def test_each_state_says_what_it_means_and_what_leads_out_of_it_also_without_a_daemon() -> None:
    lines = list(verdict_story(None, 0.0, 60.0, TERMS))
    assert lines[0] == "no daemon runs here, so there is no verdict; what the states would mean:"
    assert [line.split()[0] for line in lines[1:11:2]] == ["healthy", "watch", "quarantine", "probation", "unknown"]
    told = "\n".join(lines)
    assert "Left only by `npu-watchd release device N --reason TEXT`" in told
    assert "Healthy once nothing has been found for 10 min" in told
    assert "Healthy after 1 d without a fault, 90 min of it at work" in told


def test_a_story_of_the_past_says_so() -> None:
    document = snapshot_document(judged(outcome([device(0)]), of_node(), of_device(0)))
    old = list(verdict_story(document, 61.0, 60.0, TERMS))
    assert "STALE: the daemon last wrote this 61 s ago, so the node is unknown now" in old
    assert "STALE" not in "\n".join(verdict_story(document, 59.0, 60.0, TERMS))


@pytest.mark.parametrize("evil", ["\x1b[2J\x07", "\u202eevil", "line\nline"])
def test_hostile_words_cannot_steer_the_terminal(evil: str) -> None:
    reason = Reason(evil)
    shown = judged(outcome([device(0)]), of_node(State.WATCH, reason), of_device(0, State.WATCH, reason))
    document = snapshot_document(shown)
    for line in (*device_story("0", document, ()), *verdict_story(document, 1.0, 60.0, TERMS)):
        assert not {"\x1b", "\x07", "\u202e", "\n"} & set(line)
