"""`/api/v1/verdicts`, and what the page says of verdicts."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from npu_watchd.model.fabric import PortKey
from npu_watchd.model.finding import Action
from npu_watchd.model.reading import Failure, FailureKind
from npu_watchd.model.snapshot import Outcome
from npu_watchd.model.verdict import Reason, State, Verdict
from npu_watchd.sinks.web.page import render_page
from npu_watchd.sinks.web.verdicts import LOOKS, verdicts_document
from tests.sinks.build import AT, device, outcome
from tests.sinks.fabric import host_port, ports
from tests.sinks.judged import BROKEN, PROGRESS, UNSEEN, judged, of_device, of_node, quarantined
from tests.sinks.serving import serving
from tests.sinks.test_page import Page

PORT = Verdict(PortKey("mlx5_0", 1), None, State.WATCH, AT.wall_s - 60, (Reason("it flaps", "roce_flap"),))
NODE_OUT = of_node(State.QUARANTINE, BROKEN, action=Action.RESET_DEVICE, blind=True, revision=41)


def sick() -> Outcome:
    """One device in quarantine, one on probation, two that nobody sees, one healthy, and a port that flaps."""
    shown = outcome([device(number) for number in range(5)], ports=ports(host_port("mlx5_0")))
    return judged(
        shown,
        NODE_OUT,
        of_device(0),
        of_device(1, State.UNKNOWN, UNSEEN, action=Action.CHECK_DRIVER, blind=True),
        of_device(2, State.UNKNOWN, UNSEEN, action=Action.CHECK_DRIVER, blind=True, since_s=AT.wall_s - 86400),
        quarantined(3, held=True),
        of_device(4, State.PROBATION, PROGRESS, action=Action.OBSERVE),
        PORT,
    )


def test_a_verdict_as_json_has_its_reasons_and_one_action() -> None:
    document = verdicts_document(sick())
    assert (document["at"], document["node"]) == (AT.wall_s, "node-17")
    assert document["verdicts"][0] == {
        "subject": "node",
        "device_id": None,
        "rdma_device": None,
        "port": None,
        "state": "quarantine",
        "since": AT.wall_s - 7200,
        "action": "reset_device",
        "held": False,
        "own_state": None,
        "blind": True,
        "revision": 41,
        "reasons": [{"text": "device 3: 2 uncorrectable HBM errors since its last reset", "rule": "hbm_double_bit"}],
    }
    assert [(one["subject"], one["state"]) for one in document["verdicts"][-2:]] == [
        ("npu 4 chip 0", "probation"),
        ("mlx5_0/1", "watch"),
    ]
    assert (document["verdicts"][-1]["rdma_device"], document["verdicts"][-1]["port"]) == ("mlx5_0", 1)


def test_the_server_has_the_same_verdicts_alone_and_in_the_snapshot() -> None:
    with serving(sick()) as server:
        answer = server.get("/api/v1/verdicts")
        assert (answer.status, answer.headers["Content-Type"]) == (200, "application/json; charset=utf-8")
        assert json.loads(answer.body) == verdicts_document(sick())
        assert json.loads(server.get("/api/v1/snapshot").body)["verdicts"] == verdicts_document(sick())["verdicts"]
    with serving(first_cycle=False) as server:
        assert server.get("/api/v1/verdicts").status == 503


def test_the_page_begins_with_the_nodes_verdict_why_since_when_and_what_to_do() -> None:
    page = Page(sick())
    head = page.text.partition("To what is wrong")[2].partition("5 of 5 devices present")[0]
    assert re.sub(r"\s+", " ", head).strip() == (
        "node-17 quarantine since 2026-09-21 12:13:20Z (2 h) · next: reset device "
        "Blind: something without which nobody may call it healthy cannot be seen now. "
        "device 3: 2 uncorrectable HBM errors since its last reset"
    )
    assert '<section id="verdict" class="verdict state-critical">' in page.source
    assert "<title>quarantine: 5 of 5 devices present, 0 blind, worst health: ok · node-17" in page.source


def test_a_row_has_the_verdict_in_words_and_says_what_is_held_and_blind() -> None:
    page = Page(sick())
    devices = page.rows[next(at for at, row in enumerate(page.rows) if row[:3] == ["Device", "Verdict", "NPU.chip"]) :]
    assert [row[1] for row in devices[1:6]] == [
        "healthy",
        "unknown blind cannot be seen: npu-smi info -t ecc -i 1: no answer within 10 s",
        "unknown blind cannot be seen: npu-smi info -t ecc -i 1: no answer within 10 s",
        "quarantine held 2 uncorrectable HBM errors since its last reset",
        "probation on probation: 3.5 h of 24 h without a fault, 0.5 h of 1 h at work; released by alice: res…",
    ]
    assert page.row("mlx5_0/1")[1] == "watch"


def test_what_is_not_healthy_is_told_once_with_its_reasons() -> None:
    page = Page(sick())
    at = page.rows.index(["Whom", "Verdict", "Since", "Next", "Why"])
    assert page.rows[at + 1 : at + 5] == [
        [
            "devices 1, 2",
            "unknown blind",
            "2026-09-20 14:13:20Z (1 d)",
            "check driver",
            "cannot be seen: npu-smi info -t ecc -i 1: no answer within 10 s\n"
            "Blind: something without which nobody may call it healthy cannot be seen now.",
        ],
        [
            "device 3",
            "quarantine held",
            "2026-09-21 12:13:20Z (2 h)",
            "reset device",
            "device 3: 2 uncorrectable HBM errors since its last reset\n"
            "Held: nothing of it is seen any longer; only a person's release ends it.",
        ],
        [
            "device 4",
            "probation",
            "2026-09-21 12:13:20Z (2 h)",
            "observe",
            "on probation: 3.5 h of 24 h without a fault, 0.5 h of 1 h at work; released by alice: reset",
        ],
        ["mlx5_0/1", "watch", "2026-09-21 14:12:20Z (1 min)", "nothing", "it flaps"],
    ]


def test_where_all_is_well_nothing_is_called_otherwise() -> None:
    page = Page(judged(outcome([device(0)]), of_node(), of_device(0)))
    assert "Not healthy" not in page.text
    assert '<section id="verdict" class="verdict state-ok">' in page.source
    assert "since 2026-09-21 12:13:20Z (2 h) · next: nothing" in page.text
    assert page.row("0")[1] == "healthy"


@pytest.mark.parametrize("state", list(State))
def test_each_state_has_a_word_a_colour_and_a_sign(state: State) -> None:
    page = Page(judged(outcome([device(0)]), of_node(state), of_device(0, state)))
    assert page.row("0")[1] == state.value
    assert f'<span class="state state-{LOOKS[state]}">{state.value}</span>' in page.source
    for rule in (f".state-{LOOKS[state]} {{ color: ", f".state-{LOOKS[state]}.state::before {{ content: "):
        assert rule in page.source


def test_a_page_before_any_verdict_says_so_and_does_not_look_healthy() -> None:
    page = Page(outcome([device(0)]))
    assert '<section id="verdict" class="verdict state-unknown">\n<p>No verdict yet.</p>' in page.source


def test_the_summary_looks_as_bad_as_the_worst_verdict() -> None:
    shown = outcome([device(0)])
    out = judged(shown, of_node(State.WATCH), of_device(0, State.QUARANTINE, held=True))
    assert '<p class="summary state-critical">' in render_page(out).decode()


def test_hostile_words_in_a_reason_stay_words() -> None:
    evil = Reason("</li><script>alert(1)</script>\x1b[2J\u202e", None)
    name = PortKey("<b>\n", 1)
    shown = outcome([device(0, blind={"npu_ecc": Failure(FailureKind.EXIT, "x")})])
    port = replace(PORT, subject=name, reasons=(evil,))
    page = render_page(judged(shown, of_node(State.WATCH, evil), of_device(0, State.WATCH, evil), port)).decode()
    assert "<script>" not in page
    assert "<b>" not in page
    assert "\x1b" not in page
    assert "\u202e" not in page


def test_a_node_with_more_reasons_than_anybody_reads_says_how_many_more() -> None:
    many = tuple(Reason(f"device {number}: ill") for number in range(64))
    page = Page(judged(outcome([device(0)]), of_node(State.UNKNOWN, *many)))
    assert "device 2: ill" in page.text
    assert "device 3: ill" not in page.text
    assert "and 61 more" in page.text
