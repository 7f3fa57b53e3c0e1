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
from npu_watchd.simnode.tools import answer as answer_of

BARE = {"LC_ALL": "C", "PATH": "/usr/bin:/bin"}


def npu_smi(directory: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    return tool(directory, "npu-smi", *argv)


def tool(directory: Path, name: str, *argv: str, timeout_s: float = 20.0) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [directory / "bin" / name, *argv],
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
    for name, argv, own in (
        ("npu-smi", ("info",), "table"),
        ("hccn_tool", ("-i", "0", "-stat", "-g"), "hccn_text"),
        ("ibstat", (), "sysfs_ib"),
    ):
        script = tmp_path / "bin" / name
        script.write_text(script.read_text().replace(" -S -s ", " -X importtime -S -s "))
        loaded = {line.rpartition("|")[2].strip() for line in tool(tmp_path, name, *argv).stderr.splitlines()}
        ours = {module for module in loaded if module.startswith("npu_watchd.")}
        assert f"npu_watchd.simnode.{own}" in ours
        assert {module for module in ours if not module.startswith("npu_watchd.simnode")} == set()
        assert not loaded & {"msgspec", "tomllib", "subprocess", "pathlib", "npu_watchd.simnode.scenario_file"}
        assert name == "npu-smi" or "npu_watchd.simnode.table" not in ours


@pytest.mark.parametrize(
    ("name", "argv"),
    [
        ("hccn_tool", ("-i", "3", "-link_stat", "-g")),
        ("hccn_tool", ("-i", "9", "-link", "-g")),
        ("ibstat", ()),
        ("ibstat", ("nosuch",)),
    ],
)
def test_the_fabrics_executables_print_the_state_of_that_second(
    tmp_path: Path, name: str, argv: tuple[str, ...]
) -> None:
    install("roce_flap", tmp_path, speed=0.0, start=5_000_000.0, at=500.0)
    expected = answer_of(name, state_at(load("roce_flap"), 500.0, start_s=4_999_500.0), argv)
    said = tool(tmp_path, name, *argv)
    assert (said.stdout, said.stderr, said.returncode) == (expected.text, expected.stderr, expected.exit_code)


def test_perf_takes_as_long_as_it_is_told(tmp_path: Path) -> None:
    install("pcie_saturated", tmp_path, speed=0.0, at=400.0)
    began = time.monotonic()
    event = "hisi_pcie0_core1/event=0x1005,bdf=0x8d00/"
    said = tool(tmp_path, "perf", "stat", "-a", "-x", ";", "--log-fd", "1", "-e", event, "--", "sleep", "0.4")
    assert time.monotonic() - began > 0.4
    assert said.stdout == f"2860088231;;{event};400012340;100.00;;\n"


def test_a_sick_device_keeps_the_tool_silent_until_it_is_ended(tmp_path: Path) -> None:
    install("hccn_busy", tmp_path, speed=0.0, at=300.0)
    command = [str(tmp_path / "bin" / "hccn_tool"), "-i", "3", "-link", "-g"]
    with subprocess.Popen(command, env=BARE, stdout=subprocess.PIPE) as process:
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.5)
        process.terminate()
        assert process.communicate(timeout=10)[0] == b""
        assert process.returncode == -signal.SIGTERM
    assert tool(tmp_path, "hccn_tool", "-i", "4", "-link", "-g").stdout == "link status: UP\n"


@pytest.mark.parametrize(
    ("name", "tools"),
    [("quiet", ["hccn_tool", "ibstat", "npu-smi", "perf"]), ("duo_310p", ["npu-smi", "perf"])],
)
def test_a_node_has_the_tools_that_such_nodes_have(tmp_path: Path, name: str, tools: list[str]) -> None:
    config = tomllib.loads(install(name, tmp_path).read_text())
    assert sorted(path.name for path in (tmp_path / "bin").iterdir()) == tools
    assert config["tools"]["hccn_tool"] == str(tmp_path / "bin" / "hccn_tool")
    assert config["paths"]["sysfs"] == str(tmp_path / "sys")


def test_ports_that_a_scenario_expects_are_in_the_configuration(tmp_path: Path) -> None:
    assert load_config(install("no_hca", tmp_path / "a")).fabric.expected_ports == ("mlx5_0/1", "mlx5_1/1")
    assert load_config(install("quiet", tmp_path / "b")).fabric.expected_ports == ()


def test_only_what_perf_can_count_is_switched_on(tmp_path: Path) -> None:
    # A 910B measures its own load, through a library that is not simulated.
    assert "probes" not in tomllib.loads(install("quiet", tmp_path / "b").read_text())
    config = load_config(install("pcie_saturated", tmp_path / "a"))
    assert config.probes.pcie_load.enabled is True


def simnode(*argv: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "npu_watchd.simnode", *argv]
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)


def test_the_console_lists_shows_and_prints() -> None:
    assert "duo_310p                Two 300I Duo cards" in simnode("list").stdout
    assert "t = 7200     device 3: the first uncorrectable error" in simnode("show", "hbm_storm").stdout
    assert "for 30 s port mlx5_1: its link goes down" in simnode("show", "roce_flap").stdout
    said = simnode("print", "roce_flap", "--t", "120", "--tool", "hccn_tool", "--", "-i", "3", "-link", "-g")
    assert (said.stdout, said.returncode) == ("link status: DOWN\n", 0)
    assert simnode("print", "no_hca", "--t", "850", "--tool", "ibstat", "--").returncode == 255
    said = simnode("print", "hbm_storm", "--t", "7300", "--", "info", "-t", "ecc", "-i", "3")
    assert "\tHBM Double Bit Error Count               : 1\n" in said.stdout
    assert simnode("print", "driver_gone", "--t", "130").returncode == 187


def test_the_console_says_what_is_wrong() -> None:
    said = simnode("show", "nosuch")
    assert said.returncode == 2
    assert said.stderr.startswith("nosuch: No such file or directory; the scenarios that come along are a3_16_dies")
    assert simnode("dance").stderr.startswith("`python -m npu_watchd.simnode`: what a simulated node says.")
    assert simnode("print", "quiet", "--at", "3").stderr == "not understood: --at 3\n"
