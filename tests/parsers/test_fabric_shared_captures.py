"""Outputs of real ibstat, rdma and hccn_tool, where NPU_WATCHD_CAPTURES names a folder of them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from npu_watchd.model.fabric import (
    Limits,
    NetHealth,
    NpuLink,
    NpuLinkHistory,
    NpuLinkSpeed,
    NpuPortStatistics,
    OpticalModule,
)
from npu_watchd.model.reading import Failure, FailureKind, Output
from npu_watchd.parsers import hccn, hccn_stat, ibstat, rdma_link
from npu_watchd.parsers.hccn_words import is_busy, read
from npu_watchd.parsers.lines import ParseError
from tests.parsers.fabric_texts import PARSERS
from tests.parsers.test_cuts import cuts, excesses
from tests.parsers.test_fabric_cuts import unremarked
from tests.parsers.texts import refused

ROOT = Path(os.environ.get("NPU_WATCHD_CAPTURES", "/nonexistent"))
pytestmark = pytest.mark.skipif(not ROOT.is_dir(), reason="NPU_WATCHD_CAPTURES names no folder of real outputs")

IBSTAT = sorted(
    path
    for path in (ROOT / "ibstat").glob("*.txt")
    if not path.name.startswith(("ibdev2netdev", "ibstatus", "ibv_", "rdma_", "sminfo"))
)
RDMA = sorted((ROOT / "ibstat").glob("rdma_link_*.txt"))
OTHERS = sorted(set((ROOT / "ibstat").glob("*.txt")) - {*IBSTAT, *RDMA})
COMMANDS = {
    "link": "hccn-link",
    "link_stat": "hccn-link-stat",
    "speed": "hccn-speed",
    "net_health": "hccn-net-health",
    "stat": "hccn-stat",
    "optical": "hccn-optical",
    "optical_v2": "hccn-optical",
}
BUILT = [
    path for path in sorted((ROOT / "hccn_tool-built").glob("hccn__*.txt")) if path.stem.split("__")[1] in COMMANDS
]
# ports, of which Active and LinkUp, and of which Down, by file.
COUNTS = {
    "ib_initializing_azure_flat": (1, 0, 0),
    "ib_mlx5_8_down_disabled_partial": (1, 0, 1),
    "ib_mlx5_8ports_then_ibpanic_exit255": (8, 8, 0),
    "ib_mlx5_h100_all_active_0": (12, 12, 0),
    "ib_mlx5_h100_all_active_1": (12, 12, 0),
    "ib_mlx5_h100_down_polling": (12, 10, 2),
    "ib_vf_down_but_linkup": (1, 0, 1),
    "ibstat_mlx5_nodescraper": (1, 1, 0),
    "mlx4_port1_disabled_port2_active_ibwarn_partial": (2, 1, 1),
    "roce_openshift_10ca_vfs_7_down": (10, 3, 7),
    "roce_rxe0_fdr10": (1, 1, 0),
    "roce_rxe0_rate_2.5": (1, 1, 0),
}


def text_of(path: Path) -> str:
    return path.read_bytes().decode("utf-8", "replace")


@pytest.mark.parametrize("path", IBSTAT, ids=lambda path: path.stem)
def test_ibstat_gives_every_port_or_the_reason(path: Path) -> None:
    if path.stem.startswith("ibpanic"):
        assert refused(ibstat.parse, text_of(path)).kind is FailureKind.EXIT
        return
    found = ibstat.parse(text_of(path))
    ports = found.ports
    assert len(ports) == text_of(path).count("Physical state:")
    assert ("ibpanic" in text_of(path)) == any("ibpanic" in error for error in found.errors)
    if path.stem in COUNTS:
        assert (len(ports), sum(port.up is True for port in ports), sum(port.state == "Down" for port in ports)) == (
            COUNTS[path.stem]
        )


@pytest.mark.parametrize("path", RDMA, ids=lambda path: path.stem)
def test_rdma_link_gives_every_link(path: Path) -> None:
    found = rdma_link.parse(text_of(path))
    assert len(found.ports) == text_of(path).count("link ")
    assert found.errors == ()
    assert found.unknown_keys == ()
    assert all(port.state in ("Active", "Down") for port in found.ports)


@pytest.mark.parametrize("path", OTHERS, ids=lambda path: path.stem)
def test_what_neither_tool_prints_is_refused(path: Path) -> None:
    parse = rdma_link.parse if path.stem.startswith("rdma_") else ibstat.parse
    with pytest.raises(ParseError):
        parse(text_of(path))


@pytest.mark.parametrize("path", [*IBSTAT, *RDMA], ids=lambda path: path.stem)
def test_every_cut_of_ports_is_an_error_or_a_subset(path: Path) -> None:
    text = text_of(path)
    step = 1 if len(text) < 3000 else 37
    parse = rdma_link.parse if path in RDMA else ibstat.parse
    some = ((end, part) for end, part in cuts(text, step) if part)
    assert excesses(unremarked(parse), text, some) == []


def built(name: str) -> Any:
    """What we make of an output of the built tool, both streams of it."""
    path = ROOT / "hccn_tool-built" / f"hccn__{name}.txt"
    if not path.exists():
        pytest.skip(f"no {path.name}")
    return read(output_of(path), PARSERS[COMMANDS[name.partition("__")[0]]])


def output_of(path: Path) -> Output:
    stderr = path.with_suffix(".stderr")
    return Output(text_of(path), text_of(stderr) if stderr.exists() else "", 0)


@pytest.mark.parametrize("path", BUILT, ids=lambda path: path.stem)
def test_the_built_tool_is_understood_or_its_own_words_are_shown(path: Path) -> None:
    _, command, state = path.stem.split("__")
    output = output_of(path)
    found = read(output, PARSERS[COMMANDS[command]])
    failing = state.startswith(("res_", "drv", "bad_", "dev_100", "health_fail_300s", "health_fail_forever"))
    failing |= (command, state) == ("link", "absent")
    assert isinstance(found, Failure) == failing, found
    if isinstance(found, Failure):
        assert found.kind is not FailureKind.UNPARSEABLE
        first = (output.stderr or output.text).partition("\n")[0]
        assert found.detail.startswith(first)
    assert is_busy(output) == ("BUSY" in state or "LOCK" in state)


@pytest.mark.parametrize(
    "path", [path for path in BUILT if path.stem.split("__")[1] in COMMANDS], ids=lambda path: path.stem
)
def test_every_cut_of_the_built_tools_answer_is_an_error_or_a_subset(path: Path) -> None:
    parse = PARSERS[COMMANDS[path.stem.split("__")[1]]]
    text = text_of(path)
    assert excesses(parse, text, cuts(text, 1 if len(text) < 1500 else 13)) == []


def test_literal_answers_of_the_built_tool() -> None:
    assert built("link__down") == NpuLink(up=False)
    assert built("net_health__1") == NetHealth("Socket fail")
    assert built("speed__ok") == NpuLinkSpeed(200_000_000_000)
    assert built("speed__-1") == built("speed__0") == NpuLinkSpeed(None)
    history = built("link_stat__10records")
    assert isinstance(history, NpuLinkHistory)
    assert (history.up_count, history.down_count, history.up, len(history.changes or ())) == (1041, 1042, False, 10)
    assert built("link_stat__never_up") == NpuLinkHistory(0, "2025-11-30T14:19:05", 0, 0, None, ())
    counters = built("stat__nonzero")
    assert isinstance(counters, NpuPortStatistics)
    assert (counters.packets, counters.retries) == ({"receive": 1024, "transmit": 1020}, 1042)
    assert (counters.pfc_frames, len(counters.counters)) == ({"receive": 8124, "transmit": 8052}, 48)
    assert built("stat__big").packets["transmit"] == 2**64 - 1


def test_literal_optics_of_the_built_tool() -> None:
    dark = built("optical__rx_los")
    assert isinstance(dark, OpticalModule)
    assert [lane.receive_los for lane in dark.lanes] == [True, False, True, False]
    assert [lane.receive_watts for lane in dark.lanes] == [0.0, 0.000987, 0.0, 0.000987]
    assert dark.receive_limits == Limits(high_warning=0.0034673, low_warning=7.76e-05)
    assert (built("optical__absent").present, built("optical__absent").vendor_name) == (False, None)
    assert built("optical__hot").temperature_celsius == 78.0
    assert built("optical__vcc0").voltage_volts is None
    assert built("optical_v2__absent").present is None
    assert built("optical_v2__ok").lanes[0].transmit_watts == 0.001023293


def sessions() -> Iterator[tuple[str, str, str]]:
    """File, kind and answer of each of our commands in the recorded sessions."""
    for path in sorted((ROOT / "hccn_tool").glob("session_*.txt")):
        parts = re.split(r"(?m)^(/?usr/local/Ascend/driver/tools/hccn_tool -i \d+ -(\w+) -g)\n", text_of(path))
        for _, command, answer in zip(parts[1::3], parts[2::3], parts[3::3], strict=True):
            if command in COMMANDS:
                yield path.stem, COMMANDS[command], answer.partition("\n\n")[0] + "\n"


def test_recorded_sessions_are_read_to_the_last_device() -> None:
    found = [(name, PARSERS[kind](answer)) for name, kind, answer in sessions()]
    assert len(found) == 34
    histories = [record for _, record in found if isinstance(record, NpuLinkHistory)]
    assert {(history.up_count, history.down_count) for history in histories} == {(2, None)}
    down = [history.device_id for name, history in found if isinstance(history, NpuLinkHistory) and not history.up]
    assert down == [0, 3, 0]
    errors = [record.errors for _, record in found if isinstance(record, NpuPortStatistics)]
    assert {"receive_roce": 13, "transmit_roce": 77} in errors


@pytest.mark.parametrize(
    ("name", "kind", "record"),
    [
        ("busy", "hccn-link", None),
        ("net_health_fault", "hccn-net-health", NetHealth("Fault")),
        ("net_health_success", "hccn-net-health", NetHealth("Success")),
        ("a950_speed_table", "hccn-speed", NpuLinkSpeed(400_000_000_000, 4, 4, "normal", 0, 4)),
        ("a950_vnic", "hccn-link", None),
        ("a950_ub_connect_partial", "hccn-link", None),
    ],
)
def test_answers_from_manuals_and_reports(name: str, kind: str, record: Any) -> None:
    path = ROOT / "hccn_tool" / f"{name}.txt"
    if not path.exists():
        pytest.skip(f"no {path.name}")
    found = read(Output(text_of(path)), PARSERS[kind])
    assert (isinstance(found, Failure) and record is None) or found == record


def test_histories_from_manuals_and_reports() -> None:
    paths = [ROOT / "hccn_tool" / f"{name}.txt" for name in ("a950_link_stat_table", "link_stat_report_table")]
    if not all(path.exists() for path in paths):
        pytest.skip("no such captures")
    box, report = (hccn.link_history(text_of(path)) for path in paths)
    assert (box.up_count, box.down_count, box.up, box.udie, box.port, len(box.changes or ())) == (2, 2, True, 0, 4, 4)
    assert report.changes is not None
    assert (report.device_id, report.up, report.changes[0].seconds_ago) == (2, False, 163)


def test_no_other_text_of_the_folder_is_read_as_counters() -> None:
    for path in sorted((ROOT / "hccn_tool").glob("a950_*.txt")):
        with pytest.raises(ParseError):
            hccn_stat.parse(text_of(path))
