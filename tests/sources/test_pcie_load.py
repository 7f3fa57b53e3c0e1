"""Which way of measuring PCIe load a node has, what is run for it, and what its answer means for each device."""

from __future__ import annotations

import shutil
import time
from dataclasses import replace
from pathlib import Path

import pytest

from npu_watchd.model.ids import DeviceKey
from npu_watchd.model.pcie import PcieLoad
from npu_watchd.model.reading import Failure, FailureKind, Output
from npu_watchd.parsers import perf_stat
from npu_watchd.sources import pcie_load
from npu_watchd.sources.pcie_load import Available, Backend, PcieUnit, choose
from npu_watchd.sources.runner import ToolRunner
from tests.parsers.texts import CAPTURES

NOTHING = Available(dcmi_chips=False, units=(), perf=False, intel=False, pcm=False)
UNIT, SIBLING, FAR = (
    PcieUnit("hisi_pcie2_core0", 0xC0),
    PcieUnit("hisi_pcie2_core1", 0xC0),
    PcieUnit("hisi_pcie0_core0", 0x00),
)
KUNPENG = replace(NOTHING, units=(UNIT, SIBLING, FAR), perf=True)
INTEL = replace(NOTHING, intel=True, pcm=True)
PATHS = {
    DeviceKey(0): ("0000:c0:01.0", "0000:c1:00.0"),
    DeviceKey(1): ("0000:c0:02.0", "0000:c2:00.0"),
}


@pytest.mark.parametrize(
    ("has", "backend"),
    [
        (replace(NOTHING, dcmi_chips=True), Backend.DCMI),
        (replace(KUNPENG, dcmi_chips=True), Backend.DCMI),
        (KUNPENG, Backend.PERF),
        (replace(INTEL, dcmi_chips=True), Backend.DCMI),
        (INTEL, Backend.PCM),
    ],
)
def test_the_way_that_sees_single_devices_is_taken(has: Available, backend: Backend) -> None:
    assert choose(has) is backend


@pytest.mark.parametrize(
    ("has", "words"),
    [
        (NOTHING, "no 910B with DCMI, no hisi_pcie unit (Kunpeng: load hisi_pcie_pmu) and no Intel CPU on this node"),
        (replace(KUNPENG, perf=False), "this Kunpeng has the counters, but no perf; install it"),
        (replace(INTEL, pcm=False), "pcm-pcie would, by socket only: install it"),
        (replace(NOTHING, perf=True, pcm=True), "no 910B with DCMI"),
    ],
)
def test_a_node_without_any_way_is_unsupported_and_told_what_is_missing(has: Available, words: str) -> None:
    answer = choose(has)
    assert isinstance(answer, Failure)
    assert answer.kind is FailureKind.UNSUPPORTED
    assert words in answer.detail


def test_the_units_of_the_kernel_are_found_with_their_bus_and_others_are_not(tmp_path: Path) -> None:
    devices = tmp_path / "devices"
    for name, bus in {
        "hisi_pcie2_core0": "0xc0\n",
        "hisi_pcie0_core0": "0x00\n",
        "hisi_pcie1_core0": "rubbish\n",
        "hisi_sccl1_ddrc0": "0x00\n",
    }.items():
        (devices / name).mkdir(parents=True)
        (devices / name / "bus").write_text(bus)
    (devices / "hisi_pcie3_core0").mkdir()
    links = tmp_path / "bus/event_source/devices"
    links.mkdir(parents=True)
    for folder in devices.iterdir():
        (links / folder.name).symlink_to(f"../../../devices/{folder.name}")
    found = pcie_load.units(tmp_path)
    assert not isinstance(found, Failure)
    known = {unit.name: unit.bus for unit in found}
    unread = Failure(FailureKind.MISSING, f"{devices}/hisi_pcie3_core0/bus: No such file or directory")
    rubbish = Failure(FailureKind.UNPARSEABLE, f"{links}/hisi_pcie1_core0/bus: 'rubbish' is no PCI bus")
    assert known == {FAR.name: 0x00, UNIT.name: 0xC0, "hisi_pcie1_core0": rubbish, "hisi_pcie3_core0": unread}
    assert pcie_load.units(tmp_path / "none") == ()


def test_units_that_cannot_be_listed_are_not_taken_for_none(tmp_path: Path) -> None:
    folder = tmp_path / "bus/event_source/devices"
    folder.parent.mkdir(parents=True)
    folder.symlink_to(folder.name)
    found = pcie_load.units(tmp_path)
    assert isinstance(found, Failure)
    assert found.detail == f"{folder}: Too many levels of symbolic links"


def test_intel_is_known_by_its_vendor_id() -> None:
    assert pcie_load.is_intel("processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\n")
    assert not pcie_load.is_intel("processor\t: 0\nvendor_id\t: AuthenticAMD\n")
    assert not pcie_load.is_intel("processor\t: 0\nCPU implementer\t: 0x48\n")


def test_perf_asks_every_unit_on_the_bus_of_a_devices_root_port() -> None:
    paths = {DeviceKey(0): ("0000:c0:01.0", "0000:c0:02.0", "0000:c1:1f.7")}
    assert pcie_load.perf_argv("perf", paths, (UNIT, SIBLING, FAR)) == (
        *("perf", "stat", "-a", "-x", ";", "--log-fd", "1", "-e"),
        "hisi_pcie2_core0/event=0x0104,bdf=0xc1ff/,hisi_pcie2_core0/event=0x1005,bdf=0xc1ff/,"
        "hisi_pcie2_core1/event=0x0104,bdf=0xc1ff/,hisi_pcie2_core1/event=0x1005,bdf=0xc1ff/",
        *("--", "sleep", "0.5"),
    )


def test_the_bdf_of_the_kernels_documentation_is_ours_too() -> None:
    argv = pcie_load.perf_argv("perf", {DeviceKey(0): ("0000:00:08.0", "0000:39:00.0")}, (FAR,))
    assert not isinstance(argv, Failure)
    assert "bdf=0x3900/" in argv[8]


def test_chips_that_share_an_address_are_counted_once_and_both_have_the_load() -> None:
    path = ("0000:00:08.0", "0000:39:00.0")
    argv = pcie_load.perf_argv("perf", {DeviceKey(8, 0): path, DeviceKey(8, 1): path}, (FAR,))
    assert not isinstance(argv, Failure)
    assert argv[8].count("event=0x0104") == 1
    text = f"250;;{FAR.name}/event=0x0104,bdf=0x3900/;500000000;100.00;;\n"
    loads = pcie_load.perf_loads(Output(text), {DeviceKey(8, 0): path, DeviceKey(8, 1): path})
    assert loads == dict.fromkeys((DeviceKey(8, 0), DeviceKey(8, 1)), PcieLoad(None, 2000.0, 0.5, "perf"))


@pytest.mark.parametrize("path", [("0000:80:00.0", "0000:81:00.0"), ("0001:c0:01.0", "0001:c1:00.0")])
def test_devices_that_no_unit_watches_are_not_asked_for(path: tuple[str, ...]) -> None:
    answer = pcie_load.perf_argv("perf", {DeviceKey(0): path}, (UNIT, FAR))
    assert isinstance(answer, Failure)
    assert answer.kind is FailureKind.UNSUPPORTED


def test_perfs_counts_are_bytes_a_second_of_each_device_as_it_sees_the_directions() -> None:
    text = (CAPTURES / "pcie/perf-stat__csv_semicolon__two_npus.txt").read_text()
    loads = pcie_load.perf_loads(Output(text), PATHS)
    assert loads == {
        DeviceKey(0): PcieLoad(4e9 / 0.50001234, 1e9 / 0.50001234, 0.50001234, "perf"),
        DeviceKey(1): PcieLoad(None, 0.0, 0.50001234, "perf"),
    }


def test_a_device_that_perf_did_not_count_is_unsupported_and_not_idle() -> None:
    text = "".join(
        f"<not supported>;;hisi_pcie2_core0/event={code},bdf=0xc100/;0;100.00;;\n" for code in ("0x0104", "0x1005")
    )
    assert pcie_load.perf_loads(Output(text), PATHS) == {
        DeviceKey(0): Failure(FailureKind.UNSUPPORTED, "perf: not supported: no hisi_pcie unit counts 0000:c1:00.0"),
        DeviceKey(1): Failure(FailureKind.UNSUPPORTED, "perf: not counted: no hisi_pcie unit counts 0000:c2:00.0"),
    }


def test_a_unit_that_cannot_be_read_is_named_where_no_other_counts_and_nothing_is_called_unsupported() -> None:
    denied = Failure(FailureKind.DENIED, "…/hisi_pcie0_core0/bus: Permission denied")
    units = (UNIT, PcieUnit("hisi_pcie0_core0", denied))
    argv = pcie_load.perf_argv("perf", PATHS, units)
    assert not isinstance(argv, Failure)
    assert "hisi_pcie0_core0" not in argv[8]
    counted = Output(f"250;;{UNIT.name}/event=0x0104,bdf=0xc100/;500000000;100.00;;\n")
    assert pcie_load.perf_loads(counted, PATHS, units) == {
        DeviceKey(0): PcieLoad(None, 2000.0, 0.5, "perf"),
        DeviceKey(1): Failure(
            FailureKind.DENIED,
            "perf: not counted: no hisi_pcie unit counts 0000:c2:00.0, but 1 of them could not be read, which may: "
            "hisi_pcie0_core0: …/hisi_pcie0_core0/bus: Permission denied",
        ),
    }


def test_a_device_outside_of_pci_domain_0_is_not_given_anothers_counts() -> None:
    text = (CAPTURES / "pcie/perf-stat__csv_semicolon__two_npus.txt").read_text()
    loads = pcie_load.perf_loads(Output(text), {DeviceKey(0): ("0001:c0:01.0", "0001:c1:00.0")})
    assert not isinstance(loads, Failure)
    assert isinstance(loads[DeviceKey(0)], Failure)


def test_two_units_that_count_one_device_are_not_believed() -> None:
    text = "".join(f"5;;{unit.name}/event=0x0104,bdf=0xc100/;500000000;100.00;;\n" for unit in (UNIT, SIBLING))
    loads = pcie_load.perf_loads(Output(text), {DeviceKey(0): PATHS[DeviceKey(0)]})
    assert loads == {
        DeviceKey(0): Failure(FailureKind.UNPARSEABLE, "two hisi_pcie units count 0000:c1:00.0: neither can be trusted")
    }


def test_perf_that_refuses_on_stderr_is_understood() -> None:
    answer = Output("", "event syntax error: 'hisi_pcie0_core0/…'\n  \\___ Cannot find PMU `hisi_pcie0_core0'.\n", 129)
    failure = pcie_load.perf_loads(answer, PATHS)
    assert isinstance(failure, Failure)
    assert failure.kind is FailureKind.UNSUPPORTED


def test_perf_that_fails_in_words_unknown_to_us_is_quoted() -> None:
    assert pcie_load.perf_loads(Output("", "Workload failed: No such file or directory\n", 254), PATHS) == Failure(
        FailureKind.EXIT, "perf: exit code 254: Workload failed: No such file or directory"
    )


def test_real_perf_refuses_a_unit_that_the_kernel_lacks_and_counts_in_the_form_that_we_read() -> None:
    perf = shutil.which("perf")
    if perf is None:
        pytest.skip("needs perf (Debian's linux-perf) to see what it really says")
    runner = ToolRunner(clock=time.monotonic)
    argv = pcie_load.perf_argv(perf, PATHS, (PcieUnit("hisi_pcie77_core0", 0xC0),), window_s=0.01)
    assert not isinstance(argv, Failure)
    answer = runner.run(argv, 20.0)
    counted = runner.run((*argv[:8], "task-clock", *argv[9:]), 20.0)
    runner.close()
    assert isinstance(answer, Output)
    failure = pcie_load.perf_loads(answer, PATHS)
    assert isinstance(failure, Failure)
    assert failure.kind is FailureKind.UNSUPPORTED
    assert isinstance(counted, Output)
    if "is limited" in counted.stderr:
        pytest.skip("this user may not count system-wide")
    (counter,) = perf_stat.parse(counted.text).counters
    assert counter.event == "task-clock"
    assert counter.value is not None
    assert counter.value > 0


def fake(tool: Path, script: str) -> str:
    tool.write_text(f"#!/bin/sh\n{script}\n")
    tool.chmod(0o755)
    return str(tool)


def test_a_perf_that_answers_is_asked_in_words_that_name_each_device_and_is_read(tmp_path: Path) -> None:
    capture = CAPTURES / "pcie/perf-stat__csv_semicolon__two_npus.txt"
    perf = fake(tmp_path / "perf", f'for word in "$@"; do echo "$word"; done > {tmp_path}/asked\ncat {capture}')
    runner = ToolRunner(clock=time.monotonic)
    argv = pcie_load.perf_argv(perf, PATHS, (UNIT,))
    assert not isinstance(argv, Failure)
    answer = runner.run(argv, 10.0)
    runner.close()
    assert isinstance(answer, Output)
    loads = pcie_load.perf_loads(answer, PATHS)
    assert not isinstance(loads, Failure)
    assert loads[DeviceKey(0)] == PcieLoad(4e9 / 0.50001234, 1e9 / 0.50001234, 0.50001234, "perf")
    assert (tmp_path / "asked").read_text().splitlines()[7].split("/,") == [
        "hisi_pcie2_core0/event=0x0104,bdf=0xc100",
        "hisi_pcie2_core0/event=0x1005,bdf=0xc100",
        "hisi_pcie2_core0/event=0x0104,bdf=0xc200",
        "hisi_pcie2_core0/event=0x1005,bdf=0xc200/",
    ]
