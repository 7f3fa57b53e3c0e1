"""Debian's Slurm, a simulated node whose chips its jobs hold, and the real daemon that watches."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from npu_watchd.simnode.holders import folder_of
from tests.e2e.harness import Daemon, running, until
from tests.e2e.simulated import simulated
from tests.slurm import cluster
from tests.slurm.cluster import Proctrack, Slurm

NODE = """\
title = "Eight chips for real processes"
description = ""
generation = "910B3"
tool_version = "25.5.1"
cards = 8
real_processes = true
"""
PACE = {"npu_info": "500ms", "processes": "500ms"}


@dataclass(frozen=True)
class Site:
    """A node of a cluster."""

    slurm: Slurm
    directory: Path
    """Of the simulated node."""
    daemon: Daemon

    def hold(self, npu: int, words: str = "1024") -> str:
        """A line of sh: this process is on that chip from now on. words: as npu_watchd/simnode/holders.py."""
        return f"echo {words} > {folder_of(self.directory, npu)}/$$"

    def jobs(self, npu: int) -> dict[str, dict[str, Any]]:
        """Who is on the chip: `slurm 4711` → the job, as the daemon's API has it."""
        jobs = self.daemon.device(str(npu))["jobs"]
        return {f"{job['scheduler']} {job['job']}": job for job in (jobs["known"] if jobs else ())}

    def sees(self, npu: int, *jobs: str) -> dict[str, dict[str, Any]]:
        """Once it knows of exactly these."""
        try:
            until(lambda: set(self.jobs(npu)) == set(jobs), f"{jobs} on chip {npu}")
        except AssertionError as error:
            raise AssertionError(f"{error}; there is {self.daemon.device(str(npu))['jobs']}") from error
        return self.jobs(npu)

    def finding(self, npu: int, rule: str) -> dict[str, Any] | None:
        """Of this rule and chip; None: there is none."""
        return next(
            (one for one in self.daemon.findings() if (one["rule"], one["device_id"]) == (rule, str(npu))), None
        )


@contextmanager
def site(proctrack: Proctrack, more: str = "", **settings: str) -> Iterator[Site]:
    """more: of the daemon's config. settings: of slurm.conf. Skips the test where Slurm cannot run."""
    reason = cluster.unavailable(proctrack)
    if reason is not None:
        pytest.skip(reason)
    # Jobs of other users must reach the chips, and pytest's own folders are only ours.
    with tempfile.TemporaryDirectory(prefix="npu-watchd-slurm-") as name:
        top = Path(name)
        top.chmod(0o755)
        for folder in ("slurm", "node"):
            (top / folder).mkdir()
        scenario = top / "chips.toml"
        scenario.write_text(NODE, encoding="utf-8")
        node = simulated(scenario, top / "node", 0, PACE)
        node.config.write_text(node.config.read_text(encoding="utf-8") + more, encoding="utf-8")
        with cluster.running(top / "slurm", proctrack, **settings) as slurm:
            # The config of a simulated node has its scontrol here, where none is otherwise.
            slurm.put_client("scontrol", node.directory / "bin")
            with running(node.config) as daemon:
                yield Site(slurm, node.directory, daemon)
