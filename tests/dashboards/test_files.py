"""deploy/grafana: what the files say, without a Prometheus."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import promql_parser
import pytest
import yaml
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard

from npu_watchd.catalogue import CATALOGUE
from npu_watchd.limits import BY_NAME
from npu_watchd.reference import recordings
from npu_watchd.reference.fleet_alerts import FLEET_ALERTS
from npu_watchd.reference.grafana import DASHBOARDS, WITHOUT_PANEL
from npu_watchd.reference.grafana.panel import Kind, Panel
from tests.dashboards.shown import substituted

GRAFANA = Path(__file__).parents[2] / "deploy" / "grafana"
FILES = {name: json.loads((GRAFANA / f"{name}.json").read_text()) for name in DASHBOARDS}
OURS = {family.name for family in CATALOGUE}
RECORDED = {one.record for one in (*recordings.RECORDINGS, *recordings.FOR_DASHBOARDS, *recordings.RANKING)}
PROMETHEUS_OWN = {"up", "ALERTS"}
PANELS = [(name, panel) for name, one in DASHBOARDS.items() for panel in one.panels]
QUERIES = [(f"{name}: {panel.title}", query.expr) for name, panel in PANELS for query in panel.queries]


def selected(node: Any) -> Iterator[str]:
    """Names of the metrics that an expression reads."""
    if isinstance(node, promql_parser.VectorSelector):
        assert node.name is not None
        yield node.name
    for part in ("expr", "lhs", "rhs", "vector_selector", "param"):
        if (below := getattr(node, part, None)) is not None:
            yield from selected(below)
    for argument in getattr(node, "args", None) or ():
        yield from selected(argument)


def metrics(expr: str) -> set[str]:
    return set(selected(promql_parser.parse(substituted(expr, "10.0.0.17:18910"))))


def queries_of(document: dict[str, Any]) -> list[str]:
    """Of variables."""
    return [one["query"]["query"] for one in document["templating"]["list"] if one["type"] == "query"]


@pytest.mark.parametrize(("panel", "expr"), QUERIES, ids=[name for name, _ in QUERIES])
def test_a_query_is_promql_and_reads_only_what_there_is(panel: str, expr: str) -> None:
    read = metrics(expr)
    assert read
    assert read - OURS - RECORDED - PROMETHEUS_OWN == set()


def test_every_metric_is_on_a_panel_or_says_why_it_is_not() -> None:
    on_panels = {metric for _, expr in QUERIES for metric in metrics(expr)}
    in_variables = " ".join(query for document in FILES.values() for query in queries_of(document))
    assert OURS - on_panels == WITHOUT_PANEL.keys()
    assert all(WITHOUT_PANEL.values())
    assert {name for name in re.findall(r"npu_\w+", in_variables) if ":" not in name} <= OURS | {"npu_watchd"}


def test_what_is_recorded_for_the_dashboards_is_on_them() -> None:
    on_panels = {metric for _, expr in QUERIES for metric in metrics(expr)}
    assert {one.record for one in (*recordings.FOR_DASHBOARDS, *recordings.RANKING)} <= on_panels


@pytest.mark.parametrize(("panel", "expr"), QUERIES, ids=[name for name, _ in QUERIES])
def test_no_query_turns_what_is_absent_into_a_number(panel: str, expr: str) -> None:
    assert re.findall(r"vector\(|absent|scalar\(|or on \(\)", expr) == []
    assert "npu_watchd:quarantine_candidates" not in expr, "recorded with `or vector(0)`, for the alert"


@pytest.mark.parametrize("name", FILES)
def test_a_panel_says_no_data_and_draws_no_line_over_a_gap(name: str) -> None:
    for panel in FILES[name]["panels"]:
        if panel["type"] != "row":
            defaults = panel["fieldConfig"]["defaults"]
            assert defaults["noValue"] == "no data"
            assert defaults["custom"].get("spanNulls", False) is False
            # A state that is not known must not look like the first one: nothing is mapped to "absent".
            assert all(one["type"] == "value" for one in defaults.get("mappings", ()))


@pytest.mark.parametrize("name", FILES)
def test_stats_and_tables_show_this_moment_and_no_older_one(name: str) -> None:
    for panel in FILES[name]["panels"]:
        for target in panel.get("targets", ()):
            assert target["instant"] is (panel["type"] in ("stat", "table"))
            assert target["range"] is not target["instant"]


def test_a_unit_is_the_metrics_own() -> None:
    units = {
        "_bytes": "bytes",
        "_celsius": "celsius",
        "_watts": "watt",
        "_hertz": "hertz",
        "_bits_per_second": "bps",
        "_bytes_per_second": "Bps",
        "_ratio": "percentunit",
        "_seconds": "s",
    }
    for _, panel in PANELS:
        for query in panel.queries:
            for metric in metrics(query.expr):
                ending = next((end for end in units if metric.endswith(end)), None)
                if ending and "/" not in query.expr and panel.title not in ("Verdicts since", "The vendor's tool"):
                    assert panel.unit == units[ending], f"{panel.title}: {metric}"


def drawn() -> dict[str, float]:
    return {line.limit.name: line.value for _, panel in PANELS for line in panel.lines}


def test_a_line_is_a_limit_of_ours() -> None:
    fleet = {limit.name: limit for alert in FLEET_ALERTS for limit in alert.limits}
    for _, panel in PANELS:
        for line in panel.lines:
            assert line.limit is (fleet.get(line.limit.name) or BY_NAME[line.limit.name])
            assert line.value == (1 if "times the limit" in panel.title else line.limit.default)


def test_the_limits_that_matter_are_drawn() -> None:
    assert drawn() == {
        "single_bit_errors_per_hour": 20,
        "double_bit_errors": 1,
        "isolated_pages_warning": 16,
        "isolated_pages_critical": 64,
        "chip_warning_celsius": 90,
        "chip_critical_celsius": 105,
        "hbm_warning_celsius": 90,
        "hbm_critical_celsius": 95,
        "leftover_bytes": 8 << 30,
        "link_downs": 5,
        "npu_crc_errors_per_second": 1,
        "npu_retries_per_second": 1,
        "symbol_errors_per_hour": 1,
        "link_recoveries_per_minute": 1,
        "receive_errors_per_second": 1,
        "discards_per_second": 1,
        "ack_timeouts_per_second": 1,
        "integrity_errors": 1,
        "optical_receive_low_watts": 0.0001445,
        "optical_receive_high_watts": 0.0023,
        "optical_transmit_low_watts": 0.0002,
        "optical_transmit_high_watts": 0.0025,
        "pcie_correctable_per_minute_per_lane": 0.96,
        "pcie_load_ratio": 0.85,
        "host_cpu_pressure_ratio": 0.5,
        "host_memory_pressure_ratio": 0.2,
        "oom_kills": 1,
        "quarantine_share": 0.1,
    }


@pytest.mark.parametrize("name", FILES)
def test_grafanas_own_schema_knows_every_key(name: str) -> None:
    understood = json.loads(JSONEncoder(sort_keys=True).encode(Dashboard.from_json(FILES[name])))
    assert list(lost(FILES[name], understood)) == []


def lost(given: Any, understood: Any, at: str = "") -> Iterator[str]:
    """Places of what did not come through; a threshold's first step has no value, which is null."""
    if isinstance(given, dict) and isinstance(understood, dict):
        for key, value in given.items():
            if key in understood:
                yield from lost(value, understood[key], f"{at}/{key}")
            elif value is not None:
                yield f"{at}/{key}"
    elif isinstance(given, list) and isinstance(understood, list):
        if len(given) != len(understood):
            yield at
        for number, pair in enumerate(zip(given, understood, strict=False)):
            yield from lost(*pair, f"{at}/{number}")
    elif given != understood:
        yield at


def test_the_round_trip_sees_a_key_that_grafana_does_not_know() -> None:
    broken = json.loads(json.dumps(FILES["fleet"]))
    broken["refreshh"] = broken["panels"][0]["gridPos"]["width"] = 1
    understood = json.loads(JSONEncoder(sort_keys=True).encode(Dashboard.from_json(broken)))
    assert sorted(lost(broken, understood)) == ["/panels/0/gridPos/width", "/refreshh"]


@pytest.mark.parametrize("name", FILES)
def test_panels_lie_beside_each_other_and_have_their_own_numbers(name: str) -> None:
    panels = FILES[name]["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken: dict[tuple[int, int], str] = {}
    for panel in panels:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        for x in range(place["x"], place["x"] + place["w"]):
            for y in range(place["y"], place["y"] + place["h"]):
                assert taken.setdefault((x, y), panel["title"]) == panel["title"]
    assert all(before["gridPos"]["y"] <= after["gridPos"]["y"] for before, after in pairwise(panels))


def test_a_title_names_one_panel() -> None:
    for dashboard in DASHBOARDS.values():
        titles = [panel.title for panel in dashboard.panels]
        assert len(set(titles)) == len(titles)


def test_every_query_is_about_what_was_chosen_on_top() -> None:
    node, fleet = ({one["name"] for one in FILES[name]["templating"]["list"]} for name in ("node", "fleet"))
    assert node == {"datasource", "cluster", "job", "instance", "device_id"}
    assert fleet == {"datasource", "cluster", "job"}
    for where, expr in QUERIES:
        used = set(re.findall(r"\$(\w+)", expr)) - {"__rate_interval"}
        assert used <= (node if where.startswith("node") else fleet)
        assert (
            used >= {"cluster", "job", "instance"}
            if where.startswith("node")
            else "cluster" in used or "ALERTS" in expr
        )


def test_links_lead_to_dashboards_that_exist() -> None:
    uids = {document["uid"] for document in FILES.values()}
    linked = {uid for document in FILES.values() for uid in re.findall(r'"/d/([\w-]+)', json.dumps(document))}
    assert linked == uids == {"npu-watchd-node", "npu-watchd-fleet"}


def test_a_table_has_a_column_for_what_its_link_needs() -> None:
    for _, panel in PANELS:
        if panel.link and "__data.fields.instance" in panel.link[1]:
            assert panel.columns["instance"] == "instance"


def test_a_tables_units_belong_to_its_value_and_not_to_its_labels() -> None:
    for _, panel in PANELS:
        if panel.kind is Kind.TABLE:
            assert "unit" not in _json(panel)["fieldConfig"]["defaults"]


def _json(panel: Panel) -> dict[str, Any]:
    return next(one for document in FILES.values() for one in document["panels"] if one["title"] == panel.title)


def test_the_provisioning_files_name_the_folder_and_a_data_source_that_leads_nowhere() -> None:
    (provider,) = yaml.safe_load((GRAFANA / "provisioning/dashboards/npu-watchd.yml").read_text())["providers"]
    assert (provider["type"], provider["allowUiUpdates"]) == ("file", False)
    (source,) = yaml.safe_load((GRAFANA / "provisioning/datasources/npu-watchd.yml").read_text())["datasources"]
    assert source["type"] == "prometheus"
    assert re.fullmatch(r"http://[\w.]+\.example\.invalid:9090", source["url"])
