"""What the simulated host has left, and its kernel's log: read by the real parsers and the real follower."""

from __future__ import annotations

from pathlib import Path

import pytest

from npu_watchd.model.host import Belonging, Host, MemoryUse, Pressure, Stall
from npu_watchd.model.reading import Failure
from npu_watchd.simnode import kernel_log
from npu_watchd.simnode.node import install, refresh, set_clock
from npu_watchd.simnode.scenario import Scenario, from_json, to_json
from npu_watchd.simnode.scenario_file import ScenarioError, load, parse
from npu_watchd.sources.host import HostTree
from npu_watchd.sources.kernel_log import KernelLog
from npu_watchd.sources.oom_kills import OomReader

HEAD = 'title = "t"\ndescription = "d"\ngeneration = "910B3"\ntool_version = "25.5.1"\ncards = 2\n'


def scenario(events: str) -> Scenario:
    return parse(f"{HEAD}{events}", "x", "x.toml")


def host(directory: Path) -> Host:
    found = HostTree(directory / "proc", directory / "dev").look()
    assert isinstance(found, Host)
    assert found.failures.keys() <= {"shm"}
    return found


def test_a_quiet_host_has_room(tmp_path: Path) -> None:
    install("quiet", tmp_path, speed=0.0, at=60.0)
    found = host(tmp_path)
    assert found.pressure["cpu"] == Pressure(Stall(0.015, 0.015), Stall(0.0, 0.0))
    assert found.memory == MemoryUse(1_620_804_894_720, 1_484_340_068_352)
    assert (found.oom_kills, found.uptime_s) == (0, 86_460.0)
    assert not (tmp_path / "dev/kmsg").exists()


def test_a_scenario_sets_pressure_for_a_while(tmp_path: Path) -> None:
    install("pcie_contention", tmp_path, speed=0.0, at=610.0)
    assert host(tmp_path).pressure["cpu"].some.avg60_ratio == 0.715
    set_clock(tmp_path, 790.0)
    assert host(tmp_path).pressure["cpu"].some.avg60_ratio == 0.015


def test_who_is_killed_is_counted_and_told_once(tmp_path: Path) -> None:
    install("oom_kill", tmp_path, speed=0.0, at=60.0)
    log, reader = KernelLog(tmp_path / "dev/kmsg"), OomReader()
    assert host(tmp_path).oom_kills == 1
    said = log.poll()
    assert not isinstance(said, Failure)
    assert [(kill.name, kill.belongs) for kill in reader.take(said.messages)] == [("node-agent", Belonging.OTHER)]
    set_clock(tmp_path, 130.0)
    refresh(tmp_path)
    said = log.poll()
    assert not isinstance(said, Failure)
    assert not said.old
    assert [(kill.pid, str(kill.job), kill.since_boot_s) for kill in reader.take(said.messages)] == [
        (61201, "slurm 4711", 86_520.0),
        (61202, "slurm 4711", 86_520.0),
        (61203, "slurm 4711", 86_520.0),
    ]
    assert host(tmp_path).oom_kills == 4
    log.close()


def test_a_node_that_runs_out_of_memory_says_so() -> None:
    story = scenario(
        '[[at]]\nt = 5\noom = [{ pid = 9, name = "python3", job = "session 12", user = 1007, limit = "node" }]'
    )
    text = kernel_log.text(story, 10.0) or ""
    assert "global_oom,task_memcg=/user.slice/user-1007.slice/session-12.scope,task=python3,pid=9,uid=1007\n" in text
    assert ";Out of memory: Killed process 9 (python3) " in text
    assert from_json(to_json(story)) == story


def test_a_log_that_is_behind_gets_only_what_is_new(tmp_path: Path) -> None:
    file = tmp_path / "kmsg"
    kernel_log.bring_up_to_date(file, "one\n")
    kernel_log.bring_up_to_date(file, "one\ntwo\n")
    kernel_log.bring_up_to_date(file, "one\ntwo\n")
    assert file.read_text() == "one\ntwo\n"
    kernel_log.bring_up_to_date(file, "another\n")
    assert file.read_text() == "another\n"


@pytest.mark.parametrize(
    ("event", "problem"),
    [
        ('oom = [{ pid = 9, name = "a", job = "lsf 3" }]', "is no job like"),
        ('lasts = 9\noom = [{ pid = 9, name = "a" }]', "counts, reset, oom and stop are not taken back"),
        ("host.gpu_pressure = 3", "unknown field `gpu_pressure`"),
    ],
)
def test_what_makes_no_sense_is_refused(event: str, problem: str) -> None:
    with pytest.raises(ScenarioError, match=problem):
        scenario(f"[[at]]\nt = 5\n{event}\n")


def test_both_scenarios_are_about_two_jobs() -> None:
    for name in ("oom_kill", "pcie_contention"):
        jobs = {one.job for event in load(name).events for one in event.start}
        assert jobs == {"slurm 4711", "slurm 4712"}
