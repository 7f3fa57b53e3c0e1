"""One device's trouble is that device's alone, and a device keeps its identity whatever the tool says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from npu_watchd.simnode import node as simulated
from npu_watchd.simnode.state import ErrorCode, NodeState
from tests.e2e.fake_tool import FakeTool, node_at
from tests.e2e.harness import STEADY, running, until
from tests.e2e.page import Page

QUIET = node_at("quiet", 0)
CODES = (ErrorCode("80E01801", "a first text"), ErrorCode("80CB8009", "a second text"))
OTHERS = tuple("0124567")
"""All but device 3."""


def _chip(node: NodeState, npu: int, **changes: object) -> NodeState:
    """The node with the one chip of this NPU changed."""
    cards = [
        replace(card, chips=(replace(card.chips[0], **changes),)) if card.npu == npu else card  # type: ignore[arg-type]
        for card in node.cards
    ]
    return replace(node, cards=tuple(cards))


def _states(**of_device: str) -> dict[str, str]:
    return dict.fromkeys("01234567", "ok") | {name.removeprefix("d"): state for name, state in of_device.items()}


def _all_ok(page: Page) -> bool:
    return page.states() == _states()


def test_a_device_that_vanishes_keeps_its_identity_and_returns(tool: FakeTool) -> None:
    tool.shows(QUIET)
    with running(tool.config) as daemon:
        before = daemon.shows(_all_ok, "eight devices are ok")
        tool.shows(_chip(QUIET, 5, lost=True))
        page = daemon.shows(lambda page: page.value("npu_device_present", device_id="5") == 0, "device 5 is gone")
        assert page.value("npu_devices_present") == 7
        assert page.value("npu_devices_expected") == 8
        assert page.states() == _states(d5="unknown")
        assert page.value("npu_device_temperature_celsius", device_id="5", sensor="chip") is None
        assert page.value("npu_device_memory_errors_total", device_id="5", memory="hbm", kind="double_bit") is None
        assert {name for name in page.samples if page.by_device(name).get("5") is not None} == {
            "npu_device_present",
            "npu_watchd_verdict_since_timestamp_seconds",
        }
        info = daemon.device("5")
        assert (info["npu"], info["name"], info["pci_address"]) == (5, "910B3", "0000:02:00.0")
        for number in "01234567":
            assert daemon.device(number)["npu"] == int(number), "no device_id moves"
        assert daemon.event("device_vanished")["device_id"] == "5"
        # The list is asked at once, and tells a lost card from one that was never there.
        until(lambda: any("cannot reach" in line for line in daemon.snapshot()["warnings"]), "the list says -1")
        tool.shows(QUIET)
        back = daemon.shows(_all_ok, "eight devices are ok again")
        assert back.value("npu_devices_present") == 8
        assert back.by_device("npu_device_temperature_celsius", sensor="chip") == before.by_device(
            "npu_device_temperature_celsius", sensor="chip"
        )
        assert len(daemon.events("device_vanished")) == len(daemon.events("device_back")) == 1


def test_an_untrusted_row_exports_no_values_and_its_neighbours_stay(tool: FakeTool) -> None:
    tool.shows(QUIET)
    with running(tool.config) as daemon:
        before = daemon.shows(_all_ok, "eight devices are ok")
        tool.shows(_chip(QUIET, 3, fails=frozenset({"pci"})))
        assert "0000:00:00.0" in (tool.directory / "answers" / "info").read_text(encoding="utf-8")
        page = daemon.shows(lambda page: page.states() == _states(d3="unknown"), "device 3 is unknown")
        for name, labels in (
            ("npu_device_temperature_celsius", {"sensor": "chip"}),
            ("npu_device_memory_used_bytes", {"memory": "hbm"}),
            ("npu_device_power_watts", {}),
        ):
            told = before.by_device(name, **labels)
            assert page.by_device(name, **labels) == {number: told[number] for number in OTHERS}
        assert page.value("npu_device_present", device_id="3") == 1
        assert page.value("npu_devices_present") == 8
        assert daemon.device("3")["pci_address"] == "0000:82:00.0", "its identity is not overwritten by the zeros"
        assert daemon.device("3")["blind"]["npu_info"]["kind"] == "unparseable"


def test_one_device_whose_ecc_query_fails_is_blind_alone(tool: FakeTool) -> None:
    tool.shows(QUIET)
    with running(tool.config) as daemon:
        daemon.all_read()
        tool.says("info -t ecc -i 3", "Failed to query the ecc information of the NPU. ret is -8009\n")
        page = daemon.shows(
            lambda page: len(page.by_device("npu_device_memory_errors_total", memory="hbm", kind="double_bit")) == 7,
            "the counts of device 3 are gone",
        )
        assert page.value("npu_watchd_probe_up", probe="npu_ecc", device_id="3") == 0
        assert [page.value("npu_watchd_probe_up", probe="npu_ecc", device_id=number) for number in OTHERS] == [1] * 7
        assert page.value("npu_device_temperature_celsius", device_id="3", sensor="chip") is not None
        device = daemon.device("3")
        assert device["vital_blind"] is True
        assert device["blind"]["npu_ecc"]["kind"] == "exit"
        assert "-8009" in device["blind"]["npu_ecc"]["detail"]
        assert not any(daemon.device(number)["vital_blind"] for number in OTHERS)


def test_ok_in_the_table_counts_only_while_the_second_word_can_be_had(tool: FakeTool) -> None:
    tool.shows(QUIET)
    with running(tool.config) as daemon:
        daemon.shows(_all_ok, "eight devices are ok")
        tool.says("info -t health -i 3 -c 0", "Failed to query the health of the NPU. ret is -8006\n")
        page = daemon.shows(lambda page: page.states() == _states(d3="unknown"), "device 3 is unknown")
        assert page.value("npu_device_temperature_celsius", device_id="3", sensor="chip") is not None


def test_the_worse_of_two_words_about_health_stands(tool: FakeTool) -> None:
    tool.shows(QUIET)
    said_ok = (tool.directory / "answers" / "info -t health -i 3 -c 0").read_text(encoding="utf-8")
    tool.shows(_chip(QUIET, 3, health="Warning"))
    tool.says("info -t health -i 3 -c 0", said_ok)
    alarm = _chip(QUIET, 6, health="Alarm", codes=CODES)
    with running(tool.config) as daemon:
        daemon.shows(lambda page: page.states() == _states(d3="warning"), "the table's Warning stands")
        table = (tool.directory / "answers" / "info").read_text(encoding="utf-8")
        tool.shows(alarm)
        tool.says("info", table)
        tool.says("info -t health -i 3 -c 0", said_ok)
        daemon.shows(lambda page: page.states() == _states(d3="warning", d6="alarm"), "-t health's Alarm stands")


def test_a_device_that_stops_being_ok_is_asked_for_its_health_at_once(tool: FakeTool) -> None:
    tool.shows(QUIET)
    slow = '[engine]\ncycle = "200ms"\n[probes]\nnpu_info = { every = "600ms" }\nnpu_health = { every = "10m" }\n'
    tool.write_config(slow)
    with running(tool.config) as daemon:
        daemon.shows(_all_ok, "eight devices are ok")
        tool.shows(_chip(QUIET, 3, health="Alarm", codes=CODES))
        page = daemon.shows(lambda page: "npu_device_error_code_active" in page.samples, "the codes are there")
        assert page.by_device("npu_device_error_code_active", code="80e01801", level="rerun_job") == {"3": 1}
        assert page.by_device("npu_device_error_code_active", code="80cb8009", level="rerun_request") == {"3": 1}


def test_what_a_chip_does_not_support_is_asked_once_and_left(tool: FakeTool) -> None:
    tool.shows(QUIET)
    for npu in range(8):
        tool.forgets(f"info -t memory -i {npu}")
    with running(tool.config) as daemon:
        daemon.all_read()
        again = tool.calls().count("info -t usages -i 0") + 2
        until(lambda: tool.calls().count("info -t usages -i 0") >= again, "two more rounds")
        assert [tool.calls().count(f"info -t memory -i {npu}") for npu in range(8)] == [1] * 8
        assert daemon.device("0")["unsupported"]["npu_temp"] == "This device does not support querying."
        assert daemon.device("0")["health"] == "ok", "what a chip has not is no fault of it"
        page = daemon.page()
        assert page.by_device("npu_watchd_probe_up", probe="npu_temp") == {}
        assert page.value("npu_watchd_probe_failures_total", probe="npu_temp", kind="unsupported") is None
        assert not any("pcie-err" in call for call in tool.calls()), "a 910B has none, so nobody asks"


def test_an_a3_node_is_asked_by_npu_id_and_its_dies_are_told_by_logic_id(tool: FakeTool) -> None:
    tool.shows(node_at("a3_16_dies", 0))
    with running(tool.config) as daemon:
        daemon.all_read()
        found = {device["device_id"]: (device["npu"], device["chip"]) for device in daemon.snapshot()["devices"]}
    assert found == {str(number): (number // 2, number % 2) for number in range(16)}
    calls = set(tool.calls())
    assert {f"info -t health -i {npu} -c {die}" for npu in range(8) for die in range(2)} <= calls
    assert {f"info -t ecc -i {npu}" for npu in range(8)} <= calls
    assert not any("-i 8" in call for call in calls), "-i takes NPU ids, of which there are eight"


def test_a_duo_node_has_four_devices_under_large_npu_ids_and_no_mcu_among_them(tool: FakeTool) -> None:
    tool.shows(node_at("duo_310p", 0))
    listing = (tool.directory / "answers" / "info -m").read_text(encoding="utf-8")
    assert "Mcu" in listing
    with running(tool.config) as daemon:
        daemon.all_read()
        page = daemon.page()
        found = {device["device_id"]: (device["npu"], device["chip"]) for device in daemon.snapshot()["devices"]}
    assert found == {"0": (8, 0), "1": (8, 1), "2": (32776, 0), "3": (32776, 1)}
    assert page.value("npu_devices_present") == 4
    assert {"info -t ecc -i 32776", "info -t health -i 32776 -c 1"} <= set(tool.calls())


def test_without_a_map_the_device_id_says_where_it_is_from(tool: FakeTool) -> None:
    tool.shows(QUIET)
    tool.says("info -m", "dcmi module initialize failed. ret is -8005\n")
    with running(tool.config) as daemon:
        daemon.shows(_all_ok, "eight devices are ok")
        assert {device["device_id_source"] for device in daemon.snapshot()["devices"]} == {"position"}
        assert [device["device_id"] for device in daemon.snapshot()["devices"]] == list("01234567")
        tool.shows(QUIET)
        until(lambda: daemon.device("7")["device_id_source"] == "logic_id", "the map is read, and believed")


def test_a_health_without_a_word_makes_one_die_unknown_and_not_its_twin(tool: FakeTool) -> None:
    tool.shows(node_at("a3_16_dies", 0))
    all_ok = {str(number): "ok" for number in range(16)}
    with running(tool.config) as daemon:
        daemon.shows(lambda page: page.states() == all_ok, "sixteen dies are ok")
        tool.shows(node_at("a3_16_dies", 250))
        page = daemon.shows(lambda page: page.states() == all_ok | {"9": "unknown"}, "die 9 is unknown, die 8 is not")
        assert page.value("npu_devices_present") == 16


def test_a_dead_a3_die_takes_its_twin_along_and_both_keep_their_numbers(tool: FakeTool) -> None:
    tool.shows(node_at("a3_16_dies", 0))
    with running(tool.config) as daemon:
        daemon.shows(lambda page: page.value("npu_devices_present") == 16, "sixteen dies")
        tool.shows(node_at("a3_16_dies", 400))
        page = daemon.shows(lambda page: page.value("npu_devices_present") == 14, "two are gone")
        assert page.value("npu_devices_expected") == 16
        present = {str(number): 1.0 for number in range(16)} | {"2": 0.0, "3": 0.0}
        assert page.by_device("npu_device_present") == present
        assert {device["device_id"]: device["npu"] for device in daemon.snapshot()["devices"]} == {
            str(number): number // 2 for number in range(16)
        }


def test_a_950_without_a_heartbeat_is_unknown_and_its_zeros_are_not_exported(tool: FakeTool) -> None:
    tool.shows(node_at("ascend950", 0))
    with running(tool.config) as daemon:
        daemon.shows(_all_ok, "eight devices are ok")
        assert {device["device_id_source"] for device in daemon.snapshot()["devices"]} == {"phy_id"}
        tool.shows(node_at("ascend950", 200))
        page = daemon.shows(lambda page: page.states() == _states(d6="unknown"), "device 6 is unknown")
        assert sorted(page.by_device("npu_device_temperature_celsius", sensor="chip")) == list("0123457")
        assert sorted(page.by_device("npu_device_memory_used_bytes", memory="hbm")) == list("0123457")
        assert sorted(page.by_device("npu_device_power_watts")) == list("0123457")
        assert not any(" -c " in call for call in tool.calls()), "its chips have no ids"


def test_a_card_that_dies_step_by_step_on_the_simulated_node_itself(tmp_path: Path) -> None:
    """The real executables: first the sub-queries of device 5 fail, then it is gone."""
    config = simulated.install("device_lost", tmp_path, speed=0, at=0, listen=("127.0.0.1:0",))
    config.write_text(config.read_text(encoding="utf-8") + STEADY, encoding="utf-8")
    with running(config) as daemon:
        daemon.shows(_all_ok, "eight devices are ok")
        assert "npu_node_log_events_total" not in daemon.page().samples
        simulated.set_clock(tmp_path, 200)
        page = daemon.shows(lambda page: page.states() == _states(d5="unknown"), "device 5 is unknown")
        assert sorted(page.by_device("npu_device_memory_used_bytes", memory="hbm")) == list("0123467")
        assert page.value("npu_devices_present") == 8
        page = daemon.shows(lambda page: "npu_node_log_events_total" in page.samples, "its error log is read")
        assert sum(page.samples["npu_node_log_events_total"].values()) >= 1
        simulated.set_clock(tmp_path, 400)
        page = daemon.shows(lambda page: page.value("npu_devices_present") == 7, "device 5 is gone")
        assert page.value("npu_device_present", device_id="5") == 0
