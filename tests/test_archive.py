"""What a cycle hands to the archive is on disk, or the archive says why not and keeps it."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from npu_watchd.archive import Archive, first_number
from npu_watchd.memory import journal
from npu_watchd.memory.backlog import Batch
from npu_watchd.model.finding import Event
from npu_watchd.model.reading import Failure

NOON_S = 1_790_000_000.0


def line(number: int, text: str = "Something happened.") -> Event:
    return Event(number, NOON_S, "finding_opened", text, "3")


def until(true: Callable[[], bool], what: str) -> None:
    ends_s = time.monotonic() + 20
    while not true():
        assert time.monotonic() < ends_s, what
        time.sleep(0.01)


class Kept:
    """An archive in a folder, and what it logged."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "state.db"
        self.logged: list[str] = []
        self.archive = Archive(folder, lambda event, /, **_: self.logged.append(event), time.monotonic)

    def numbers(self) -> list[int]:
        found = journal.read(self.path)
        return [] if isinstance(found, Failure) else [event.number for event in found]


def test_what_is_handed_in_is_on_disk_and_there_after_a_restart(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    assert kept.archive.recall(10) is not None
    kept.archive.keep(Batch(events=(line(1), line(2))), NOON_S)
    until(lambda: kept.numbers() == [1, 2], "both lines are written")
    kept.archive.close(Batch(events=(line(3),)), 5)
    again = Kept(tmp_path).archive.recall(10)
    assert again is not None
    assert [event.number for event in again.events] == [1, 2, 3]
    assert first_number(again, NOON_S) == 4
    assert kept.logged == []


def test_a_batch_that_no_database_can_take_is_said_and_not_lost(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    kept.archive.recall(10)
    facts: dict[str, str | int | float | bool] = {"a": object()}  # type: ignore[dict-item]  # what no caller may hand in
    kept.archive.keep(Batch(events=(Event(1, NOON_S, "x", "text", facts=facts),)), NOON_S)
    until(lambda: kept.archive.problem is not None, "it says that nothing is written")
    assert kept.logged == ["history_not_written"]
    facts["a"] = "whole again"
    kept.archive.close(Batch(events=(line(2),)), 5)
    assert kept.numbers() == [1, 2]


def test_without_a_database_the_numbers_go_on_where_none_has_been(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    kept = Kept(tmp_path / "file" / "below")
    assert kept.archive.recall(10) is None
    assert kept.archive.problem is not None
    assert first_number(None, NOON_S) == 2_790_000_000
    kept.archive.close(Batch(), 5)
