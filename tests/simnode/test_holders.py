"""Real processes on simulated chips: files in, rows of npu-smi out."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from npu_watchd.parsers import info_table
from npu_watchd.simnode.holders import folder_of, held
from npu_watchd.simnode.node import install
from npu_watchd.simnode.scenario import Scenario
from npu_watchd.simnode.scenario_file import ScenarioError, parse
from npu_watchd.simnode.timeline import state_at

EMPTY = 'title = "t"\ndescription = "d"\ngeneration = "910B3"\ntool_version = "25.5.1"\ncards = 2\n'
REAL = "real_processes = true\n"


def empty() -> Scenario:
    return parse(EMPTY, "empty", "empty.toml")


@contextmanager
def sleeping() -> Iterator[int]:
    process = subprocess.Popen(["/bin/sleep", "60"])
    try:
        yield process.pid
    finally:
        process.kill()
        process.wait()


def hold(directory: Path, npu: int, pid: int, text: str = "") -> None:
    folder = Path(folder_of(directory, npu))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / str(pid)).write_text(text)


def processes(directory: Path) -> list[tuple[int, int, str | None, int]]:
    """NPU, pid, name and MB."""
    node = held(state_at(empty(), 0), directory)
    return [
        (card.npu, process.pid, process.name, process.memory_mb)
        for card in node.cards
        for chip in card.chips
        for process in chip.processes
    ]


def test_a_node_that_nobody_holds_is_the_scenarios(tmp_path: Path) -> None:
    state = state_at(empty(), 0)
    assert held(state, tmp_path) == state


def test_real_and_invented_processes_do_not_go_together() -> None:
    event = '[[at]]\nt = 0\ndevice = 0\nstart = [{ pid = 1, name = "a", memory = 1 }]\n'
    with pytest.raises(ScenarioError, match=r"x.toml: real processes and invented ones .* - at `\$.real_processes`"):
        parse(EMPTY + REAL + event, "x", "x.toml")


def test_who_holds_a_chip_is_on_it_with_its_memory_until_it_ends(tmp_path: Path) -> None:
    idle = state_at(empty(), 0).chips[1].hbm.used_mb
    with sleeping() as pid:
        hold(tmp_path, 1, pid, "2048\n")
        hold(tmp_path, 1, os.getpid())
        own = Path("/proc/self/comm").read_text().rstrip("\n")
        expected = [(1, pid, "sleep", 2048), (1, os.getpid(), own, 1024)]
        assert sorted(processes(tmp_path)) == sorted(expected)
        assert held(state_at(empty(), 0), tmp_path).chips[1].hbm.used_mb == idle + 3072
    assert processes(tmp_path) == [(1, os.getpid(), own, 1024)]


def test_a_zombie_holds_nothing(tmp_path: Path) -> None:
    process = subprocess.Popen(["/bin/true"])
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    hold(tmp_path, 0, process.pid)
    assert processes(tmp_path) == []
    process.wait()


def test_a_number_of_another_namespace_has_no_name_whoever_has_it_here(tmp_path: Path) -> None:
    hold(tmp_path, 0, os.getpid(), "700 nameless\n")
    assert processes(tmp_path) == [(0, os.getpid(), None, 700)]


def test_the_executable_shows_them_and_the_config_leads_to_the_real_proc(tmp_path: Path) -> None:
    scenario = tmp_path / "empty.toml"
    scenario.write_text(EMPTY + REAL)
    config = install(scenario, tmp_path / "node", speed=0.0)
    assert 'procfs = "/proc"\n' in config.read_text()
    with sleeping() as pid:
        command = f"echo 512 > {folder_of(tmp_path / 'node', 1)}/{pid}"
        subprocess.run(["sh", "-c", command], check=True)
        done = subprocess.run(
            [tmp_path / "node" / "bin" / "npu-smi", "info"], capture_output=True, text=True, check=True
        )
    table = info_table.parse(done.stdout)
    assert [(row.npu, row.chip, row.pid, row.name, row.memory_bytes) for row in table.processes or ()] == [
        (1, 0, pid, "sleep", 512 << 20)
    ]
