"""lspci, perf stat and pcm-pcie: what we take from them, and what we refuse."""

from __future__ import annotations

import pytest

from npu_watchd.model.pcie_tools import LspciDevice, PcieSocketLoad, PerfCounter
from npu_watchd.model.reading import FailureKind
from npu_watchd.parsers import lspci, pcm, perf_stat
from tests.parsers.texts import CAPTURES, refused, said

PCIE = CAPTURES / "pcie"
ACCELERATOR = "Processing accelerators"
ROOT_PORT = "Huawei Technologies Co., Ltd. HiSilicon PCIe Root Port with Gen4"
D802 = "Huawei Technologies Co., Ltd. Device d802"


def text(name: str) -> str:
    return (PCIE / f"{name}.txt").read_text()


# lspci


def test_plain_lspci_names_devices_and_marks_the_one_that_does_not_answer() -> None:
    devices = lspci.parse(text("lspci__plain__kunpeng_one_npu_gone")).devices
    assert [(device.address, device.class_name, device.name, device.answers) for device in devices] == [
        ("0000:01:00.0", "Ethernet controller", "Mellanox Technologies MT27800 Family [ConnectX-5]", True),
        (
            "0000:06:00.0",
            "VGA compatible controller",
            "Huawei Technologies Co., Ltd. Hi171x Series [iBMC Intelligent Management system chip w/VGA support]",
            True,
        ),
        ("0000:c0:01.0", "PCI bridge", ROOT_PORT, True),
        ("0000:c1:00.0", ACCELERATOR, D802, True),
        ("0000:c2:00.0", ACCELERATOR, D802, False),
    ]
    assert {device.lanes for device in devices} == {None}


def test_domain_and_ids_are_taken_where_lspci_prints_them() -> None:
    assert lspci.parse(text("lspci__Dnn__910b")).devices == (
        LspciDevice("0000:c1:00.0", ACCELERATOR, "Huawei Technologies Co., Ltd. Device", "19e5", "d802", answers=True),
        LspciDevice("0001:81:00.1", ACCELERATOR, D802, "19e5", "d802", answers=True),
    )


def test_lspci_vv_has_the_link_of_each_device_and_lspcis_judgement() -> None:
    assert lspci.parse(text("lspci__vv__narrow_and_slow")).devices == (
        LspciDevice(
            "0000:c0:01.0", "PCI bridge", ROOT_PORT, None, None, True, 8e9, 16e9, 8, 16, "downgraded", "downgraded"
        ),
        LspciDevice("0000:c1:00.0", ACCELERATOR, D802, None, None, True, 8e9, 32e9, 8, 16, "downgraded", "downgraded"),
        LspciDevice("0000:c2:00.0", ACCELERATOR, D802, None, None, answers=False),
        LspciDevice("0000:c3:00.0", ACCELERATOR, D802, None, None, True, 16e9, 16e9, 16, 16, "ok", "ok"),
        LspciDevice("0000:c4:00.0", ACCELERATOR, D802, None, None, answers=True),
    )


@pytest.mark.parametrize(
    ("status", "speed", "lanes", "judgements"),
    [
        ("Speed 2.5GT/s, Width x1, TrErr- Train- SlotClk+", 2.5e9, 1, (None, None)),
        ("Speed 16GT/s, Width x16", 16e9, 16, (None, None)),
        ("Speed unknown, Width x0", None, None, (None, None)),
        ("Speed unknown (downgraded), Width x63 (overdriven)", None, None, ("downgraded", "overdriven")),
        ("Speed 64GT/s (ok), Width x8 (downgraded)", 64e9, 8, ("ok", "downgraded")),
    ],
)
def test_the_link_status_of_old_and_new_lspci_is_read(
    status: str, speed: float | None, lanes: int | None, judgements: tuple[str | None, str | None]
) -> None:
    (device,) = lspci.parse(f"c1:00.0 Class: Name\n\t\tLnkSta:\t{status}\n").devices
    assert (device.transfers_per_second, device.lanes) == (speed, lanes)
    assert (device.speed_judgement, device.width_judgement) == judgements


def test_a_text_that_begins_within_a_device_has_one_without_address() -> None:
    (device,) = lspci.parse("\t\tLnkSta:\tSpeed 8GT/s (ok), Width x4 (ok)\n").devices
    assert (device.address, device.transfers_per_second, device.lanes) == (None, 8e9, 4)


def test_a_last_line_without_its_end_is_left_out() -> None:
    (device,) = lspci.parse("c1:00.0 Class: Name\n\t\tLnkSta:\tSpeed 8GT/s (ok), Width x1").devices
    assert (device.address, device.lanes) == ("0000:c1:00.0", None)
    assert len(perf_stat.parse("1;;a/b/;5;100.00\n2;;a/b/;5;100.0").counters) == 1
    assert len(pcm.parse("Skt,A\n0,1\n1,1").sockets) == 1


@pytest.mark.parametrize(
    ("said_by_lspci", "words"),
    [
        ("", "line 1: no device in a whole line"),
        ("\tNPU ID : 0\n", "line 1: no device and no link in the text"),
        ("lspci: Cannot open /proc/bus/pci\n", "line 1: no device line of lspci"),
        ("c1:00.0 Class: Name", "line 1: no device in a whole line"),
        ("c1:00.0 Class: Name\n\tLnkSta:\tSpeed 9GT/s, Width x16\n", "line 2: no PCIe link speed"),
        ("c1:00.0 Class: Name\n\tLnkSta:\tSpeed 8GT/s, Width x5\n", "line 2: no PCIe link width"),
        ("c1:00.0 Class: Name\n\tLnkSta:\tSpeed 8GT/s\n", "line 2: a link that we cannot read"),
    ],
)
def test_what_lspci_does_not_print_is_refused(said_by_lspci: str, words: str) -> None:
    kind, detail = said(lspci.parse, said_by_lspci)
    assert kind is FailureKind.UNPARSEABLE
    assert detail.startswith(words)


# perf stat


def test_perf_with_semicolons_has_value_unit_bdf_and_the_time_it_is_about() -> None:
    counters = perf_stat.parse(text("perf-stat__csv_semicolon__two_npus")).counters
    assert counters[0] == PerfCounter(
        event="hisi_pcie2_core0/event=0x0104,bdf=0xc100/",
        pmu="hisi_pcie2_core0",
        terms={"event": "0x0104", "bdf": "0xc100"},
        value=250_000_000.0,
        absence=None,
        enabled_s=0.50001234,
        running_ratio=1.0,
    )
    assert [(counter.value, counter.absence) for counter in counters[2:]] == [
        (None, "not supported"),
        (None, "not supported"),
        (0.0, None),
        (None, "not counted"),
    ]
    assert (counters[4].enabled_s, counters[4].running_ratio) == (0.50001234, 0.5)
    assert (counters[5].enabled_s, counters[5].running_ratio) == (None, None)


def test_perf_with_commas_is_read_although_events_hold_commas() -> None:
    counters = perf_stat.parse(text("perf-stat__csv_comma__named_event")).counters
    assert [(counter.pmu, counter.terms, counter.value) for counter in counters] == [
        ("hisi_pcie0_core1", {"rx_mrd_flux": None, "bdf": "0x3900"}, 24153.0),
        ("hisi_pcie0_core1", {"rx_mrd_cnt": None, "port": "0x1"}, 52.0),
        (None, {}, 4.21),
    ]


def test_perf_in_json_says_the_same_as_in_csv() -> None:
    counters = perf_stat.parse(text("perf-stat__json__named_event")).counters
    assert counters[0] == perf_stat.parse(text("perf-stat__csv_comma__named_event")).counters[0]
    assert counters[1].absence == "not supported"


@pytest.mark.parametrize(
    ("line", "kind", "words"),
    [
        (
            "                     \\___ Cannot find PMU `hisi_pcie0_core0'. Missing kernel support?\n",
            FailureKind.UNSUPPORTED,
            "perf: \\\\___ Cannot find PMU `hisi_pcie0_core0'. Missing kernel support? (the kernel has no such unit: "
            "load hisi_pcie_pmu, or this is no Kunpeng)",
        ),
        (
            "Access to performance monitoring and observability operations is limited.\n",
            FailureKind.DENIED,
            "perf: Access to performance monitoring and observability operations is limited. "
            "(run npu-watchd as root, or give it CAP_PERFMON)",
        ),
    ],
)
def test_perfs_own_refusals_are_told_apart(line: str, kind: FailureKind, words: str) -> None:
    assert said(perf_stat.parse, line) == (kind, words)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "1;;a/b/;5;100.00",
        "1;;a/b/;0;100.00\n",
        "1;;a/b/;5;0.00\n",
        "1;;a/b/;5;100.01\n",
        "-1;;a/b/;5;100.00\n",
        "1e9;;a/b/;5;100.00\n",
        "1;;a/b;5\n",
        "S0;32;1;;a/b/;5;100.00\n",
        '{"counter-value" : "x", "event" : "a", "event-runtime" : 1, "pcnt-running" : 1.0}\n',
        '{"counter-value" : "1", "event" : "a", "event-runtime" : 1, "pcnt-running" : \n',
        '{"interval" : 1}\n',
    ],
)
def test_no_counter_is_guessed(line: str) -> None:
    assert refused(perf_stat.parse, line).kind is FailureKind.UNPARSEABLE


# pcm-pcie


def test_pcm_has_bytes_and_events_by_socket() -> None:
    assert pcm.parse(text("pcm-pcie__icelake__two_sockets")).sockets == (
        PcieSocketLoad(
            0,
            0,
            12_009_876_544,
            1_501_313_472,
            {"PCIRdCur": 187_654_321, "ItoM": 23_456_789, "ItoMCacheNear": 1234, "UCRdF": 17, "WiL": 40960},
        ),
        PcieSocketLoad(1, 0, 26880, 5376, {"PCIRdCur": 420, "ItoM": 84, "ItoMCacheNear": 0, "UCRdF": 0, "WiL": 84}),
    )


def test_pcm_without_bytes_says_none_and_each_interval_is_a_sample() -> None:
    rows = pcm.parse(text("pcm-pcie__skylake__two_intervals_no_bytes")).sockets
    assert [(row.sample, row.read_bytes, row.write_bytes, row.events["RFO"]) for row in rows] == [
        (0, None, None, 84),
        (1, None, None, 85),
    ]


@pytest.mark.parametrize(
    ("said_by_pcm", "kind"),
    [
        (
            "Jaketown and Sapphirerapids Server CPU is required for this tool! Program aborted\n",
            FailureKind.UNSUPPORTED,
        ),
        ("ERROR: Can not open /dev/cpu/0/msr\n", FailureKind.DENIED),
        ("Error: Permission denied\n", FailureKind.DENIED),
        ("", FailureKind.UNPARSEABLE),
        ("Skt,A\n0,1", FailureKind.UNPARSEABLE),
        ("Skt,A", FailureKind.UNPARSEABLE),
        ("Skt,A\n0,1,2\n", FailureKind.UNPARSEABLE),
        ("Skt,A,B\n0,1\n", FailureKind.UNPARSEABLE),
        ("Skt,A\n0,1 K\n", FailureKind.UNPARSEABLE),
        ("Skt,A\n0,\n", FailureKind.UNPARSEABLE),
        ("Skt,A,A\n0,1,1\n", FailureKind.UNPARSEABLE),
        ("Skt,A\n0,1\n0,2\n", FailureKind.UNPARSEABLE),
        ("Skt | PCIRdCur | ItoM\n 0 7280 1092\n", FailureKind.UNPARSEABLE),
    ],
)
def test_pcm_that_cannot_count_or_be_read_is_refused(said_by_pcm: str, kind: FailureKind) -> None:
    assert refused(pcm.parse, said_by_pcm).kind is kind
