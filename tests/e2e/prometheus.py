"""Debian's Prometheus, on loopback, with its data below the test's own directory."""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import urllib.parse
from collections.abc import Iterator, Mapping, Sequence
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Self

import psutil
import pytest

from tests import promtool
from tests.e2e.harness import Running, until
from tests.e2e.page import Labels, parsed

_ALERTING = "alerting: {{ alertmanagers: [ {{ static_configs: [ {{ targets: ['127.0.0.1:{port}'] }} ] }} ] }}\n"


class Prometheus(Running):
    """A running server."""

    _port: int | None = None

    @property
    def port(self) -> int:
        """The kernel chose it."""
        if self._port is None:
            self._port = until(self._listening, f"Prometheus listens; it said: {self.lines}")
        return self._port

    def _listening(self) -> int | None:
        assert self.process.poll() is None, f"exit code {self.process.returncode}: {self.lines}"
        with contextlib.suppress(psutil.Error):
            for connection in psutil.Process(self.process.pid).net_connections("tcp"):
                if connection.status == psutil.CONN_LISTEN:
                    return int(connection.laddr.port)
        return None

    def ready(self) -> Self:
        """It listens some milliseconds before it answers queries."""
        until(lambda: self._status("/-/ready") == 200, f"Prometheus is ready; it said: {self.lines}")
        return self

    def _status(self, path: str) -> int:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=10)
        with contextlib.closing(connection):
            connection.request("GET", path)
            return connection.getresponse().status

    def get(self, path: str) -> bytes:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=10)
        with contextlib.closing(connection):
            connection.request("GET", path)
            response = connection.getresponse()
            body = response.read()
        assert response.status == 200, body
        return body

    def api(self, path: str, **parameters: str) -> Any:
        document = json.loads(self.get(f"/api/v1/{path}?{urllib.parse.urlencode(parameters)}"))
        assert document["status"] == "success"
        assert document.get("warnings") is None
        return document["data"]

    def query(self, expression: str) -> dict[Labels, float]:
        """The instant vector, without the labels that Prometheus itself adds."""
        result = self.api("query", query=expression)["result"]
        found = {}
        for series in result:
            labels = {name: text for name, text in series["metric"].items() if name not in ("__name__", "instance")}
            found[frozenset(labels.items())] = float(series["value"][1])
        return found

    def targets(self) -> dict[str, dict[str, Any]]:
        """Job → its one target, once all have been scraped."""
        active = self.api("targets", state="active")["activeTargets"]
        return {target["labels"]["job"]: target for target in active}

    def own(self, name: str) -> dict[Labels, float]:
        """One of its metrics about itself."""
        return dict(parsed(self.get("/metrics").decode()).samples.get(name, {}))


@contextlib.contextmanager
def scraping(
    directory: Path,
    jobs: Mapping[str, int | Sequence[int]],
    *,
    rules: Path | None = None,
    alertmanager: int | None = None,
) -> Iterator[Prometheus]:
    """A Prometheus that scrapes each job's ports on loopback once a second.

    rules: a file that it judges as often. alertmanager: the port to which it sends what fires.
    """
    program = shutil.which("prometheus")
    if program is None:
        pytest.fail("the Debian package prometheus is not installed: apt-get install prometheus")
    targets = "".join(
        f"  - job_name: {job}\n    static_configs: [{{ targets: {_addresses(ports)} }}]\n"
        for job, ports in jobs.items()
    )
    config = directory / "prometheus.yml"
    config.write_text(
        "global: { scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s }\n"
        + (f"rule_files: [{rules}]\n" if rules else "")
        + (_ALERTING.format(port=alertmanager) if alertmanager else "")
        + f"scrape_configs:\n{targets}"
    )
    process = subprocess.Popen(
        [
            program,
            f"--config.file={config}",
            f"--storage.tsdb.path={directory / 'tsdb'}",
            "--web.listen-address=127.0.0.1:0",
            "--log.level=debug",
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    with Prometheus(process) as prometheus:
        yield prometheus.ready()


def _addresses(ports: int | Sequence[int]) -> list[str]:
    return [f"127.0.0.1:{port}" for port in ([ports] if isinstance(ports, int) else ports)]


def promtool_on(page: str) -> list[str]:
    """What `promtool check metrics` finds wrong with this page."""
    found = promtool.problems(page)
    if found is None:
        pytest.fail("the Debian package prometheus is not installed: apt-get install prometheus")
    return found
