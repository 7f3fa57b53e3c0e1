"""The snapshot as JSON: the document of docs/api.md, null for what nobody knows, and no NaN."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from npu_watchd.model.ids import DeviceKey
from npu_watchd.model.reading import Failure, FailureKind
from npu_watchd.model.records import Hccs, MemoryErrors, PcieLinkErrors
from npu_watchd.model.snapshot import Identity, Memory, Outcome, ProbeState, ProbeTally
from npu_watchd.sinks.web.api import snapshot_json
from npu_watchd.sinks.web.app import PATHS
from tests.sinks.build import AT, TIMEOUT, device, outcome, process, tool_missing

API_DOC = (Path(__file__).parents[2] / "docs" / "api.md").read_text(encoding="utf-8")


def example() -> Outcome:
    """The node of the example in docs/api.md: one device in use, one whose ECC query hangs."""
    return outcome(
        [
            device(
                0,
                key=DeviceKey(npu=1, chip=0),
                identity=Identity("910B3", 4, 0, "0000:c1:00.0", "7.1.0.3.220", "0F4E"),
                utilization_ratio={"aicore": 0.87},
                memory={"hbm": Memory(used_bytes=61_203_283_968, total_bytes=68_719_476_736)},
                memory_bandwidth_utilization_ratio={"hbm": 0.4},
                memory_errors={"hbm": MemoryErrors(2, 0, 5, 0, 0, 0, 0, 0)},
                processes=(process("python3"),),
                hccs=Hccs(healthy=True, error_counts=(0, 0), retry_counts=(0, 3), first_error_lane=None),
                pcie_link_errors=PcieLinkErrors({"tx_err_cnt": 0}),
            ),
            device(
                1,
                key=DeviceKey(npu=1, chip=1),
                identity=Identity("910B3", 5, 1, "0000:c2:00.0"),
                health="unknown",
                error_codes=None,
                power_watts=None,
                temperature_celsius={},
                utilization_ratio={},
                clock_hertz=None,
                clock_max_hertz=None,
                memory={"hbm": Memory(None, None)},
                memory_errors={},
                processes=None,
                blind={"npu_ecc": TIMEOUT},
                unsupported={"npu_pcie_err": "This device does not support querying pcie-err."},
                vital_blind=True,
            ),
        ],
        warnings=("[WARNING] The driver is older than the firmware.",),
        probes=(ProbeState("npu_info", None, True, None), ProbeState("npu_ecc", "1", False, TIMEOUT)),
        tallies=(ProbeTally("npu_ecc", 0.9, AT.wall_s - 33, {"timeout": 2}, 0),),
        tool_log_events={"-8005": 1},
    )


def _document(shown: Outcome) -> dict[str, Any]:
    document = json.loads(snapshot_json(shown), parse_constant=lambda name: (_ for _ in ()).throw(ValueError(name)))
    assert isinstance(document, dict)
    return document


def test_the_example_of_the_docs_is_what_the_server_says() -> None:
    documented = re.search(r"```json\n(.*?)```", API_DOC, re.DOTALL)
    assert documented is not None
    assert json.loads(documented[1]) == _document(example())


def test_every_key_of_the_document_is_explained() -> None:
    def keys(value: object) -> set[str]:
        if isinstance(value, dict):
            return {*value, *(key for item in value.values() for key in keys(item))}
        return {key for item in value for key in keys(item)} if isinstance(value, list) else set()

    explained = set(re.findall(r"`([a-z_0-9]+)`", API_DOC.split("```json")[0] + API_DOC.split("```")[-1]))
    data = {"hbm", "chip", "aicore", "tx_err_cnt", "npu_ecc", "npu_pcie_err", "timeout", "-8005"}
    assert keys(_document(example())) - data - explained == set()


def test_every_path_is_documented() -> None:
    assert [path for path in PATHS if f"`{path}`" not in API_DOC] == []


def test_devices_come_in_the_order_of_their_keys() -> None:
    devices = [device(n, key=DeviceKey(n)) for n in (10, 2)]
    assert [one["npu"] for one in _document(outcome(devices))["devices"]] == [2, 10]


def test_without_the_tool_nothing_is_invented() -> None:
    document = _document(tool_missing())
    assert document["devices"] == []
    assert document["devices_expected"] is None
    assert document["devices_present"] is None
    assert document["blind"] == {"npu_info": {"kind": "missing", "detail": "npu-smi: not found on PATH"}}


def test_what_is_no_number_is_null() -> None:
    nan = float("nan")
    document = _document(outcome([device(0, power_watts=nan, temperature_celsius={"chip": float("inf")})]))
    assert document["devices"][0]["power_watts"] is None
    assert document["devices"][0]["temperature_celsius"] == {"chip": None}


def test_hostile_names_stay_text() -> None:
    name = '"}{\n\0\x1b\ud800\u2028</script>'
    broken = Failure(FailureKind.EXIT, name)
    document = _document(
        outcome([device(0, processes=(process(name), process("x" * 4096)), blind={"npu_ecc": broken})])
    )
    names = [one["name"] for one in document["devices"][0]["processes"]]
    assert names == ['"}{\n\0\x1b?\u2028</script>', "x" * 4096]
