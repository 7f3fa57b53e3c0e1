"""A disk on which nothing can be kept costs what a restart would remember, and only while it lasts."""

from __future__ import annotations

import contextlib
import itertools
import os
import resource
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.fake_tool import FakeTool, fake_tool
from tests.e2e.harness import Daemon, running, until
from tests.e2e.small_node import DOUBLE_BIT, HURRIED, count, database, ecc, kept, kill, known, with_errors


@pytest.fixture
def tool(tmp_path: Path) -> FakeTool:
    """A small node's npu-smi."""
    small = fake_tool(tmp_path)
    small.write_config(HURRIED)
    return small


def climbs_until(tool: FakeTool, daemon: Daemon, errors: Iterator[int], *, written: bool) -> int:
    """Ever more errors, until the daemon says whether it can write; the newest count."""
    newest: list[int] = []

    def said() -> bool:
        newest[:] = [next(errors)]
        tool.says("info -t ecc -i 1", ecc(newest[0]))
        return daemon.page().value("npu_watchd_history_written") == written

    until(said, f"history_written {written}; the log: {daemon.lines[-5:]}", every_s=0.2)
    return newest[0]


def goes_through(tool: FakeTool, take: Callable[[Daemon], None], give_back: Callable[[Daemon], None]) -> str:
    """A climb over a disk that takes nothing for a while, and a kill after that; the error that was logged."""
    tool.shows(with_errors())
    errors = itertools.count(30)
    with running(tool.config) as daemon:
        known(daemon)
        daemon.shows(lambda page: page.value("npu_watchd_history_written") == 1, "history is written")
        take(daemon)
        newest = climbs_until(tool, daemon, errors, written=False)
        until(lambda: count(daemon) == newest, "it goes on in memory")
        event = daemon.event("history_not_written", level="warning")
        assert "the daemon goes on in memory" in event["costs"]
        since = daemon.findings()[0]["since"]
        give_back(daemon)
        newest = climbs_until(tool, daemon, errors, written=True)
        assert daemon.event("history_written_again")["after"] == event["error"]
        until(lambda: count(daemon) == newest, "the newest count is known")
        told = daemon.journal()
        until(lambda: on_disk(tool) >= newest, "and on disk")
        kill(daemon)
    with running(tool.config) as daemon:
        until(lambda: count(daemon) == newest, "nothing is lost")
        assert daemon.findings()[0]["since"] == since
        assert daemon.journal()[: len(told)] == told
    return str(event["error"])


def on_disk(tool: FakeTool) -> float:
    """The newest count of the errors that is kept."""
    with contextlib.closing(sqlite3.connect(f"file:{database(tool)}?mode=ro", uri=True)) as db:
        query = (
            "SELECT max(value) FROM series WHERE metric = 'npu_device_memory_errors_total' AND labels LIKE '%single%'"
        )
        return float(db.execute(query).fetchone()[0] or 0)


def test_while_no_file_may_grow_it_goes_on_in_memory_and_then_writes_it_all(tool: FakeTool) -> None:
    wal = Path(f"{database(tool)}-wal")

    def stop_growth(daemon: Daemon) -> None:
        """Its tools may not either, and what they write down of each call is smaller than this."""
        most_bytes = max(wal.stat().st_size, 64 << 10)
        resource.prlimit(daemon.process.pid, resource.RLIMIT_FSIZE, (most_bytes, resource.RLIM_INFINITY))

    def let_grow(daemon: Daemon) -> None:
        resource.prlimit(daemon.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))

    assert str(database(tool)) in goes_through(tool, stop_growth, let_grow)


@pytest.fixture
def own_disk(tool: FakeTool) -> Iterator[Path]:
    """state_dir is a file system of its own with 512 KiB."""
    state = tool.directory / "state"
    if os.geteuid() != 0 or mount("-t", "tmpfs", "-o", "size=512k", "tmpfs", state) != 0:
        pytest.skip("only root may mount a file system")
    yield state
    subprocess.run(["umount", "-l", state], check=True)


def mount(*arguments: str | Path) -> int:
    return subprocess.run(["mount", *map(str, arguments)], capture_output=True, check=False).returncode


def test_a_full_disk_costs_what_a_restart_would_remember_and_only_while_it_is_full(
    tool: FakeTool, own_disk: Path
) -> None:
    def fill(_: Daemon) -> None:
        with contextlib.suppress(OSError), (own_disk / "filler").open("wb", buffering=0) as filler:
            while True:
                filler.write(b"\0" * 1024)

    assert "full" in goes_through(tool, fill, lambda _: (own_disk / "filler").unlink())


def test_a_disk_that_is_read_only_at_the_start_is_written_as_soon_as_it_can_be(tool: FakeTool, own_disk: Path) -> None:
    tool.shows(with_errors(double_bit=2))
    assert mount("-o", "remount,ro", own_disk) == 0
    with running(tool.config) as daemon:
        known(daemon)
        until(lambda: daemon.finding(DOUBLE_BIT), "it watches")
        assert daemon.page().value("npu_watchd_history_written") == 0
        assert str(database(tool)) in daemon.event("history_not_written", level="warning")["error"]
        assert len(daemon.journal("history_unknown")) == 1, "nobody may take the counts for those of before"
        assert mount("-o", "remount,rw", own_disk) == 0
        climbs_until(tool, daemon, itertools.count(30), written=True)
        until(lambda: kept(tool, "daemon_started"), "what was told before is written too")


def test_a_state_directory_that_cannot_be_made_costs_what_a_restart_would_remember(tool: FakeTool) -> None:
    (tool.directory / "state").rmdir()
    (tool.directory / "state").write_text("in the way", encoding="utf-8")
    tool.shows(with_errors(double_bit=2))
    with running(tool.config) as daemon:
        known(daemon)
        until(lambda: daemon.finding(DOUBLE_BIT), "it watches")
        page = daemon.page()
        assert page.value("npu_watchd_history_written") == 0
        assert str(tool.directory / "state") in daemon.event("history_not_written", level="warning")["error"]
        at = page.value("npu_watchd_cycle_timestamp_seconds")
        assert at is not None
        daemon.shows(lambda page: (page.value("npu_watchd_cycle_timestamp_seconds") or 0) > at + 1, "some more cycles")
        assert len(daemon.events("history_not_written")) == 1, "one line, not one a cycle"
        assert daemon.stop()[0] == 0


def test_a_database_that_is_removed_under_the_daemon_is_not_called_written(tool: FakeTool) -> None:
    tool.shows(with_errors())
    with running(tool.config) as daemon:
        known(daemon)
        daemon.shows(lambda page: page.value("npu_watchd_history_written") == 1, "history is written")
        for file in database(tool).parent.iterdir():
            file.unlink()
        newest = climbs_until(tool, daemon, itertools.count(30), written=False)
        assert "it was removed or replaced" in daemon.event("history_not_written", level="warning")["error"]
        until(lambda: count(daemon) == newest, "it goes on in memory")
