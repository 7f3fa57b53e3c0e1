"""Rules about jobs that share a chip, and memory that nobody seems to use."""

from __future__ import annotations

from dataclasses import replace

import pytest

from npu_watchd.model.ids import DeviceKey
from npu_watchd.model.jobs import Attribution, DeviceJobs, EndedJob, Job, JobKey, Scheduler
from npu_watchd.model.reading import Failure, FailureKind
from npu_watchd.model.snapshot import Memory
from npu_watchd.rules.contention import contending
from npu_watchd.rules.rule import Sharing
from tests.rules.world import World
from tests.sinks.build import device, process

GIB = 1 << 30
HUNG = Failure(FailureKind.WEDGED, "jobs: still reading /proc/4711/environ")


def holds(pid: int, job: Job | None, *, name: str = "python3") -> Attribution:
    return Attribution(DeviceKey(3), pid, name, 4 * GIB, job=job)


def slurm(number: int, user: str = "alice") -> Job:
    return Job(Scheduler.SLURM, str(number), user)


def on_device(*attributions: Attribution) -> DeviceJobs:
    return DeviceJobs(attributions)


ALONE = on_device(holds(10, slurm(1)), holds(11, slurm(1)))
TWO = on_device(holds(10, slurm(1)), holds(20, slurm(2, "bob")), holds(21, slurm(2, "bob")))


def test_two_jobs_on_one_device_are_found_at_the_second_look() -> None:
    world = World()
    world.change(3, jobs=TWO)
    assert world.cycle(0) == {}
    found = world.cycle(15)["jobs_share_device npu 3 chip 0"]
    assert found.summary == "device 3: 2 jobs share it: slurm 1, slurm 2"
    assert (found.severity.value, found.quarantines, found.action.value) == ("warning", False, "move_job")
    assert found.jobs == ("slurm 1", "slurm 2")
    assert found.evidence[2].metric == ('npu_device_job_memory_bytes{scheduler="slurm",job="2"} of bob, pids 20 21')
    assert found.evidence[2].observed == 8 * GIB


def test_many_processes_of_one_job_are_one_job() -> None:
    world = World()
    world.change(3, jobs=ALONE)
    assert world.cycles(0, 120) == {}


def test_a_short_overlap_at_a_hand_over_is_nobodys_alarm() -> None:
    world = World()
    world.change(3, jobs=TWO)
    world.cycle(0)
    world.change(3, jobs=on_device(holds(20, slurm(2, "bob"))))
    assert world.cycles(15, 120) == {}


def test_unknown_processes_contend_with_nobody() -> None:
    world = World()
    world.change(3, jobs=on_device(holds(10, slurm(1)), holds(30, None), holds(31, None)))
    assert world.cycles(0, 120) == {}


def test_while_nobody_can_tell_the_jobs_what_was_found_is_held() -> None:
    world = World()
    world.change(3, jobs=TWO)
    world.cycles(0, 15)
    world.change(3, jobs=None, blind={"processes": HUNG})
    found = world.cycle(30)["jobs_share_device npu 3 chip 0"]
    assert (found.held, found.jobs) == (True, ("slurm 1", "slurm 2"))
    world.change(3, jobs=ALONE, blind={})
    assert world.cycle(45) == {}


def test_a_list_that_is_cut_resolves_nothing_and_finds_nothing() -> None:
    world = World()
    world.change(3, jobs=TWO)
    world.cycles(0, 15)
    world.change(3, jobs=ALONE, processes_cut=True, blind={"npu_proc_mem": HUNG})
    found = world.cycle(30)["jobs_share_device npu 3 chip 0"]
    assert (found.held, found.held_because) == (True, HUNG.detail)
    world.change(3, processes_cut=False, blind={})
    assert world.cycle(45) == {}
    world.change(3, processes_cut=True)
    assert world.cycles(60, 120) == {}


def test_a_cut_list_of_two_jobs_is_two_jobs() -> None:
    world = World()
    world.change(3, jobs=TWO, processes_cut=True)
    assert list(world.cycles(0, 15)) == ["jobs_share_device npu 3 chip 0"]


@pytest.mark.parametrize(
    ("sharing", "count"),
    [
        (Sharing(), 2),
        (Sharing("allowed"), 0),
        (Sharing("same_user"), 2),
        (Sharing("vnpu"), 2),
        (Sharing(services=("slurm 2",)), 0),
        (Sharing(services=("pyth*",)), 0),
        (Sharing(services=("unit *",)), 2),
        (Sharing(devices={"3": "allowed"}), 0),
        (Sharing(devices={"4": "allowed"}), 2),
        (Sharing("allowed", devices={"3": "never"}), 2),
        (Sharing("allowed", devices={"3": "same_user"}), 2),
    ],
)
def test_who_may_share_is_the_sites_word(sharing: Sharing, count: int) -> None:
    assert len(contending(device(3, jobs=TWO), sharing)) == count


def test_one_users_jobs_may_share_where_the_site_says_so() -> None:
    jobs = on_device(holds(10, slurm(1)), holds(20, slurm(2)))
    assert contending(device(3, jobs=jobs), Sharing("same_user")) == {}
    of_nobody = on_device(holds(10, slurm(1)), holds(20, Job(Scheduler.SLURM, "2", None)))
    assert len(contending(device(3, jobs=of_nobody), Sharing("same_user"))) == 2


def test_a_virtual_npu_is_shared_where_the_site_says_so() -> None:
    virtual = device(3, jobs=TWO)
    virtual = replace(virtual, identity=replace(virtual.identity, name="310Pvir01"))
    assert contending(virtual, Sharing("vnpu")) == {}


def test_memory_that_nobody_has_is_found_after_five_minutes() -> None:
    world = World()
    world.change(3, memory={"hbm": Memory(20 * GIB, 64 * GIB)}, processes=())
    assert world.cycles(0, 285) == {}
    found = world.cycle(300)["leftover npu 3 chip 0"]
    assert found.summary == ("device 3: 20.0 GiB of its memory are in use and no process is listed (limit 5.0 GiB)")


ENDED = EndedJob(JobKey(Scheduler.SLURM, "1"), "no slurmstepd of it is left", "squeue -j 1")


def orphan(pid: int) -> Attribution:
    return replace(holds(pid, slurm(1)), user="alice", job_alive=False, ended=ENDED)


def test_a_process_whose_job_is_over_is_left_over_after_five_minutes() -> None:
    world = World()
    world.change(3, jobs=on_device(orphan(10), orphan(11)), processes=(process("python3"),))
    assert world.cycles(0, 285) == {}
    found = world.cycle(300)["leftover npu 3 chip 0"]
    assert found.summary == "device 3: left over: 2 process(es) of slurm 1: no slurmstepd of it is left"
    assert (found.severity.value, found.quarantines, found.action.value) == ("warning", False, "clean_up")
    (evidence,) = found.evidence
    assert (evidence.metric, evidence.observed, evidence.limit, evidence.source) == (
        "processes of slurm 1 of alice, pids 10 11: no slurmstepd of it is left",
        2,
        0,
        "squeue -j 1",
    )


@pytest.mark.parametrize("alive", [True, None])
def test_a_job_that_runs_or_of_which_nobody_can_tell_leaves_nothing_over(alive: bool | None) -> None:
    world = World()
    world.change(3, jobs=on_device(replace(holds(10, slurm(1)), job_alive=alive)), processes=(process("python3"),))
    assert world.cycles(0, 900) == {}


def test_while_nobody_can_look_at_the_processes_a_leftover_is_held() -> None:
    world = World()
    world.change(3, jobs=on_device(orphan(10)), processes=(process("python3"),))
    world.cycles(0, 300)
    world.change(3, jobs=None, blind={"processes": HUNG})
    assert world.cycle(315)["leftover npu 3 chip 0"].held
    world.change(3, blind={}, jobs=on_device(holds(20, slurm(2))))
    assert world.cycle(330) == {}


def test_a_job_of_which_one_process_is_kept_goes_on() -> None:
    alive = replace(holds(10, slurm(1)), job_alive=True)
    together = [on_device(*some).by_job[slurm(1).key].alive for some in ((orphan(11), alive), (orphan(11),))]
    assert together == [True, False]
    assert on_device(orphan(11), holds(12, slurm(1))).by_job[slurm(1).key].alive is None


@pytest.mark.parametrize(("used", "listed"), [(4, True), (4, False), (20, True)])
def test_an_idle_chips_own_memory_is_nobodys_leftover(used: int, listed: bool) -> None:
    world = World()
    processes = (process("python3"),) if listed else ()
    world.change(3, memory={"hbm": Memory(used * GIB, 64 * GIB)}, processes=processes)
    assert world.cycles(0, 600) == {}


def test_where_the_tool_lists_no_processes_at_all_nothing_is_left_over() -> None:
    world = World()
    world.change(3, memory={"hbm": Memory(20 * GIB, 64 * GIB)}, processes=None)
    assert world.cycles(0, 600) == {}


def test_other_findings_name_the_jobs_that_were_there() -> None:
    world = World()
    world.change(3, jobs=ALONE, health="critical")
    assert world.cycle(0)["device_unhealthy npu 3 chip 0"].jobs == ("slurm 1",)
