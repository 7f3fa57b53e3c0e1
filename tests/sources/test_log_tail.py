"""Following logs: nothing twice, nothing invented, and what is lost is counted."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from npu_watchd.sources.log_tail import LogTail, document, positions_of


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def tail(folder: Path, before: LogTail | None = None, **bounds: int) -> LogTail:
    """A follower as after a restart; without one before it, as at the first start ever."""
    persisted = positions_of(document(before.positions)) if before else None
    return LogTail([f"{folder}/*.log"], persisted, **bounds)


def texts(found: LogTail) -> list[str]:
    return [line.text for line in found.look().lines]


def test_the_first_look_ever_takes_old_lines_for_nothing_new(folder: Path) -> None:
    (folder / "a.log").write_text("old\n")
    follower = tail(folder)
    assert texts(follower) == []
    with (folder / "a.log").open("a") as file:
        file.write("new\nhalf")
    (folder / "b.log").write_text("first of a new file\n")
    assert sorted(texts(follower)) == ["first of a new file", "new"]
    assert texts(follower) == []


def test_a_line_without_its_end_waits_for_it(folder: Path) -> None:
    follower = tail(folder)
    follower.look()
    (folder / "a.log").write_text("half")
    assert texts(follower) == []
    (folder / "a.log").write_text("half and whole\n")
    assert texts(follower) == ["half and whole"]


def test_a_restart_counts_nothing_twice_and_misses_nothing(folder: Path) -> None:
    follower = tail(folder)
    follower.look()
    (folder / "a.log").write_text("one\n")
    assert texts(follower) == ["one"]
    with (folder / "a.log").open("a") as file:
        file.write("two\n")
    assert texts(tail(folder, follower)) == ["two"]


def test_a_rotated_file_is_read_to_its_end_and_the_new_one_from_its_beginning(folder: Path) -> None:
    follower = tail(folder)
    follower.look()
    log = folder / "a.log"
    log.write_text("one\n")
    follower.look()
    with log.open("a") as file:
        file.write("two\n")
    log.rename(folder / "a.log.1")
    log.write_text("three\n")
    assert sorted(texts(follower)) == ["three", "two"]
    assert texts(follower) == []


def test_a_truncated_file_begins_anew_even_if_it_has_grown_beyond(folder: Path) -> None:
    follower = tail(folder)
    follower.look()
    log = folder / "a.log"
    log.write_text("one\n")
    follower.look()
    os.truncate(log, 0)
    with log.open("r+") as file:
        file.write("other one\nother two\n")
    assert texts(follower) == ["other one", "other two"]


def test_a_deleted_file_is_forgotten(folder: Path) -> None:
    follower = tail(folder)
    (folder / "a.log").write_text("one\n")
    follower.look()
    (folder / "a.log").unlink()
    assert texts(follower) == []
    assert follower.positions == ()


def test_a_file_written_faster_than_we_read_loses_its_oldest_and_says_how_much(folder: Path) -> None:
    follower = tail(folder, most_bytes=100)
    follower.look()
    (folder / "a.log").write_text("".join(f"line {number:03}\n" for number in range(100)))
    found = follower.look()
    assert found.lines[-1].text == "line 099"
    assert found.lost_bytes + sum(len(line.text) + 1 for line in found.lines) == 900


def test_one_file_without_end_starves_no_other(folder: Path) -> None:
    follower = tail(folder, most_bytes=90)
    follower.look()
    for name in ("a", "b"):
        (folder / f"{name}.log").write_text("12345678\n" * 10)
    seen = {line.path[-5] for _ in range(2) for line in follower.look().lines}
    assert seen == {"a", "b"}


def test_what_may_not_be_read_is_told_and_costs_only_itself(folder: Path) -> None:
    follower = tail(folder)
    follower.look()
    (folder / "a.log").mkdir()
    os.mkfifo(folder / "b.log")
    (folder / "c.log").write_bytes(b"bad \xff\x00 bytes\n")
    assert texts(follower) == ["bad �\x00 bytes"]


def test_only_the_files_last_written_to_are_followed(folder: Path) -> None:
    for number in range(5):
        (folder / f"{number}.log").write_text("x\n")
        os.utime(folder / f"{number}.log", (1000 + number, 1000 + number))
    follower = tail(folder, most_files=2)
    follower.look()
    assert sorted(Path(one.path).name for one in follower.positions) == ["3.log", "4.log"]


@pytest.mark.parametrize("damaged", [None, {}, [1], [{"path": "a"}], [{"path": "a", "device": -1}], "x"])
def test_damaged_positions_are_none(damaged: object) -> None:
    assert positions_of(damaged) is None


@given(chunks=st.lists(st.binary(max_size=30), max_size=8), restart=st.lists(st.booleans(), min_size=8, max_size=8))
@settings(max_examples=60, derandomize=True)
def test_however_it_is_written_each_whole_line_comes_once(
    tmp_path_factory: pytest.TempPathFactory, chunks: list[bytes], restart: list[bool]
) -> None:
    folder = tmp_path_factory.mktemp("logs")
    follower, got = tail(folder), list[str]()
    follower.look()
    for chunk, again in zip(chunks, restart, strict=False):
        with (folder / "a.log").open("ab") as file:
            file.write(chunk)
        follower = tail(folder, follower) if again else follower
        got += texts(follower)
    whole = b"".join(chunks)
    expected = [
        raw.decode("utf-8", "replace").rstrip("\r") for raw in whole[: whole.rfind(b"\n") + 1].split(b"\n")[:-1]
    ]
    assert got == expected
