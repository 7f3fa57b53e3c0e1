"""What the board keeps of those whom the kernel killed: how long ago, and whose."""

from __future__ import annotations

from dataclasses import replace

from npu_watchd.memory.history import History
from npu_watchd.model.host import Belonging, Host, OomKill, OomScope
from npu_watchd.model.ids import NODE, DeviceKey
from npu_watchd.model.jobs import Attribution, DeviceJobs, Job, JobKey, ProcessKey, Scheduler
from npu_watchd.model.reading import NOT_READ_YET
from tests.memory.build import TIMEOUT, at, info, new_board, reading, row, table

KILL = OomKill(61201, "python3", OomScope.NODE, since_boot_s=86_000.0)
PERIODS_S = {"npu_info": 15.0, "host": 15.0, "processes": 15.0}


def test_what_is_new_in_the_log_came_just_before_it_was_read() -> None:
    board = new_board()
    board.take_oom_kills([KILL], at(100.0))
    (found,) = board.snapshot(at(130.0), PERIODS_S.get).oom_kills
    assert (found.ago_s, found.before_start) == (30.0, False)


def test_of_what_stood_there_before_the_uptime_tells_the_age() -> None:
    board = new_board()
    board.take_oom_kills([KILL], at(10.0), old=True)
    assert board.snapshot(at(10.0), PERIODS_S.get).oom_kills[0].ago_s is None
    board.put([reading("host", NODE, Host(uptime_s=86_400.0), 20.0)])
    (found,) = board.snapshot(at(50.0), PERIODS_S.get).oom_kills
    assert (found.ago_s, found.before_start) == (430.0, True)
    board.put([reading("host", NODE, TIMEOUT, 60.0)])
    assert board.snapshot(at(1050.0), PERIODS_S.get).oom_kills[0].ago_s == 1430.0


def test_a_process_that_was_on_a_chip_is_known_without_its_cgroup() -> None:
    board = new_board()
    board.put([info(table(row(3)))])
    job = Job(Scheduler.SLURM, "4711", "alice")
    of = Attribution(DeviceKey(3), 61201, "python3", None, ProcessKey(61201, 5), job=job)
    board.put([reading("processes", DeviceKey(3), DeviceJobs((of,)))])
    other = replace(KILL, pid=5)
    board.take_oom_kills([KILL, other, replace(KILL, belongs=Belonging.OTHER)], at(5.0))
    found = board.snapshot(at(6.0), PERIODS_S.get).oom_kills
    assert [kill.belongs for kill in found] == [Belonging.JOB, Belonging.UNKNOWN, Belonging.OTHER]
    assert found[0].job == JobKey(Scheduler.SLURM, "4711")


def test_only_so_many_are_kept() -> None:
    board = new_board()
    board.take_oom_kills((replace(KILL, pid=pid) for pid in range(1000)), at(5.0))
    found = board.snapshot(at(6.0), PERIODS_S.get).oom_kills
    assert [kill.pid for kill in found] == list(range(800, 1000))


def test_the_host_is_blind_until_it_is_read_and_where_it_is_old() -> None:
    board = new_board()
    assert board.snapshot(at(1.0), PERIODS_S.get).blind["host"] is NOT_READ_YET
    board.put([reading("host", NODE, Host(oom_kills=3), 10.0)])
    shown = board.snapshot(at(50.0), PERIODS_S.get)
    assert (shown.host, "host" in shown.blind) == (Host(oom_kills=3), False)
    assert board.snapshot(at(60.0), PERIODS_S.get).host is None
    assert "host" not in board.snapshot(at(60.0), {"npu_info": 15.0}.get).blind


def test_kills_before_the_first_look_are_inventory_and_a_reboot_begins_anew() -> None:
    board, history = new_board(), History()

    def seen(second: float, kills: int | None, boot: str = "one") -> float:
        board.put([reading("host", NODE, Host(oom_kills=kills), second)])
        shown = replace(board.snapshot(at(second), PERIODS_S.get), boot_id=boot)
        history.observe(shown, second)
        found = history.increase("npu_node_oom_kills_total", NODE, (), 3600.0)
        return found.count if found else -1.0

    assert [seen(0, 7), seen(15, 7), seen(30, 9), seen(45, None), seen(60, 9)] == [0.0, 0.0, 2.0, 2.0, 2.0]
    history = History.restore(history.everything())
    assert seen(300, 10) == 3.0
    assert seen(600, 1, boot="two") == 4.0
