"""Each fault of a simulated node becomes its alerts, the same on both ways to a real Alertmanager; and they end."""

from __future__ import annotations

import pytest

from tests.e2e.alerting import Step, Story, Told, alert, tell

pytestmark = pytest.mark.timeout(200)
"""The fixture plays all stories at once."""

RESET = """
[[at]]
t = "130m"
note = "somebody resets device 3"
device = 3
reset = true
"""
BACK = """
[[at]]
t = "30m"
note = "seated anew, and well"
device = {device}
lost = false
fails = []
health = "OK"
"""
MENDED = """
[[at]]
t = "30m"
note = "new modules"
devices = [0, 4, 6]
optics.present = true
optics.receive = [0.95, 0.95, 0.95, 0.95]
optics.transmit = [0.95, 0.95, 0.95, 0.95]
port.link = "up"
"""

CLIMBING = alert("NpuMemoryErrorsClimbing", "warning", device_id="3")
ILL = (
    alert("NpuDeviceUnhealthy", "critical", device_id="3"),
    alert("NpuDeviceErrorCode", "warning", device_id="3"),
    alert("NpuMemoryUncorrectableErrors", "critical", device_id="3"),
)
CORRECTED = alert("NpuPcieErrorsClimbing", "warning", device_id="1")
UNCORRECTED = alert("NpuPcieErrorsClimbing", "critical", device_id="4")
UNHEALTHY = alert("NpuDeviceUnhealthy", "critical", device_id="4")
DIM = {device: alert("NpuOpticsDegraded", "warning", device_id=device) for device in "04"}
DOWN = {device: alert("RocePortDown", "critical", device_id=device) for device in "46"}
RESENT = alert("RocePortErrorsClimbing", "warning", device_id="3")
OUT = {device: alert("NpuQuarantineRecommended", "critical", device_id=device) for device in "345"}
"""It outlasts what led to it: nobody releases the device."""
BLIND = alert("NpuProbeBlind", "warning")


def links(npu: int, host: int) -> dict[tuple[str, ...], float]:
    return {
        ("npu_device_roce_link_up", "device_id", "3"): npu,
        ("npu_node_rdma_port_up", "rdma_device", "mlx5_1", "port", "1"): host,
    }


STORIES = {
    "hbm_storm": Story(
        (
            Step(0, ()),
            Step(4000, (CLIMBING,)),
            # The code of 100 min is a hint to the vendor, so it is shown and no more.
            Step(6100, (CLIMBING, alert("NpuDeviceUnhealthy", "warning", device_id="3"))),
            Step(7300, (CLIMBING, *ILL, OUT["3"])),
            # What the hour brought is not undone by a reset.
            Step(7900, (CLIMBING, OUT["3"])),
        ),
        cards=6,
        more=RESET,
    ),
    "double_bit_then_reset": Story(
        (
            Step(0, ()),
            Step(150, (*ILL, OUT["3"])),
            Step(610, (*ILL, OUT["3"], alert("NpuDeviceMissing", "critical", device_id="3"))),
            Step(700, (OUT["3"],)),
        ),
        cards=4,
    ),
    "device_lost": Story(
        (
            Step(0, ()),
            Step(310, (alert("NpuDeviceMissing", "critical", device_id="5"), OUT["5"])),
            Step(1810, (OUT["5"],)),
        ),
        cards=6,
        more=BACK.format(device=5),
    ),
    "roce_flap": Story(
        (
            Step(0, ()),
            Step(130, shows=links(0, 1)),
            Step(250, shows=links(1, 0)),
            Step(430, shows=links(0, 1)),
            Step(610, shows=links(1, 0)),
            Step(730, shows=links(0, 1)),
            Step(970, shows=links(1, 0)),
            Step(
                1000,
                (
                    RESENT,
                    alert("RocePortFlapping", "warning", device_id="3"),
                    alert("RocePortFlapping", "warning", rdma_device="mlx5_1", port="1"),
                ),
                links(1, 1),
            ),
            Step(None, (RESENT,)),
        ),
        cards=4,
        probes=("hccn_link", "hccn_stat", "ibstat", "rdma_counters"),
        limits={"flap_down_s": "100ms", "flap_window_s": "30s"},
    ),
    "wedged_driver": Story(
        (
            Step(0, ()),
            Step(300, (alert("NpuToolWedged", "critical"), BLIND)),
            Step(720, (BLIND,)),
            Step(None, ()),
        ),
        cards=7,
        timeout="1s",
    ),
    "pcie_errors": Story(
        (
            Step(0, ()),
            Step(400, (CORRECTED,)),
            Step(620, (CORRECTED, UNCORRECTED)),
            Step(1205, (CORRECTED, UNCORRECTED, UNHEALTHY, OUT["4"])),
            Step(
                1300,
                (CORRECTED, UNCORRECTED, UNHEALTHY, OUT["4"], alert("NpuDeviceMissing", "critical", device_id="4")),
            ),
            Step(1810, (OUT["4"],)),
        ),
        probes=("pcie_link", "pcie_aer"),
        limits={"pcie_errors_window_s": "30s", "pcie_correctable_window_s": "30s"},
        more=BACK.format(device=4),
    ),
    "optics_dim": Story(
        (
            Step(0, ()),
            Step(700, (DIM["0"],)),
            Step(950, (DIM["0"], DIM["4"])),
            # Without a link the light proves nothing: what was found is held, and the port is told beside it.
            Step(1600, (DIM["0"], DIM["4"], DOWN["4"], DOWN["6"])),
            Step(1810, ()),
        ),
        cards=7,
        probes=("hccn_link", "hccn_optical"),
        limits={"port_down_s": "2s"},
        more=MENDED,
    ),
}

WELL = {
    name: Story(
        (Step(None, ()),),
        probes=("hccn_link", "ibstat", "rdma_counters", "pcie_link", "pcie_aer"),
        every="12s",
        speed=1800,
    )
    for name in ("quiet", "busy_node")
}
"""While the others are told, some hours of jobs that come and go pass on these."""


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Told:
    return tell({**STORIES, **WELL}, tmp_path_factory.mktemp("stories"))


@pytest.mark.parametrize("scenario", STORIES)
def test_a_fault_is_told_with_the_same_labels_on_both_ways_and_ends_when_it_is_over(told: Told, scenario: str) -> None:
    told.came_true(scenario)


@pytest.mark.parametrize("scenario", WELL)
def test_a_node_that_is_well_never_says_a_word(told: Told, scenario: str) -> None:
    told.came_true(scenario)
    assert told.alerts_ever[scenario] == {}


def test_that_many_nodes_are_ill_at_once_is_the_one_thing_told_of_the_fleet(told: Told) -> None:
    assert told.about_no_node == {alert("NpuFleetQuarantineShare", "critical")}
