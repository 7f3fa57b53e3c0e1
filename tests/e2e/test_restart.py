"""What survives the daemon's end, however it came, and a disk on which nothing can be kept."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.fake_tool import FakeTool, fake_tool
from tests.e2e.harness import Daemon, running, until
from tests.e2e.small_node import CLIMB, DOUBLE_BIT, HURRIED, ILL, count, database, ecc, kept, kill, known, with_errors
from tests.sinks.alertmanager.servers import answers, serving


@pytest.fixture
def tool(tmp_path: Path) -> FakeTool:
    """A small node's npu-smi."""
    small = fake_tool(tmp_path)
    small.write_config(HURRIED)
    return small


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
