"""The exported metrics: the names that other people's dashboards rest on, and what no value may do."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from npu_watchd.catalogue import CATALOGUE, DEVICE_FAMILIES, NODE_FAMILIES, Family, Kind
from npu_watchd.catalogue.devices import unattributed_bytes
from npu_watchd.model.ids import DeviceKey
from npu_watchd.model.jobs import Attribution, DeviceJobs, Job, Scheduler
from npu_watchd.model.reading import Failure, FailureKind
from npu_watchd.model.records import Hccs, MemoryErrors, PcieLinkErrors, ProcessRow
from npu_watchd.model.snapshot import Device, Identity, Memory, Notifications, Outcome, ProbeState, ProbeTally
from npu_watchd.sinks.metrics import Exposition, Format
from tests.sinks.build import device, outcome, process, tool_missing

# DESIGN section 7, of what npu-smi feeds: labels as written there, device_id among them; `counter` or `gauge`.
CONTRACT: dict[str, tuple[str, str]] = {
    "npu_device_info": ("device_id, npu_id, chip_id, phy_id, name, pci_address, firmware", "gauge"),
    "npu_devices_expected": ("", "gauge"),
    "npu_devices_present": ("", "gauge"),
    "npu_device_present": ("device_id", "gauge"),
    "npu_device_health": ("device_id, state", "gauge"),
    "npu_device_error_code_active": ("device_id, code, level", "gauge"),
    "npu_device_temperature_celsius": ("device_id, sensor", "gauge"),
    "npu_device_power_watts": ("device_id", "gauge"),
    "npu_device_utilization_ratio": ("device_id, unit", "gauge"),
    "npu_device_clock_hertz": ("device_id", "gauge"),
    "npu_device_clock_max_hertz": ("device_id", "gauge"),
    "npu_device_memory_used_bytes": ("device_id, memory", "gauge"),
    "npu_device_memory_total_bytes": ("device_id, memory", "gauge"),
    "npu_device_memory_bandwidth_utilization_ratio": ("device_id, memory", "gauge"),
    "npu_device_memory_errors_total": ("device_id, memory, kind", "counter"),
    "npu_device_memory_lifetime_errors_total": ("device_id, memory, kind", "counter"),
    "npu_device_memory_isolated_pages": ("device_id, memory, kind", "gauge"),
    "npu_device_processes": ("device_id", "gauge"),
    "npu_device_hccs_errors_total": ("device_id, link", "counter"),
    "npu_device_hccs_retries_total": ("device_id, link", "counter"),
    "npu_node_info": ("node, driver, npu_smi, firmware, cann, frameworks", "gauge"),
    "npu_node_log_events_total": ("kind, code, device_id", "counter"),
    "npu_node_pressure_ratio": ("resource, kind", "gauge"),
    "npu_node_oom_kills_total": ("", "counter"),
    "npu_node_shm_used_bytes": ("", "gauge"),
    "npu_node_shm_total_bytes": ("", "gauge"),
    "npu_watchd_probe_up": ("probe, device_id", "gauge"),
    "npu_watchd_probe_duration_seconds": ("probe", "gauge"),
    "npu_watchd_probe_last_success_timestamp_seconds": ("probe", "gauge"),
    "npu_watchd_probe_failures_total": ("probe, kind", "counter"),
    "npu_watchd_parser_unknown_keys_total": ("probe", "counter"),
    "npu_watchd_cycle_duration_seconds": ("", "gauge"),
    "npu_watchd_cycle_timestamp_seconds": ("", "gauge"),
    "npu_watchd_build_info": ("version", "gauge"),
    "npu_watchd_config_reload_success": ("", "gauge"),
    "npu_watchd_notifications_total": ("target", "counter"),
    "npu_watchd_notification_failures_total": ("target", "counter"),
    "npu_watchd_notification_last_success_timestamp_seconds": ("target", "gauge"),
}


def declared() -> dict[str, tuple[set[str], str]]:
    found = {family.name: ({*family.labels, "device_id"}, family.kind.value) for family in DEVICE_FAMILIES}
    return found | {family.name: (set(family.labels), family.kind.value) for family in NODE_FAMILIES}


@pytest.mark.parametrize("name", CONTRACT)
def test_the_contracts_names_labels_and_types(name: str) -> None:
    labels, kind = CONTRACT[name]
    assert declared()[name] == (set(filter(None, labels.split(", "))), kind)


def test_a_name_is_declared_once() -> None:
    names = [family.name for family in CATALOGUE]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("family", CATALOGUE, ids=lambda family: str(family.name))
def test_names_are_in_base_units_and_only_counters_end_in_total(family: Family) -> None:
    assert re.fullmatch(r"npu_(device|devices|node|watchd)_[a-z_]+", family.name)
    assert family.name.endswith("_total") is (family.kind is Kind.COUNTER)
    assert not re.search(r"_(ms|milliseconds|mb|mib|kb|gb|mhz|ghz|percent|mw|kw)(_|$)", family.name)


def test_labels_are_few_and_name_no_process() -> None:
    for family in CATALOGUE:
        assert len(family.labels) <= 6, family.name
        # A scrape calls the contract's label `job` of these two `exported_job`, beside its own.
        ours = {"job"} if family.name.startswith("npu_device_job_") else set[str]()
        forbidden = {"pid", "process", "host", "hostname", "instance", "job"} - ours
        assert not forbidden & set(family.labels), family.name
    assert [family.name for family in NODE_FAMILIES if "node" in family.labels] == ["npu_node_info"]


def test_help_is_a_sentence_and_a_device_metric_of_a_tool_names_its_source() -> None:
    for family in CATALOGUE:
        assert family.help.endswith("."), family.name
        assert "\n" not in family.help
    for family in DEVICE_FAMILIES:
        assert re.search(r"npu-smi|hccn_tool|sysfs|DCMI|same as a share", family.help), family.name


def page(shown: Outcome) -> list[str]:
    exposition = Exposition(shown, CATALOGUE)
    assert exposition.problems == ()
    return [line for line in exposition.body(Format.TEXT).decode().splitlines() if not line.startswith("#")]


def samples(shown: Outcome, device_id: str) -> list[str]:
    return [line for line in page(shown) if f'device_id="{device_id}"' in line]


def unknown_device(present: bool | None) -> Device:
    return Device(DeviceKey(3), "3", "position", Identity(), "GENERIC", present, "unknown")


def test_of_a_device_of_which_nothing_is_known_nothing_is_exported_but_that() -> None:
    assert samples(outcome([unknown_device(present=None)]), "3") == [
        'npu_device_info{chip_id="0",device_id="3",npu_id="3"} 1.0',
        'npu_device_health{device_id="3",state="ok"} 0.0',
        'npu_device_health{device_id="3",state="warning"} 0.0',
        'npu_device_health{device_id="3",state="alarm"} 0.0',
        'npu_device_health{device_id="3",state="critical"} 0.0',
        'npu_device_health{device_id="3",state="unknown"} 1.0',
    ]


def test_a_vanished_device_is_not_present_and_has_no_other_number() -> None:
    shown = samples(outcome([unknown_device(present=False)]), "3")
    assert 'npu_device_present{device_id="3"} 0.0' in shown
    assert len(shown) == 7


def test_unknown_counts_within_a_known_record_are_left_out() -> None:
    partly = device(
        0, memory_errors={"hbm": MemoryErrors(double_bit=2)}, memory={"hbm": Memory(None, 64 << 30)}, processes=None
    )
    shown = samples(outcome([partly]), "0")
    assert [line for line in shown if "memory" in line] == [
        'npu_device_memory_total_bytes{device_id="0",memory="hbm"} 6.8719476736e+10',
        'npu_device_memory_errors_total{device_id="0",kind="double_bit",memory="hbm"} 2.0',
    ]
    assert not [line for line in shown if "processes" in line]


def test_an_idle_device_has_no_process_and_that_is_a_number() -> None:
    assert 'npu_device_processes{device_id="0"} 0.0' in samples(outcome([device(0, processes=())]), "0")


def test_every_value_of_a_device_has_its_series() -> None:
    row = ProcessRow(0, 0, 4711, "python", None)
    full = device(
        0,
        health="alarm",
        error_codes=("80e01801", "80e01801"),
        code_tiers={"80e01801": "rerun_job"},
        memory_errors={"hbm": MemoryErrors(1, 2, 3, 4, 5, 6, 7, 8)},
        memory_bandwidth_utilization_ratio={"hbm": 0.47},
        utilization_ratio={"aicore": 0.52, "ctrlcpu": 0.15},
        processes=(row, row),
        hccs=Hccs(True, (0, 4), (30, 31), None),
        pcie_link_errors=PcieLinkErrors({"tx_err": 2}),
    )
    assert [line for line in samples(outcome([full]), "0") if "_health" not in line] == [
        'npu_device_info{chip_id="0",device_id="0",firmware="7.1",name="910B3",npu_id="0",pci_address="0000:80:00.0",'
        'phy_id="0"} 1.0',
        'npu_device_present{device_id="0"} 1.0',
        'npu_device_error_code_active{code="80e01801",device_id="0",level="rerun_job"} 1.0',
        'npu_device_temperature_celsius{device_id="0",sensor="chip"} 46.0',
        'npu_device_temperature_celsius{device_id="0",sensor="hbm"} 51.0',
        'npu_device_power_watts{device_id="0"} 93.5',
        'npu_device_utilization_ratio{device_id="0",unit="aicore"} 0.52',
        'npu_device_utilization_ratio{device_id="0",unit="ctrlcpu"} 0.15',
        'npu_device_clock_hertz{device_id="0"} 8e+08',
        'npu_device_clock_max_hertz{device_id="0"} 1.8e+09',
        'npu_device_memory_used_bytes{device_id="0",memory="hbm"} 3.221225472e+09',
        'npu_device_memory_total_bytes{device_id="0",memory="hbm"} 6.8719476736e+10',
        'npu_device_memory_bandwidth_utilization_ratio{device_id="0",memory="hbm"} 0.47',
        'npu_device_memory_errors_total{device_id="0",kind="single_bit",memory="hbm"} 1.0',
        'npu_device_memory_errors_total{device_id="0",kind="double_bit",memory="hbm"} 2.0',
        'npu_device_memory_lifetime_errors_total{device_id="0",kind="single_bit",memory="hbm"} 3.0',
        'npu_device_memory_lifetime_errors_total{device_id="0",kind="double_bit",memory="hbm"} 4.0',
        'npu_device_memory_isolated_pages{device_id="0",kind="single_bit",memory="hbm"} 5.0',
        'npu_device_memory_isolated_pages{device_id="0",kind="double_bit",memory="hbm"} 6.0',
        'npu_device_processes{device_id="0"} 2.0',
        'npu_device_hccs_errors_total{device_id="0",link="0"} 0.0',
        'npu_device_hccs_errors_total{device_id="0",link="1"} 4.0',
        'npu_device_hccs_retries_total{device_id="0",link="0"} 30.0',
        'npu_device_hccs_retries_total{device_id="0",link="1"} 31.0',
        'npu_device_pcie_link_errors_total{device_id="0",kind="tx_err"} 2.0',
    ]


def test_the_fullest_device_keeps_within_its_eighty_series() -> None:
    seven = tuple(range(7))
    full = device(
        0,
        error_codes=("80e01801", "80c98008"),
        utilization_ratio=dict.fromkeys(("aicore", "aivector", "aicube", "aicpu", "ctrlcpu", "npu", "vectorcore"), 0.5),
        memory={"hbm": Memory(1, 2), "ddr": Memory(1, 2)},
        memory_bandwidth_utilization_ratio={"hbm": 0.5, "ddr": 0.5},
        memory_errors={"hbm": MemoryErrors(*range(8)), "ddr": MemoryErrors(*range(8))},
        hccs=Hccs(True, seven, seven, None),
    )
    states = [ProbeState(f"probe_{number}", "0", up=True, failure=None) for number in range(8)]
    assert len(samples(outcome([full], probes=tuple(states)), "0")) <= 80


def test_each_alertmanager_has_its_counts_and_no_success_before_the_first() -> None:
    shown = outcome([device(0)])
    told = {"am1:9093": Notifications(7, 2, 0, 1_790_000_000.0), "am2:9093": Notifications(3, 3)}
    shown = replace(shown, engine=replace(shown.engine, notifications=told))
    assert [line for line in page(shown) if "notification" in line] == [
        'npu_watchd_notifications_total{target="am1:9093"} 7.0',
        'npu_watchd_notifications_total{target="am2:9093"} 3.0',
        'npu_watchd_notification_failures_total{target="am1:9093"} 2.0',
        'npu_watchd_notification_failures_total{target="am2:9093"} 3.0',
        'npu_watchd_notification_drops_total{target="am1:9093"} 0.0',
        'npu_watchd_notification_drops_total{target="am2:9093"} 0.0',
        'npu_watchd_notification_last_success_timestamp_seconds{target="am1:9093"} 1.79e+09',
    ]


def test_a_node_without_its_tool_has_no_device_series_and_says_why() -> None:
    shown = page(tool_missing())
    assert not [line for line in shown if line.startswith("npu_device")]
    assert 'npu_watchd_probe_up{probe="npu_info"} 0.0' in shown
    assert 'npu_watchd_probe_failures_total{kind="missing",probe="npu_info"} 4.0' in shown
    assert 'npu_node_info{node="node-17"} 1.0' in shown
    assert not [line for line in shown if line.startswith("npu_watchd_probe_last_success")]


def test_the_nodes_series() -> None:
    tally = ProbeTally("npu_ecc", 0.25, 1_790_000_009.0, {"timeout": 2, "exit": 1}, 3)
    failure = Failure(FailureKind.TIMEOUT, "why")
    states = (
        ProbeState("npu_ecc", "0", up=False, failure=failure),
        ProbeState("npu_info", None, up=True, failure=None),
    )
    shown = page(
        outcome(
            [device(0)],
            probes=states,
            tallies=(tally,),
            tool_log_events={"-8020": 2},
            pcie_log_events={("fatal", "0"): 1, ("correctable", ""): 7},
            kernel_log_lost=12,
        )
    )
    assert [line for line in shown if not line.startswith("npu_device")] == [
        'npu_node_info{driver="24.1.rc2",firmware="7.1.0",node="node-17",npu_smi="24.1.rc2"} 1.0',
        'npu_node_log_events_total{code="-8020",kind="npu_smi"} 2.0',
        'npu_node_log_events_total{code="correctable",kind="pcie"} 7.0',
        'npu_node_log_events_total{code="fatal",device_id="0",kind="pcie"} 1.0',
        "npu_watchd_kernel_log_lost_records_total 12.0",
        'npu_watchd_probe_up{device_id="0",probe="npu_ecc"} 0.0',
        'npu_watchd_probe_up{probe="npu_info"} 1.0',
        'npu_watchd_probe_duration_seconds{probe="npu_ecc"} 0.25',
        'npu_watchd_probe_last_success_timestamp_seconds{probe="npu_ecc"} 1.790000009e+09',
        'npu_watchd_probe_failures_total{kind="exit",probe="npu_ecc"} 1.0',
        'npu_watchd_probe_failures_total{kind="timeout",probe="npu_ecc"} 2.0',
        'npu_watchd_parser_unknown_keys_total{probe="npu_ecc"} 3.0',
        "npu_watchd_tool_share_ratio 0.05",
        "npu_watchd_period_stretch_ratio 1.0",
        "npu_watchd_cycle_duration_seconds 0.01",
        "npu_watchd_cycle_timestamp_seconds 1.79e+09",
        'npu_watchd_build_info{version="0.1.0"} 1.0',
        "npu_watchd_config_reload_success 1.0",
        "npu_watchd_history_written 1.0",
        "npu_watchd_clock_jumps_total 0.0",
    ]


def test_processes_that_nothing_could_end_are_counted_by_tool() -> None:
    whole = outcome([device(0)])
    engine = replace(whole.engine, abandoned_processes={"npu-smi": 2})
    shown = page(replace(whole, engine=engine))
    assert 'npu_watchd_abandoned_processes{tool="npu-smi"} 2.0' in shown
    assert not [line for line in page(whole) if line.startswith("npu_watchd_abandoned_processes")]


def test_a_devices_jobs_have_a_series_each_up_to_sixteen() -> None:
    def holds(number: int) -> Attribution:
        return Attribution(DeviceKey(0), number, "x", 1 << 20, job=Job(Scheduler.SLURM, f"{number:02}", "alice"))

    one = device(0, jobs=DeviceJobs((holds(1), holds(1), holds(2))))
    assert [line for line in page(outcome([one])) if line.startswith("npu_device_job")] == [
        'npu_device_jobs{device_id="0"} 2.0',
        'npu_device_job_info{device_id="0",job="01",scheduler="slurm",user="alice"} 1.0',
        'npu_device_job_info{device_id="0",job="02",scheduler="slurm",user="alice"} 1.0',
        'npu_device_job_memory_bytes{device_id="0",job="01",scheduler="slurm"} 2.097152e+06',
        'npu_device_job_memory_bytes{device_id="0",job="02",scheduler="slurm"} 1.048576e+06',
    ]
    many = device(0, jobs=DeviceJobs(tuple(holds(number) for number in range(20))))
    shown = [line for line in page(outcome([many])) if line.startswith("npu_device_job_")]
    assert len(shown) == 2 * 17
    assert 'npu_device_job_memory_bytes{device_id="0",scheduler="other"} 4.194304e+06' in shown


def test_memory_of_nobody_is_what_is_used_less_what_is_listed() -> None:
    listed = device(0, processes=(process("a"),))
    assert unattributed_bytes(listed) == 1 << 30
    assert unattributed_bytes(replace(listed, processes=())) == 3 << 30
    assert unattributed_bytes(replace(listed, processes=None)) is None
    assert unattributed_bytes(replace(listed, memory={})) is None
