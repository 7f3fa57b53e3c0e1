"""Reading the job's logs: from the end, bounded, with the right clock, and the newest where none is named."""

from __future__ import annotations

import os
from pathlib import Path

from npu_watchd.diagnose.clocks import offset_of
from npu_watchd.diagnose.logs import kernel_clues, read_logs
from npu_watchd.model.reading import Failure, FailureKind
from npu_watchd.parsers import ascend_log
from npu_watchd.sources import log_files
from npu_watchd.sources.kernel_log import KernelMessage
from tests.diagnose.cases import AT, CORE, ENDED_S


def test_of_a_large_file_its_end_is_read_from_the_beginning_of_a_line(tmp_path: Path) -> None:
    file = tmp_path / "train.log"
    file.write_bytes(b"x" * 50 + b"\nfirst\nlast \xff\n")
    text = log_files.read(file, most_bytes=20)
    assert not isinstance(text, Failure)
    assert (text.text, text.skipped_bytes) == ("first\nlast �\n", 51)


def test_a_pipe_is_refused_and_never_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.log")
    found = log_files.read(tmp_path / "pipe.log")
    assert isinstance(found, Failure)
    assert found.kind is FailureKind.UNSUPPORTED


def test_a_log_that_is_not_there_is_a_note_and_the_others_are_read(tmp_path: Path) -> None:
    good = tmp_path / "rank_0.log"
    good.write_text(CORE.replace("{at}", AT))
    os.utime(good, (ENDED_S + 5, ENDED_S + 5))
    found = read_logs([tmp_path / "gone.log", good], 0.0)
    assert [clue.kind for clue in found.clues] == ["core_exception"]
    assert found.ended_s == ENDED_S
    assert "gone.log" in found.notes[0]


def test_without_a_time_in_the_log_its_last_change_is_the_end(tmp_path: Path) -> None:
    file = tmp_path / "train.log"
    file.write_text("ValueError: x\n")
    os.utime(file, (ENDED_S, ENDED_S))
    assert read_logs([file], 0.0).ended_s == ENDED_S


def test_the_newest_logs_are_those_of_the_last_ten_minutes_of_writing(tmp_path: Path) -> None:
    for name, age_s in (("plog-1.log", 0), ("plog-2.log", 300), ("plog-3.log", 900), ("other.txt", 0)):
        (tmp_path / name).write_text("x")
        os.utime(tmp_path / name, (ENDED_S - age_s, ENDED_S - age_s))
    pattern = f"{tmp_path}/*.log"
    assert [path.name for path in log_files.newest([pattern], 0.0)] == ["plog-1.log", "plog-2.log"]
    assert log_files.newest([pattern], ENDED_S + 1) == ()


def test_the_files_last_change_tells_the_clocks_zone() -> None:
    events = ascend_log.parse(CORE.replace("{at}", AT)).events
    assert offset_of(events, ENDED_S + 3, 28_800.0) == (0.0, True)
    assert offset_of(events, ENDED_S - 28_800 + 3, 28_800.0) == (28_800.0, True)
    assert offset_of(events, ENDED_S - 3600 + 3, 0.0) == (3600.0, True)


def test_a_file_that_was_copied_later_tells_nothing() -> None:
    events = ascend_log.parse(CORE.replace("{at}", AT)).events
    assert offset_of(events, ENDED_S + 90 * 86_400, 28_800.0) == (28_800.0, False)


def test_the_kernels_own_lines_around_the_end_are_clues_and_a_programs_are_not() -> None:
    killed = "Out of memory: Killed process 500 (python3) total-vm:1kB"
    messages = [
        KernelMessage(1, 100.0, True, killed),
        KernelMessage(2, 9_000.0, True, killed),
        KernelMessage(3, 9_001.0, False, killed),
    ]
    found = list(kernel_clues(messages, booted_s=ENDED_S - 9_010.0, ended_s=ENDED_S))
    assert [(clue.kind, clue.at_s, clue.pid) for clue in found] == [("oom_kill", ENDED_S - 10.0, 500)]
