"""`/api/v1/history`: how a counter grew, and what is answered where that cannot be told."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from typing import Any

import pytest

from npu_watchd.model.fabric import PortKey
from npu_watchd.model.ids import NODE, DeviceKey, Subject
from npu_watchd.model.ledger import Account, Growth, Ledger
from npu_watchd.model.reading import Failure, FailureKind
from npu_watchd.sinks.web.history import CounterHistory, answer
from tests.sinks.build import AT, device, outcome
from tests.sinks.serving import serving

ERRORS, DOWNS = "npu_device_memory_errors_total", "npu_node_rdma_port_link_downs_total"
METRICS = (ERRORS, DOWNS)
ACCOUNT = Account(
    DeviceKey(3),
    (("kind", "double_bit"), ("memory", "hbm")),
    4.0,
    AT.wall_s - 7200,
    (Growth(AT.wall_s - 120, AT.wall_s - 60, AT.wall_s - 60, 2.0),),
)
SHOWN = outcome([device(3), device(4)])


class Kept:
    """What is asked of it, and what it answers."""

    def __init__(self, *accounts: Account, **more: Any) -> None:
        self.asked: list[tuple[str, Subject | None, float]] = []
        self.answer: Ledger | Failure = Ledger(accounts, **more)

    def __call__(self, metric: str, subject: Subject | None, since_s: float) -> Ledger | Failure:
        self.asked.append((metric, subject, since_s))
        return self.answer


def asked(kept: Kept, **query: str) -> tuple[int, dict[str, Any]]:
    return answer(CounterHistory(METRICS, kept), SHOWN, query)


def test_a_counters_growth_has_the_labels_of_metrics_and_each_step() -> None:
    kept = Kept(ACCOUNT)
    assert asked(kept, metric=ERRORS, device_id="3") == (
        200,
        {
            "at": AT.wall_s,
            "node": "node-17",
            "metric": ERRORS,
            "device_id": "3",
            "written": True,
            "cut": False,
            "unreadable": 0,
            "series": [
                {
                    "subject": "npu 3 chip 0",
                    "labels": {"device_id": "3", "kind": "double_bit", "memory": "hbm"},
                    "value": 4.0,
                    "since": AT.wall_s - 7200,
                    "points": [
                        {"after": AT.wall_s - 120, "first": AT.wall_s - 60, "last": AT.wall_s - 60, "grown": 2.0}
                    ],
                }
            ],
        },
    )
    assert kept.asked == [(ERRORS, DeviceKey(3), 0.0)]


def test_without_a_device_all_are_told_and_a_forgotten_one_has_no_device_id_that_is_now_anothers() -> None:
    port, gone, node = Account(PortKey("mlx5_0", 1), (), 2.0, 0.0, ()), replace(ACCOUNT, subject=DeviceKey(9)), NODE
    status, document = asked(Kept(port, gone, replace(ACCOUNT, subject=node)), metric=DOWNS)
    assert (status, document["device_id"]) == (200, None)
    assert [(one["subject"], one["labels"]) for one in document["series"]] == [
        ("mlx5_0/1", {"rdma_device": "mlx5_0", "port": "1"}),
        ("npu 9 chip 0", {"kind": "double_bit", "memory": "hbm"}),
        ("node", {"kind": "double_bit", "memory": "hbm"}),
    ]


@pytest.mark.parametrize(
    ("since", "second"), [("1h", AT.wall_s - 3600), ("1789999000", 1789999000.0), ("2026-09-21", 1789948800.0)]
)
def test_since_is_an_instant_as_people_write_it(since: str, second: float) -> None:
    kept = Kept()
    assert asked(kept, metric=ERRORS, since=since)[0] == 200
    assert kept.asked == [(ERRORS, None, second)]


def test_that_it_was_cut_that_some_cannot_be_read_and_that_the_disk_lags_is_said() -> None:
    late = replace(SHOWN, engine=replace(SHOWN.engine, history_written=False))
    status, document = answer(CounterHistory(METRICS, Kept(cut=True, unreadable=2)), late, {"metric": ERRORS})
    assert (status, document["cut"], document["unreadable"], document["written"]) == (200, True, 2, False)


@pytest.mark.parametrize(
    ("query", "status", "words"),
    [
        ({}, 400, f"metric is missing; a history is kept of {ERRORS}, {DOWNS}"),
        ({"metric": ""}, 400, f"metric is missing; a history is kept of {ERRORS}, {DOWNS}"),
        ({"metric": "npu_device_power_watts"}, 404, f"a history is kept of {ERRORS}, {DOWNS}"),
        ({"metric": ERRORS, "device_id": "77"}, 404, "device_id '77': there are 3, 4"),
        ({"metric": ERRORS, "device_id": ""}, 404, "device_id '': there are 3, 4"),
        ({"metric": ERRORS, "since": "yesterday"}, 400, "'yesterday' is no instant"),
    ],
)
def test_a_question_that_cannot_be_answered_says_what_can(query: dict[str, str], status: int, words: str) -> None:
    kept = Kept()
    got, document = asked(kept, **query)
    assert got == status
    assert words in document["error"]
    assert kept.asked == []


def test_a_database_that_cannot_be_read_is_a_503_with_the_cause() -> None:
    kept = Kept()
    kept.answer = Failure(FailureKind.UNPARSEABLE, "/var/lib/npu-watchd/state.db: file is not a database")
    with serving(SHOWN, counters=CounterHistory(METRICS, kept)) as server:
        got = server.get(f"/api/v1/history?metric={ERRORS}")
    assert (got.status, got.headers["Retry-After"]) == (503, "5")
    assert json.loads(got.body) == {"error": "/var/lib/npu-watchd/state.db: file is not a database"}


def test_the_server_answers_with_status_and_document() -> None:
    with serving(SHOWN, counters=CounterHistory(METRICS, Kept(ACCOUNT))) as server:
        got = server.get(f"/api/v1/history?metric={ERRORS}&device_id=3&since=1h")
        assert (got.status, json.loads(got.body)["series"][0]["value"]) == (200, 4.0)
        assert server.get("/api/v1/history?metric=x").status == 404
        bad = server.get("/api/v1/history?metrics=x")
        assert (bad.status, json.loads(bad.body)["error"]) == (400, "'metrics': there are metric, device_id and since")
    with serving(first_cycle=False, counters=CounterHistory(METRICS, Kept())) as server:
        assert server.get(f"/api/v1/history?metric={ERRORS}").status == 503
    with serving(SHOWN) as server:
        assert server.get(f"/api/v1/history?metric={ERRORS}").status == 503


def test_a_disk_that_hangs_costs_two_threads_of_the_server_for_a_while_and_never_a_scrape() -> None:
    free = threading.Event()
    begun: list[str] = []

    def hang(metric: str, _subject: Subject | None, _since_s: float) -> Ledger:
        begun.append(metric)
        free.wait(30)
        return Ledger(())

    history = CounterHistory(METRICS, hang, within_s=0.05)
    with serving(SHOWN, counters=history) as server:
        answers = [server.get(f"/api/v1/history?metric={ERRORS}") for _ in range(2)]
        assert [json.loads(got.body)["error"] for got in answers] == [
            "the disk has not answered within 0.05 s",
            "an earlier question still waits for the disk; try again later",
        ]
        assert server.get("/metrics").status == 200
        assert begun == [ERRORS], "no second thread hangs with the first"
        free.set()
        assert history.ask(DOWNS, None, 0.0) == Ledger(())


def test_a_fault_of_ours_in_the_reading_is_a_500_without_its_words() -> None:
    def broken(_metric: str, _subject: Subject | None, _since_s: float) -> Ledger:
        raise AssertionError("secret")

    with serving(SHOWN, counters=CounterHistory(METRICS, broken)) as server:
        got = server.get(f"/api/v1/history?metric={ERRORS}")
        assert (got.status, b"secret" in got.body) == (500, False)
        assert [event for event, _ in server.logged] == ["web_request_failed"]
        assert server.get(f"/api/v1/history?metric={ERRORS}").status == 500, "and it can be asked again"
