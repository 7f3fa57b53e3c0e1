"""Rules about the host that jobs share: contention for it, and whom the kernel killed for want of memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from npu_watchd.decide.cycle import Judging
from npu_watchd.limits import Limits
from npu_watchd.memory.history import History
from npu_watchd.model.finding import Finding
from npu_watchd.model.host import Belonging, Host, OomKill, OomScope, Pressure, Stall
from npu_watchd.model.ids import DeviceKey
from npu_watchd.model.jobs import Attribution, DeviceJobs, Job, JobKey, Scheduler
from npu_watchd.model.pcie import PcieLoad
from npu_watchd.model.reading import NOT_READ_YET, Failure, FailureKind
from npu_watchd.model.snapshot import ProbeState, Snapshot
from npu_watchd.rules import RULES
from npu_watchd.rules.rule import Sharing, Site
from tests.rules.world import World

HUNG = Failure(FailureKind.WEDGED, "host: the read of /proc/pressure/cpu has not returned for 7 s")
DENIED = Failure(FailureKind.DENIED, "/proc/vmstat: Permission denied")
CONTENTION, OOM = "host_contention node", "host_oom node"


def job(number: int, name: str = "python3") -> DeviceJobs:
    return DeviceJobs((Attribution(DeviceKey(0), number, name, None, job=Job(Scheduler.SLURM, str(number), "alice")),))


def host(cpu: float = 0.02, memory: float = 0.0, oom_kills: int | None = 0, **changes: Any) -> Host:
    pressure = {name: Pressure(Stall(0.0, ratio), None) for name, ratio in (("cpu", cpu), ("memory", memory))}
    return replace(Host(pressure=pressure, oom_kills=oom_kills), **changes)


def load(receive: float) -> PcieLoad:
    return PcieLoad(28e9, 1e9, 0.5, "perf", receive, 0.2)


class Shared(World):
    """Slurm 1 is on device 0 and slurm 2 on device 4; the other devices are idle."""

    def __init__(self, jobs: Mapping[int, int] = {0: 1, 4: 2}) -> None:  # never changed
        super().__init__()
        self.probes: tuple[ProbeState, ...] = ()
        for key in self.devices:
            self.change(key.npu, jobs=job(jobs[key.npu]) if key.npu in jobs else DeviceJobs(()))
        self.says(host())

    def snapshot(self, second: float) -> Snapshot:
        made = super().snapshot(second)
        return replace(made, probes=(*made.probes, *self.probes))

    def says(self, found: Host | None, blind: Failure | None = None, **changes: object) -> None:
        self.node = {"host": found, "blind": {} if blind is None else {"host": blind}, **changes}


def contended(world: World, first: float = 0.0) -> Finding:
    world.cycles(first, first + 45)
    return world.cycle(first + 60)[CONTENTION]


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (host(cpu=0.72), "work waits for a CPU 72% of the time (limit 50%)"),
        (host(memory=0.31), "work waits for memory 31% of the time (limit 20%)"),
    ],
)
def test_two_jobs_that_wait_for_the_host_for_a_minute_are_in_each_others_way(found: Host, words: str) -> None:
    world = Shared()
    world.says(found)
    assert world.cycles(0, 45) == {}
    one = world.cycle(60)[CONTENTION]
    assert one.summary == f"2 jobs share the node (slurm 1, slurm 2) and {words}"
    assert one.jobs == ("slurm 1", "slurm 2")
    assert (one.severity.value, one.quarantines, one.action.value) == ("warning", False, "move_job")
    assert one.evidence[-1].observed == "slurm 1, slurm 2"


def test_a_full_pcie_link_beside_another_job_is_contention_too() -> None:
    world = Shared()
    world.change(4, pcie_load=load(0.91))
    found = contended(world)
    assert found.summary.endswith("and the PCIe link of device 4 is 91% full (receive, limit 85%)")
    assert found.evidence[0].metric == 'npu_device_pcie_load_ratio{device_id="4",direction="receive"}'


def test_many_full_links_are_told_in_one_sentence() -> None:
    world = Shared()
    world.change(0, pcie_load=load(0.88))
    world.change(4, pcie_load=load(0.91))
    words = "2 PCIe links are full, that of device 4 to 91% (receive, limit 85%)"
    assert contended(world).summary.endswith(f"and {words}")


@pytest.mark.parametrize("jobs", [{}, {0: 1}, {0: 1, 1: 1, 4: 1}])
def test_one_job_alone_contends_with_nobody_however_hard_it_works(jobs: dict[int, int]) -> None:
    world = Shared(jobs)
    world.says(host(cpu=0.99, memory=0.9))
    world.change(0, pcie_load=load(0.93))
    assert CONTENTION not in world.cycles(0, 600)


def test_two_jobs_on_a_node_with_room_for_both_are_nobodys_alarm() -> None:
    world = Shared()
    world.change(0, pcie_load=load(0.85))
    world.says(host(cpu=0.5, memory=0.2))
    assert world.cycles(0, 600) == {}


def test_a_service_that_is_on_every_chip_is_no_second_job() -> None:
    world = Shared()
    site = Site(sharing=Sharing(services=("slurm 2",)))
    world.judging = Judging(world.history, RULES, Limits(), site=site)
    world.says(host(cpu=0.9))
    assert world.cycles(0, 600) == {}


def test_a_short_burst_is_nobodys_alarm() -> None:
    world = Shared()
    world.says(host(cpu=0.9))
    world.cycles(0, 45)
    world.says(host())
    assert world.cycles(60, 600) == {}


def test_it_is_over_after_a_calm_minute_or_when_one_job_is_left() -> None:
    world = Shared()
    world.says(host(cpu=0.9))
    contended(world)
    world.change(4, jobs=DeviceJobs(()))
    assert CONTENTION in world.cycles(75, 120)
    assert CONTENTION not in world.cycle(135)


def test_what_waits_cannot_be_seen_so_what_stood_is_held() -> None:
    world = Shared()
    world.says(host(cpu=0.9))
    contended(world)
    world.says(None, HUNG)
    found = world.cycles(75, 600)[CONTENTION]
    assert (found.held, found.held_because) == (True, HUNG.detail)
    world.says(host(cpu=0.9))
    assert not world.cycle(615)[CONTENTION].held


def test_a_pressure_file_that_fails_holds_too_and_one_that_the_kernel_lacks_does_not() -> None:
    world = Shared()
    world.says(host(cpu=0.9))
    contended(world)
    world.says(Host(failures={"pressure/cpu": HUNG}))
    assert world.cycles(75, 300)[CONTENTION].held
    world.says(Host(unsupported={"pressure/cpu": "no", "pressure/memory": "no"}))
    assert CONTENTION not in world.cycles(315, 390)


def test_jobs_that_cannot_be_told_hold_it_only_while_the_host_is_short() -> None:
    world = Shared()
    world.says(host(cpu=0.9))
    contended(world)
    for number in range(8):
        world.change(number, jobs=None, blind={"processes": HUNG})
    assert world.cycles(75, 300)[CONTENTION].held
    world.says(host())
    assert CONTENTION not in world.cycles(315, 390)


def test_nothing_is_found_of_what_nobody_can_see() -> None:
    world = Shared()
    world.says(None, HUNG)
    assert world.cycles(0, 600) == {}
    world.says(None, NOT_READ_YET)
    assert world.cycles(615, 900) == {}


def test_load_that_could_never_be_measured_is_not_missed_and_one_that_could_be_is() -> None:
    world = Shared()
    world.change(0, blind={"pcie_load": HUNG})
    world.says(host(cpu=0.9))
    contended(world)
    world.says(host())
    assert CONTENTION not in world.cycles(75, 150)
    for ever in (True, False):
        world.probes = (ProbeState("pcie_load", "0", up=ever, failure=None if ever else HUNG),)
        world.change(0, blind={} if ever else {"pcie_load": HUNG}, pcie_load=load(0.95) if ever else None)
        found = world.cycles(165, 300) if ever else world.cycles(315, 600)
        assert found[CONTENTION].held is not ever


def test_a_device_that_is_gone_has_no_jobs_that_anybody_misses() -> None:
    world = Shared()
    world.says(host(cpu=0.9))
    contended(world)
    world.change(4, present=False, jobs=None)
    assert CONTENTION not in world.cycles(75, 150)


def test_load_that_is_not_measured_does_not_keep_a_finding_about_the_cpu() -> None:
    world = Shared()
    world.says(host(cpu=0.9))
    contended(world)
    world.says(host())
    assert CONTENTION not in world.cycles(75, 150)


# Whom the kernel killed


def kill(pid: int = 61201, belongs: Belonging = Belonging.JOB, ago_s: float | None = 1.0, **changes: Any) -> OomKill:
    of = JobKey(Scheduler.SLURM, "4711") if belongs is Belonging.JOB else None
    one = OomKill(pid, "ccec", OomScope.CGROUP, 90.0, "/job_4711", 1007, belongs, of, ago_s=ago_s)
    return replace(one, **changes)


def counted(world: Shared, count: int | None, *kills: OomKill, log: int | None = 0, **changes: Any) -> None:
    world.says(host(oom_kills=count, **changes), oom_kills=kills, kernel_log_lost=log)


def test_a_jobs_process_that_was_killed_is_named_with_its_job() -> None:
    world = Shared()
    counted(world, 2)
    assert world.cycle(0) == {}
    counted(world, 4, kill(), kill(61202))
    found = world.cycle(15)[OOM]
    assert found.summary == (
        "2 processes were killed for want of memory in 1 h (limit 1): ccec (pid 61201), ccec (pid 61202) of slurm "
        "4711, as what it may have was used up"
    )
    assert found.jobs == ("slurm 4711",)
    assert (found.severity.value, found.quarantines, found.action.value) == ("warning", False, "check_job")
    assert [one.observed for one in found.evidence] == [
        2,
        "ccec, pid 61201, in /job_4711",
        "ccec, pid 61202, in /job_4711",
    ]


def test_the_log_is_believed_before_the_counter_has_moved() -> None:
    world = Shared()
    counted(world, 2)
    world.cycle(0)
    counted(world, 2, kill(scope=OomScope.NODE))
    found = world.cycle(5)[OOM]
    assert found.summary.startswith("a process was killed")
    assert found.summary.endswith("of slurm 4711, as the node had no memory left")


def test_a_counter_alone_does_not_say_whose_it_was() -> None:
    world = Shared()
    counted(world, 2, log=None)
    world.cycle(0)
    counted(world, 3, log=None)
    found = world.cycle(15)[OOM]
    assert found.summary == (
        "a process was killed for want of memory in 1 h (limit 1): 1 that may or may not have been a job's, as the "
        "kernel's log cannot be read"
    )
    assert found.jobs == ()


def test_a_kill_that_the_log_lost_is_told_beside_those_that_it_names() -> None:
    world = Shared()
    counted(world, 0)
    world.cycle(0)
    counted(world, 3, kill(), kill(7, Belonging.UNKNOWN), log=40)
    summary = world.cycle(15)[OOM].summary
    assert "ccec (pid 61201) of slurm 4711" in summary
    assert "ccec (pid 7), whose job the kernel's log does not tell" in summary
    assert summary.endswith("1 that may or may not have been a job's, as the kernel's log does not name it")


def test_a_service_of_the_systems_own_is_no_job() -> None:
    world = Shared()
    counted(world, 0)
    world.cycle(0)
    for second in range(15, 3 * 3600, 15):
        counted(world, 1, kill(7, Belonging.OTHER, ago_s=float(second - 10)))
        assert world.cycle(second) == {}


def test_what_was_killed_before_we_first_looked_is_no_news() -> None:
    world = Shared()
    counted(world, 9, kill(before_start=True, ago_s=200.0), kill(61202, before_start=True, ago_s=None))
    assert world.cycles(0, 600) == {}


def test_what_was_killed_while_the_daemon_was_away_is_news_and_the_old_lines_name_it() -> None:
    world = Shared()
    counted(world, 1)
    world.cycles(0, 60)
    world.history = History.restore(world.history.everything())
    world.judging = Judging(world.history, RULES, Limits())
    older = kill(3, belongs=Belonging.OTHER, before_start=True, ago_s=90_000.0)
    counted(world, 2, older, kill(before_start=True, ago_s=7000.0))
    found = world.cycle(60 + 4 * 3600)[OOM]
    assert found.summary.startswith(
        "a process was killed for want of memory in 1 h (limit 1): ccec (pid 61201) of slurm"
    )


def test_until_the_uptime_is_read_after_a_start_what_stood_is_held_as_it_was() -> None:
    world = Shared()
    counted(world, 0)
    world.cycle(0)
    counted(world, 1, kill())
    before = world.cycle(15)[OOM]
    world.says(None, NOT_READ_YET, oom_kills=(kill(before_start=True, ago_s=None),), kernel_log_lost=0)
    found = world.cycle(30)[OOM]
    assert (found.held, found.summary) == (True, before.summary)
    counted(world, 1, kill(before_start=True, ago_s=40.0))
    assert world.cycle(45)[OOM].summary == before.summary


def test_it_is_over_an_hour_later() -> None:
    world = Shared()
    counted(world, 0)
    world.cycle(0)
    for second in range(15, 3600, 15):
        counted(world, 1, kill(ago_s=float(second - 10)))
        assert OOM in world.cycle(second)
    counted(world, 1, kill(ago_s=3620.0))
    assert OOM not in world.cycle(3630)


def test_while_kills_cannot_be_counted_what_stood_is_held() -> None:
    world = Shared()
    counted(world, 0)
    world.cycle(0)
    counted(world, 1, kill())
    world.cycle(15)
    counted(world, None, failures={"vmstat": DENIED})
    world.cycle(600)
    found = world.cycle(4000)[OOM]
    assert (found.held, found.jobs) == (True, ("slurm 4711",))
    counted(world, 1)
    assert OOM not in world.cycle(4015)


def test_without_a_counter_the_log_still_tells() -> None:
    world = Shared()
    counted(world, None, unsupported={"vmstat": "before 4.13"})
    world.cycle(0)
    counted(world, None, kill(), unsupported={"vmstat": "before 4.13"})
    assert world.cycle(5)[OOM].jobs == ("slurm 4711",)


def test_many_kills_fit_into_a_sentence() -> None:
    world = Shared()
    counted(world, 0)
    world.cycle(0)
    counted(world, 40, *(kill(number) for number in range(40)))
    found = world.cycle(15)[OOM]
    assert "ccec (pid 2) and 37 more of slurm 4711" in found.summary
    assert len(found.evidence) == 9
