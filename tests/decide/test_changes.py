"""One line a change, and none on a quiet node."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from npu_watchd.decide.changes import Change, changes
from npu_watchd.model.reading import NOT_READ_YET, Failure, FailureKind
from npu_watchd.model.snapshot import Device, Identity, Port, Snapshot
from tests.sinks.build import device, outcome
from tests.sinks.fabric import down_port, host_port, missing_port, npu_port, pcie_link, ports, unseen_port

MISSING = Failure(FailureKind.MISSING, "npu-smi: not found on PATH")


def timeout(npu: int) -> Failure:
    return Failure(FailureKind.TIMEOUT, f"npu-smi info -t ecc -i {npu}: no answer within 10.0 s")


def node(*devices: Device, **parts: Any) -> Snapshot:
    return outcome(devices, **parts).snapshot


def news(before: Snapshot | None, now: Snapshot) -> list[Change]:
    return list(changes(before, now))


def events(before: Snapshot | None, now: Snapshot) -> list[str]:
    return [change.event for change in changes(before, now)]


QUIET = node(device(0), device(1), device(2))


def test_a_quiet_node_is_silent() -> None:
    busier = node(*(device(n, power_watts=150.0 + n, utilization_ratio={"aicore": 0.9}) for n in range(3)))
    assert news(QUIET, QUIET) == []
    assert news(QUIET, busier) == []


def test_at_first_sight_every_device_is_news() -> None:
    assert news(None, node(device(0)))[0] == Change(
        "device_seen",
        good=True,
        facts={"device_id": "0", "npu": 0, "chip": 0, "name": "910B3", "profile": "910B", "health": "ok"},
    )
    assert events(None, QUIET) == ["device_seen"] * 3


def test_a_device_that_is_sick_at_first_sight_is_bad_news() -> None:
    seen = news(None, node(device(0, health="critical", error_codes=("80e01801",))))
    assert [(change.event, change.good) for change in seen] == [("device_seen", False), ("error_code_appeared", False)]
    assert seen[0].facts["health"] == "critical"


def test_what_has_not_been_read_yet_is_no_news() -> None:
    waiting = device(0, health="unknown", blind={"npu_health": NOT_READ_YET})
    assert events(None, node(waiting, blind={"npu_map": NOT_READ_YET})) == ["device_seen"]
    assert news(node(waiting, device(1)), node(device(0), device(1))) == []
    assert events(node(waiting), node(device(0, health="alarm"))) == ["health_changed"]


def test_a_device_that_vanishes_and_comes_back_is_one_line_each() -> None:
    failing = device(1, blind={"npu_ecc": timeout(1)})
    gone = device(1, present=False, health="unknown", blind={"npu_info": Failure(FailureKind.EXIT, "no such chip")})
    whole, short = node(device(0), failing), node(device(0), gone)
    assert news(whole, short) == [Change("device_vanished", good=False, facts={"device_id": "1", "npu": 1, "chip": 0})]
    assert news(short, short) == []
    back = node(device(0), device(1, health="unknown", blind={"npu_health": NOT_READ_YET}))
    assert news(short, back) == [Change("device_back", good=True, facts={"device_id": "1", "npu": 1, "chip": 0})]


def test_a_device_that_is_absent_at_first_sight_has_vanished() -> None:
    assert events(None, node(device(0, present=False, health="unknown"))) == ["device_seen", "device_vanished"]


def test_not_knowing_whether_a_device_is_there_is_not_its_vanishing() -> None:
    blind = {"npu_info": MISSING}
    lost = node(*(device(n, present=None, health="unknown", blind=blind) for n in range(3)), blind=blind)
    assert "device_vanished" not in events(QUIET, lost)


def test_health_that_changes_is_news_in_both_directions() -> None:
    sick = node(device(0, health="alarm"))
    assert news(node(device(0)), sick) == [
        Change("health_changed", False, {"device_id": "0", "npu": 0, "chip": 0, "health": "alarm", "before": "ok"})
    ]
    (well,) = news(sick, node(device(0)))
    assert (well.good, well.facts["health"], well.facts["before"]) == (True, "ok", "alarm")


def test_only_new_error_codes_are_news() -> None:
    before = node(device(0, error_codes=("80c98008",)))
    now = node(device(0, error_codes=("80e01801", "80c98008", "8c084e00")))
    assert [(change.event, change.facts["code"]) for change in changes(before, now)] == [
        ("error_code_appeared", "80e01801"),
        ("error_code_appeared", "8c084e00"),
    ]
    assert news(now, before) == []


def test_one_cause_is_one_line_however_many_devices_it_blinds() -> None:
    """The details name each device's own command."""
    lost = node(*(device(n, blind={"npu_ecc": timeout(n)}) for n in range(3)))
    assert news(QUIET, lost) == [
        Change(
            "probe_went_blind",
            good=False,
            facts={
                "probe": "npu_ecc",
                "kind": "timeout",
                "detail": "npu-smi info -t ecc -i 0: no answer within 10.0 s",
                "device_ids": "0,1,2",
            },
        )
    ]
    assert news(lost, lost) == []
    assert news(lost, QUIET) == [
        Change("probe_sees_again", good=True, facts={"probe": "npu_ecc", "device_ids": "0,1,2"})
    ]


def test_the_nodes_own_blindness_and_its_devices_are_one_line() -> None:
    blind = {"npu_info": MISSING}
    lost = node(*(device(n, present=None, blind=blind) for n in range(3)), blind=blind)
    assert news(QUIET, lost) == [
        Change(
            "probe_went_blind",
            good=False,
            facts={"probe": "npu_info", "kind": "missing", "detail": MISSING.detail, "device_ids": "0,1,2"},
        )
    ]


def test_two_causes_are_two_lines() -> None:
    refused = Failure(FailureKind.EXIT, "Failed to query npu chip: 0 info.")
    lost = node(device(0, blind={"npu_ecc": timeout(0)}), device(1, blind={"npu_ecc": refused}), device(2))
    assert [(change.facts["kind"], change.facts["device_ids"]) for change in changes(QUIET, lost)] == [
        ("timeout", "0"),
        ("exit", "1"),
    ]


def test_another_kind_of_failure_is_news_and_another_age_is_not() -> None:
    def stale(age_s: int) -> Snapshot:
        return node(device(0, blind={"npu_ecc": Failure(FailureKind.STALE, f"last read {age_s} s ago")}))

    assert news(stale(181), stale(186)) == []
    assert [change.facts["kind"] for change in changes(stale(181), node(device(0, blind={"npu_ecc": timeout(0)})))] == [
        "timeout"
    ]


def test_a_new_number_is_news_and_no_blindness() -> None:
    blind = {"npu_ecc": timeout(5)}
    before = node(device(0, blind=blind))
    now = node(replace(device(0, blind=blind), device_id="npu0-chip0", device_id_source="lost"))
    assert news(before, now) == [
        Change("device_id_changed", good=False, facts={"device_id": "npu0-chip0", "npu": 0, "chip": 0, "before": "0"})
    ]


def test_a_warning_of_the_tool_is_told_once() -> None:
    warned = node(device(0), warnings=("[WARNING] versions do not fit",))
    assert news(node(device(0)), warned) == [
        Change("tool_warned", good=False, facts={"warning": "[WARNING] versions do not fit"})
    ]
    assert news(warned, warned) == []


def test_a_device_without_a_name_is_seen_too() -> None:
    (seen,) = news(None, node(device(0, identity=Identity())))
    assert seen.facts["name"] == ""


def host(*which: Port) -> Snapshot:
    return node(device(0), ports=ports(*which))


MLX5_0: dict[str, str | int] = {"rdma_device": "mlx5_0", "port": 1}


def test_a_port_that_goes_down_and_comes_up_is_one_line_each() -> None:
    words = {**MLX5_0, "state": "Down", "physical_state": "Disabled"}
    assert news(host(host_port()), host(down_port())) == [Change("port_down", good=False, facts=words)]
    assert news(host(down_port()), host(down_port())) == []
    assert news(host(down_port()), host(host_port())) == [Change("port_up", good=True, facts=MLX5_0)]


def test_a_port_that_vanishes_and_comes_back_is_one_line_each() -> None:
    assert news(host(host_port()), host(missing_port())) == [Change("port_vanished", good=False, facts=MLX5_0)]
    assert news(host(missing_port()), host(missing_port())) == []
    assert news(host(missing_port()), host(host_port())) == [Change("port_back", good=True, facts=MLX5_0)]
    assert events(host(missing_port()), host(down_port())) == ["port_back", "port_down"]


def test_at_first_sight_a_port_is_news_only_where_it_should_be_up_and_is_not() -> None:
    first = host(host_port("a"), down_port("b", expected=False), down_port("c"), missing_port("d"), unseen_port("e"))
    assert [(change.event, change.facts["rdma_device"]) for change in changes(node(device(0)), first)] == [
        ("port_down", "c"),
        ("port_vanished", "d"),
    ]


def test_a_port_that_nobody_can_see_is_neither_down_nor_gone() -> None:
    assert news(host(host_port()), host(unseen_port())) == []
    assert news(host(unseen_port()), host(host_port())) == []
    assert events(host(unseen_port()), host(down_port())) == ["port_down"]


def test_a_port_that_never_was_up_comes_and_goes_without_a_word() -> None:
    unused = host(down_port("vf", expected=False))
    assert news(host(), unused) == []
    assert news(unused, host()) == []


def own(link_up: bool | None) -> Snapshot:
    return node(device(0, roce=npu_port(link_up=link_up)))


WHO: dict[str, str | int] = {"device_id": "0", "npu": 0, "chip": 0}


def test_an_npus_link_that_goes_down_and_comes_up_is_one_line_each() -> None:
    assert news(own(link_up=True), own(link_up=False)) == [Change("npu_link_down", good=False, facts=WHO)]
    assert news(own(link_up=False), own(link_up=False)) == []
    assert news(own(link_up=False), own(link_up=True)) == [Change("npu_link_up", good=True, facts=WHO)]


def test_an_npus_link_that_nobody_read_is_not_down() -> None:
    assert news(own(link_up=True), own(link_up=None)) == []
    assert news(own(link_up=None), own(link_up=True)) == []
    assert news(own(link_up=True), node(device(0))) == []
    assert events(node(device(0)), own(link_up=False)) == ["npu_link_down"]


def pcie(**changes: Any) -> Snapshot:
    return node(device(0, pcie_link=pcie_link(**changes)))


def test_a_pcie_link_that_narrows_is_news_each_time() -> None:
    assert news(pcie(), pcie(lanes=8, path_lanes=8)) == [
        Change("pcie_narrow", good=False, facts={**WHO, "lanes": 8, "lanes_possible": 16})
    ]
    assert news(pcie(path_lanes=8), pcie(path_lanes=8)) == []
    assert events(pcie(path_lanes=8), pcie(path_lanes=4)) == ["pcie_narrow"]
    assert news(pcie(path_lanes=4), pcie(path_lanes=8)) == []
    assert news(pcie(path_lanes=8), pcie()) == [
        Change("pcie_wide_again", good=True, facts={**WHO, "lanes": 16, "lanes_possible": 16})
    ]


def test_a_narrow_link_is_news_at_first_sight_and_an_unread_or_sleeping_one_is_none() -> None:
    assert events(node(device(0)), pcie(lanes=8)) == ["pcie_narrow"]
    assert news(node(device(0)), pcie(lanes=None, path_lanes=None)) == []
    assert news(pcie(lanes=8), node(device(0))) == []
    assert news(pcie(), pcie(transfers_per_second=2.5e9, path_transfers_per_second=2.5e9)) == []
