"""What the example of Alertmanager mutes, by Debian's own Alertmanager."""

from __future__ import annotations

import contextlib
import json
import shutil
import socket
import subprocess
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.harness import until

CONFIG = Path(__file__).parents[2] / "deploy" / "alertmanager" / "alertmanager.yml"
Labels = dict[str, str]

DEVICE_PAGE: Labels = {"alertname": "NpuMemoryUncorrectableErrors", "severity": "critical", "device_id": "3"}
DEVICE_TICKET: Labels = {"alertname": "NpuMemoryErrorsClimbing", "severity": "warning", "device_id": "3"}
PORT_PAGE: Labels = {"alertname": "RocePortDown", "severity": "critical", "rdma_device": "mlx5_0", "port": "1"}
DEVICE_BLIND: Labels = {"alertname": "NpuProbeBlind", "severity": "warning", "device_id": "3"}
NODE_BLIND: Labels = {"alertname": "NpuProbeBlind", "severity": "warning"}
WEDGED: Labels = {"alertname": "NpuToolWedged", "severity": "critical"}
DOWN: Labels = {"alertname": "NpuWatchdDown", "severity": "critical", "instance": "10.0.0.17:18910"}
HOT: Labels = {"alertname": "NpuDeviceOverheating", "severity": "critical", "device_id": "3"}
WARM: Labels = {"alertname": "NpuDeviceOverheating", "severity": "warning", "device_id": "3"}
OUT: Labels = {"alertname": "NpuQuarantineRecommended", "severity": "critical", "device_id": "3"}
NODE_OUT: Labels = {"alertname": "NpuQuarantineRecommended", "severity": "critical"}
OTHER_PAGE: Labels = {"alertname": "NpuDeviceMissing", "severity": "critical", "device_id": "4"}
OTHER_WARM: Labels = {"alertname": "NpuDeviceOverheating", "severity": "warning", "device_id": "4"}


class Alertmanager:
    """A running server."""

    def __init__(self, port: int) -> None:
        self.port = port

    def call(self, method: str, path: str, body: object = None) -> Any:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=10)
        with contextlib.closing(connection):
            headers = {"Content-Type": "application/json"}
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            response = connection.getresponse()
            text = response.read()
        assert response.status == 200, text
        return json.loads(text) if text else None

    def answers(self) -> bool:
        try:
            self.call("GET", "/api/v2/status")
        except OSError:
            return False
        return True

    def muted(self, node: str) -> dict[str, bool] | None:
        """Alert and device → whether another alert mutes it; None where it has not looked at all of them yet."""
        found = self.call("GET", f'/api/v2/alerts?filter=node%3D"{node}"')
        if any(alert["status"]["state"] == "unprocessed" for alert in found):
            return None
        return {named(alert["labels"]): bool(alert["status"]["inhibitedBy"]) for alert in found}


def named(labels: Labels) -> str:
    parts = (labels["alertname"], labels["severity"], labels.get("device_id"), labels.get("rdma_device"))
    return " ".join(part for part in parts if part)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module")
def alertmanager(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Alertmanager]:
    program = shutil.which("prometheus-alertmanager")
    if program is None:
        pytest.skip("prometheus-alertmanager is not installed: Debian's package of that name has it")
    port = free_port()
    arguments = [
        program,
        f"--config.file={CONFIG}",
        f"--storage.path={tmp_path_factory.mktemp('alertmanager')}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--cluster.listen-address=",
    ]
    with subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            server = Alertmanager(port)
            until(server.answers, "Alertmanager answers")
            yield server
        finally:
            process.terminate()


@pytest.mark.parametrize(
    ("node", "firing", "muted"),
    [
        ("blind", [WEDGED, DEVICE_PAGE, DEVICE_TICKET, PORT_PAGE], [DEVICE_PAGE, DEVICE_TICKET]),
        ("silent", [DOWN, DEVICE_PAGE, NODE_BLIND, PORT_PAGE], [DEVICE_PAGE, NODE_BLIND, PORT_PAGE]),
        ("dim", [NODE_BLIND, DEVICE_PAGE, DEVICE_TICKET], [DEVICE_TICKET]),
        ("blind-in-one-eye", [DEVICE_BLIND, DEVICE_PAGE, DEVICE_TICKET], []),
        ("hot", [HOT, WARM, OTHER_WARM], [WARM]),
        ("neighbour", [DEVICE_PAGE, PORT_PAGE], []),
        ("out", [OUT, DEVICE_PAGE, DEVICE_TICKET, HOT, OTHER_PAGE, PORT_PAGE], [DEVICE_PAGE]),
        ("node-out", [NODE_OUT, DEVICE_PAGE, PORT_PAGE], []),
        ("out-and-silent", [DOWN, OUT, DEVICE_PAGE], [OUT, DEVICE_PAGE]),
    ],
)
def test_the_greater_news_mutes_the_smaller_on_the_same_node(
    alertmanager: Alertmanager, node: str, firing: list[Labels], muted: list[Labels]
) -> None:
    alertmanager.call("POST", "/api/v2/alerts", [{"labels": {**labels, "node": node}} for labels in firing])
    expected = {named(labels): labels in muted for labels in firing}
    until(lambda: alertmanager.muted(node) == expected, f"{node}: {expected}")
