"""The host under the real daemon: what it has left, and a compile process that its kernel kills."""

from __future__ import annotations

from pathlib import Path

from tests.e2e.harness import running, until
from tests.e2e.simulated import simulated

EVERY = {"host": "1s", "processes": "2s"}


def test_a_killed_compile_process_is_found_with_its_job_and_stays_found_over_a_restart(tmp_path: Path) -> None:
    node = simulated("oom_kill", tmp_path, 60, EVERY)
    with running(node.config) as daemon:
        page = daemon.shows(lambda page: page.value("npu_node_oom_kills_total") == 1, "an old kill")
        assert page.value("npu_node_pressure_ratio", resource="cpu", kind="some") == 0.015
        assert daemon.snapshot()["findings"] == []
        node.stand_at(130)
        daemon.shows(lambda page: page.value("npu_node_oom_kills_total") == 4, "three new ones")
        until(lambda: len(daemon.snapshot()["oom_kills"]) == 4, "the kernel's log names them")
        until(lambda: daemon.snapshot()["findings"][0]["jobs"] == ["slurm 4711"], "and the finding their job")
        (finding,) = daemon.snapshot()["findings"]
        assert (finding["alert"], finding["subject"], finding["severity"]) == ("NpuHostOutOfMemory", "node", "warning")
        assert "ccec (pid 61201), ccec (pid 61202), ccec (pid 61203) of slurm 4711" in finding["summary"]
        assert "Killed for want of memory" in daemon.get("/").text
    with running(node.config) as daemon:
        until(lambda: len(daemon.snapshot()["oom_kills"]) == 4, "the log is read again")
        assert [kill["before_start"] for kill in daemon.snapshot()["oom_kills"]] == [True] * 4
        (finding,) = daemon.snapshot()["findings"]
        assert finding["jobs"] == ["slurm 4711"]
