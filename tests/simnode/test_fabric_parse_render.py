"""What the simulated fabric tools print, the parsers read back: `parse(render(state)) == state`, in every form."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from npu_watchd.model.fabric import Limits, NetHealth, NpuLink, OpticalLane, RdmaPorts
from npu_watchd.parsers import hccn, hccn_optical, hccn_stat, ibstat, perf_stat
from npu_watchd.simnode import ibstat as fake_ibstat
from npu_watchd.simnode import perf
from npu_watchd.simnode.roce_port import Lane, Optics, RocePort
from npu_watchd.simnode.silicon import SILICON, new_cards
from npu_watchd.simnode.state import NodeState
from npu_watchd.simnode.sysfs_ib import SimHca
from tests.simnode.fabric_states import expected_changes, expected_ports, hcas, optics, ports, says

TRIES = settings(max_examples=40, deadline=None)


def of_950(port: RocePort, command: str) -> str:
    return says(port, f"-g {command} -i 3 -u {port.udie} -p {port.port}", "950", device=3)


@TRIES
@given(ports())
def test_link_speed_and_reachability_are_read_back(port: RocePort) -> None:
    assert hccn.link(says(port, "-i 0 -link -g")) == NpuLink(port.up)
    assert hccn.net_health(says(port, "-i 0 -net_health -g")) == NetHealth(port.net_health)
    speed = hccn.speed(says(replace(port, up=True), "-i 0 -speed -g"))
    assert speed.bits_per_second == (None if port.speed_mbps is None else port.speed_mbps * 10**6)


@TRIES
@given(ports(), st.integers(0, 7))
def test_the_links_history_is_read_back(port: RocePort, device: int) -> None:
    history = hccn.link_history(says(port, f"-i {device} -link_stat -g", device=device))
    assert (history.device_id, history.current_time) == (device, "2026-01-05T08:00:00")
    assert (history.up_count, history.down_count) == (port.up_count, port.down_count)
    assert history.changes == expected_changes(port, ages=True)
    assert history.up == (port.changes[0].up if port.changes else None)


@TRIES
@given(ports())
def test_every_counter_is_read_back(port: RocePort) -> None:
    assert hccn_stat.parse(says(port, "-i 0 -stat -g")).counters == port.counters


@TRIES
@given(ports("950"))
def test_a_port_of_ascend_950_is_read_back(port: RocePort) -> None:
    assert hccn.link(of_950(port, "-link")) == NpuLink(port.up)
    history = hccn.link_history(of_950(port, "-link_stat"))
    assert (history.up_count, history.down_count) == (port.up_count, port.down_count)
    assert (history.changes or ()) == expected_changes(port, ages=False)
    speed = hccn.speed(of_950(replace(port, up=True), "-speed"))
    gigabits = None if port.speed_mbps is None else port.speed_mbps * 10**6
    assert (speed.bits_per_second, speed.lanes, speed.max_lanes) == (gigabits, port.lanes, 4)
    assert (speed.udie, speed.port) == (port.udie, port.port)
    stat = hccn_stat.parse(of_950(port, "-stat"))
    assert (stat.counters, stat.port) == (port.counters, port.port)


def measured(lane: OpticalLane) -> Lane:
    """In the units of the state."""
    return Lane(
        round((lane.transmit_watts or 0.0) * 1000, 4),
        round((lane.receive_watts or 0.0) * 1000, 4),
        round((lane.bias_amperes or 0.0) * 1000, 4),
        lane.host_snr_decibels,
        lane.media_snr_decibels,
    )


@TRIES
@given(optics())
def test_an_optical_module_is_read_back(module: Optics) -> None:
    read = hccn_optical.parse(says(RocePort(optics=module), "-i 0 -optical -g"))
    assert (read.present, read.unknown_keys) == (module.present, ())
    if not module.present:
        assert (read.temperature_celsius, read.lanes, read.serial_number) == (None, (), None)
        return
    assert (read.temperature_celsius, read.vendor_name, read.part_number, read.serial_number, read.identifier) == (
        module.temperature_c,
        module.vendor,
        module.part,
        module.serial,
        module.identifier,
    )
    if module.voltage_mv is None:
        assert (read.voltage_volts, read.lanes) == (None, ())
        return
    assert read.voltage_volts == pytest.approx(module.voltage_mv / 1000)
    assert tuple(map(measured, read.lanes)) == module.lanes
    masks = [
        sum(1 << lane.lane for lane in read.lanes if getattr(lane, name))
        for name in ("transmit_los", "receive_los", "transmit_lol", "receive_lol")
    ]
    assert masks == [module.transmit_los, module.receive_los, module.transmit_lol, module.receive_lol]
    assert read.temperature_limits == Limits(high_warning=72, low_warning=-3)
    assert (read.receive_limits.high_warning, read.receive_limits.low_warning) == (0.0031623, 0.0001)
    assert (read.transmit_limits.high_warning, read.transmit_limits.low_warning) == (0.0031623, 0.0001995)


@TRIES
@given(optics())
def test_the_tables_of_a_module_say_the_same_in_decibels(module: Optics) -> None:
    seen = replace(module, present=True, voltage_mv=3300.0)
    read = hccn_optical.parse(says(RocePort(optics=seen), "-i 0 -optical -g v2"))
    assert (read.present, read.temperature_celsius, read.voltage_volts) == (True, seen.temperature_c, 3.3)
    for lane, expected in zip(read.lanes, seen.lanes, strict=True):
        # Two decimals of a decibel are an eighth of a percent.
        assert lane.receive_watts == pytest.approx(expected.receive_mw / 1000, rel=2e-3)
        assert lane.transmit_watts == pytest.approx(expected.transmit_mw / 1000, rel=2e-3)
        assert lane.receive_los is bool(seen.receive_los >> lane.lane & 1)
        assert lane.transmit_lol is bool(seen.transmit_lol >> lane.lane & 1)
    boxes = hccn_optical.parse(of_950(RocePort(optics=seen), "-optical"))
    for lane, expected in zip(boxes.lanes, seen.lanes, strict=True):
        # Four decimals of a decibel, and then whole nanowatts.
        assert lane.receive_watts == pytest.approx(expected.receive_mw / 1000, rel=2e-5, abs=1.5e-9)
        assert lane.transmit_los is bool(seen.transmit_los >> lane.lane & 1)


def test_a_module_that_is_absent_is_absent_in_every_form() -> None:
    gone = RocePort(optics=Optics(present=False))
    assert hccn_optical.parse(says(gone, "-i 0 -optical -g")).present is False
    assert hccn_optical.parse(says(gone, "-i 0 -optical -g v2")).present is None
    assert hccn_optical.parse(of_950(gone, "-optical")).present is False


@TRIES
@given(hcas())
def test_the_ports_of_the_host_are_read_back(adapters: tuple[SimHca, ...]) -> None:
    said = fake_ibstat.answer(NodeState("910B", "25.5.1", "25.5.1", (), hcas=adapters), ())
    assert (said.exit_code, said.stderr) == (0, "")
    assert ibstat.parse(said.text) == RdmaPorts(expected_ports(adapters))


@TRIES
@given(st.floats(0, 60e9), st.floats(0, 60e9), st.sampled_from((0.1, 0.5, 2)))
def test_the_load_of_a_link_is_read_back(receive: float, transmit: float, window_s: float) -> None:
    silicon = SILICON["A3"]
    card = new_cards(silicon, 1)[0]
    first, second = card.chips
    assert first.slot is not None
    slot = replace(first.slot, receive_bytes_per_second=receive, transmit_bytes_per_second=transmit)
    node = NodeState("A3", "25.5.1", "25.5.1", (replace(card, chips=(replace(first, slot=slot), second)),))
    events = "hisi_pcie0_core1/event=0x1005,bdf=0x9d00/,hisi_pcie0_core1/event=0x0104,bdf=0x9d00/"
    argv = ("stat", "-a", "-x", ";", "--log-fd", "1", "-e", events, "--", "sleep", str(window_s))
    said = perf.answer(node, argv)
    assert said.delay_s == window_s
    counters = perf_stat.parse(said.text).counters
    rates = [(counter.value or 0.0) * 4 / (counter.enabled_s or 1.0) for counter in counters]
    assert rates == pytest.approx([receive, transmit], abs=4 / window_s + 1)
