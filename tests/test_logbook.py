"""One line an event: JSON for machines, text for people, and never an error of its own."""

from __future__ import annotations

import io
import json
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

import pytest
import structlog

from npu_watchd.logbook import open_logbook


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    level = logging.getLogger("apscheduler").level
    yield
    structlog.reset_defaults()
    logging.getLogger("apscheduler").setLevel(level)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def lines(stream: io.StringIO) -> list[str]:
    return stream.getvalue().splitlines()


def test_a_pipe_gets_one_json_document_a_line() -> None:
    stream = io.StringIO()
    log = open_logbook(stream)
    log.info("device_seen", device_id="0", npu=3)
    log.warning("probe_went_blind", detail='a "quoted"\nline\x1b[31m °')
    first, second = (json.loads(line) for line in lines(stream))
    assert {key: first[key] for key in ("event", "level", "device_id", "npu")} == {
        "event": "device_seen",
        "level": "info",
        "device_id": "0",
        "npu": 3,
    }
    assert first["timestamp"].endswith("Z")
    assert second["level"] == "warning"
    assert second["detail"].startswith('a "quoted"')
    assert all(line.isascii() for line in lines(stream))


def test_a_fault_carries_its_traceback_in_the_same_line() -> None:
    stream = io.StringIO()
    log = open_logbook(stream)
    try:
        raise ValueError("a fault of ours")
    except ValueError as error:
        log.exception("cycle_failed", error=str(error))
    (line,) = lines(stream)
    assert "ValueError: a fault of ours" in json.loads(line)["exception"]
    assert "test_logbook.py" in json.loads(line)["exception"]


def test_a_terminal_gets_text_that_cannot_steer_it() -> None:
    stream = Terminal()
    log = open_logbook(stream)
    log.warning("tool_warned", warning="\x1b]0;owned\x07wiped\x1b[2J")
    (line,) = lines(stream)
    assert "tool_warned" in line
    assert "\x1b]0;" not in line
    assert "\x1b[2J" not in line
    assert "\x07" not in line


def test_a_fault_on_a_terminal_is_readable() -> None:
    stream = Terminal()
    log = open_logbook(stream)
    try:
        raise ValueError("a fault of ours")
    except ValueError:
        log.exception("cycle_failed")
    assert lines(stream)[-1] == "ValueError: a fault of ours"


def test_debug_lines_only_on_demand() -> None:
    quiet, loud = io.StringIO(), io.StringIO()
    open_logbook(quiet).debug("detail")
    structlog.reset_defaults()
    open_logbook(loud, debug=True).debug("detail")
    assert lines(quiet) == []
    assert json.loads(lines(loud)[0])["event"] == "detail"


@contextmanager
def broken(stream: TextIO) -> Iterator[TextIO]:
    """The stream, whose end may complain about what it could not write: that is not the logbook's affair."""
    yield stream
    with suppress(OSError):
        stream.close()


def test_a_reader_that_went_away_costs_lines_and_nothing_else() -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    with broken(os.fdopen(write_end, "w")) as stream:
        with pytest.raises(BrokenPipeError):
            print("the pipe is broken", file=stream, flush=True)
        log = open_logbook(stream)
        for _ in range(3):
            log.info("nobody_reads_this", padding="x" * 10_000)


def test_a_closed_stream_costs_lines_and_nothing_else() -> None:
    stream = io.StringIO()
    log = open_logbook(stream)
    stream.close()
    log.error("nobody_reads_this")


def test_a_full_disk_costs_lines_and_nothing_else() -> None:
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full to stand for a full disk")
    with broken(Path("/dev/full").open("w")) as stream:
        with pytest.raises(OSError, match="No space left"):
            print("the disk is full", file=stream, flush=True)
        log = open_logbook(stream)
        for _ in range(3):
            log.info("no_room", padding="x" * 10_000)


def test_the_schedulers_skipped_runs_are_no_news() -> None:
    open_logbook(io.StringIO())
    assert not logging.getLogger("apscheduler.executors.lane").isEnabledFor(logging.ERROR)
