"""`npu-watchd diagnose` as a person calls it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from npu_watchd import cli
from tests.diagnose.cases import document, sick_findings
from tests.parsers.log_texts import OWN_FOLDER


@pytest.fixture
def config(tmp_path: Path) -> Path:
    file = tmp_path / "config.toml"
    (tmp_path / "logs").mkdir()
    file.write_text(
        f'[paths]\nstate_dir = "{tmp_path}/state"\nruntime_dir = "{tmp_path}/run"\ndev = "{tmp_path}/dev"\n'
        f'[logs]\ntraining = ["{tmp_path}/logs/*.log"]\n'
    )
    return file


def call(config: Path, *words: str, columns: int = 80) -> Result:
    return CliRunner(env={"COLUMNS": str(columns), "HOME": str(config.parent)}).invoke(
        cli.main, ["diagnose", "--config", str(config), *words]
    )


def test_it_names_cause_first_rank_and_what_to_do_without_a_daemon(config: Path) -> None:
    logs = [str(OWN_FOLDER / name) for name in ("rank0_waits.log", "rank3_first.log")]
    found = call(config, *logs)
    assert found.exit_code == 0
    assert found.stdout.startswith("software, score 0.55")
    assert "first to fail: rank 3, device 3, 2026-11-30 05:20:10" in " ".join(found.stdout.split())
    assert "no daemon runs here" in found.stdout


def test_the_document_has_causes_with_evidence_and_a_timeline(config: Path) -> None:
    found = json.loads(call(config, "--json", str(OWN_FOLDER / "oom_then_response_is_empty.log")).stdout)
    assert found["cause"] == "host_memory_or_compile_children"
    assert [one["where"] for one in found["causes"][0]["for"]] == [
        "oom_then_response_is_empty.log:1",
        "oom_then_response_is_empty.log:7",
    ]
    assert {"kind": "oom_kill", "origin": "log"}.items() <= found["timeline"][-1].items() | found["timeline"][0].items()


def test_without_a_name_the_newest_log_of_the_config_is_read(config: Path) -> None:
    text = (OWN_FOLDER / "vllm_engine_port_taken.log").read_text()
    (config.parent / "logs" / "job.log").write_text(text)
    assert json.loads(call(config, "--json").stdout)["cause"] == "contention"


def test_without_any_log_it_says_so_and_guesses_nothing(config: Path) -> None:
    found = call(config)
    assert found.exit_code == 0
    assert found.stdout.startswith("not enough evidence")
    assert "no log was found" in found.stdout


def test_the_daemons_snapshot_is_heard(config: Path) -> None:
    (config.parent / "run").mkdir()
    (config.parent / "run" / "snapshot.json").write_text(json.dumps(sick_findings(document())))
    (config.parent / "logs" / "job.log").write_text("EI0002: The Notify register times out, device_id=3, x\n")
    found = json.loads(call(config, "--json").stdout)
    assert (found["cause"], found["device_ids"]) == ("hardware", ["3"])
    assert found["versions"] == {"driver": "24.1.rc2", "npu-smi": "24.1.rc2"}


@pytest.mark.parametrize("columns", [80, 200])
def test_no_line_is_wider_than_the_terminal_but_commands(config: Path, columns: int) -> None:
    for file in sorted(OWN_FOLDER.glob("*.log")):
        text = call(config, str(file), columns=columns).stdout
        commands = text.partition("how to see that it was that\n")[2].partition("\n\n")[0].splitlines()
        wide = [
            line for line in text.splitlines() if len(line) > columns and line not in commands and " " in line.strip()
        ]
        assert wide == []


def test_a_time_that_is_none_is_refused_with_the_forms_that_there_are(config: Path) -> None:
    found = call(config, "--since", "yesterday-ish")
    assert found.exit_code == 2
    assert "is no instant" in found.stderr
