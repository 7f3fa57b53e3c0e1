"""Whether the fleet can spare the node: the question to a real PromQL, and every answer that is no permission."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from npu_watchd.model.acting import Allowance
from npu_watchd.model.reading import Failure, FailureKind
from npu_watchd.sinks.actuators.budget import Budget, allowance_of, counts_of, question
from tests.acting.fleet import Fleet, fleet


@pytest.fixture
def told() -> Iterator[Fleet]:
    with fleet() as made:
        yield made


def refused(told: Fleet) -> str:
    answer = Budget(told.url, "node-17", 0.1).ask()
    assert isinstance(answer, Failure), answer
    return answer.detail.partition(": ")[2]


@pytest.mark.parametrize(
    ("nodes", "out", "granted", "most"),
    [(3, 1, True, 1), (3, 2, False, 1), (19, 1, True, 1), (20, 2, True, 2), (20, 3, False, 2), (1000, 100, True, 100)],
)
def test_a_tenth_of_the_fleet_may_be_out_and_one_node_always(nodes: int, out: int, granted: bool, most: int) -> None:
    assert allowance_of({"nodes": nodes, "out": out, "here": 1}, 0.1) == Allowance(
        granted, f"{out} of {nodes} nodes are in quarantine, this one among them, and at most {most} may be"
    )


def test_a_share_is_not_lost_to_binary_fractions() -> None:
    allowance = allowance_of({"nodes": 100, "out": 29, "here": 1}, 0.29)
    assert isinstance(allowance, Allowance)
    assert allowance.granted


def test_it_asks_with_the_name_of_this_node_below_the_prefix_of_the_address(told: Fleet) -> None:
    allowance = Budget(told.url, "node-17", 0.1).ask()
    assert allowance == Allowance(True, "1 of 20 nodes are in quarantine, this one among them, and at most 2 may be")
    assert told.asked == [question("node-17")]
    assert '{node="node-17"}' in question("node-17")
    below = Budget(f"{told.url}/prometheus/", "node-17", 0.1).ask()
    assert isinstance(below, Failure)
    assert "HTTP 404" in below.detail


def test_what_is_not_known_is_no_permission(told: Fleet) -> None:
    told.out, told.nodes, told.here = None, None, None
    assert refused(told).startswith("it knows of no node; is the job npu-watchd scraped there")
    told.out, told.nodes = 1, 20
    assert refused(told).startswith("it does not see this node; ")
    told.here = 0
    assert refused(told) == "it has not seen this node's quarantine yet; it is asked again"
    told.here, told.nodes = 1, 2
    assert refused(told).startswith("it sees 2 nodes, fewer than 3 are no fleet; ")
    told.nodes = float("nan")
    assert refused(told) == "nodes is nan, which is no count"
    told.nodes = 20.5
    assert refused(told) == "nodes is 20.5, which is no count"
    told.nodes = -1
    assert refused(told) == "nodes is -1.0, which is no count"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>login</html>",
        b"[]",
        b"null",
        b'{"status": "success"}',
        b'{"status": "success", "data": {"result": [{"metric": {}, "value": [1, "1"]}]}}',
        b'{"status": "success", "data": {"result": [{"metric": {"npu_budget": "out"}, "value": ["1"]}]}}',
        b'{"status": "success", "data": {"result": [{"metric": {"npu_budget": "out"}, "value": [1, "x"]}]}}',
        b"\xff\xfe",
        b"[" * 5000,
    ],
)
def test_an_answer_that_is_none_is_no_permission(body: bytes) -> None:
    found = counts_of(body)
    assert isinstance(found, Failure)
    assert found.kind is FailureKind.UNPARSEABLE


def test_an_error_and_a_partial_answer_are_no_permission(told: Fleet) -> None:
    told.body = json.dumps({"status": "error", "error": "query timed out"}).encode()
    assert refused(told) == "it says query timed out"
    told.body = json.dumps({"status": "success", "warnings": ["store down"], "data": {"result": []}}).encode()
    assert refused(told) == "only part of it answers: ['store down']"
    told.body = b" " * 100_000
    assert refused(told) == "answered more than 65536 bytes to three numbers"
    told.body, told.status = b"upstream\nis away", 502
    assert refused(told) == "HTTP 502: upstream\ufffdis away; is this a Prometheus (2.26 or newer)?"


def test_nobody_there_and_nobody_answering_are_no_permission() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        port = silent.getsockname()[1]
        away = Budget(f"http://127.0.0.1:{port}", "node-17", 0.1).ask()
        silent.listen()
        slow = Budget(f"http://127.0.0.1:{port}", "node-17", 0.1, timeout_s=0.05).ask()
    assert isinstance(away, Failure)
    assert isinstance(slow, Failure)
    assert away.detail == (
        f"127.0.0.1:{port}: [Errno 111] Connection refused; is [quarantine] prometheus the right address, and is it up?"
    )
    assert slow.kind is FailureKind.TIMEOUT


SERIES = [
    *(
        (f'npu_node_info{{job="{job}",instance="{name}:18910",node="{name}",driver="1"}}', values)
        for name, job, values in [
            ("a", "npu-watchd", "1x60"),
            ("b", "npu-watchd", "1x60"),
            ("c", "npu-watchd", "1x30 stale"),
            ("d", "npu-watchd", "1x60"),
            ("d", "second", "1x60"),
        ]
    ),
    *(
        (f'npu_watchd_node_verdict{{job="npu-watchd",instance="{name}:18910",state="{state}"}}', values)
        for name, state, values in [
            ("a", "quarantine", "1x60"),
            ("a", "healthy", "0x60"),
            ("b", "quarantine", "1x20 0x40"),
            ("c", "quarantine", "1x30 stale"),
            ("d", "quarantine", "0x60"),
        ]
    ),
]
"""Node b was released, c fell silent in quarantine, d is scraped twice."""
PROMQL = """\
rule_files: []
evaluation_interval: 1m
tests:
  - interval: 1m
    input_series:
{series}    promql_expr_test:
      - expr: {here}
        eval_time: 50m
        exp_samples:
          - {{ labels: '{{npu_budget="out"}}', value: 2 }}
          - {{ labels: '{{npu_budget="nodes"}}', value: 3 }}
          - {{ labels: '{{npu_budget="here"}}', value: 1 }}
      - expr: {well}
        eval_time: 50m
        exp_samples:
          - {{ labels: '{{npu_budget="out"}}', value: 2 }}
          - {{ labels: '{{npu_budget="nodes"}}', value: 3 }}
          - {{ labels: '{{npu_budget="here"}}', value: 0 }}
      - expr: {odd}
        eval_time: 50m
        exp_samples:
          - {{ labels: '{{npu_budget="out"}}', value: 2 }}
          - {{ labels: '{{npu_budget="nodes"}}', value: 3 }}
"""


def test_the_question_counts_silent_nodes_as_they_were_and_each_node_once(tmp_path: Path) -> None:
    program = shutil.which("promtool")
    if program is None:
        pytest.fail("the Debian package prometheus is not installed: apt-get install prometheus")
    asked = {name: json.dumps(question(node)) for name, node in (("here", "a"), ("well", "b"), ("odd", 'x"\\{}'))}
    file = tmp_path / "budget.test.yml"
    series = "".join(f"      - {{ series: '{name}', values: '{values}' }}\n" for name, values in SERIES)
    file.write_text(PROMQL.format(series=series, **asked))
    done = subprocess.run([program, "test", "rules", file], capture_output=True, text=True, check=False, timeout=30)
    assert done.returncode == 0, done.stdout + done.stderr
