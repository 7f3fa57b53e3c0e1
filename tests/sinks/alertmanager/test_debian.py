"""The real Alertmanager: an alert that fires is seen with its labels, one that is resolved is gone."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import bcrypt
import pytest

from npu_watchd.config.alertmanager import AlertmanagerSection
from npu_watchd.config.values import AlertmanagerUrl, Seconds
from npu_watchd.model.fabric import PortKey
from npu_watchd.model.finding import Finding, Severity
from npu_watchd.model.ids import NODE
from npu_watchd.model.reading import FailureKind
from npu_watchd.sinks.alertmanager import Pusher
from npu_watchd.sinks.alertmanager.client import Access, Client
from tests.sinks.alertmanager.build import finding
from tests.sinks.alertmanager.debian import Alertmanager, alertmanager, present
from tests.sinks.certificates import make_authority
from tests.sinks.serving import wait_until

DOUBLE_BIT = {
    "alertname": "NpuMemoryUncorrectableErrors",
    "severity": "critical",
    "node": "node17",
    "device_id": "3",
}


def pusher(*urls: str, resend_s: float = 60.0, timeout_s: float = 5.0) -> Pusher:
    settings = AlertmanagerSection(
        urls=tuple(AlertmanagerUrl(url) for url in urls), resend_s=Seconds(resend_s), timeout_s=Seconds(timeout_s)
    )
    return Pusher(settings, "node17", present, lambda *_, **__: None)


def now(**changes: Any) -> Finding:
    return finding(since_s=present().wall_s, **changes)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Alertmanager]:
    with alertmanager(tmp_path / "one") as running:
        yield running


def test_what_fires_is_seen_with_its_labels_and_what_is_resolved_is_gone(server: Alertmanager) -> None:
    push = pusher(server.url)
    push.publish([now()], present())
    wait_until(lambda: server.labels() == [DOUBLE_BIT], 20)
    (seen,) = server.alerts()
    assert seen["annotations"] == {
        "summary": "3 uncorrectable memory errors on device 3, limit 1",
        "description": 'npu_device_memory_errors_total{memory="hbm",kind="double_bit"}: 3 (limit 1)',
        "check": "npu-smi info -t ecc -i 3: HBM Double Bit Error Count",
        "action": "reset_device",
    }
    assert seen["status"]["state"] in ("active", "unprocessed")
    push.publish([], present())
    wait_until(lambda: server.alerts() == [], 20)
    push.close(5)


def test_ports_and_the_node_are_seen_each_with_its_own_labels(server: Alertmanager) -> None:
    push = pusher(server.url)
    port = now(alert="RocePortDown", subject=PortKey("mlx5_0", 1), device_id=None, severity=Severity.WARNING)
    memory = now(alert="NpuHostOutOfMemory", subject=NODE, device_id=None, severity=Severity.WARNING)
    push.publish([port, memory], present())
    expected = [
        {"alertname": "NpuHostOutOfMemory", "severity": "warning", "node": "node17"},
        {
            "alertname": "RocePortDown",
            "severity": "warning",
            "node": "node17",
            "rdma_device": "mlx5_0",
            "port": "1",
        },
    ]
    wait_until(lambda: server.labels() == sorted(expected, key=str), 20)
    push.close(5)


def test_a_severity_that_rises_leaves_one_alert(server: Alertmanager) -> None:
    push = pusher(server.url)
    push.publish([now(severity=Severity.WARNING)], present())
    wait_until(lambda: server.labels() == [{**DOUBLE_BIT, "severity": "warning"}], 20)
    push.publish([now()], present())
    wait_until(lambda: server.labels() == [DOUBLE_BIT], 20)
    push.close(5)


def test_both_of_a_set_hear_of_it(tmp_path: Path) -> None:
    with alertmanager(tmp_path / "one") as one, alertmanager(tmp_path / "two") as two:
        push = pusher(one.url, two.url)
        push.publish([now()], present())
        for server in (one, two):
            wait_until(lambda: server.labels() == [DOUBLE_BIT], 20)  # noqa: B023  # called before the loop goes on
        push.publish([], present())
        for server in (one, two):
            wait_until(lambda: server.alerts() == [], 20)  # noqa: B023
        push.close(5)


def test_one_that_starts_anew_without_memory_hears_it_again(tmp_path: Path) -> None:
    with alertmanager(tmp_path / "one") as first:
        push = pusher(first.url, resend_s=1.0)
        push.publish([now()], present())
        wait_until(lambda: first.labels() == [DOUBLE_BIT], 20)
    with alertmanager(tmp_path / "two", port=first.port) as second:
        wait_until(lambda: second.labels() == [DOUBLE_BIT], 20)
        tally = push.tally()[f"127.0.0.1:{first.port}"]
        assert tally.sent > tally.failures
        push.close(5)


def test_after_an_outage_it_has_what_holds_then(server: Alertmanager) -> None:
    push = pusher(server.url, timeout_s=0.5)
    push.publish([now()], present())
    wait_until(lambda: server.labels() == [DOUBLE_BIT], 20)
    server.process.send_signal(signal.SIGSTOP)
    push.publish([now(), now(alert="NpuDeviceUnhealthy")], present())
    wait_until(lambda: push.tally()[f"127.0.0.1:{server.port}"].failures > 0, 20)
    push.publish([now(alert="NpuDeviceOverheating")], present())
    server.process.send_signal(signal.SIGCONT)
    wait_until(lambda: server.labels() == [{**DOUBLE_BIT, "alertname": "NpuDeviceOverheating"}], 20)
    push.close(5)


def test_below_a_path_prefix_it_is_found_only_there(tmp_path: Path) -> None:
    with alertmanager(tmp_path / "one", prefix="/am") as server:
        client = Client(f"{server.url}/am", Access())
        assert client.post(b"[]") is None
        failure = Client(server.url, Access()).post(b"[]")
    assert failure is not None
    assert failure.kind is FailureKind.MISSING
    assert failure.detail.endswith("is it Alertmanager 0.16 or later, with a path prefix?")


def test_what_it_refuses_is_told_in_its_own_words(server: Alertmanager) -> None:
    failure = Client(server.url, Access()).post(b'[{"labels":{"bad-label":"x"}}]')
    assert failure is not None
    assert 'refused an alert (400: invalid label set: invalid name "bad-label")' in failure.detail


def test_a_server_without_tls_is_named_as_one(server: Alertmanager) -> None:
    failure = Client(server.url.replace("http:", "https:"), Access()).post(b"[]")
    assert failure is not None
    assert "is it https there" in failure.detail


def test_over_tls_with_a_password_it_takes_alerts(tmp_path: Path) -> None:
    authority = make_authority(tmp_path / "tls")
    certificate, key = authority.issue("127.0.0.1")
    web = tmp_path / "web.yml"
    hashed = bcrypt.hashpw(b"secret", bcrypt.gensalt(4)).decode()
    web.write_text(
        f"tls_server_config: {{ cert_file: {certificate}, key_file: {key} }}\nbasic_auth_users: {{ watch: {hashed} }}\n"
    )
    password = tmp_path / "password"
    password.write_text("secret\n")
    with alertmanager(tmp_path / "one", f"--web.config.file={web}", secured=True) as server:
        url = server.url.replace("http:", "https:")
        good = Access(user="watch", password_file=password, ca_file=authority.file)
        assert Client(url, good).post(b"[]") is None
        denied = Client(url, Access(ca_file=authority.file)).post(b"[]")
    assert denied is not None
    assert denied.kind is FailureKind.DENIED
