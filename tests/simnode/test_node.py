"""A node on disk: real executables in a bare environment, reached through an ordinary configuration."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

from npu_watchd.config import load as load_config
from npu_watchd.simnode.node import install, set_clock
from npu_watchd.simnode.npu_smi import answer
from npu_watchd.simnode.scenario_file import load
from npu_watchd.simnode.timeline import state_at

BARE = {"LC_ALL": "C", "PATH": "/usr/bin:/bin"}


def npu_smi(directory: Path, *argv: str, timeout_s: float = 20.0) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [directory / "bin" / "npu-smi", *argv],
        env=BARE,
        cwd="/",
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )


@pytest.mark.parametrize("argv", [("info",), ("info", "-m"), ("info", "-t", "health", "-i", "3", "-c", "0"), ("-v",)])
def test_the_executable_prints_the_state_of_that_second(tmp_path: Path, argv: tuple[str, ...]) -> None:
    install("hbm_storm", tmp_path, speed=0.0, at=7300.0)
    expected = answer(state_at(load("hbm_storm"), 7300.0), argv)
    said = npu_smi(tmp_path, *argv)
    assert (said.stdout, said.stderr, said.returncode) == (expected.text, "", expected.exit_code)


def test_exit_codes_and_words_of_a_failure_reach_the_caller(tmp_path: Path) -> None:
    install("driver_gone", tmp_path, speed=0.0, at=130.0)
    said = npu_smi(tmp_path, "info")
    assert (said.returncode, said.stdout.splitlines()[-1]) == (187, "dcmi module initialize failed. ret is -8005")
    set_clock(tmp_path, 430.0)
    said = npu_smi(tmp_path, "info")
    assert (said.returncode, said.stdout) == (127, "")
    assert said.stderr.startswith("npu-smi: error while loading shared libraries: ")


def test_time_runs_on_from_the_start_at_the_given_speed(tmp_path: Path) -> None:
    install("double_bit_then_reset", tmp_path, start=0.0, speed=1e-6)
    node = json.loads((tmp_path / "node.json").read_text())
    assert (node["start_s"], node["at_s"], node["speed"]) == (0.0, 0.0, 1e-6)
    # Since 1970 some 1.7e9 s have passed: at a millionth of the speed, the scenario is between 2 min and the hour.
    assert "HBM Double Bit Aggregate Total Err Cnt   : 2\n" in npu_smi(tmp_path, "info", "-t", "ecc", "-i", "3").stdout


def test_a_hang_prints_nothing_and_outlives_sigterm(tmp_path: Path) -> None:
    install("wedged_driver", tmp_path, speed=0.0, at=300.0)
    with subprocess.Popen([tmp_path / "bin" / "npu-smi", "info"], env=BARE, stdout=subprocess.PIPE) as process:
        try:
            wait_for_ignored_sigterm(process.pid)
            process.terminate()
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(0.3)
        finally:
            process.kill()
        assert process.communicate()[0] == b""
        assert process.returncode == -signal.SIGKILL


def wait_for_ignored_sigterm(pid: int) -> None:
    """Until the shell has become the tool and the tool has closed its ears."""
    mask = 1 << (signal.SIGTERM - 1)
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        status = Path(f"/proc/{pid}/status").read_text()
        ignored = next(line for line in status.splitlines() if line.startswith("SigIgn:"))
        if int(ignored.split()[1], 16) & mask:
            return
        time.sleep(0.02)
    raise AssertionError("the tool never began to ignore SIGTERM")


def test_a_hang_that_takes_sigterm_ends_by_it(tmp_path: Path) -> None:
    file = tmp_path / "hang.toml"
    file.write_text('title="t"\ndescription="d"\ngeneration="A3"\ntool_version="25.5.1"\n[[at]]\nt=0\ntool="hang"')
    install(file, tmp_path / "node")
    with subprocess.Popen([tmp_path / "node" / "bin" / "npu-smi", "info"], env=BARE) as process:
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.5)
        process.terminate()
        assert process.wait(10) == -signal.SIGTERM


def test_failed_sub_queries_are_named_in_the_tools_own_error_log(tmp_path: Path) -> None:
    config = tomllib.loads(install("device_lost", tmp_path, speed=0.0, at=10.0).read_text())
    log = Path(config["paths"]["npu_tool_log"])
    npu_smi(tmp_path, "info")
    assert log.read_text() == ""
    set_clock(tmp_path, 200.0)
    npu_smi(tmp_path, "info", "-t", "ecc", "-i", "5")
    assert log.read_text().endswith("dcmi_get_device_ecc_info failed. err is -8009. card_id=5 device_id=0\n")
    npu_smi(tmp_path, "info")
    assert "dcmi_get_device_health failed. err is -8006. card_id=5 device_id=0\n" in log.read_text()
    assert "card_id=4" not in log.read_text()


def test_the_configuration_is_an_ordinary_one(tmp_path: Path) -> None:
    config = load_config(install("a3_16_dies", tmp_path, listen=("127.0.0.1:0", "[::1]:0")))
    assert config.node.name == "sim-a3-16-dies"
    assert config.node.expected_devices == 16
    assert str(config.tools.npu_smi) == str(tmp_path / "bin" / "npu-smi")
    assert config.paths.state_dir == tmp_path / "state"
    assert [str(address) for address in config.web.listen] == ["127.0.0.1:0", "[::1]:0"]


def test_a_directory_with_blanks_and_quotes_is_no_trouble(tmp_path: Path) -> None:
    odd = tmp_path / "a 'b' \"c\""
    config = tomllib.loads(install("quiet", odd, speed=0.0).read_text())
    assert config["tools"]["npu_smi"] == str(odd / "bin" / "npu-smi")
    assert npu_smi(odd, "-v").stdout == "npu-smi version: 25.5.1\n"


def test_a_call_loads_neither_msgspec_nor_anything_but_the_simulator(tmp_path: Path) -> None:
    install("quiet", tmp_path)
    script = (tmp_path / "bin" / "npu-smi").read_text().replace(" -m npu_watchd", " -X importtime -m npu_watchd")
    (tmp_path / "bin" / "npu-smi").write_text(script)
    loaded = {line.rpartition("|")[2].strip() for line in npu_smi(tmp_path, "info").stderr.splitlines()}
    ours = {name for name in loaded if name.startswith("npu_watchd.")}
    assert "npu_watchd.simnode.table" in ours
    assert {name for name in ours if not name.startswith("npu_watchd.simnode")} == set()
    assert not loaded & {"msgspec", "tomllib", "subprocess", "npu_watchd.simnode.scenario_file"}


def simnode(*argv: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "npu_watchd.simnode", *argv]
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)


def test_the_console_lists_shows_and_prints() -> None:
    assert "duo_310p                Two 300I Duo cards" in simnode("list").stdout
    assert "t = 7200     device 3: the first uncorrectable error" in simnode("show", "hbm_storm").stdout
    said = simnode("print", "hbm_storm", "--t", "7300", "--", "info", "-t", "ecc", "-i", "3")
    assert "\tHBM Double Bit Error Count               : 1\n" in said.stdout
    assert simnode("print", "driver_gone", "--t", "130").returncode == 187


def test_the_console_says_what_is_wrong() -> None:
    said = simnode("show", "nosuch")
    assert said.returncode == 2
    assert said.stderr.startswith("nosuch: No such file or directory; the scenarios that come along are a3_16_dies")
    assert simnode("dance").stderr.startswith("`python -m npu_watchd.simnode`: what a simulated node says.")
    assert simnode("print", "quiet", "--at", "3").stderr == "not understood: --at 3\n"
