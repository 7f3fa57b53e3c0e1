"""The tail of npu-smi's error log, through all that happens to a log."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from npu_watchd.model.reading import Failure, FailureKind
from npu_watchd.sources.tool_log import NewLines, ToolLog

NOTHING = NewLines((), 0)


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "nputools_LOG_ERR.log"


@pytest.fixture
def log(path: Path) -> Iterator[ToolLog]:
    """A log in which one old line stands, seen once, at most 100 bytes a poll."""
    path.write_bytes(b"old failed. err is -8006\n")
    made = ToolLog(path, max_poll_bytes=100)
    assert made.poll() == NOTHING
    yield made
    made.close()


def test_old_lines_are_not_ours_and_new_ones_come_once(path: Path, log: ToolLog) -> None:
    append(path, b"one\ntwo\n")
    assert log.poll() == NewLines(("one", "two"), 0)
    assert log.poll() == NOTHING
    append(path, b"three\n")
    assert log.poll() == NewLines(("three",), 0)


def test_an_empty_line_is_a_line(path: Path, log: ToolLog) -> None:
    append(path, b"\na\n\n")
    assert log.poll() == NewLines(("", "a", ""), 0)


def test_half_a_line_waits_for_its_end(path: Path, log: ToolLog) -> None:
    append(path, b"whole\nerr is -80")
    assert log.poll() == NewLines(("whole",), 0)
    append(path, b"06\n")
    assert log.poll() == NewLines(("err is -8006",), 0)


def test_a_line_that_was_half_written_at_first_sight_is_left_out(path: Path) -> None:
    path.write_bytes(b"old\nhalf of ")
    log = ToolLog(path)
    assert log.poll() == NOTHING
    append(path, b"it\nnew\n")
    assert log.poll() == NewLines(("new",), 3)
    log.close()


def test_the_newest_lines_are_kept_and_the_skip_is_counted(path: Path, log: ToolLog) -> None:
    append(path, b"".join(b"line %03d\n" % number for number in range(100)))
    # 900 bytes came and 100 are taken; the first of these is the end of a line, whose rest is left out as well
    assert log.poll() == NewLines(tuple(f"line {number:03d}" for number in range(89, 100)), 801)
    append(path, b"next\n")
    assert log.poll() == NewLines(("next",), 0)


def test_a_line_longer_than_a_poll_takes_is_skipped_and_the_next_one_is_whole(path: Path, log: ToolLog) -> None:
    append(path, b"x" * 150)
    assert log.poll() == NewLines((), 150)
    append(path, b"x" * 30 + b"\nwhole\n")
    assert log.poll() == NewLines(("whole",), 31)


def test_rotation_loses_no_line(path: Path, log: ToolLog) -> None:
    append(path, b"before\n")
    path.rename(path.with_suffix(".1"))
    path.write_bytes(b"after\n")
    assert log.poll() == NewLines(("before", "after"), 0)
    append(path, b"later\n")
    assert log.poll() == NewLines(("later",), 0)


def test_the_torn_end_of_a_rotated_file_is_no_line(path: Path, log: ToolLog) -> None:
    append(path, b"dcmi_get_device_health failed. err is -80")
    path.rename(path.with_suffix(".1"))
    path.write_bytes(b"after\n")
    assert log.poll() == NewLines(("after",), 41)


def test_rotation_keeps_the_bound_and_the_newest(path: Path, log: ToolLog) -> None:
    append(path, b"old!\n" * 20)
    path.rename(path.with_suffix(".1"))
    path.write_bytes(b"new!\n" * 18)
    assert log.poll() == NewLines(("old!",) * 2 + ("new!",) * 18, 90)


def test_truncation_starts_the_file_anew(path: Path, log: ToolLog) -> None:
    path.write_bytes(b"anew\n")
    assert log.poll() == NewLines(("anew",), 0)


def test_a_file_cut_and_written_past_the_old_end_is_seen_as_new(path: Path, log: ToolLog) -> None:
    path.write_bytes(b"a line that is a good deal longer than the old one\n")
    assert log.poll() == NewLines(("a line that is a good deal longer than the old one",), 0)


def test_an_absent_file_is_missing_and_once_it_comes_all_of_it_is_new(path: Path) -> None:
    log = ToolLog(path)
    assert log.poll() == Failure(FailureKind.MISSING, f"{path}: No such file or directory")
    path.write_bytes(b"first\n")
    assert log.poll() == NewLines(("first",), 0)
    log.close()


def test_a_file_that_vanishes_yields_its_last_lines_then_missing_then_its_successor(path: Path, log: ToolLog) -> None:
    append(path, b"last words\n")
    path.unlink()
    assert log.poll() == NewLines(("last words",), 0)
    assert log.poll() == Failure(FailureKind.MISSING, f"{path}: No such file or directory")
    path.write_bytes(b"successor\n")
    assert log.poll() == NewLines(("successor",), 0)


def test_what_may_not_be_opened_is_denied_and_tried_again(path: Path) -> None:
    os.mkfifo(path)
    log = ToolLog(path)
    assert log.poll() == Failure(FailureKind.DENIED, f"{path}: not a regular file")
    path.unlink()
    path.write_bytes(b"old, for all we know\n")
    assert log.poll() == NOTHING
    append(path, b"new\n")
    assert log.poll() == NewLines(("new",), 0)
    log.close()


def test_no_permission_is_denied(path: Path, tmp_path: Path) -> None:
    path.write_bytes(b"x\n")
    path.chmod(0)
    if os.geteuid() == 0:
        # Root may read any file: become somebody else for the length of one poll.
        for folder in (tmp_path, *tmp_path.parents[:3]):
            folder.chmod(folder.stat().st_mode | 0o011)
        os.seteuid(65534)
    try:
        answer = ToolLog(path).poll()
    finally:
        os.seteuid(os.getuid())
    assert answer == Failure(FailureKind.DENIED, f"{path}: Permission denied")


def test_invalid_utf8_and_nul_are_text_with_replacement_characters(path: Path, log: ToolLog) -> None:
    append(path, b"caf\xe9 \0 failed\n")
    assert log.poll() == NewLines(("caf� \0 failed",), 0)


def test_closing_gives_the_descriptor_back(path: Path, log: ToolLog) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    log.close()
    assert len(list(Path("/proc/self/fd").iterdir())) == before - 1
    log.close()
