"""`events`, `explain device N` and `status` beside a daemon that has something to tell."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.fake_tool import FakeTool
from tests.e2e.harness import PROGRAM, Daemon, Running, command, running, until
from tests.e2e.small_node import HURRIED, ILL, with_errors

AT = "[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:]{8}Z"
LINE = re.compile(rf"{AT}  ([a-z_]+) +(.+)")


@pytest.fixture
def daemon(tool: FakeTool) -> Iterator[Daemon]:
    """It has found two errors of the ill device that cannot be corrected."""
    tool.write_config(HURRIED)
    tool.shows(with_errors(double_bit=2))
    with running(tool.config) as found:
        until(lambda: found.finding("hbm_double_bit"), "a finding")
        until(lambda: "finding_opened" in command("events", "--config", tool.config).out, "it is on disk")
        yield found


def test_events_are_lines_for_people_and_a_document_for_programs(tool: FakeTool, daemon: Daemon) -> None:
    lines = command("events", "--config", tool.config)
    assert (lines.code, lines.err) == (0, "")
    told = [match.groups() for match in map(LINE.fullmatch, lines.out.splitlines()) if match]
    assert len(told) == len(lines.out.splitlines())
    assert told[0] == ("daemon_started", "npu-watchd 0.1.0 was started; 0 findings stood")
    assert ("finding_opened", f"device {ILL}: 2 uncorrectable HBM errors since its last reset") in told
    document = command("events", "--json", "--config", tool.config)
    assert document.code == 0
    served = daemon.journal()
    assert json.loads(document.out)["events"] == served[: len(json.loads(document.out)["events"])]
    of_device = command("events", "--json", "--device", ILL, "--config", tool.config)
    assert {event["device_id"] for event in json.loads(of_device.out)["events"]} == {ILL}
    assert command("events", "--since", "2035-01-01", "--config", tool.config).out == ""
    bad = command("events", "--since", "yesterday-ish", "--config", tool.config)
    assert (bad.code, bad.out) == (2, "")
    assert "yesterday-ish" in bad.err


@dataclass
class Following(Running):
    """`events --follow`; its lines on stdout are in `lines`."""

    lines: list[str] = field(default_factory=list)

    def _collect(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line.decode().rstrip("\n"))


@pytest.mark.parametrize("as_json", [False, True])
def test_followed_events_come_as_they_are_written_until_ctrl_c(tool: FakeTool, daemon: Daemon, as_json: bool) -> None:
    arguments = ["events", "--follow", *(["--json"] if as_json else []), "--config", str(tool.config)]
    with Following(
        subprocess.Popen(
            [*PROGRAM, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
    ) as following:
        until(lambda: any("finding_opened" in line for line in following.lines), "what was")
        tool.shows(with_errors())
        until(lambda: daemon.finding("hbm_double_bit") is None, "the finding is over")
        until(lambda: any("finding_resolved" in line for line in following.lines), "what comes")
        told = list(following.lines)
        if as_json:
            numbers = [json.loads(line)["number"] for line in told]
            assert numbers == sorted(set(numbers)), "each once"
        else:
            assert all(LINE.fullmatch(line) for line in told)
            assert len([line for line in told if "finding_opened" in line and "out of use" not in line]) == 1
        code, _ = following.stop(signal.SIGINT)
        assert following.process.stderr is not None
        assert (code, b"Traceback" in following.process.stderr.read()) == (0, False)


def test_explain_device_tells_who_it_is_what_stands_and_what_happened(tool: FakeTool, daemon: Daemon) -> None:
    said = command("explain", "device", ILL, "--config", tool.config)
    assert (said.code, said.err) == (0, "")
    lines = said.out.splitlines()
    assert lines[0] == f"device {ILL}"
    assert re.fullmatch(rf"  verdict quarantine since {AT}; next: reset device", lines[1])
    assert lines[2] == f"    device {ILL}: 2 uncorrectable HBM errors since its last reset"
    assert lines[3].startswith("  910B3, NPU 1 chip 0, ")
    assert (
        f"NpuMemoryUncorrectableErrors (critical): device {ILL}: 2 uncorrectable HBM errors since its last reset"
        in lines
    )
    assert "    check: npu-smi info -t ecc -i 1: HBM Double Bit Error Count" in lines
    assert "  next: reset device" in lines
    happened = lines[lines.index("what happened") + 1 :]
    assert any("finding_opened" in line for line in happened)
    well = command("explain", "device", "0", "--config", tool.config)
    assert (well.code, "Npu" in well.out) == (0, False)
    unknown = command("explain", "device", "77", "--config", tool.config)
    assert (unknown.code, unknown.out) == (1, "")
    assert unknown.err == "npu-watchd: device 77: neither a daemon that runs nor the journal knows it\n"
    daemon.stop()
    alone = command("explain", "device", ILL, "--config", tool.config)
    assert alone.code == 0
    assert alone.out.splitlines()[1] == "  no daemon that runs shows it: this is the journal alone"
    assert "finding_opened" in alone.out
    assert command("events", "--config", tool.config).code == 0, "the journal needs no daemon"


def test_status_shows_what_stands(tool: FakeTool, daemon: Daemon) -> None:
    said = command("status", "--config", tool.config)
    assert said.code == 2, "something critical stands"
    assert "NpuMemoryUncorrectableErrors" in said.out
    document = command("status", "--json", "--config", tool.config)
    assert document.code == 2
    assert [finding["rule"] for finding in json.loads(document.out)["findings"]] == [
        "hbm_double_bit",
        "quarantine",
    ]
    tool.shows(with_errors())
    until(lambda: daemon.finding("hbm_double_bit") is None, "the errors are no longer seen")
    held = command("status", "--config", tool.config)
    assert held.code == 2, "only a release ends a quarantine"
    assert "    held: nothing of it is seen any longer; only a release ends it" in held.out.splitlines()
    told = command("explain", "verdict", "--config", tool.config)
    assert (told.code, told.err) == (0, "")
    assert re.fullmatch(rf"  verdict quarantine since {AT}; next: reset device", told.out.splitlines()[1])


def test_explain_verdict_needs_no_daemon_to_say_what_leads_out_of_a_state(tool: FakeTool) -> None:
    said = command("explain", "verdict", "--config", tool.config)
    assert (said.code, said.err) == (0, "")
    assert said.out.startswith("no daemon runs here, so there is no verdict; what the states would mean:\n")
    assert "npu-watchd release device N --reason TEXT" in said.out


def test_the_api_tells_how_a_counter_grew_from_what_is_on_disk(tool: FakeTool, daemon: Daemon) -> None:
    metric = "npu_device_memory_errors_total"
    tool.shows(with_errors(double_bit=5))

    def grown() -> dict[str, Any] | None:
        answer = daemon.get(f"/api/v1/history?metric={metric}&device_id={ILL}")
        assert answer.status == 200, answer.body
        found = [one for one in json.loads(answer.body)["series"] if one["labels"]["kind"] == "double_bit"]
        return found[0] if found and found[0]["points"] else None

    until(grown, "the growth is on disk")
    told = grown()
    assert told is not None
    assert (told["labels"], told["value"]) == ({"device_id": ILL, "kind": "double_bit", "memory": "hbm"}, 5.0)
    assert [point["grown"] for point in told["points"]] == [3.0], "the first two were there when we came"


def test_events_where_no_daemon_ever_ran_say_so(tool: FakeTool, tmp_path: Path) -> None:
    said = command("events", "--config", tool.config)
    assert (said.code, said.out) == (1, "")
    assert said.err == f"npu-watchd: {tmp_path}/state/state.db: no such file; has the daemon run on this node?\n"
