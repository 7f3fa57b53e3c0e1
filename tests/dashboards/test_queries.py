"""What the dashboards show of simulated nodes, by a real Prometheus with our rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from npu_watchd.reference.grafana import FLEET, NODE
from npu_watchd.reference.grafana.panel import Kind, Panel
from tests.dashboards.stage import PLAY, SILENT, Stage, stage

EIGHT = tuple("01234567")
NODE_PANELS = {panel.title: panel for panel in NODE.panels}
FLEET_PANELS = {panel.title: panel for panel in FLEET.panels}


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with stage(tmp_path_factory.mktemp("dashboards")) as ready:
        yield ready


def each(word: str | float, **others: str | float) -> dict[str, str | float]:
    """All eight devices show the same, but those that are named `d3`."""
    return dict.fromkeys(EIGHT, word) | {name.removeprefix("d"): other for name, other in others.items()}


SHOWN: Mapping[str, Mapping[str, object]] = {
    "quiet": {
        "Verdict of the node": {"": "healthy"},
        "Daemon": {"": "answers"},
        "Devices: present, expected": {"present": 8, "expected": 8},
        "Versions": {("sim-quiet", "25.5.1", "25.5.1", "7.8.0.6.201")},
        "Findings: why": set(),
        "Verdicts": each("healthy"),
        "Health, as npu-smi has it": each("ok"),
        "Error codes that are active": set(),
        "In the newest table": each("yes"),
        "Jobs on each device": each(1),
        "Whose they are": {("3", "21000", "8")},
        "The NPUs' own ports": each("up"),
        "The host's ports": {"mlx5_0/1": "up", "mlx5_1/1": "up"},
        "Lanes missing": each(0),
        "Failures in an hour": {},
        "Processes killed for want of memory, in 1h": {"kills": 0},
    },
    "double_bit_then_reset": {
        "Verdict of the node": {"": "quarantine"},
        "Findings: why": {
            ("hbm_double_bit", "critical", "3", "", ""),
            ("device_unhealthy", "critical", "3", "", ""),
            ("quarantine", "critical", "3", "", ""),
            ("error_code", "warning", "3", "", ""),
        },
        "Verdicts": each("healthy", d3="quarantine"),
        "Health, as npu-smi has it": each("ok", d3="alarm"),
        "Error codes that are active": {("3", "80e01801", "rerun_job")},
        "Uncorrectable errors since reset": {f"{device} hbm": 2 if device == "3" else 0 for device in EIGHT},
    },
    "two_jobs_one_device": {
        "Verdict of the node": {"": "watch"},
        "Findings: why": {("jobs_share_device", "warning", "3", "", "")},
        "Verdicts": each("healthy", d3="watch"),
        "Jobs on each device": each(1, d3=2, d7=0),
        "Who is on it": {
            *((device, "slurm", "4711", "2.24395e+10") for device in "0123"),
            *((device, "slurm", "4712", "2.52707e+10") for device in "3456"),
        },
        "Whose they are": {("4711", "21736", "4"), ("4712", "21105", "4")},
        "Processes": each(1, d3=2, d7=0),
    },
    "roce_down": {
        "Verdict of the node": {"": "watch"},
        "Findings: why": {("roce_down", "critical", "5", "", ""), ("roce_slow", "warning", "", "mlx5_1", "1")},
        "The NPUs' own ports": each("up", d5="down"),
        "The host's ports": {"mlx5_0/1": "down", "mlx5_1/1": "up"},
        "Whom the NPUs reach": {
            *((device, "success") for device in "013467"),
            ("2", "receive_timeout"),
            ("5", "fault"),
        },
    },
    "driver_gone": {
        "Verdict of the node": {"": "unknown"},
        "Devices: present, expected": {"expected": 8},
        "Versions": {("sim-driver-gone", "", "", "7.8.0.6.201")},
        "Findings: why": {("probe_blind", "warning", "", "", "")},
        "Verdicts": each("unknown"),
        "Health, as npu-smi has it": each("unknown"),
        "The host's ports": {"mlx5_0/1": "up", "mlx5_1/1": "up"},
        "In the newest table": {},
        "Jobs on each device": {},
        "Processes": {},
        "Memory that no process has": {},
        "The NPUs' own ports": {},
        "Optical modules": {},
        "Light received, by lane": {},
        "Chip temperature": {},
        "Memory temperature": {},
        "Power": {},
        "AICore utilisation": {},
        "AICore clock": {},
        "Memory in use": {},
        "Memory in use, of all there is": {},
        "Error codes that are active": set(),
        "Whom the NPUs reach": set(),
        "Who is on it": set(),
    },
    SILENT: {
        "Verdict of the node": {},
        "Daemon": {"": "does not answer"},
        "Devices: present, expected": {},
        "Findings: why": {
            ("device_missing", "critical", "5", "", ""),
            ("quarantine", "critical", "5", "", ""),
        },
        "Verdicts": {},
        "Chip temperature": {},
        "The host's ports": {},
        "Lanes missing": {},
    },
}


@pytest.mark.parametrize(
    ("node", "title"), [(node, title) for node, panels in SHOWN.items() for title in panels], ids=str
)
def test_a_nodes_panel_shows_what_is_true(node: str, title: str, played: Stage) -> None:
    panel = NODE_PANELS[title]
    shown = played.rows(panel, node) if panel.kind is Kind.TABLE else played.series(panel, node)
    assert shown == SHOWN[node][title]


def test_errors_that_climbed_stand_above_the_line_of_the_limit(played: Stage) -> None:
    panel = NODE_PANELS["Corrected errors in an hour"]
    (line,) = panel.lines
    shown = played.series(panel, "hbm_storm")
    assert {name for name, value in shown.items() if float(value) > line.value} == {"3 hbm"}
    assert set(played.series(panel, "quiet").values()) == {0}


def test_a_full_link_stands_above_the_line_of_the_limit(played: Stage) -> None:
    panel = NODE_PANELS["Load"]
    (line,) = panel.lines
    assert any(float(value) > line.value for value in played.series(panel, "pcie_saturated").values())
    assert played.series(panel, "quiet") == {}


def test_a_probe_that_fails_is_shown_as_failed(played: Stage) -> None:
    gone = played.series(NODE_PANELS["What could be read"], "driver_gone")
    assert (gone["npu_info"], gone["npu_ecc"], gone["hccn_link"], gone["ibstat"]) == (
        "failed",
        "failed",
        "failed",
        "read",
    )
    down = played.series(NODE_PANELS["What could be read"], "roce_down")
    assert {probe for probe, word in down.items() if word == "failed"} == {"hccn_speed"}
    assert set(played.series(NODE_PANELS["What could be read"], "quiet").values()) == {"read"}


@pytest.mark.parametrize("panel", NODE.panels, ids=lambda panel: panel.title)
def test_every_query_of_a_panel_finds_something_on_one_of_the_nodes(panel: Panel, played: Stage) -> None:
    found = [any(results) for results in zip(*(played.results(panel, node) for node in PLAY), strict=True)]
    assert found == [True] * len(panel.queries)


@pytest.mark.parametrize("panel", [*NODE.panels, *FLEET.panels], ids=lambda panel: panel.title)
def test_names_in_a_legend_differ_also_where_a_series_ends(panel: Panel, played: Stage) -> None:
    if panel.kind not in (Kind.TABLE, Kind.STAT):
        for node in ("driver_gone", "two_jobs_one_device"):
            names = played.names_over_time(panel, node)
            assert len(set(names)) == len(names)


def fleet(played: Stage, title: str) -> object:
    panel = FLEET_PANELS[title]
    shown = played.rows(panel) if panel.kind is Kind.TABLE else played.series(panel)
    addresses = {node.instance for node in played.nodes.values()}
    if not isinstance(shown, set):
        return shown
    assert {row[panel_column(panel, "instance")] for row in shown if "instance" in panel.columns} <= addresses
    return {tuple("…" if text in addresses else text for text in row) for row in shown}


def panel_column(panel: Panel, name: str) -> int:
    return list(panel.columns).index(name)


FLEET_SHOWN: Mapping[str, object] = {
    "Nodes by verdict": {"healthy": 2, "watch": 4, "probation": 0, "unknown": 1, "quarantine": 1},
    "Nodes that do not answer": {"": 1},
    "Devices by verdict": {"healthy": 52, "watch": 7, "probation": 0, "unknown": 8, "quarantine": 1},
    "Share in quarantine": {"in quarantine": pytest.approx(2 / 9)},
    "Nodes that are not healthy": {
        ("sim-double-bit-then-reset", "quarantine", "…", ""),
        ("sim-driver-gone", "unknown", "…", ""),
        ("sim-hbm-storm", "watch", "…", ""),
        ("sim-pcie-saturated", "watch", "…", ""),
        ("sim-roce-down", "watch", "…", ""),
        ("sim-two-jobs-one-device", "watch", "…", ""),
    },
    "Blind nodes": {
        ("sim-device-lost", "its daemon does not answer", "…", ""),
        ("sim-driver-gone", "its verdict is unknown", "…", ""),
    },
    "Ports down, by node": {
        "sim-roce-down": 2,
        "sim-double-bit-then-reset": 0,
        "sim-hbm-storm": 0,
        "sim-pcie-saturated": 0,
        "sim-quiet": 0,
        "sim-two-jobs-one-device": 0,
    },
    "Findings by rule": {
        ("device_missing", "critical", "1"),
        ("device_unhealthy", "critical", "1"),
        ("device_unhealthy", "warning", "1"),
        ("error_code", "warning", "1"),
        ("hbm_double_bit", "critical", "1"),
        ("hbm_single_bit", "warning", "1"),
        ("jobs_share_device", "warning", "1"),
        ("pcie_load", "warning", "4"),
        ("probe_blind", "warning", "1"),
        ("quarantine", "critical", "2"),
        ("roce_down", "critical", "1"),
        ("roce_slow", "warning", "1"),
    },
    "The worst 20 devices and ports of 28 days": {("sim-double-bit-then-reset", "3", "", "", "2", "…")},
    "The worst 20 nodes of 28 days": {("sim-double-bit-then-reset", "2", "…", "")},
    "Drivers and tools": {
        ("25.5.1", "25.5.1", "7.8.0.6.201", "6"),
        ("25.2.0", "25.2.0", "7.8.0.6.201", "1"),
        ("", "", "7.8.0.6.201", "1"),
    },
    "Chips and firmware": {
        ("910B3", "7.8.0.6.201", "48"),
        ("Ascend910", "7.8.0.6.201", "16"),
        ("310P3", "7.8.0.6.201", "4"),
    },
    "Versions of npu-watchd": {("0.1.0", "8")},
}


@pytest.mark.parametrize("title", FLEET_SHOWN)
def test_a_panel_of_the_fleet_shows_what_is_true(title: str, played: Stage) -> None:
    assert fleet(played, title) == FLEET_SHOWN[title]


def test_the_fleet_says_what_a_blind_node_cannot_read(played: Stage) -> None:
    rows = fleet(played, "What they cannot read")
    assert isinstance(rows, set)
    assert {("sim-roce-down", "hccn_speed", "1", "…"), ("sim-driver-gone", "npu_ecc", "8", "…")} <= rows
    assert {row[0] for row in rows} == {"sim-roce-down", "sim-driver-gone"}


def test_alerts_of_prometheus_own_are_among_those_that_fire(played: Stage) -> None:
    rows = fleet(played, "Alerts that fire in Prometheus")
    assert isinstance(rows, set)
    assert {("NpuFleetQuarantineShare", "critical", "1"), ("NpuDeviceMissing", "critical", "1")} <= rows
