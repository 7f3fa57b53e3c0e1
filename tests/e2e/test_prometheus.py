"""Debian's Prometheus scrapes the daemon on simulated nodes that stand still, and knows the numbers that were set."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from npu_watchd.simnode import node, scenario_file
from npu_watchd.simnode.state import ChipState, NodeState
from npu_watchd.simnode.timeline import state_at
from tests.e2e.fake_tool import fake_tool
from tests.e2e.harness import STEADY, Daemon, launch, until
from tests.e2e.page import Labels, Page
from tests.e2e.prometheus import Prometheus, promtool_on, scraping
from tests.e2e.simulated import simulated

OWN = """
title = "Numbers that this test can say by heart"
description = "Three 910B3; device 1 is hot and ill, device 2 is lost."
generation = "910B3"
tool_version = "25.5.1"
cards = 3

[[at]]
t = 0
device = 1
temperature = 88
hbm_temperature = 93
power = 301.5
health = "Alarm"
codes = [{ code = "80E01801", text = "node type=HBM" }]
hbm.used = 60000
hbm.single_bit = 4711
hbm.double_bit = 3
hbm.single_bit_lifetime = 9000
hbm.double_bit_lifetime = 5
hbm.double_bit_isolated_pages = 2
load.aicore = 97

[[at]]
t = 10
device = 2
lost = true
"""

INSTANTS = {"hbm_storm": 7300.0, "a3_16_dies": 120.0, "duo_310p": 280.0, "ascend950": 500.0}
"""Shipped scenario → the second at which its node stands."""
FABRIC = "roce_down"
EVERY = {
    **dict.fromkeys(("hccn_link", "hccn_net_health", "hccn_optical", "hccn_stat"), "15s"),
    **dict.fromkeys(("ibstat", "rdma_counters", "pcie_link", "pcie_aer"), "2s"),
}
"""What is asked of the fabric's node."""


@dataclass(frozen=True)
class Fleet:
    """Daemons by job name, the state of each one's node, and the Prometheus that scrapes them."""

    daemons: Mapping[str, Daemon]
    states: Mapping[str, NodeState]
    prometheus: Prometheus

    def series(self, job: str, selector: str, *labels: str) -> dict[tuple[str, ...], float]:
        """Values by these labels, of one job, from Prometheus."""
        name, _, rest = selector.partition("{")
        matcher = f'{name}{{job="{job}"' + ("," + rest if rest else "}")
        found = {}
        for names, value in self.prometheus.query(matcher).items():
            given = dict(names)
            found[tuple(given[label] for label in labels)] = value
        return found

    def true(self, job: str, selector: str, *labels: str) -> set[tuple[str, ...]]:
        """Labels of the series whose value is 1."""
        return {names for names, value in self.series(job, selector, *labels).items() if value == 1}

    def by_device(self, job: str, selector: str) -> dict[str, float]:
        return {device_id: value for (device_id,), value in self.series(job, selector, "device_id").items()}


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    directory = tmp_path_factory.mktemp("fleet")
    own = directory / "own.toml"
    own.write_text(OWN, encoding="utf-8")
    scenarios: dict[str, tuple[str | Path, float]] = {"own": (own, 0.0)}
    scenarios |= {name: (name, at) for name, at in INSTANTS.items()}
    scenarios[FABRIC] = (FABRIC, 700.0)
    states = {job: state_at(scenario_file.load(scenario), at) for job, (scenario, at) in scenarios.items()}
    with contextlib.ExitStack() as stack:
        daemons: dict[str, Daemon] = {}
        for job, (scenario, at) in scenarios.items():
            (directory / job).mkdir()
            if job == "own":
                config = node.install(scenario, directory / job, speed=0, at=at, listen=("127.0.0.1:0",))
                config.write_text(config.read_text(encoding="utf-8") + STEADY, encoding="utf-8")
            elif job == FABRIC:
                config = simulated(FABRIC, directory / job, at, EVERY).config
            else:
                # The same text from a shell script: two cores cannot start a Python a call for five nodes at once.
                tool = fake_tool(directory / job)
                tool.shows(states[job])
                config = tool.write_config(STEADY)
            daemons[job] = stack.enter_context(Daemon(launch("run", "--config", config)))
        # The device that gets lost was there first.
        daemons["own"].ready().shows(lambda page: page.value("npu_devices_present") == 3, "three devices")
        node.set_clock(directory / "own", 10.0)
        daemons["own"].shows(lambda page: page.value("npu_devices_present") == 2, "one device is lost")
        for job, daemon in daemons.items():
            if job != FABRIC:
                daemon.ready().all_read()
        daemons[FABRIC].ready().shows(lambda page: len(page.by_device("npu_device_roce_link_up")) == 8, "eight ports")
        daemons[FABRIC].shows(lambda page: len(page.by_device("npu_device_optical_present")) == 8, "eight modules")
        ports = {job: daemon.port for job, daemon in daemons.items()}
        prometheus = stack.enter_context(scraping(directory, ports))
        fleet = Fleet(daemons, states, prometheus)
        until(lambda: len(prometheus.query("up == 1")) == len(ports), "all targets are up")
        yield fleet


JOBS = ("own", *INSTANTS, FABRIC)


def _chips(state: NodeState) -> dict[str, ChipState]:
    return {str(chip.logic_id): chip for chip in state.chips}


def test_a_scrape_is_negotiated_and_never_fails(fleet: Fleet) -> None:
    targets = fleet.prometheus.targets()
    assert {job: target["health"] for job, target in targets.items()} == dict.fromkeys(JOBS, "up")
    assert {job: target["lastError"] for job, target in targets.items()} == dict.fromkeys(JOBS, "")
    answer = fleet.daemons["own"].get(
        Accept="application/openmetrics-text;version=1.0.0,text/plain;q=0.5", Accept_Encoding="gzip"
    )
    assert answer.headers["Content-Type"].startswith("application/openmetrics-text")
    assert answer.headers["Content-Encoding"] == "gzip"
    assert answer.text.endswith("# EOF\n")


def test_prometheus_finds_nothing_to_complain_about(fleet: Fleet) -> None:
    until(lambda: min(fleet.prometheus.query("count_over_time(up[1m])").values()) >= 3, "three scrapes of each")
    for name in (
        "prometheus_target_scrapes_sample_duplicate_timestamp_total",
        "prometheus_target_scrapes_sample_out_of_order_total",
        "prometheus_target_scrapes_sample_out_of_bounds_total",
        "prometheus_target_scrapes_exceeded_body_size_limit_total",
        "prometheus_target_scrapes_exemplar_out_of_order_total",
        "prometheus_target_metadata_cache_entries",
    ):
        counted = fleet.prometheus.own(name)
        assert counted, name
        if name.endswith("_total"):
            assert set(counted.values()) == {0.0}, name
    words = [line for line in fleet.prometheus.lines if "level=warn" in line or "level=error" in line]
    assert words == []
    assert not any("scrape failed" in line.lower() for line in fleet.prometheus.lines)


def test_the_numbers_of_an_ill_device_arrive(fleet: Fleet) -> None:
    def of_1(selector: str, *labels: str) -> dict[tuple[str, ...], float]:
        name, _, rest = selector.partition("{")
        return fleet.series("own", f'{name}{{device_id="1"' + ("," + rest if rest else "}"), *labels)

    assert of_1("npu_device_temperature_celsius", "sensor") == {("chip",): 88, ("hbm",): 93}
    assert of_1("npu_device_power_watts") == {(): 301.5}
    assert of_1("npu_device_memory_used_bytes", "memory") == {("hbm",): 60000 * 1024 * 1024}
    assert of_1("npu_device_memory_total_bytes", "memory") == {("hbm",): 65536 * 1024 * 1024}
    assert of_1('npu_device_utilization_ratio{unit="aicore"}') == {(): 0.97}
    assert of_1('npu_device_memory_errors_total{memory="hbm"}', "kind") == {("single_bit",): 4711, ("double_bit",): 3}
    assert of_1('npu_device_memory_lifetime_errors_total{memory="hbm"}', "kind") == {
        ("single_bit",): 9000,
        ("double_bit",): 5,
    }
    assert of_1('npu_device_memory_isolated_pages{memory="hbm"}', "kind") == {("single_bit",): 0, ("double_bit",): 2}
    assert of_1("npu_device_error_code_active", "code", "level") == {("80e01801", "rerun_job"): 1}
    assert of_1("npu_device_health", "state") == {
        ("ok",): 0,
        ("warning",): 0,
        ("alarm",): 1,
        ("critical",): 0,
        ("unknown",): 0,
    }


def test_a_lost_device_arrives_as_not_present_and_without_values(fleet: Fleet) -> None:
    assert fleet.series("own", "npu_devices_expected") == {(): 3}
    assert fleet.series("own", "npu_devices_present") == {(): 2}
    assert fleet.by_device("own", "npu_device_present") == {"0": 1, "1": 1, "2": 0}
    assert set(fleet.by_device("own", 'npu_device_temperature_celsius{sensor="chip"}')) == {"0", "1"}
    assert fleet.series("own", 'npu_device_info{device_id="2"}', "npu_id", "name", "pci_address") == {
        ("2", "910B3", "0000:81:00.0"): 1
    }
    assert fleet.true("own", 'npu_device_health{device_id="2"}', "state") == {("unknown",)}


def test_the_numbers_of_the_fabric_arrive(fleet: Fleet) -> None:
    devices = [str(number) for number in range(8)]
    up = {**dict.fromkeys(devices, 1.0), "5": 0.0}
    assert fleet.by_device(FABRIC, "npu_device_roce_link_up") == up
    heard = fleet.true(FABRIC, "npu_device_roce_reachability", "device_id", "state")
    assert heard == {(number, "success") for number in "013467"} | {("2", "receive_timeout"), ("5", "fault")}
    dark = fleet.series(FABRIC, 'npu_device_optical_power_watts{direction="receive"} == 0', "device_id", "lane")
    assert dark.keys() == {("5", lane) for lane in "0123"}
    chips = _chips(fleet.states[FABRIC])
    assert fleet.by_device(FABRIC, 'npu_device_roce_packets_total{direction="transmit"}') == {
        number: chip.roce.counters["mac_tx_total_pkt_num"] for number, chip in chips.items() if chip.roce
    }
    assert fleet.series(FABRIC, "npu_node_rdma_port_up", "rdma_device", "port") == {
        ("mlx5_0", "1"): 0,
        ("mlx5_1", "1"): 1,
    }
    assert fleet.series(FABRIC, "npu_node_rdma_port_bits_per_second", "rdma_device")[("mlx5_1",)] == 100e9
    assert fleet.true(FABRIC, "npu_node_rdma_port_physical_state", "rdma_device", "state") == {
        ("mlx5_0", "disabled"),
        ("mlx5_1", "link_up"),
    }
    assert fleet.series(FABRIC, "npu_node_rdma_port_info", "rdma_device", "netdev").keys() == {
        ("mlx5_0", "ens21np0"),
        ("mlx5_1", "ens22np0"),
    }
    assert fleet.by_device(FABRIC, "npu_device_pcie_link_lanes") == dict.fromkeys(devices, 16.0)
    assert fleet.by_device(FABRIC, 'npu_device_pcie_errors_total{severity="fatal"}') == dict.fromkeys(devices, 0.0)


@pytest.mark.parametrize("job", INSTANTS)
def test_what_stands_in_the_scenario_is_what_prometheus_knows(fleet: Fleet, job: str) -> None:
    chips = _chips(fleet.states[job])
    assert fleet.by_device(job, "npu_device_present") == dict.fromkeys(chips, 1.0)
    assert fleet.by_device(job, 'npu_device_temperature_celsius{sensor="chip"}') == {
        number: chip.temperature_c for number, chip in chips.items()
    }
    for memory in ("hbm", "ddr"):
        expected = {number: getattr(chip, memory).used_mb * 1024.0**2 for number, chip in chips.items()}
        has_it = any(getattr(chip, memory).total_mb for chip in chips.values())
        used = fleet.by_device(job, f'npu_device_memory_used_bytes{{memory="{memory}"}}')
        assert used == (expected if has_it else {})
        errors = fleet.by_device(job, f'npu_device_memory_errors_total{{memory="{memory}",kind="single_bit"}}')
        if has_it:
            assert errors == {number: getattr(chip, f"{memory}_errors").single_bit for number, chip in chips.items()}
    states = {number: (chip.health or "unknown").lower() for number, chip in chips.items()}
    assert fleet.true(job, "npu_device_health", "device_id", "state") == set(states.items())
    codes = {(number, code.code.lower()): 1.0 for number, chip in chips.items() for code in chip.codes}
    assert fleet.series(job, "npu_device_error_code_active", "device_id", "code") == codes


def test_the_shipped_scenarios_say_what_they_promise(fleet: Fleet) -> None:
    assert fleet.true("hbm_storm", 'npu_device_health{device_id="3"}', "state") == {("alarm",)}
    assert fleet.series("hbm_storm", 'npu_device_memory_errors_total{device_id="3",kind="double_bit"}', "memory") == {
        ("hbm",): 1
    }
    assert len(fleet.by_device("a3_16_dies", "npu_device_present")) == 16
    # The card's power is printed with its first die; the second has no series, not 0.
    assert set(fleet.by_device("a3_16_dies", "npu_device_power_watts")) == {str(number) for number in range(0, 16, 2)}
    assert fleet.series("a3_16_dies", 'npu_device_hccs_errors_total{device_id="6",link="2"}') != {}
    assert fleet.series("duo_310p", "npu_device_info", "device_id", "npu_id", "chip_id") == {
        ("0", "8", "0"): 1,
        ("1", "8", "1"): 1,
        ("2", "32776", "0"): 1,
        ("3", "32776", "1"): 1,
    }
    assert fleet.series("duo_310p", "npu_device_power_watts") == {}
    assert fleet.series("duo_310p", 'npu_device_memory_used_bytes{memory="hbm"}') == {}
    assert fleet.true("ascend950", 'npu_device_health{device_id="2"}', "state") == {("alarm",)}
    assert fleet.series("ascend950", 'npu_device_pcie_link_errors_total{device_id="4"}', "kind") != {}
    assert {number for (number,) in fleet.series("ascend950", "npu_device_info", "phy_id")} == set("01234567")


@pytest.mark.parametrize("job", JOBS)
def test_promtool_finds_every_page_clean(fleet: Fleet, job: str) -> None:
    assert promtool_on(fleet.daemons[job].page().text) == []


@pytest.mark.parametrize(
    "job",
    [
        *INSTANTS,
        FABRIC,
        "own",
    ],
)
def test_the_budget_of_series_is_kept(fleet: Fleet, job: str) -> None:
    page = fleet.daemons[job].page()
    of_device: dict[str, int] = {}
    of_node = 0
    for labels in _all_series(page):
        device_id = dict(labels).get("device_id")
        if device_id is None:
            of_node += 1
        else:
            of_device[device_id] = of_device.get(device_id, 0) + 1
    assert max(of_device.values()) <= 90, "80, four for the one job that is on the device, and six for its verdict"
    assert of_node <= 200
    assert len(of_device) == len(fleet.states[job].chips)


def _all_series(page: Page) -> list[Labels]:
    """All but the probes' states: those are of the daemon, one a question that it asks (docs/decisions/0017)."""
    beside = ("npu_watchd_probe_up", "npu_watchd_finding_active")  # decision 0017
    return [labels for name, series in page.samples.items() if name not in beside for labels in series]


def test_both_formats_hold_the_same_series(fleet: Fleet) -> None:
    for daemon in fleet.daemons.values():
        text = daemon.get().text
        openmetrics = daemon.get(Accept="application/openmetrics-text;version=1.0.0").text
        names = [line.partition(" ")[0] for line in text.splitlines() if line[0] != "#"]
        assert names == [line.partition(" ")[0] for line in openmetrics.splitlines() if line[0] != "#"]
