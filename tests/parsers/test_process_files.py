"""/proc/PID/stat and status, whatever a process calls itself."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from npu_watchd.parsers import process_files
from npu_watchd.parsers.lines import ParseError
from npu_watchd.parsers.process_files import ProcessStat, ProcessStatus
from tests.parsers.texts import refused

REST = "S 1 4242 4242 0 -1 4194304 106 0 0 0 0 0 0 0 20 0 1 0 8675309 2629632 202 18446744073709551615 1 1 0 0 0"
STATUS = "Name:\tpython\nUmask:\t0022\nState:\tS (sleeping)\nUid:\t1000\t1000\t1000\t1000\nNSpid:\t4242\t17\n"


def stat(name: str = "python", rest: str = REST) -> str:
    return f"4242 ({name}) {rest}\n"


def test_a_stat() -> None:
    assert process_files.stat(stat()) == ProcessStat(4242, "python", 8675309, 1)


@pytest.mark.parametrize("name", ["", "a) S 1 1 1", "(x)", "a b", ") R 0 0", "a\nb", "\ufffd", "1 (a) S"])
def test_a_name_may_hold_anything(name: str) -> None:
    assert process_files.stat(stat(name)) == ProcessStat(4242, name, 8675309, 1)


def test_a_kernel_thread_is_known_by_its_flag() -> None:
    assert process_files.stat(stat(rest=REST.replace("4194304", "2129984"))).kernel_thread


def test_every_cut_of_a_stat_is_refused_or_the_same() -> None:
    text = stat("a) S 1")
    for end in range(len(text)):
        with suppress(ParseError):
            assert process_files.stat(text[:end]).started_ticks == 8675309


def test_a_stat_that_is_none_is_refused() -> None:
    assert str(refused(process_files.stat, "no such thing")) == "line 1: no /proc/PID/stat"


def test_a_status() -> None:
    assert process_files.status(STATUS) == ProcessStatus(1000, (4242, 17))
    assert process_files.status("Name:\told kernel\n") == ProcessStatus(None, ())


def test_the_times() -> None:
    assert process_files.uptime_s("12345.67 98765.43\n") == 12345.67
    assert process_files.boot_wall_s("cpu 1 2\nbtime 1790000000\nprocesses 5\n") == 1790000000
    assert process_files.boot_wall_s("cpu 1 2\n") is None


@given(raw=st.binary(max_size=200))
@settings(deadline=None, derandomize=True)
def test_bytes_raise_nothing_else(raw: bytes) -> None:
    for parse in (process_files.stat, process_files.status, process_files.uptime_s):
        with suppress(ParseError):
            parse(raw.decode("utf-8", "replace"))
