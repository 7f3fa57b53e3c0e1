"""`/api/v1/findings`, `/api/v1/events`, and what the page and `status` say of findings."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from npu_watchd.model.fabric import PortKey
from npu_watchd.model.finding import Action, Event, Evidence, Finding, Severity
from npu_watchd.model.hccl import Listener, ProcessPlace
from npu_watchd.model.ids import DeviceKey
from npu_watchd.model.jobs import Attribution, DeviceJobs, Job, Scheduler
from npu_watchd.model.snapshot import Outcome
from npu_watchd.sinks.instants import instant
from npu_watchd.sinks.web.findings import findings_document
from npu_watchd.sinks.web.jobs import jobs_document
from npu_watchd.sinks.web.page import render_page
from tests.sinks.build import AT, device, outcome
from tests.sinks.serving import Serving, serving

COUNT = Evidence(
    'npu_device_memory_errors_total{memory="hbm",kind="double_bit"}',
    2,
    1.0,
    "",
    None,
    "npu-smi info -t ecc -i 3: HBM Double Bit Error Count",
)
ECC = Finding(
    rule="hbm_double_bit",
    alert="NpuMemoryUncorrectableErrors",
    subject=DeviceKey(3),
    device_id="3",
    severity=Severity.CRITICAL,
    quarantines=True,
    action=Action.RESET_DEVICE,
    since_s=AT.wall_s - 120,
    summary="device 3: 2 uncorrectable HBM errors since its last reset",
    evidence=(COUNT,),
)
DOWN = replace(
    ECC,
    rule="roce_down",
    alert="RocePortDown",
    subject=PortKey("mlx5_0", 1),
    device_id=None,
    quarantines=False,
    action=Action.CHECK_CABLE,
    summary="RDMA port mlx5_0/1 has been down for 4 min or longer",
    held=True,
    held_because="ibstat: may not be executed",
)
EVENTS = (
    Event(1, AT.wall_s - 7200, "daemon_started", "npu-watchd 0.1.0 was started"),
    Event(2, AT.wall_s - 120, "finding_opened", ECC.summary, "3", "hbm_double_bit", {"severity": "critical"}),
)


def found(**changes: Any) -> Outcome:
    return replace(outcome([device(3)]), findings=(ECC, DOWN), journal=EVENTS, **changes)


@pytest.fixture
def run() -> Iterator[Serving]:
    with serving(found()) as server:
        yield server


def test_a_finding_as_json_has_its_evidence_and_the_command() -> None:
    assert findings_document(found())["findings"][0] == {
        "rule": "hbm_double_bit",
        "alert": "NpuMemoryUncorrectableErrors",
        "severity": "critical",
        "quarantines": True,
        "action": "reset_device",
        "subject": "npu 3 chip 0",
        "device_id": "3",
        "rdma_device": None,
        "port": None,
        "since": AT.wall_s - 120,
        "summary": "device 3: 2 uncorrectable HBM errors since its last reset",
        "evidence": [
            {
                "metric": 'npu_device_memory_errors_total{memory="hbm",kind="double_bit"}',
                "observed": 2,
                "limit": 1.0,
                "unit": "",
                "window_seconds": None,
                "source": "npu-smi info -t ecc -i 3: HBM Double Bit Error Count",
            }
        ],
        "held": False,
        "held_because": None,
        "jobs": [],
        "acknowledged": None,
    }


def test_the_server_has_findings_and_events(run: Serving) -> None:
    findings = json.loads(run.get("/api/v1/findings").body)
    assert [(one["rule"], one["rdma_device"], one["port"], one["held"]) for one in findings["findings"]] == [
        ("hbm_double_bit", None, None, False),
        ("roce_down", "mlx5_0", 1, True),
    ]
    assert [event["number"] for event in json.loads(run.get("/api/v1/events").body)["events"]] == [1, 2]


@pytest.mark.parametrize(
    ("query", "numbers"),
    [
        ("?since=1h", [2]),
        ("?since=3h", [1, 2]),
        (f"?since={AT.wall_s - 120}", [2]),
        ("?device_id=3", [2]),
        ("?device_id=4", []),
        ("?since=1h&device_id=3", [2]),
    ],
)
def test_events_are_chosen_by_time_and_device(run: Serving, query: str, numbers: list[int]) -> None:
    assert [event["number"] for event in json.loads(run.get(f"/api/v1/events{query}").body)["events"]] == numbers


@pytest.mark.parametrize("query", ["?since=yesterday", "?since=", "?since=nan", "?sinc=1h", "?x", "?" + "a&" * 50])
def test_a_question_that_cannot_be_meant_is_answered_with_what_can(run: Serving, query: str) -> None:
    answer = run.get(f"/api/v1/events{query}")
    assert answer.status == 400
    assert json.loads(answer.body)["error"]


def test_the_page_shows_value_limit_and_command() -> None:
    page = render_page(found()).decode()
    assert "device 3: 2 uncorrectable HBM errors since its last reset" in page
    assert "<code>npu-smi info -t ecc -i 3: HBM Double Bit Error Count</code>" in page
    assert "NpuMemoryUncorrectableErrors · critical, quarantine · since 2 min ago · next: reset device" in page
    assert "Held: it was found before, and now cannot be seen (ibstat: may not be executed)." in page


def test_who_has_taken_a_finding_on_is_in_the_api_and_on_the_page() -> None:
    taken = replace(ECC, acknowledged="by alice: <b>ticket 123</b>")
    shown = replace(outcome([device(3)]), findings=(taken, DOWN))
    said = [finding["acknowledged"] for finding in findings_document(shown)["findings"]]
    assert said == ["by alice: <b>ticket 123</b>", None]
    page = render_page(shown).decode()
    assert "critical, quarantine, acknowledged · since 2 min ago" in page
    assert page.count("<p>Acknowledged by alice: &lt;b&gt;ticket 123&lt;/b&gt;</p>") == 1


def test_the_page_begins_with_how_many_and_looks_as_bad_as_the_worst() -> None:
    page = render_page(found()).decode()
    assert '<p class="summary state-critical">1 of 1 devices present, 0 blind, worst health: ok, 2 findings</p>' in page
    page = render_page(replace(found(), findings=(DOWN,))).decode()
    assert '<p class="summary state-alarm">' in page


def test_a_page_without_findings_says_of_what_that_is_true() -> None:
    assert "No rule has found anything in what can be seen." in render_page(outcome([device(0)])).decode()


def test_hostile_words_in_a_finding_stay_words() -> None:
    evil = replace(ECC, summary="<script>alert(1)</script>", evidence=(replace(COUNT, source="</code><b>"),))
    page = render_page(replace(outcome([device(3)]), findings=(evil,))).decode()
    assert "<script>" not in page
    assert "</code><b>" not in page


@pytest.mark.parametrize(
    ("text", "second"),
    [
        ("90s", 910.0),
        ("2h", -6200.0),
        ("1w", -603800.0),
        ("1767225600", 1767225600.0),
        ("2026-01-01", 1767225600.0),
        ("2026-01-01T00:00:00Z", 1767225600.0),
        ("2026-01-01T02:00:00+02:00", 1767225600.0),
    ],
)
def test_an_instant_is_read_as_people_write_it(text: str, second: float) -> None:
    assert instant(text, 1000.0) == second


@pytest.mark.parametrize("text", ["", "soon", "inf", "1 hour", "2026-13-01"])
def test_what_is_no_instant_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="write how long ago"):
        instant(text, 0.0)


def test_the_jobs_of_a_device_are_in_the_api_and_on_the_page() -> None:
    job = Job(Scheduler.SLURM, "4711", "alice", name="llama")
    jobs = DeviceJobs(
        (
            Attribution(
                *(DeviceKey(3), 10, "python3", 4 << 30),
                started_wall_s=AT.wall_s - 60,
                job=job,
                variables={"HCCL_EXEC_TIMEOUT": "7200", "HCCL_CONNECT_TIMEOUT": "600", "RANK": "0"},
                place=ProcessPlace("net:[1]", True, (Listener("10.0.0.7", 60000),)),
            ),
            Attribution(
                *(DeviceKey(3), 11, "python3", 2 << 30),
                started_wall_s=AT.wall_s - 90,
                job=job,
                variables={"HCCL_EXEC_TIMEOUT": "1800"},
            ),
            Attribution(DeviceKey(3), 12, None, None, note="gone before it could be read"),
        )
    )
    assert jobs_document(jobs) == {
        "known": [
            {
                "scheduler": "slurm",
                "job": "4711",
                "user": "alice",
                "name": "llama",
                "step": None,
                "pod": None,
                "container": None,
                "since": AT.wall_s - 90,
                "alive": None,
                "memory_bytes": 6 << 30,
                "pids": [10, 11],
                "process_names": ["python3"],
                "notes": [],
                "settings": {"HCCL_CONNECT_TIMEOUT": ["600"], "HCCL_EXEC_TIMEOUT": ["1800", "7200"]},
                "listening": ["10.0.0.7:60000"],
            }
        ],
        "unknown": [{"pid": 12, "process_name": None, "memory_bytes": None, "note": "gone before it could be read"}],
    }
    assert "slurm 4711 (alice), 1 of unknown jobs" in render_page(outcome([device(3, jobs=jobs)])).decode()


def test_a_job_with_a_hostile_name_stays_text() -> None:
    job = Job(Scheduler.UNIT, "<script>alert(1)</script>", "<b>")
    jobs = DeviceJobs((Attribution(DeviceKey(3), 10, "x", None, job=job),))
    assert "<script>" not in render_page(outcome([device(3, jobs=jobs)])).decode()
