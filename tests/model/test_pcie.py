"""What a link, its errors and its load mean: degradation without a spec sheet, capacity, attribution."""

from __future__ import annotations

import pytest

from npu_watchd.model.ids import DeviceKey
from npu_watchd.model.pcie import PcieLink, PcieLoad, capacity_bytes_per_second, devices_below

PORT, NPU = "0000:c0:01.0", "0000:c1:00.0"


def link(
    speed: float | None = 16e9,
    lanes: int | None = 16,
    *,
    max_speed: float | None = 16e9,
    max_lanes: int | None = 16,
    path_speed: float | None = 16e9,
    path_lanes: int | None = 16,
) -> PcieLink:
    """A device of 32 GT/s x16 in a path that allows `max_speed` and `max_lanes`."""
    return PcieLink(NPU, (PORT, NPU), speed, 32e9, lanes, 16, path_speed, max_speed, path_lanes, max_lanes)


@pytest.mark.parametrize(
    ("speed", "lanes", "bytes_per_second"),
    [
        (2.5e9, 1, 250e6),
        (5e9, 8, 4e9),
        (8e9, 16, 8e9 * 16 * 128 / 130 / 8),
        (16e9, 16, 16e9 * 16 * 128 / 130 / 8),
        (32e9, 16, 32e9 * 16 * 128 / 130 / 8),
        (64e9, 16, 64e9 * 16 * 236 / 256 / 8),
        (None, 16, None),
        (16e9, None, None),
        (128e9, 16, None),
    ],
)
def test_capacity_is_speed_times_width_times_encoding(
    speed: float | None, lanes: int | None, bytes_per_second: float | None
) -> None:
    assert capacity_bytes_per_second(speed, lanes) == pytest.approx(bytes_per_second)


def test_a_fast_device_in_an_older_slot_is_not_degraded() -> None:
    assert link().degraded(busy=True) is False


@pytest.mark.parametrize("busy", [True, False, None])
def test_a_narrow_link_is_degraded_idle_or_not(busy: bool | None) -> None:
    assert link(lanes=8).degraded(busy) is True


@pytest.mark.parametrize(("busy", "degraded"), [(True, True), (False, False), (None, False)])
def test_an_idle_link_that_power_management_slowed_is_no_fault(busy: bool | None, degraded: bool) -> None:
    assert link(speed=2.5e9, path_speed=2.5e9).degraded(busy) is degraded


def test_a_narrow_hop_between_device_and_cpu_is_degraded_though_the_device_itself_is_well() -> None:
    assert link(path_lanes=4).degraded(busy=None) is True


@pytest.mark.parametrize(
    "unknown",
    [link(lanes=None, path_lanes=None), link(max_lanes=None), link(lanes=8, max_lanes=None), link(path_lanes=None)],
)
def test_what_is_not_known_is_neither_well_nor_degraded(unknown: PcieLink) -> None:
    assert unknown.degraded(busy=None) is None


def test_an_unknown_speed_does_not_hide_a_narrow_link_and_is_no_all_clear_under_load() -> None:
    assert link(speed=None, lanes=8).degraded(busy=True) is True
    assert link(speed=None).degraded(busy=True) is None
    assert link(speed=None).degraded(busy=False) is False


GEN4_X16 = 16e9 * 16 * 128 / 130 / 8


def load(receive: float | None, transmit: float | None) -> PcieLoad:
    return PcieLoad(receive, transmit, window_s=0.1, source="dcmi")


def test_the_load_ratio_is_by_direction_and_against_the_links_capacity() -> None:
    found = load(GEN4_X16 / 2, GEN4_X16 / 4).against(link(), busy=True)
    assert found.receive_ratio == pytest.approx(0.5)
    assert found.transmit_ratio == pytest.approx(0.25)


def test_a_direction_that_was_not_measured_has_no_ratio() -> None:
    assert load(None, 0.0).against(link(), busy=True).receive_ratio is None
    assert load(None, 0.0).against(link(), busy=True).transmit_ratio == 0.0
    assert load(1e9, 1e9).against(None, busy=True).receive_ratio is None
    assert load(1e9, 1e9).against(link(lanes=None), busy=True).receive_ratio is None


def test_a_link_that_sleeps_is_not_saturated_by_a_trickle() -> None:
    asleep = link(speed=2.5e9, path_speed=2.5e9)
    trickle = load(0.9 * 2.5e9 * 16 * 0.8 / 8, 0.0)
    assert trickle.against(asleep, busy=False).receive_ratio == pytest.approx(3.6e9 / GEN4_X16)
    assert trickle.against(asleep, busy=True).receive_ratio == pytest.approx(0.9)


def test_a_load_that_does_not_fit_shows_that_the_link_was_read_while_it_slept() -> None:
    asleep = link(speed=2.5e9, path_speed=2.5e9)
    assert load(GEN4_X16 / 2, 0.0).against(asleep, busy=True).receive_ratio == pytest.approx(0.5)


def test_an_error_at_a_port_concerns_all_devices_below_it_and_one_at_a_device_only_that() -> None:
    paths = {
        DeviceKey(0): (PORT, "0000:c1:00.0", "0000:c2:00.0", "0000:c3:00.0"),
        DeviceKey(1): (PORT, "0000:c1:00.0", "0000:c2:01.0", "0000:c4:00.0"),
        DeviceKey(2): ("0000:00:01.0", "0000:01:00.0"),
    }
    assert devices_below(PORT, paths) == (DeviceKey(0), DeviceKey(1))
    assert devices_below("0000:c2:01.0", paths) == (DeviceKey(1),)
    assert devices_below("0000:01:00.0", paths) == (DeviceKey(2),)
    assert devices_below("0000:ff:00.0", paths) == ()
