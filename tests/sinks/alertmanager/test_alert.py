"""What an alert says of a finding."""

from __future__ import annotations

import json

import pytest

from npu_watchd.model.fabric import PortKey
from npu_watchd.model.finding import Action, Evidence, Severity
from npu_watchd.model.ids import NODE
from npu_watchd.sinks.alertmanager.alert import Posting, alert_of, document, rfc3339
from tests.sinks.alertmanager.build import DOUBLE_BIT, NOON_S, finding


def test_a_device_is_named_by_node_and_device_id() -> None:
    assert dict(alert_of(finding(), "node17").labels) == {
        "alertname": "NpuMemoryUncorrectableErrors",
        "severity": "critical",
        "node": "node17",
        "device_id": "3",
    }


def test_a_host_port_is_named_by_device_and_port() -> None:
    down = finding(alert="RocePortDown", subject=PortKey("mlx5_0", 1), device_id=None, severity=Severity.WARNING)
    assert dict(alert_of(down, "node17").labels) == {
        "alertname": "RocePortDown",
        "severity": "warning",
        "node": "node17",
        "rdma_device": "mlx5_0",
        "port": "1",
    }


def test_the_node_has_no_label_but_its_name() -> None:
    killed = finding(alert="NpuHostOutOfMemory", subject=NODE, device_id=None, severity=Severity.WARNING)
    assert dict(alert_of(killed, "node17").labels) == {
        "alertname": "NpuHostOutOfMemory",
        "severity": "warning",
        "node": "node17",
    }


def test_the_annotations_carry_value_limit_command_and_what_to_do() -> None:
    assert alert_of(finding(), "node17", "https://wiki/runbooks/").annotations == {
        "summary": "3 uncorrectable memory errors on device 3, limit 1",
        "description": 'npu_device_memory_errors_total{memory="hbm",kind="double_bit"}: 3 (limit 1)',
        "check": "npu-smi info -t ecc -i 3: HBM Double Bit Error Count",
        "action": "reset_device",
        "runbook_url": "https://wiki/runbooks/NpuMemoryUncorrectableErrors.md",
    }


@pytest.mark.parametrize(
    ("evidence", "told"),
    [
        (("temperature", 95.5, 95.0, "celsius", None), "temperature: 95.5 celsius (limit 95 celsius)"),
        (("downs", 5, 3, "", 43200.0), "downs: 5 within 12h (limit 3)"),
        (("downs", 5, None, "", 5430.0), "downs: 5 within 1h30m30s"),
        (("downs", 5, None, "", 90061.0), "downs: 5 within 1d1h1m1s"),
        (("state", "Down", "Active", "", 0.25), "state: Down within 0.25s (limit Active)"),
        (("used", 68719476736.0, None, "bytes", None), "used: 68719476736 bytes"),
    ],
)
def test_evidence_is_told_with_unit_window_and_limit(
    evidence: tuple[str, float | str, float | str | None, str, float | None], told: str
) -> None:
    alert = alert_of(finding(evidence=(Evidence(*evidence, source="look"),)), "n")
    assert alert.annotations["description"] == told


def test_each_evidence_has_a_line_and_each_command_one() -> None:
    twice = (DOUBLE_BIT, Evidence("pages", 64, 64, "", None, "npu-smi info -t ecc -i 3: HBM Double Bit Error Count"))
    annotations = alert_of(finding(evidence=twice), "n").annotations
    assert annotations["description"].splitlines()[1] == "pages: 64 (limit 64)"
    assert annotations["check"] == "npu-smi info -t ecc -i 3: HBM Double Bit Error Count"


def test_a_finding_with_more_evidence_than_anybody_reads_says_how_much_more() -> None:
    many = tuple(Evidence(f"e{number}", number, None, "", None, f"look {number}") for number in range(30))
    lines = alert_of(finding(evidence=many), "n").annotations["description"].splitlines()
    assert (len(lines), lines[18], lines[19]) == (20, "e18: 18", "… and 11 more")


def test_a_held_finding_says_so_and_why() -> None:
    held = finding(held=True, held_because="npu-smi info -t ecc -i 3: no answer within 10 s", jobs=("job-1", "job-2"))
    annotations = alert_of(held, "n").annotations
    assert annotations["held"] == "true"
    assert annotations["held_because"] == "npu-smi info -t ecc -i 3: no answer within 10 s"
    assert annotations["jobs"] == "job-1, job-2"


def test_without_a_base_there_is_no_runbook_link() -> None:
    assert "runbook_url" not in alert_of(finding(), "n").annotations


def test_no_name_can_break_a_label_or_a_line() -> None:
    hostile = finding(subject=PortKey("mlx\n5\u202e", 1), device_id=None, jobs=("a\nb",), action=Action.INSPECT)
    alert = alert_of(hostile, "n" * 300)
    assert dict(alert.labels)["rdma_device"] == "mlx\ufffd5\ufffd"
    assert dict(alert.labels)["node"] == "n" * 255 + "…"
    assert alert.annotations["jobs"] == "a\ufffdb"


def test_another_severity_is_another_alert() -> None:
    assert alert_of(finding(), "n").labels != alert_of(finding(severity=Severity.WARNING), "n").labels


def test_other_values_are_the_same_alert() -> None:
    assert alert_of(finding(), "n").labels == alert_of(finding(summary="4 errors"), "n").labels


def test_the_document_is_what_api_v2_takes() -> None:
    alert = alert_of(finding(evidence=(), summary="x"), "n")
    assert json.loads(document([Posting(alert, NOON_S + 240.0625)])) == [
        {
            "labels": {
                "alertname": "NpuMemoryUncorrectableErrors",
                "device_id": "3",
                "node": "n",
                "severity": "critical",
            },
            "annotations": {"summary": "x", "action": "reset_device"},
            "startsAt": "2026-11-30T12:00:00.000Z",
            "endsAt": "2026-11-30T12:04:00.062Z",
        }
    ]


@pytest.mark.parametrize("since_s", [NOON_S + 3600, float("nan"), float("inf"), -1e18])
def test_an_alert_never_ends_before_it_starts_whatever_the_clock_said(since_s: float) -> None:
    posting = Posting(alert_of(finding(since_s=since_s), "n"), NOON_S)
    assert posting.starts_at_s == NOON_S
    assert json.loads(document([posting]))[0]["startsAt"] == "2026-11-30T12:00:00.000Z"


def test_times_are_utc_with_milliseconds() -> None:
    assert rfc3339(NOON_S + 0.5) == "2026-11-30T12:00:00.500Z"
