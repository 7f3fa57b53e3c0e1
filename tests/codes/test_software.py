"""One code on two devices of one job within 30 s is the job's doing; where jobs are unknown, nobody says so."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from hypothesis import given
from hypothesis import strategies as st

from npu_watchd.codes.repeats import Occurrence
from npu_watchd.codes.software import Who, hardware, software
from npu_watchd.model.ids import DeviceKey

A, B, C = DeviceKey(0), DeviceKey(1), DeviceKey(2)


def at(*instants_s: float) -> tuple[Occurrence, ...]:
    return tuple(Occurrence(instant_s, instant_s) for instant_s in instants_s)


def on(jobs: Mapping[DeviceKey, Collection[str] | None]) -> Who[DeviceKey]:
    """The same jobs all the time."""
    return lambda device, _: jobs.get(device)


def test_two_devices_of_one_job_within_thirty_seconds_are_software() -> None:
    jobs = {A: {"train"}, B: {"train"}}
    assert software({A: at(0), B: at(30)}, on(jobs)) == {A: at(0), B: at(30)}
    assert software({A: at(0), B: at(30.001)}, on(jobs)) == {}


def test_only_those_close_to_another_are_taken() -> None:
    jobs = {A: {"train"}, B: {"train"}}
    assert software({A: at(0, 1000), B: at(10)}, on(jobs)) == {A: at(0), B: at(10)}
    assert hardware({A: at(0, 1000), B: at(10)}, on(jobs)) == {A: at(1000), B: ()}


def test_one_device_alone_is_never_software() -> None:
    assert software({A: at(0, 1, 2)}, on({A: {"train"}})) == {}
    assert hardware({A: at(0, 1, 2)}, on({A: {"train"}})) == {A: at(0, 1, 2)}


def test_two_jobs_are_not_one() -> None:
    assert software({A: at(0), B: at(0)}, on({A: {"train"}, B: {"serve"}})) == {}
    assert software({A: at(0), B: at(0)}, on({A: {"train", "serve"}, B: {"serve"}})) == {A: at(0), B: at(0)}


def test_two_devices_that_share_nothing_with_each_other_may_share_a_third() -> None:
    jobs = {A: {"one"}, B: {"one", "two"}, C: {"two"}}
    assert software({A: at(0), B: at(25), C: at(50)}, on(jobs)) == {A: at(0), B: at(25), C: at(50)}
    assert software({A: at(0), C: at(0)}, on(jobs)) == {}


def test_unknown_jobs_are_nobodys_partners() -> None:
    told = {A: at(0), B: at(0)}
    unknown: list[dict[DeviceKey, Collection[str] | None]] = [
        {},
        {A: None, B: None},
        {A: {"train"}, B: None},
        {A: {"train"}},
        {A: (), B: ()},
    ]
    for jobs in unknown:
        assert software(told, on(jobs)) == {}
        assert hardware(told, on(jobs)) == told


def test_who_was_there_counts_and_not_who_came_later() -> None:
    def jobs(_device: DeviceKey, one: Occurrence) -> set[str]:
        return {"morning"} if one.appeared_s < 1000 else {f"evening of {_device.npu}"}

    assert software({A: at(0, 5000), B: at(10, 5000)}, jobs) == {A: at(0), B: at(10)}


@given(
    st.dictionaries(
        st.sampled_from([A, B, C]), st.lists(st.integers(0, 200), max_size=8, unique=True).map(lambda some: at(*some))
    ),
    st.dictionaries(st.sampled_from([A, B, C]), st.none() | st.frozensets(st.sampled_from(["one", "two"]), max_size=2)),
)
def test_it_finds_what_looking_at_every_pair_finds(
    told: dict[DeviceKey, tuple[Occurrence, ...]], jobs: dict[DeviceKey, frozenset[str] | None]
) -> None:
    expected = {
        device: tuple(
            one
            for one in some
            if any(
                other != device
                and (jobs.get(device) or frozenset()) & (jobs.get(other) or frozenset())
                and abs(one.appeared_s - theirs.appeared_s) <= 30
                for other, others in told.items()
                for theirs in others
            )
        )
        for device, some in told.items()
    }
    assert software(told, on(jobs)) == {device: some for device, some in expected.items() if some}
    assert {device: set(some) | set(expected[device]) for device, some in hardware(told, on(jobs)).items()} == {
        device: set(some) for device, some in told.items()
    }
