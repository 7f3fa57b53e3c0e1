"""The commands as a person or a script types them: what they print, where, and their exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from npu_watchd import __version__
from npu_watchd.simnode.npu_smi import answer
from npu_watchd.simnode.state import ErrorCode, NodeState
from tests.e2e.fake_tool import FakeTool, node_at
from tests.e2e.harness import command, running

QUIET = node_at("quiet", 0)
CODE = (ErrorCode("80E01801", "a text"),)


def _ill(health: str) -> NodeState:
    """Two cards, of which the second has this health."""
    first, second = QUIET.cards[:2]
    chip = replace(second.chips[0], health=health, codes=CODE)
    return replace(QUIET, cards=(first, replace(second, chips=(chip,))))


def test_status_without_a_daemon_says_how_to_start_one(tool: FakeTool) -> None:
    said = command("status", "--config", tool.config)
    assert (said.code, said.out) == (3, "")
    assert said.err.startswith("npu-watchd: no daemon runs here: ")
    assert "systemctl start npu-watchd" in said.err
    assert command("status", "--json", "--config", tool.config).code == 3


@pytest.mark.parametrize(("health", "code"), [("OK", 0), ("Warning", 1), ("Alarm", 1), ("Critical", 2)])
def test_status_is_a_table_a_document_and_an_exit_code(tool: FakeTool, health: str, code: int) -> None:
    tool.shows(replace(QUIET, cards=QUIET.cards[:2]) if health == "OK" else _ill(health))
    state = health.lower()
    with running(tool.config) as daemon:
        daemon.all_read()
        daemon.shows(lambda page: page.states() == {"0": "ok", "1": state}, "the health is known")
        table = command("status", "--config", tool.config)
        document = command("status", "--json", "--config", tool.config)
    assert (table.code, table.err) == (code, "")
    verdict = {0: "healthy", 1: "watch", 2: "quarantine"}[code]
    assert table.out.startswith(f"e2e  {verdict} since ")
    assert "\n2 of 2 devices present  npu-smi 25.5.1  driver 25.5.1\n" in table.out
    rows = [line.split() for line in table.out.splitlines()]
    assert ["0", "0.0", "910B3", "ok", "healthy"] in [row[:5] for row in rows]
    assert ["1", "1.0", "910B3", state, verdict] in [row[:5] for row in rows]
    assert "\x1b" not in table.out, "no colours into a pipe"
    assert document.code == code
    devices = json.loads(document.out)["devices"]
    assert [(device["device_id"], device["health"]) for device in devices] == [("0", "ok"), ("1", state)]
    assert command("status", "--config", tool.config).code == 3, "the daemon has ended, and took its file along"


def test_a_device_short_is_unknown_not_healthy(tool: FakeTool) -> None:
    tool.shows(replace(QUIET, cards=QUIET.cards[:2]))
    config = tool.write_config()
    text = config.read_text(encoding="utf-8").replace("[node]\n", "[node]\nexpected_devices = 3\n")
    config.write_text(text, encoding="utf-8")
    with running(config) as daemon:
        daemon.all_read()
        daemon.shows(lambda page: set(page.states().values()) == {"ok"}, "both are ok")
        assert command("status", "--config", config).code in (2, 3), "3 until the third table without it"
        missing = 'npu_watchd_finding_active{rule="device_missing",severity="critical"}'
        daemon.shows(lambda page: missing in page.text, "one is missing")
        said = command("status", "--config", config)
    assert said.code == 2
    assert "2 of 3 devices present" in said.out
    assert "1 of 3 expected devices have never been in the table of npu-smi" in " ".join(said.out.split())


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"{}", b"null", b"\xff\xfe", b'{"at": "yesterday"}'])
def test_a_file_that_is_no_snapshot_is_an_unknown_node_not_a_traceback(tool: FakeTool, content: bytes) -> None:
    (tool.directory / "run" / "snapshot.json").write_bytes(content)
    said = command("status", "--config", tool.config)
    assert (said.code, said.out) == (3, "")
    assert "Traceback" not in said.err
    assert str(tool.directory / "run" / "snapshot.json") in said.err


def test_the_config_is_named_before_or_after_the_command(tool: FakeTool) -> None:
    expected = 'node.name = "e2e"  # file'
    for arguments in (
        ("--config", tool.config, "config", "show"),
        ("config", "show", "--config", tool.config),
        ("config", "--config", tool.config, "show"),
    ):
        said = command(*arguments)
        assert (said.code, said.err) == (0, ""), arguments
        assert expected in said.out.splitlines(), arguments
    assert command("--config", tool.config, "status").code == 3
    assert command("--config", tool.config, "config", "check").code == 0


def test_config_show_names_value_and_source_of_every_key(tool: FakeTool) -> None:
    tool.write_config('[probes]\nnpu_info = { every = "4s" }\n')
    lines = command("config", "show", "--config", tool.config).out.splitlines()
    assert 'probes.npu_info.every = "4s"  # file' in lines
    assert 'probes.npu_info.timeout = "4s"  # default' in lines, "a deadline gives way to a shorter period"
    assert 'engine.cycle = "5s"  # default' in lines
    assert "engine.tool_share = 0.2  # default" in lines


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ('[engine]\ncicle = "1s"\n', ("engine.cicle: unknown key", "cycle")),
        ('[engine]\ncycle = "1 parsec"\n', ("engine.cycle", "write")),
        ("[engine]\ntool_share = 7\n", ("engine.tool_share", "write")),
        ("[engine\n", ("line ", "no TOML")),
        ('[probes]\nnpu_info = { every = "1s", timeout = "9s" }\n', ("probes.npu_info.timeout", "longer than")),
    ],
    ids=["unknown-key", "no-duration", "out-of-range", "syntax", "contradiction"],
)
def test_a_bad_config_stops_the_start_with_file_key_and_cure(tool: FakeTool, more: str, words: tuple[str, ...]) -> None:
    tool.write_config(more)
    # 2 would say quarantine where a script asks `status` for the node's state.
    for arguments, code in ((("run",), 2), (("config", "check"), 2), (("config", "show"), 2), (("status",), 3)):
        said = command(*arguments, "--config", tool.config)
        assert (said.code, said.out) == (code, ""), arguments
        assert said.err.startswith(f"npu-watchd: {tool.config}: ")
        assert said.err.count("\n") == 1, "one line"
        for word in words:
            assert word in said.err


def test_a_config_that_is_not_there_is_not_the_default(tmp_path: Path) -> None:
    said = command("run", "--config", tmp_path / "none.toml")
    assert said.code == 2
    assert "there is no such file" in said.err


def test_a_bad_web_config_stops_the_start_too(tool: FakeTool) -> None:
    web = tool.directory / "web.yml"
    tool.config.write_text(
        tool.config.read_text(encoding="utf-8").replace("[web]\n", f'[web]\nconfig_file = "{web}"\n'), encoding="utf-8"
    )
    for content in ("tls_server_config:\n  cert_fil: x\n", "- a list\n", "basic_auth_users:\n  bob: plain\n"):
        web.write_text(content, encoding="utf-8")
        for arguments in (("run",), ("config", "check")):
            said = command(*arguments, "--config", tool.config)
            assert (said.code, said.out) == (2, ""), (content, arguments)
            assert str(web) in said.err
            assert "Traceback" not in said.err


def test_config_init_writes_a_config_that_is_good_and_never_over_another(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    assert command("config", "init", file).code == 0
    assert file.read_text(encoding="utf-8") == command("config", "init").out
    checked = command("config", "check", file)
    assert (checked.code, checked.out) == (0, f"{file}: good\n")
    again = command("config", "init", file)
    assert again.code == 2
    assert f"{file}: exists already" in again.err
    assert command("config", "init", tmp_path / "no" / "where").code == 2


def test_parse_reads_stdin_a_dash_or_a_file(tmp_path: Path) -> None:
    text = answer(QUIET, ("info",)).text
    file = tmp_path / "info.txt"
    file.write_text(text, encoding="utf-8")
    outputs = {
        command("parse", "npu-smi-info", stdin=text.encode()).out,
        command("parse", "npu-smi-info", "-", stdin=text.encode()).out,
        command("parse", "npu-smi-info", file).out,
    }
    assert len(outputs) == 1
    document = json.loads(outputs.pop())
    assert document["tool_version"] == "25.5.1"
    assert len(document["devices"]) == 8
    first = document["devices"][0]
    assert (first["npu"], first["chip"], first["name"], first["health"]) == (0, 0, "910B3", "OK")
    assert first["hbm_total_bytes"] == 65536 * 1024 * 1024
    assert document["processes"] == []


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        ("npu-smi-map", ("info", "-m")),
        ("npu-smi-list", ("info", "-l")),
        ("npu-smi-ecc", ("info", "-t", "ecc", "-i", "0")),
        ("npu-smi-health", ("info", "-t", "health", "-i", "0", "-c", "0")),
        ("npu-smi-block", ("info", "-t", "board", "-i", "0")),
        ("npu-smi-proc-mem", ("info", "-t", "proc-mem", "-i", "0")),
    ],
)
def test_every_kind_is_understood(kind: str, arguments: tuple[str, ...]) -> None:
    said = command("parse", kind, stdin=answer(QUIET, arguments).text.encode())
    assert (said.code, said.err) == (0, "")
    assert json.loads(said.out)


def test_parse_refuses_with_the_line(tmp_path: Path) -> None:
    said = command("parse", "npu-smi-info", stdin=b"\nhello\n")
    assert (said.code, said.out) == (1, "")
    assert said.err.startswith("line ")
    refused = command("parse", "npu-smi-info", stdin=b"dcmi module initialize failed. ret is -8005\n")
    assert refused.code == 1
    assert refused.err.startswith("line 1: dcmi module initialize failed. ret is -8005")
    assert command("parse", "npu-smi-info", stdin=bytes(range(256))).code == 1
    missing = command("parse", "npu-smi-info", tmp_path / "none")
    assert (missing.code, missing.err) == (1, f"npu-watchd: {tmp_path / 'none'}: No such file or directory\n")
    assert command("parse", "npu-smi-info", tmp_path).code == 1
    unknown = command("parse", "npu-smi-inof", stdin=b"")
    assert unknown.code == 2
    assert "unknown KIND 'npu-smi-inof'" in unknown.err


def test_the_program_and_the_module_are_the_same() -> None:
    program = Path(sys.executable).with_name("npu-watchd")
    done = subprocess.run([program, "--version"], capture_output=True, check=True, text=True)
    assert done.stdout == command("--version").out == f"npu-watchd, version {__version__}\n"
    assert command("--help").code == 0
    assert command("no-such-command").code == 2
