"""Rules about which devices jobs were told to use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from npu_watchd.decide.cycle import Judging
from npu_watchd.limits import Limits
from npu_watchd.model.finding import Finding
from npu_watchd.model.hccl import ProcessPlace
from npu_watchd.model.jobs import Attribution
from npu_watchd.model.snapshot import Identity
from npu_watchd.rules import RULES
from npu_watchd.rules.rule import Sharing, Site
from tests.rules.test_hccl import HOST, put, rank
from tests.rules.world import World

LIST = "ASCEND_RT_VISIBLE_DEVICES"
OVERLAP, OUTSIDE = "visible_devices_overlap", "outside_visible_devices"


def told(device: int, job: int, text: str, name: str = LIST, **more: str) -> Attribution:
    return rank(device, job, {name: text, **more})


def judged(*ranks: Attribution, sharing: Sharing | None = None) -> Mapping[str, Finding]:
    """What stands after two looks, by rule and number of the device."""
    world = World()
    if sharing is not None:
        world.judging = Judging(world.history, RULES, Limits(), site=Site(sharing=sharing))
    put(world, *ranks)
    return {f"{one.rule} {one.device_id}": one for one in world.cycles(0, 15).values()}


def test_two_jobs_that_were_told_one_device_are_found_though_one_is_on_it() -> None:
    found = judged(told(0, 1, "0,1,2,3"), told(4, 2, "3,4"))
    assert found.keys() == {f"{OVERLAP} 3"}
    one = found[f"{OVERLAP} 3"]
    assert one.summary == "device 3: 2 jobs were told to use it: slurm 1, slurm 2"
    assert (one.severity.value, one.quarantines, one.action.value) == ("warning", False, "move_job")
    assert one.evidence[0].metric == "ASCEND_RT_VISIBLE_DEVICES of slurm 1, pid 1000"
    assert [each.observed for each in one.evidence] == ["0,1,2,3", "3,4"]


def test_two_that_are_on_it_are_told_once() -> None:
    assert judged(told(3, 1, "2,3"), told(3, 2, "3,4")).keys() == {"jobs_share_device 3"}


def test_a_device_id_is_a_claim_where_no_list_is_set() -> None:
    assert judged(told(3, 1, "3", "DEVICE_ID"), told(4, 2, "3,4")).keys() == {f"{OVERLAP} 3"}
    inherited = [told(at, 1 + at // 4, "0", "DEVICE_ID") for at in range(8)]
    assert judged(*inherited) == {}
    within = told(4, 1, "4,5", DEVICE_ID="0")
    assert judged(within, told(1, 2, "0,1")) == {}


@pytest.mark.parametrize(
    "other",
    [
        told(4, 2, "4,5"),
        told(4, 1, "3,4"),
        told(4, 2, "0,1,2,3,4,5,6,7"),
        told(4, 2, "4,3"),
        told(4, 2, "3-4"),
        told(4, 2, "3,4", "ASCEND_VISIBLE_DEVICES"),
        replace(told(4, 2, "3,4"), place=ProcessPlace(HOST, False, ())),
        replace(told(4, 2, "3,4"), place=ProcessPlace(HOST, None, ())),
        replace(told(4, 2, "3,4"), place=None),
        replace(told(4, 2, "3,4"), job=None),
        replace(told(4, 2, "3,4"), variables=None),
        rank(4, 2),
    ],
    ids=[
        "others",
        "the same job",
        "every device, which says nothing",
        "not ascending",
        "no list of ids",
        "what a container was given",
        "a container's own numbers",
        "nobody knows whose numbers",
        "not looked up",
        "no job",
        "no environment",
        "nothing set",
    ],
)
def test_where_it_is_not_certain_nobody_overlaps(other: Attribution) -> None:
    assert judged(told(0, 1, "0,1,2,3"), other) == {}


@pytest.mark.parametrize(
    ("sharing", "count"),
    [(Sharing("allowed"), 0), (Sharing("same_user"), 0), (Sharing(services=("slurm 2",)), 0), (Sharing("vnpu"), 1)],
)
def test_who_may_share_is_the_sites_word(sharing: Sharing, count: int) -> None:
    assert len(judged(told(0, 1, "0,3"), told(4, 2, "3,4"), sharing=sharing)) == count


def test_a_job_that_is_where_it_was_not_told_to_be() -> None:
    found = judged(told(7, 1, "5,6"))
    assert found.keys() == {f"{OUTSIDE} 7"}
    one = found[f"{OUTSIDE} 7"]
    assert one.summary == "device 7: slurm 1 is on it and was told to use 5,6 (ASCEND_RT_VISIBLE_DEVICES)"
    assert (one.action.value, one.evidence[0].observed, one.evidence[0].limit) == ("check_job", "5,6", "7")


@pytest.mark.parametrize(
    "one",
    [
        told(6, 1, "5,6"),
        told(7, 1, "6", "DEVICE_ID"),
        told(7, 1, "0", "ASCEND_VISIBLE_DEVICES"),
        told(7, 1, "6,5"),
        replace(told(7, 1, "0"), place=ProcessPlace(HOST, False, ())),
    ],
)
def test_where_it_is_not_certain_nobody_strays(one: Attribution) -> None:
    assert judged(one) == {}


def test_a_service_may_be_on_any_device() -> None:
    assert judged(told(7, 1, "0"), sharing=Sharing(services=("python3",))) == {}


def test_where_one_chips_number_is_not_known_no_number_is() -> None:
    world = World()
    put(world, told(7, 1, "5,6"), told(0, 2, "5"))
    world.change(2, identity=Identity(name="910B3"))
    assert world.cycles(0, 30) == {}


def test_what_was_found_is_held_while_nobody_can_tell_where_the_processes_live() -> None:
    world = World()
    stray = told(7, 1, "5,6")
    put(world, stray)
    world.cycles(0, 15)
    put(world, replace(stray, place=None))
    assert world.cycle(30)[f"{OUTSIDE} npu 7 chip 0"].held
    put(world, told(7, 1, "7"))
    assert world.cycle(45) == {}
