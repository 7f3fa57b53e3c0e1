"""Nodes that show golden pages, one after the other, to a real Prometheus with our rules."""

from __future__ import annotations

import contextlib
import re
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from npu_watchd.reference.fleet_alerts import JOB
from npu_watchd.reference.grafana.panel import Panel
from tests.dashboards import shown
from tests.e2e.harness import until
from tests.e2e.prometheus import Prometheus, scraping

GOLDEN = Path(__file__).parents[1] / "golden"
RULES = Path(__file__).parents[2] / "deploy" / "prometheus" / "npu-watchd.rules.yml"
SILENT = "a node that falls silent"
PLAY: Mapping[str, tuple[str, str | None]] = {
    "quiet": ("quiet@55", "quiet@300"),
    "double_bit_then_reset": ("double_bit_then_reset@200", "double_bit_then_reset@200"),
    "two_jobs_one_device": ("two_jobs_one_device@90", "two_jobs_one_device@300"),
    "roce_down": ("roce_down@270", "roce_down@540"),
    "driver_gone": ("driver_gone@60", "driver_gone@290"),
    "hbm_storm": ("hbm_storm@3000", "hbm_storm@6950"),
    "pcie_saturated": ("pcie_saturated@450", "pcie_saturated@450"),
    "pcie_sockets": ("pcie_sockets@90", "pcie_sockets@300"),
    SILENT: ("device_lost@370", None),
}
"""Node → its page for the first scrapes, and for all later ones; None: it does not answer then."""
_LAST_RECORDED = ('npu_watchd:blind_probes:count{probe="npu_ecc"}', "npu_watchd:node_bad_days:28d")
"""Each is the last one of its group; no probe fails on the first pages but roce_down's hccn_speed."""
FIRST_SCRAPES = 3
# Of families that are on no golden page, for reasons that tests/golden/play.py gives.
REST = """
npu_watchd_build_info{{version="0.1.0"}} 1
npu_watchd_abandoned_processes{{tool="npu-smi"}} 0
npu_watchd_cycle_duration_seconds 0.02
npu_watchd_cycle_timestamp_seconds {now:.3f}
npu_watchd_probe_last_success_timestamp_seconds{{probe="npu_info"}} {now:.3f}
npu_watchd_notifications_total{{target="http://am1:9093"}} {scrapes}
npu_watchd_notification_failures_total{{target="http://am1:9093"}} 0
npu_watchd_notification_drops_total{{target="http://am1:9093"}} 0
npu_watchd_notification_last_success_timestamp_seconds{{target="http://am1:9093"}} {now:.3f}
npu_watchd_kernel_log_lost_records_total 0
npu_device_pcie_link_errors_total{{device_id="0",kind="retry"}} 0
npu_node_log_events_total{{kind="npu_smi",code="x"}} 0
npu_node_shm_used_bytes 1048576
npu_node_shm_total_bytes 68719476736
"""


@dataclass
class Node:
    """A server of pages."""

    first: str
    later: str | None
    scrapes: int = 0
    server: ThreadingHTTPServer = field(init=False)

    def __post_init__(self) -> None:
        node = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                page = node.page()
                self.send_response(503 if page is None else 200)
                self.send_header("Content-Type", "text/plain; version=0.0.4")
                self.end_headers()
                self.wfile.write((page or "").encode())

            def log_request(self, code: object = "-", size: object = "-") -> None:
                """Nobody reads it."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def port(self) -> int:
        return int(self.server.server_address[1])

    @property
    def instance(self) -> str:
        return f"127.0.0.1:{self.port}"

    def page(self) -> str | None:
        self.scrapes += 1
        name = self.first if self.scrapes <= FIRST_SCRAPES else self.later
        if name is None:
            return None
        golden = (GOLDEN / f"{name}.metrics").read_text()
        rest = REST.format(now=time.time(), scrapes=self.scrapes)
        there = set(re.findall(r"^(npu_\w+)", golden, re.MULTILINE))
        return golden + "".join(f"{line}\n" for line in rest.splitlines() if line and _family(line) not in there)


def _family(line: str) -> str:
    return re.split(r"[{ ]", line)[0]


@dataclass
class Stage:
    """All nodes, and the Prometheus that has scraped them."""

    nodes: Mapping[str, Node]
    prometheus: Prometheus

    def series(self, panel: Panel, node: str = "quiet") -> dict[str, float | str]:
        return shown.series(panel, self.results(panel, node))

    def rows(self, panel: Panel, node: str = "quiet") -> set[tuple[str, ...]]:
        (result,) = self.results(panel, node)
        return shown.rows(panel, result)

    def results(self, panel: Panel, node: str) -> list[list[shown.Series]]:
        """Of each query of the panel at this moment."""
        instance = self.nodes[node].instance
        return [
            [
                (one["metric"], float(one["value"][1]))
                for one in self.prometheus.api("query", query=shown.substituted(query.expr, instance))["result"]
            ]
            for query in panel.queries
        ]

    def names_over_time(self, panel: Panel, node: str) -> list[str]:
        """Of the legend, over the first scrapes and the later ones."""
        now_s = time.time()
        instance = self.nodes[node].instance
        when = {"start": f"{now_s - 15}", "end": f"{now_s}", "step": "1"}
        return [
            shown.named(query.legend, one["metric"])
            for query in panel.queries
            for one in self.prometheus.api("query_range", query=shown.substituted(query.expr, instance), **when)[
                "result"
            ]
        ]


@contextlib.contextmanager
def stage(directory: Path) -> Iterator[Stage]:
    """Every node has shown its later page, and every rule has been judged on it."""
    nodes = {name: Node(*pages) for name, pages in PLAY.items()}
    _critical_findings_of_old_days(directory, nodes["double_bit_then_reset"].instance)
    rules = directory / "rules.yml"
    # The ranking is made once an hour, which is too long for a test.
    rules.write_text(RULES.read_text().replace("interval: 1h", "interval: 1s"))
    ports = [node.port for node in nodes.values()]
    try:
        with scraping(directory, {JOB: ports}, rules=rules) as prometheus:
            until(lambda: all(node.scrapes >= FIRST_SCRAPES + 3 for node in nodes.values()), "all have been scraped")
            until(
                lambda: all(prometheus.query(series) for series in _LAST_RECORDED),
                "the rules have been judged",
            )
            yield Stage(nodes, prometheus)
    finally:
        for node in nodes.values():
            node.server.shutdown()
            node.server.server_close()


def _critical_findings_of_old_days(directory: Path, instance: str) -> None:
    """For the ranking: two bad days of one device, as the recording would have left them."""
    noon = datetime.now(UTC).replace(hour=12, minute=0, second=0, microsecond=0)
    labels = (
        f'node="sim-double-bit-then-reset",device_id="3",rule="hbm_double_bit",severity="critical",job="{JOB}",'
        f'instance="{instance}"'
    )
    samples = [
        f"npu_watchd:finding_began:critical{{{labels}}} 1 {(noon - timedelta(days=days)).timestamp():.0f}\n"
        for days in (5, 3)
    ]
    text = directory / "history.txt"
    text.write_text("".join(samples) + "# EOF\n")
    subprocess.run(
        ["promtool", "tsdb", "create-blocks-from", "openmetrics", text, directory / "tsdb"],
        check=True,
        capture_output=True,
        timeout=60,
    )
