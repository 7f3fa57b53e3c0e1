"""Who is on a chip: of the newest table, and beyond its eight rows."""

from __future__ import annotations

from npu_watchd.memory.occupants import all_of, crowded, jobs_of, processes_of
from npu_watchd.model.ids import DeviceKey
from npu_watchd.model.jobs import Attribution, DeviceJobs, Job, Scheduler
from npu_watchd.model.records import InfoTable, ProcessMemoryChip, ProcessRow
from npu_watchd.parsers import info_table
from tests.memory.build import GIB, row, table
from tests.parsers.texts import CAPTURES, typed

KEY = DeviceKey(0)


def captured(name: str) -> InfoTable:
    return info_table.parse((CAPTURES / "npu-smi" / f"{name}.txt").read_text(encoding="utf-8"))


def test_a_chip_is_idle_when_the_tool_says_so_of_its_npu() -> None:
    idle = captured("info__A3__25.5.1__idle")
    assert processes_of(DeviceKey(0, 0), idle) == ()
    assert processes_of(DeviceKey(7, 1), idle) == ()


def test_a_chip_whose_npu_the_process_part_leaves_out_is_not_idle() -> None:
    cut = table(row(0), row(1), processes=(), idle_npus=(0,))
    assert processes_of(DeviceKey(0), cut) == ()
    assert processes_of(DeviceKey(1), cut) is None


def test_a_table_without_a_process_part_says_nothing_of_processes() -> None:
    assert processes_of(DeviceKey(0), table(row(0), processes=None)) is None
    assert processes_of(DeviceKey(0), None) is None


def test_one_process_on_two_dies_counts_for_each() -> None:
    shown = info_table.parse(typed("info__A3__25.5.0__pid_on_two_dies"))
    first, second = processes_of(DeviceKey(3, 0), shown), processes_of(DeviceKey(3, 1), shown)
    assert first == (ProcessRow(3, 0, 91823, "VLLMWorker_TP", 26011 << 20),)
    assert second == (ProcessRow(3, 1, 91823, "VLLMWorker_TP", 141 << 20),)


def test_a_die_without_a_row_is_idle_when_its_sister_has_one() -> None:
    shown = table(row(0), row(0, 1), processes=(ProcessRow(0, 0, 4711, "python", GIB),))
    assert processes_of(DeviceKey(0, 1), shown) == ()


def test_processes_of_a_layout_without_chip_ids_belong_to_the_npu() -> None:
    shown = table(row(2, None), processes=(ProcessRow(2, None, 4711, "python", GIB),))
    assert processes_of(DeviceKey(2, 0), shown) == (ProcessRow(2, None, 4711, "python", GIB),)


def rows(*pids: int, name: str = "python3") -> tuple[ProcessRow, ...]:
    return tuple(ProcessRow(0, 0, pid, name, GIB) for pid in pids)


def told(*pids: int) -> ProcessMemoryChip:
    return ProcessMemoryChip(0, rows(*pids, name="a name that is"))


def jobs(*pids: int) -> DeviceJobs:
    return DeviceJobs(tuple(Attribution(KEY, pid, "python3", GIB, job=Job(Scheduler.SLURM, "4711")) for pid in pids))


EIGHT = rows(*range(1, 9))


def test_eight_rows_are_what_the_table_can_show_and_not_what_there_is() -> None:
    assert [crowded(some) for some in (None, (), EIGHT[:7], EIGHT, rows(*range(9)))] == [
        False,
        False,
        False,
        True,
        False,
    ]


def test_the_ninth_process_is_the_one_that_only_the_fuller_list_has() -> None:
    found, cut = all_of(EIGHT, told(*range(1, 10)))
    assert (found, cut) == ((*EIGHT, ProcessRow(0, 0, 9, "a name that is", GIB)), False)


def test_eight_of_which_the_fuller_list_tells_no_more_are_all() -> None:
    assert all_of(EIGHT, told(*range(1, 9))) == (EIGHT, False)


def test_without_a_fuller_list_eight_are_at_least_eight() -> None:
    assert all_of(EIGHT, None) == (EIGHT, True)
    assert all_of(EIGHT, ProcessMemoryChip(0, None, "Failed to query npu chip: 0 info.")) == (EIGHT, True)


def test_a_table_that_is_not_full_is_believed_alone() -> None:
    assert all_of(EIGHT[:7], told(*range(1, 10))) == (EIGHT[:7], False)
    assert all_of((), told(*range(1, 10))) == ((), False)
    assert all_of(None, told(*range(1, 10))) == (None, False)


def test_an_idle_device_has_no_jobs_however_lately_it_had_one() -> None:
    assert jobs_of(KEY, (), jobs(1, 2)) == DeviceJobs(())


def test_who_has_left_the_table_is_on_the_device_no_more() -> None:
    assert jobs_of(KEY, rows(2), jobs(1, 2)) == jobs(2)


def test_who_has_just_come_is_nobodys_yet() -> None:
    found = jobs_of(KEY, rows(1, 3), jobs(1))
    assert found is not None
    assert [str(key) for key in found.by_job] == ["slurm 4711"]
    assert [(one.pid, one.note) for one in found.unknown] == [
        (3, "listed for the first time in the newest table: not looked up yet")
    ]


def test_without_a_list_of_processes_nobody_knows_the_jobs() -> None:
    assert jobs_of(KEY, None, jobs(1)) is None
    assert jobs_of(KEY, rows(1), None) is None
