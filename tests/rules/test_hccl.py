"""Rules about host ports that two jobs want, and settings on which the ranks of one job do not agree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from npu_watchd.model.finding import Finding
from npu_watchd.model.hccl import Listener, ProcessPlace
from npu_watchd.model.ids import DeviceKey
from npu_watchd.model.jobs import Attribution, DeviceJobs, Job, ProcessKey, Scheduler
from npu_watchd.model.reading import Failure, FailureKind
from npu_watchd.model.snapshot import Identity
from tests.rules.world import World

HOST = "net:[4026531840]"
HUNG = Failure(FailureKind.WEDGED, "jobs: still reading /proc/4711/environ")
BASE, RANGE, ADDRESS = "HCCL_IF_BASE_PORT", "HCCL_HOST_SOCKET_PORT_RANGE", "HCCL_IF_IP"


def rank(
    device: int,
    job: int,
    variables: Mapping[str, str] | None = None,
    *listens: str,
    network: str | None = HOST,
    scheduler: Scheduler = Scheduler.SLURM,
) -> Attribution:
    """One process of a job on one device; its pid is 1000 times the job and the device."""
    pid = 1000 * job + device
    heard = tuple(Listener(one.rpartition(":")[0], int(one.rpartition(":")[2])) for one in listens)
    return Attribution(
        DeviceKey(device),
        pid,
        "python3",
        1 << 30,
        process=ProcessKey(pid, 5000),
        job=Job(scheduler, str(job), "alice"),
        variables={} if variables is None else variables,
        place=ProcessPlace(network, network == HOST, heard),
    )


def put(world: World, *ranks: Attribution) -> None:
    for key in {one.device for one in ranks}:
        world.change(key.npu, jobs=DeviceJobs(tuple(one for one in ranks if one.device == key)))


def judged(rule: str, *ranks: Attribution, until_s: float = 75) -> dict[str, Finding]:
    """Findings of that rule, by the id of the device, after so long."""
    world = World()
    put(world, *ranks)
    found = world.cycles(0, until_s).values()
    return {str(one.device_id): one for one in found if one.rule == rule}


# Ports


def ports(*ranks: Attribution, until_s: float = 75) -> dict[str, Finding]:
    return judged("hccl_ports_conflict", *ranks, until_s=until_s)


HOLDER = rank(0, 1, {BASE: "60004"}, "10.0.0.7:60004")
BLOCKED = rank(4, 2, {BASE: "60000"})


def test_a_port_that_another_job_has_held_for_a_minute_is_a_conflict() -> None:
    assert ports(HOLDER, BLOCKED, until_s=45) == {}
    found = ports(HOLDER, BLOCKED)["4"]
    assert found.summary == "device 4: slurm 2 there needs host port 60004 for HCCL, held by slurm 1"
    assert (found.severity.value, found.quarantines, found.action.value) == ("warning", False, "align_settings")
    assert found.evidence[0].metric == "HCCL_IF_BASE_PORT of slurm 2, pid 2004"
    assert found.evidence[1].observed == "10.0.0.7:60004"
    assert found.evidence[1].source == "nsenter -t 1000 -n ss -ltnp 'sport = :60004'"


def test_a_job_that_was_quick_to_find_its_ranks_is_in_nobodys_way() -> None:
    world = World()
    put(world, HOLDER, BLOCKED)
    world.cycles(0, 45)
    put(world, rank(0, 1, {BASE: "60004"}), BLOCKED)
    assert world.cycles(60, 180) == {}


@pytest.mark.parametrize(
    "blocked",
    [
        rank(4, 1, {BASE: "60000"}),
        rank(5, 2, {BASE: "60000"}),
        rank(4, 2, {BASE: "60032"}),
        rank(4, 2, {BASE: "60000"}, network="net:[4026532777]"),
        rank(4, 2, {BASE: "60000"}, network=None),
        rank(4, 2, {BASE: "60000"}, "10.0.0.7:60004"),
        rank(4, 2, {BASE: "60000", ADDRESS: "10.0.0.8"}),
        rank(4, 2, {BASE: "60000", "HCCL_SOCKET_IFNAME": "eth1"}),
        rank(4, 2, {RANGE: "auto"}),
        rank(4, 2, {RANGE: "60004,60005"}),
        rank(4, 2, {BASE: "none of it"}),
        rank(4, 2),
        replace(BLOCKED, variables=None),
        replace(BLOCKED, job=None),
        replace(BLOCKED, place=ProcessPlace(HOST, True, None)),
    ],
    ids=[
        "the same job",
        "the next chip's port",
        "other ports",
        "a pod",
        "nobody knows the network",
        "it listens there itself",
        "another address",
        "perhaps another address",
        "the kernel's choice",
        "a list with a free port",
        "a value that means nothing",
        "the default, of which new versions take the next free one",
        "no environment",
        "no job",
        "nobody knows where it listens",
    ],
)
def test_where_it_is_not_certain_there_is_no_conflict(blocked: Attribution) -> None:
    assert ports(HOLDER, blocked) == {}


@pytest.mark.parametrize(
    ("listens", "variables"),
    [
        ("0.0.0.0:60004", {BASE: "60000", "HCCL_SOCKET_IFNAME": "eth1"}),
        ("10.0.0.8:60004", {BASE: "60000", ADDRESS: "10.0.0.8"}),
        ("10.0.0.7:60004", {RANGE: "60004"}),
    ],
)
def test_where_the_address_is_certain_there_is_one(listens: str, variables: dict[str, str]) -> None:
    assert ports(rank(0, 1, {BASE: "60004"}, listens), rank(4, 2, variables)).keys() == {"4"}


def test_a_list_is_taken_when_others_hold_all_of_it() -> None:
    first, second = rank(0, 1, {}, "10.0.0.7:61000"), rank(1, 3, {}, "10.0.0.7:61001")
    found = ports(first, second, rank(4, 2, {RANGE: "61000-61001"}))["4"]
    assert found.summary == (
        "device 4: slurm 2 there needs one of its 2 host ports for HCCL, held by slurm 1 and slurm 3"
    )


@pytest.mark.parametrize(
    ("identity", "found"),
    [
        (Identity(name="910B3", phy_id=4, logic_id=0), True),
        (Identity(name="910B3", phy_id=None, logic_id=4), True),
        (Identity(name="910B3", phy_id=0, logic_id=4), False),
        (Identity(name="910B3"), False),
        (Identity(name="310Pvir01", phy_id=4), False),
    ],
    ids=["the physical id", "the logic id, which is the same here", "another chip", "no id", "a virtual one"],
)
def test_the_port_is_that_of_the_chips_physical_id(identity: Identity, found: bool) -> None:
    world = World()
    put(world, HOLDER, BLOCKED)
    world.change(4, identity=identity)
    assert ("hccl_ports_conflict npu 4 chip 0" in world.cycles(0, 75)) == found


def test_a_port_on_the_nodes_own_address_is_in_nobodys_way() -> None:
    assert ports(rank(0, 1, {}, "127.0.0.1:60004"), BLOCKED) == {}


def test_eight_ranks_of_one_job_on_eight_ports_are_well() -> None:
    assert ports(*(rank(at, 1, {BASE: "60000"}, f"10.0.0.7:{60000 + at}") for at in range(8))) == {}


def test_two_jobs_with_the_defaults_are_well() -> None:
    halves = [rank(at, 1 + at // 4, {}, f"10.0.0.7:{60000 + at}") for at in range(8)]
    assert ports(*halves) == {}


def test_while_nobody_can_tell_who_listens_a_conflict_is_held() -> None:
    world = World()
    put(world, HOLDER, BLOCKED)
    world.cycles(0, 75)
    put(world, replace(HOLDER, place=None), replace(BLOCKED, place=None))
    assert world.cycle(90)["hccl_ports_conflict npu 4 chip 0"].held
    world.change(4, jobs=None, blind={"processes": HUNG})
    assert world.cycle(105)["hccl_ports_conflict npu 4 chip 0"].held_because == HUNG.detail
    world.change(4, blind={})
    put(world, rank(0, 1), BLOCKED)
    assert world.cycle(120) == {}


# Settings

EXEC, CONNECT, ROCE = "HCCL_EXEC_TIMEOUT", "HCCL_CONNECT_TIMEOUT", "HCCL_INTRA_ROCE_ENABLE"


def program(*settings: Mapping[str, str], job: int = 1) -> list[Attribution]:
    """A torchrun of as many ranks, one on each device."""
    world = {"WORLD_SIZE": str(len(settings)), "MASTER_ADDR": "localhost", "MASTER_PORT": str(29500 + job)}
    return [rank(at, job, {"RANK": str(at), **world, **mine}) for at, mine in enumerate(settings)]


def differing(*ranks: Attribution) -> dict[str, Finding]:
    return judged("hccl_settings_differ", *ranks, until_s=15)


def test_a_rank_with_another_timeout_is_found_at_the_second_look() -> None:
    ranks = program({EXEC: "7200"}, {EXEC: "7200"}, {EXEC: "1800"})
    assert judged("hccl_settings_differ", *ranks, until_s=0) == {}
    found = differing(*ranks)
    assert found.keys() == {"2"}
    assert found["2"].summary == (
        "device 2: rank 2 of slurm 1 runs with HCCL_EXEC_TIMEOUT 1800, 2 of its ranks here with 7200"
    )
    assert (found["2"].evidence[0].observed, found["2"].evidence[0].limit) == ("1800", "7200")
    assert (found["2"].severity.value, found["2"].action.value) == ("warning", "align_settings")


def test_of_two_that_differ_the_lower_rank_counts() -> None:
    assert differing(*program({CONNECT: "600"}, {CONNECT: "1200"})).keys() == {"1"}


@pytest.mark.parametrize(
    ("settings", "odd"),
    [
        (({CONNECT: "600"}, {}, {}), {"0"}),
        (({CONNECT: "120"}, {}, {CONNECT: "0120"}), set()),
        (({EXEC: "7200"}, {}, {}), set()),
        (({ROCE: "1"}, {}, {}), {"0"}),
        (({BASE: "60000"}, {BASE: "60100"}, {BASE: "60200"}), set()),
        (({}, {}, {}), set()),
    ],
    ids=[
        "the default is known",
        "it is the default",
        "the default differs by version",
        "paths",
        "each rank its own ports",
        "nothing is set",
    ],
)
def test_a_setting_that_is_not_set_is_its_default_if_that_is_known(
    settings: tuple[Mapping[str, str], ...], odd: set[str]
) -> None:
    assert differing(*program(*settings)).keys() == odd


def test_what_could_not_be_read_or_understood_is_not_different() -> None:
    ranks = program({CONNECT: "600"}, {CONNECT: "600"}, {})
    assert differing(*ranks[:2], replace(ranks[2], variables=None)) == {}
    note = "not used, since no such value can be meant: HCCL_CONNECT_TIMEOUT"
    assert differing(*ranks[:2], replace(ranks[2], note=note)) == {}


def test_two_programs_of_one_job_may_have_settings_of_their_own() -> None:
    first, second = program({EXEC: "7200"}, {EXEC: "7200"}), program({EXEC: "60"}, {EXEC: "60"}, job=2)
    mine = Job(Scheduler.SLURM, "1", "alice")
    moved = [replace(one, device=DeviceKey(one.device.npu + 4), job=mine) for one in second]
    assert differing(*first, *moved) == {}


def test_processes_that_inherited_one_rank_are_two_programs() -> None:
    told = {"SLURM_PROCID": "0"}
    assert differing(rank(0, 1, {**told, EXEC: "60"}), rank(1, 1, {**told, EXEC: "7200"})) == {}


def test_ranks_of_srun_are_known_by_their_number() -> None:
    first, second = ({"SLURM_PROCID": str(at), EXEC: text} for at, text in enumerate(("60", "7200")))
    assert differing(rank(0, 1, first), rank(1, 1, second)).keys() == {"1"}


def test_processes_without_a_rank_are_not_compared() -> None:
    assert differing(rank(0, 1, {EXEC: "60"}), rank(1, 1, {EXEC: "7200"})) == {}


def test_a_difference_is_held_while_an_environment_cannot_be_read() -> None:
    world = World()
    ranks = program({EXEC: "7200"}, {EXEC: "7200"}, {EXEC: "1800"})
    put(world, *ranks)
    world.cycles(0, 15)
    put(world, *ranks[:2], replace(ranks[2], variables=None))
    assert world.cycle(30)["hccl_settings_differ npu 2 chip 0"].held
    put(world, *program({EXEC: "7200"}, {EXEC: "7200"}, {EXEC: "7200"}))
    assert world.cycle(45) == {}
