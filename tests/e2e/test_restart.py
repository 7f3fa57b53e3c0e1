"""What survives the daemon's end, however it came, and a disk on which nothing can be kept."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import resource
import shutil
import signal
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from npu_watchd.memory import journal
from npu_watchd.model.reading import Failure
from npu_watchd.simnode.npu_smi import answer
from tests.e2e.fake_tool import FakeTool, fake_tool
from tests.e2e.harness import Daemon, running, until
from tests.e2e.small_node import HURRIED, ILL, single_bit_errors, with_errors
from tests.sinks.alertmanager.servers import answers, closed_port, hangs, serving

CLIMB, DOUBLE_BIT = "hbm_single_bit", "hbm_double_bit"


@pytest.fixture
def tool(tmp_path: Path) -> FakeTool:
    """A small node's npu-smi."""
    small = fake_tool(tmp_path)
    small.write_config(HURRIED)
    return small


def known(daemon: Daemon) -> None:
    """Once its errors have been read: from now on they can climb."""
    daemon.shows(lambda page: single_bit_errors(page) is not None, "the errors are read")


def database(tool: FakeTool) -> Path:
    return tool.directory / "state" / "state.db"


def kept(tool: FakeTool, kind: str | None = None) -> list[Any]:
    """The journal's lines on disk."""
    found = journal.read(database(tool))
    return [] if isinstance(found, Failure) else [event for event in found if kind in (None, event.kind)]


def count(daemon: Daemon) -> float | None:
    """By how much the errors of the last hour have grown, as the finding says; None: there is no finding."""
    finding = daemon.finding(CLIMB)
    return None if finding is None else float(finding["evidence"][0]["observed"])


def kill(daemon: Daemon) -> None:
    daemon.process.kill()
    assert daemon.wait() == -signal.SIGKILL


def numbers(daemon: Daemon) -> list[int]:
    return [line["number"] for line in daemon.journal()]


def grown(before: list[int], after: list[int]) -> bool:
    """Whether no number of the journal came twice, and none that was told is gone."""
    return after[: len(before)] == before and sorted(set(after)) == after


# Ends


def test_a_climb_goes_on_over_a_kill_with_its_old_beginning_and_its_true_count(tool: FakeTool) -> None:
    with serving(answers()) as alertmanager:
        tool.write_config(f'{HURRIED}\n[alertmanager]\nurls = ["{alertmanager.url}"]\n')
        tool.shows(with_errors(10))
        with running(tool.config) as daemon:
            known(daemon)
            assert daemon.findings() == []
            tool.shows(with_errors(40))
            until(lambda: count(daemon) == 30, "30 errors are a finding")
            since, told = daemon.finding(CLIMB), numbers(daemon)
            until(lambda: kept(tool, "finding_opened"), "it is on disk")
            kill(daemon)
        tool.shows(with_errors(65))
        with running(tool.config) as daemon:
            first = daemon.finding(CLIMB)
            until(lambda: count(daemon) == 55, "what came meanwhile counts, once")
            finding = daemon.finding(CLIMB)
            assert since is not None
            assert first is not None, "it is there from the first cycle on"
            assert finding is not None
            assert first["since"] == finding["since"] == since["since"]
            assert grown(told, numbers(daemon))
            assert len(daemon.journal("finding_opened")) == 1
            assert daemon.journal("counters_reset") == []
            assert [line["text"].split("; ")[1] for line in daemon.journal("daemon_started")] == [
                "0 findings stood",
                "1 findings stood",
            ]
        alerts = [alert for request in alertmanager.requests for alert in request.alerts]
        assert len({alert["startsAt"] for alert in alerts}) == 1, "to Alertmanager it is one alert all the time"
        assert all(lasts_s(alert) >= 240 for alert in alerts), "which nobody resolved"


def lasts_s(alert: dict[str, Any]) -> float:
    """From its beginning to its end; of one that fires it lies four minutes ahead."""
    starts, ends = (datetime.fromisoformat(alert[name]) for name in ("startsAt", "endsAt"))
    return (ends - starts).total_seconds()


def test_kills_in_the_middle_of_writes_leave_the_database_whole_and_the_count_true(tool: FakeTool) -> None:
    tool.shows(with_errors(0))
    errors, wal, told = 0, Path(f"{database(tool)}-wal"), list[int]()
    for writes in (1, 3, 2, 1, 2):
        with running(tool.config) as daemon:
            known(daemon)
            for _ in range(writes):
                before, errors = stamp(wal), errors + 3
                tool.says("info -t ecc -i 1", ecc(errors))
                until(lambda: stamp(wal) != before, "something is written", every_s=0.001)  # noqa: B023
            kill(daemon)
        assert damage(database(tool)) == "ok"
        after = [event.number for event in kept(tool)]
        assert grown(told, after)
        told = after
    with running(tool.config) as daemon:
        until(lambda: count(daemon) == errors, f"{errors} errors, none lost and none invented")
        assert daemon.journal("counters_reset") == daemon.journal("history_begun_anew") == []
        assert len(daemon.journal("finding_opened")) == 1


def stamp(file: Path) -> tuple[int, int]:
    with contextlib.suppress(FileNotFoundError):
        found = file.stat()
        return found.st_mtime_ns, found.st_size
    return 0, 0


def damage(file: Path) -> str:
    """What SQLite's own check finds in a copy: the original stays as the kill left it."""
    folder = file.parent / "copy"
    folder.mkdir(exist_ok=True)
    for ending in ("", "-wal"):
        with contextlib.suppress(FileNotFoundError):
            shutil.copy(f"{file}{ending}", f"{folder / file.name}{ending}")
    with contextlib.closing(sqlite3.connect(folder / file.name)) as db:
        (found,) = db.execute("PRAGMA integrity_check").fetchone()
    shutil.rmtree(folder)
    return str(found)


def ecc(errors: int) -> str:
    return answer(with_errors(errors), ("info", "-t", "ecc", "-i", "1")).text


def test_what_stood_at_an_orderly_stop_is_held_until_it_can_be_seen_and_then_over(tool: FakeTool) -> None:
    tool.shows(with_errors(double_bit=2))
    with running(tool.config) as daemon:
        known(daemon)
        until(lambda: daemon.finding(DOUBLE_BIT), "two errors are a finding")
        before, told = daemon.finding(DOUBLE_BIT), numbers(daemon)
        assert daemon.stop()[0] == 0
    assert [event.kind for event in kept(tool)][-1] == "daemon_stopped"
    tool.shows(with_errors())
    tool.behaves("exit 3")
    with running(tool.config) as daemon:
        held = daemon.finding(DOUBLE_BIT)
        assert before is not None
        assert held is not None, "it is there although nobody has seen it since"
        assert (held["held"], held["since"], held["device_id"]) == (True, before["since"], ILL)
        until(lambda: daemon.finding("probe_blind"), "some cycles pass without a sight of it")
        assert daemon.finding(DOUBLE_BIT) == held
        tool.behaves_well()
        until(lambda: daemon.finding(DOUBLE_BIT) is None, "it is seen, and is over")
        assert [line["device_id"] for line in daemon.journal("finding_resolved") if line["rule"] == DOUBLE_BIT] == [ILL]
        assert grown(told, numbers(daemon))


# A database of no use


@pytest.mark.parametrize("how", ["not_a_database", "a_page_of_rubbish", "cut_off"])
def test_a_damaged_database_is_moved_aside_and_said_and_a_new_one_begun(tool: FakeTool, how: str) -> None:
    tool.shows(with_errors(double_bit=2))
    with running(tool.config) as daemon:
        known(daemon)
        until(lambda: kept(tool, "finding_opened"), "a finding is on disk")
        daemon.stop()
    before = database(tool).read_bytes()
    spoilt = {
        "not_a_database": b"somebody's notes\n" * 100,
        "a_page_of_rubbish": before[:4096] + b"\xa5" * 4096 + before[8192:],
        "cut_off": before[: len(before) // 2],
    }[how]
    database(tool).write_bytes(spoilt)
    with running(tool.config) as daemon:
        known(daemon)
        event = daemon.event("history_begun_anew", level="warning")
        assert "it was moved to state.db.corrupt-1, and the history begins anew" in event["detail"]
        assert (tool.directory / "state" / "state.db.corrupt-1").stat().st_size == len(spoilt)
        assert [line["text"] for line in daemon.journal("history_begun_anew")] == [event["detail"]]
        until(lambda: daemon.finding(DOUBLE_BIT), "it watches on")
        assert daemon.page().value("npu_watchd_history_written") == 1
        until(lambda: kept(tool, "history_begun_anew"), "the new one is written")
        daemon.stop()
    assert damage(database(tool)) == "ok"


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


# A disk that takes nothing


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
        """The files of its tools may grow: they are smaller."""
        resource.prlimit(daemon.process.pid, resource.RLIMIT_FSIZE, (wal.stat().st_size, resource.RLIM_INFINITY))

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


# Alertmanagers


def test_alertmanagers_that_are_dead_slow_broken_or_elsewhere_cost_no_cycle_anything(tool: FakeTool) -> None:
    with (
        serving(answers()) as good,
        serving(hangs) as slow,
        serving(answers("503 Service Unavailable")) as broken,
        serving(answers()) as elsewhere,
        serving(answers("302 Found", Location=f"{elsewhere.url}/api/v2/alerts")) as moved,
    ):
        dead = f"http://127.0.0.1:{closed_port()}"
        urls = {"good": good.url, "slow": slow.url, "broken": broken.url, "moved": moved.url, "dead": dead}
        tool.write_config(f"{HURRIED}\n[alertmanager]\nurls = {json.dumps(list(urls.values()))}\n")
        tool.shows(with_errors(double_bit=2))
        with running(tool.config) as daemon:
            slow.wait_for(bool)
            paces = [pace(daemon)]

            def cycled() -> bool:
                newest = pace(daemon)
                if newest != paces[-1]:
                    paces.append(newest)
                return len(paces) > 12

            until(cycled, "cycle after cycle passes while one of them keeps us waiting")
            assert len(slow.requests) == 1, "and it has not answered in all that time"
            assert max(duration for _, duration in paces) < 1.0
            for name in ("slow", "broken", "moved", "dead"):
                target = urls[name].removeprefix("http://")
                daemon.shows(
                    lambda page, target=target: (
                        (  # type: ignore[misc]
                            page.value("npu_watchd_notification_failures_total", target=target) or 0
                        )
                        >= 1
                    ),
                    f"failures of the one that is {name}",
                )
                assert daemon.event("alertmanager_failing", level="warning", target=target)["detail"]
            page = daemon.page()
            assert page.value("npu_watchd_notification_failures_total", target=good.url.removeprefix("http://")) == 0
            assert good.requests[0].alerts[0]["labels"]["alertname"] == "NpuMemoryUncorrectableErrors"
            assert elsewhere.requests == [], "nobody is sent our alerts but those in the config"


def pace(daemon: Daemon) -> tuple[float, float]:
    """When the newest cycle was, and how long the one before took."""
    page = daemon.page()
    at = page.value("npu_watchd_cycle_timestamp_seconds")
    assert at is not None
    return at, page.value("npu_watchd_cycle_duration_seconds") or 0.0
