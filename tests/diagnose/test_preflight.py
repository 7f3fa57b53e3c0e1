"""The checklist before a job: what passes, what does not, and that nothing unseen passes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from npu_watchd.cli_preflight import device_ids
from npu_watchd.diagnose import preflight_stress
from npu_watchd.diagnose.preflight import Check, Result, document, exit_code
from npu_watchd.diagnose.preflight_devices import device_checks, wanted_devices
from npu_watchd.diagnose.preflight_facts import limited, tls_switches
from npu_watchd.diagnose.preflight_hccl import hccn_conf_checks, port_checks, settings_checks
from npu_watchd.diagnose.preflight_host import Limited, clock_check, host_checks, tls_checks, version_checks
from npu_watchd.model.reading import Failure, FailureKind, Output
from npu_watchd.model.versions import Installed, Packages, VersionFile

PASSED, WARNING, FAILED = Result.PASSED, Result.WARNING, Result.FAILED
UNKNOWN, SKIPPED = Result.UNKNOWN, Result.SKIPPED
DENIED = Failure(FailureKind.DENIED, "/etc/hccn.conf: Permission denied")
MISSING = Failure(FailureKind.MISSING, "/etc/hccn.conf: No such file or directory")
GIB = 1 << 30
HOST = {
    "memory_available_bytes": 200 * GIB,
    "shm_total_bytes": 64 * GIB,
    "shm_used_bytes": GIB,
    "tasks": 3000,
    "tasks_max": 4_000_000,
}


def device(number: int, **changes: Any) -> dict[str, Any]:
    quiet = {
        "device_id": str(number),
        "name": "910B3",
        "present": True,
        "health": "ok",
        "processes": [],
        "roce": {"link_up": True, "bits_per_second": 2e11, "reachability": "success"},
        "pcie_link": {"narrow": False, "lanes": 16, "path_max_lanes": 16},
        "memory_errors": {"hbm": {"single_bit": 2, "double_bit": 0}},
        "pcie_errors": {"correctable": 1, "nonfatal": 0, "fatal": 0},
        "blind": {},
    }
    return {**quiet, **changes}


def verdict(number: int, state: str = "healthy", *, blind: bool = False) -> dict[str, Any]:
    return {"device_id": str(number), "state": state, "blind": blind, "reasons": []}


def node(*devices: dict[str, Any], **changes: Any) -> dict[str, Any]:
    verdicts = [verdict(int(one["device_id"])) for one in devices]
    return {"devices": list(devices), "verdicts": verdicts, "ports": [], "blind": {}, "host": HOST, **changes}


def worst(shown: dict[str, Any], *, exclusive: bool = False) -> list[tuple[str, Result]]:
    found = device_checks(shown, wanted_devices(shown, ()), exclusive=exclusive)
    return [(one.name, one.result) for one in found if one.result is not PASSED]


def test_a_healthy_idle_node_passes() -> None:
    assert worst(node(device(0), device(1)), exclusive=True) == []


BUSY = [{"pid": 4711, "name": "python3"}]
BLIND = {"hccn_link": {"kind": "timeout", "detail": "no answer"}}


@pytest.mark.parametrize(
    ("shown", "exclusive", "expected"),
    [
        (node(device(0, present=False)), False, [("present", FAILED)]),
        (node(device(0, present=None)), False, [("present", UNKNOWN)]),
        (node(device(0, processes=BUSY)), False, [("free", WARNING)]),
        (node(device(0, processes=BUSY)), True, [("free", FAILED)]),
        (node(device(0, processes=None)), False, [("free", UNKNOWN)]),
        (node(device(0, health="unknown")), False, [("healthy", UNKNOWN)]),
        (node(device(0), verdicts=[]), False, [("healthy", UNKNOWN)]),
        (node(device(0), verdicts=[verdict(0, "watch")]), False, [("healthy", WARNING)]),
        (node(device(0), verdicts=[verdict(0, "watch", blind=True)]), False, [("healthy", UNKNOWN)]),
        (node(device(0), verdicts=[verdict(0, "quarantine", blind=True)]), False, [("healthy", FAILED)]),
        (node(device(0, roce=None)), False, []),
        (node(device(0, roce=None, blind=BLIND)), False, [("link", UNKNOWN)]),
        (node(device(0, roce={"link_up": False})), False, [("link", FAILED)]),
        (node(device(0, pcie_link={"narrow": True, "lanes": 8, "path_max_lanes": 16})), False, [("pcie", WARNING)]),
        (
            node(device(0), device(1, roce={"link_up": True, "bits_per_second": 1e11, "reachability": None})),
            False,
            [("equal speed", FAILED)],
        ),
        (
            node(device(0), device(1, roce={"link_up": True, "bits_per_second": None, "reachability": None})),
            False,
            [("equal speed", UNKNOWN)],
        ),
        (node(), False, [("present", UNKNOWN)]),
    ],
)
def test_what_is_not_so_is_told(shown: dict[str, Any], exclusive: bool, expected: list[tuple[str, Result]]) -> None:
    assert worst(shown, exclusive=exclusive) == expected


def test_a_device_that_nobody_knows_fails() -> None:
    (found,) = device_checks(node(device(0)), ("9",), exclusive=False)
    assert (found.result, found.found) == (FAILED, "device 9 is not known here; there are 0")


@pytest.mark.parametrize(
    ("results", "code"),
    [
        ([PASSED], 0),
        ([PASSED, SKIPPED], 0),
        ([PASSED, WARNING], 1),
        ([WARNING, UNKNOWN], 3),
        ([UNKNOWN, FAILED], 2),
        ([SKIPPED], 3),
        ([], 3),
    ],
)
def test_the_exit_code_is_that_of_the_worst(results: list[Result], code: int) -> None:
    checks = tuple(Check("x", result, "") for result in results)
    assert exit_code(checks) == document(checks)["exit_code"] == code


@pytest.mark.parametrize(
    ("environ", "result"),
    [
        ({}, PASSED),
        ({"HCCL_CONNECT_TIMEOUT": "600", "HCCL_EXEC_TIMEOUT": "1800"}, PASSED),
        ({"HCCL_CONNECT_TIMEOUT": "60"}, FAILED),
        ({"HCCL_CONNECT_TIMEOUT": "600 s"}, FAILED),
        ({"HCCL_CONNECT_TIMEOUT": "1800", "HCCL_EXEC_TIMEOUT": "600"}, WARNING),
        ({"HCCL_EXEC_TIMEOUT": "0"}, PASSED),
        ({"HCCL_IF_BASE_PORT": "70000"}, FAILED),
        ({"HCCL_IF_IP": "node7"}, FAILED),
        ({"ASCEND_RT_VISIBLE_DEVICES": "1,0"}, FAILED),
        ({"ASCEND_RT_VISIBLE_DEVICES": "0"}, WARNING),
        ({"MS_BUILD_PROCESS_NUM": "64"}, FAILED),
    ],
)
def test_settings_are_held_against_their_pages(environ: dict[str, str], result: Result) -> None:
    assert [one.result for one in settings_checks(environ, ("0", "1"))] == [result]


def test_ports_that_the_kernel_may_give_away_are_a_warning_with_the_command_that_reserves_them() -> None:
    (found,) = port_checks({}, "8080\n", "32768\t60999\n")
    assert found.result is WARNING
    assert found.cure == "sysctl -w net.ipv4.ip_local_reserved_ports=8080,60000-60031"
    assert [one.result for one in port_checks({}, "60000-60031\n", "32768\t60999\n")] == [PASSED]
    assert [one.result for one in port_checks({}, "\n", "32768\t50000\n")] == [PASSED]
    assert [one.result for one in port_checks({}, MISSING, "32768\t60999\n")] == [UNKNOWN]
    assert list(port_checks({"HCCL_HOST_SOCKET_PORT_RANGE": "auto"}, "\n", "32768\t60999\n")) == []


@pytest.mark.parametrize(
    ("text", "results"),
    [
        ("address_0=192.0.2.1\nnetmask_0=255.255.255.0\nnetdetect_0=192.0.2.9\n", [PASSED]),
        ("address_0=192.0.2.1\nnetmask_0=255.255.255.0\n", [WARNING]),
        ("address_0=\nnetmask_0=255.255.255.0\nnetdetect_0=192.0.2.9\n", [FAILED]),
        ("...\n", [FAILED]),
        (MISSING, [FAILED]),
        (DENIED, [UNKNOWN]),
    ],
)
def test_each_port_has_its_lines_in_hccn_conf(text: str | Failure, results: list[Result]) -> None:
    assert [one.result for one in hccn_conf_checks(text, ("0",))] == results
    assert list(hccn_conf_checks(text, ())) == []


def test_an_address_may_not_stand_there_twice() -> None:
    lines = "".join(f"address_{at}=192.0.2.1\nnetmask_{at}=255.0.0.0\nnetdetect_{at}=192.0.2.9\n" for at in (0, 1))
    assert [one.found for one in hccn_conf_checks(lines, ("0", "1"))] == ["192.0.2.1 stands there twice"]


def test_the_host_has_room_or_says_what_it_lacks() -> None:
    def results(host: dict[str, Any] | None, limits: Limited, environ: dict[str, str] | None = None) -> list[Result]:
        return [one.result for one in host_checks({"host": host, "blind": {}}, limits, environ or {}, 8)]

    assert results(HOST, Limited(65535, None)) == [PASSED] * 4
    assert results(HOST, Limited(1024, 100)) == [PASSED, PASSED, WARNING, WARNING]
    assert results({**HOST, "memory_available_bytes": 20 * GIB}, Limited(None, None))[0] is WARNING
    few = {"MS_BUILD_PROCESS_NUM": "4"}
    assert results({**HOST, "memory_available_bytes": 20 * GIB}, Limited(None, None), few)[0] is PASSED
    assert results({**HOST, "shm_total_bytes": 64 << 20, "shm_used_bytes": 0}, Limited(None, None))[1] is WARNING
    assert results(dict.fromkeys(HOST), Limited(None, None)) == [UNKNOWN, UNKNOWN, UNKNOWN, PASSED]
    assert results(None, Limited(None, None)) == [UNKNOWN, PASSED]


def test_versions_that_the_table_does_not_know_are_a_warning_and_nothing_to_compare_is_unknown() -> None:
    def results(installed: Installed | Failure) -> list[Result]:
        return [one.result for one in version_checks(installed)]

    def with_cann(version: str) -> Installed:
        return Installed(
            cann={"/a": VersionFile("version.cfg", version=version)}, packages=(Packages("/p", {"mindspore": "2.4.1"}),)
        )

    assert results(with_cann("8.0.RC3")) == [PASSED]
    assert results(with_cann("8.0.RC2")) == [FAILED]
    assert results(with_cann("99.0.0")) == [WARNING]
    assert results(Installed()) == [UNKNOWN]
    assert results(DENIED) == [UNKNOWN]


def test_the_clock_is_kept_or_not_or_nobody_knows() -> None:
    assert [clock_check(kept, "refused").result for kept in (True, False, None)] == [PASSED, WARNING, UNKNOWN]


def test_the_tls_switch_must_be_equal() -> None:
    def answers(argv: tuple[str, ...], _timeout_s: float) -> Output | Failure:
        said = {"0": "dev_id:0, tls switch[1](0:disable, 1:enable)\n", "1": "dev_id:1, tls switch[0](…)\n"}
        return Output(said.get(argv[2], "Invalid option\n"), exit_code=0)

    assert [one.result for one in tls_checks(tls_switches(answers, "hccn_tool", ("0", "1")))] == [FAILED]
    assert [one.result for one in tls_checks(tls_switches(answers, "hccn_tool", ("0",)))] == [PASSED]
    assert [one.result for one in tls_checks(tls_switches(answers, "hccn_tool", ("7",)))] == [SKIPPED]
    assert [one.result for one in tls_checks({"0": DENIED, "1": True})] == [UNKNOWN]


def test_an_answer_about_tls_that_is_not_understood_is_unknown_and_without_the_tool_nothing_is_said() -> None:
    def vague(argv: tuple[str, ...], timeout_s: float) -> Output | Failure:
        return Output("dev_id:0, something else\n", exit_code=0)

    def missing(argv: tuple[str, ...], timeout_s: float) -> Output | Failure:
        return Failure(FailureKind.MISSING, "hccn_tool: not found on PATH")

    assert [one.result for one in tls_checks(tls_switches(vague, "hccn_tool", ("0",)))] == [UNKNOWN]
    assert list(tls_checks(tls_switches(missing, "hccn_tool", ("0",)))) == []


def test_a_busy_device_is_not_stressed_and_one_that_cannot_be_seen_neither() -> None:
    for changes, result in (
        ({"processes": BUSY}, FAILED),
        ({"processes": None}, UNKNOWN),
        ({"present": None}, UNKNOWN),
    ):
        refused = preflight_stress.refusal(node(device(0, **changes)), ("0",))
        assert refused is not None
        assert refused.result is result
    assert preflight_stress.refusal(node(device(0)), ("0",)) is None


def test_a_count_that_grew_under_stress_fails_and_one_that_cannot_be_read_is_unknown() -> None:
    grown = device(0, memory_errors={"hbm": {"single_bit": 9, "double_bit": 0}})
    before, good = node(device(0)), Output("ok\n")
    for after, expected in (
        (node(grown), [PASSED, FAILED]),
        (node(device(0)), [PASSED, PASSED]),
        (node(device(0, memory_errors={})), [PASSED, UNKNOWN]),
        (node(), [PASSED, UNKNOWN]),
    ):
        assert [one.result for one in preflight_stress.compared(before, after, ("0",), good)] == expected
    unread_before = node(device(0, memory_errors={}))
    assert [one.result for one in preflight_stress.compared(unread_before, node(grown), ("0",), good)] == [
        PASSED,
        UNKNOWN,
    ]
    for answer, result in ((Output("", "broken\n", 1), FAILED), (DENIED, UNKNOWN)):
        assert next(preflight_stress.compared(before, before, ("0",), answer)).result is result


def test_devices_are_given_as_a_list_of_spans() -> None:
    assert device_ids("0-3,6") == ("0", "1", "2", "3", "6")
    assert device_ids(None) == ()
    for text in ("", "a", "3-1", "0-", "0,,1", "0-99999"):
        with pytest.raises(ValueError, match="is no device; write device_ids as 0-3,6"):
            device_ids(text)


def test_what_a_cgroup_leaves_of_pids_counts(tmp_path: Path) -> None:
    folder = tmp_path / "sys/fs/cgroup/job"
    folder.mkdir(parents=True)
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text("0::/job\n")
    (folder / "pids.max").write_text("20\n")
    (folder / "pids.current").write_text("13\n")
    assert limited(tmp_path / "proc", tmp_path / "sys").tasks == 7
    (folder / "pids.max").write_text("max\n")
    assert not isinstance(limited(tmp_path / "proc", tmp_path / "sys").tasks, Failure)
    (folder / "pids.max").write_text("many\n")
    told = limited(tmp_path / "proc", tmp_path / "sys")
    assert isinstance(told.tasks, Failure)
    checks = {one.name: one.result for one in host_checks({"host": HOST, "blind": {}}, told, {}, 8)}
    assert checks["tasks"] is UNKNOWN
