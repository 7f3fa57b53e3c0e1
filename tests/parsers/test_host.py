"""What the host has left, from the kernel's own files: read whole, or not at all."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from npu_watchd.model.host import MemoryUse, Pressure, Stall, TaskLoad
from npu_watchd.parsers import host
from npu_watchd.parsers.lines import ParseError

SOME = "some avg10=35.70 avg60=29.10 avg300=18.05 total=5165237452\n"
FULL = "full avg10=0.00 avg60=1.56 avg300=0.94 total=163447682\n"
MEMINFO = (
    "MemTotal:       24683656 kB\nMemFree:        22900028 kB\nMemAvailable:   23801844 kB\nHugePages_Total:       0\n"
)
VMSTAT = "nr_free_pages 5725007\noom_kill 7\nswap_ra 0\n"
LOADAVG = "2.66 2.01 2.03 4/106 25473\n"


def test_the_kernels_percent_are_ratios() -> None:
    assert host.pressure(SOME + FULL) == Pressure(Stall(0.357, 0.291), Stall(0.0, 0.0156))


def test_before_linux_5_13_the_cpu_has_no_full() -> None:
    assert host.pressure(SOME) == Pressure(Stall(0.357, 0.291), None)


@pytest.mark.parametrize(
    "text",
    [
        "",
        FULL,
        SOME + SOME,
        SOME.replace("some", "most"),
        SOME.rstrip("\n"),
        SOME.replace("29.10", "129.10"),
        SOME.replace("29.10", "-1"),
    ],
)
def test_what_is_no_pressure_file_is_refused(text: str) -> None:
    with pytest.raises(ParseError):
        host.pressure(text)


@given(st.integers(0, len(SOME + FULL) - 1))
def test_a_pressure_file_that_is_cut_is_refused_or_tells_less(end: int) -> None:
    try:
        found = host.pressure((SOME + FULL)[:end])
    except ParseError:
        return
    assert found == Pressure(Stall(0.357, 0.291), None)


def test_memory_is_in_bytes() -> None:
    assert host.memory(MEMINFO) == MemoryUse(25_276_063_744, 24_373_088_256)


def test_a_kernel_that_does_not_estimate_what_is_available_leaves_it_unknown() -> None:
    assert host.memory("MemTotal:       24683656 kB\n") == MemoryUse(25_276_063_744, None)


@given(st.integers(0, len(MEMINFO) - 1))
def test_a_meminfo_that_is_cut_is_refused_or_tells_less(end: int) -> None:
    try:
        found = host.memory(MEMINFO[:end])
    except ParseError:
        return
    assert found.total_bytes == 25_276_063_744
    assert found.available_bytes in (None, 24_373_088_256)


def test_kills_are_counted_since_boot() -> None:
    assert host.oom_kills(VMSTAT) == 7


def test_a_kernel_that_does_not_count_kills_is_no_kernel_without_kills() -> None:
    assert host.oom_kills("nr_free_pages 5725007\n") is None


@given(st.integers(0, len(VMSTAT) - 1))
def test_a_count_of_kills_that_is_cut_is_not_read(end: int) -> None:
    try:
        assert host.oom_kills(VMSTAT[:end]) in (None, 7)
    except ParseError:
        return


def test_tasks_are_processes_and_threads() -> None:
    assert host.load(LOADAVG) == TaskLoad(runnable=4, tasks=106)


@given(st.integers(0, len(LOADAVG) - 1))
def test_a_loadavg_that_is_cut_is_refused(end: int) -> None:
    with pytest.raises(ParseError):
        host.load(LOADAVG[:end])


@pytest.mark.parametrize("text", ["", "4194304", "-1\n", "max\n", "1 2\n", "٣\n"])
def test_what_is_no_number_is_refused(text: str) -> None:
    with pytest.raises(ParseError):
        host.number(text)


def test_a_number_is_read() -> None:
    assert host.number("4194304\n") == 4_194_304


@given(st.text())
def test_no_text_makes_a_parser_fail_otherwise(text: str) -> None:
    for parse in (host.pressure, host.memory, host.oom_kills, host.load, host.number):
        try:
            parse(text)
        except ParseError:
            continue
