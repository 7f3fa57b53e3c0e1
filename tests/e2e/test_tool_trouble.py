"""When npu-smi is missing, forbidden, hanging or talks nonsense, the daemon shows no value and is not silent."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.e2e.fake_tool import FakeTool, node_at
from tests.e2e.harness import command, processes_below, running, until
from tests.e2e.page import Page

QUIET = node_at("quiet", 0)


def _info_fails(page: Page) -> bool:
    return page.value("npu_watchd_probe_up", probe="npu_info") == 0


def _eight_ok(page: Page) -> bool:
    return list(page.states().values()) == ["ok"] * 8


def test_without_npu_smi_the_daemon_runs_and_says_what_to_do(tool: FakeTool) -> None:
    tool.write_config(npu_smi=tool.directory / "nowhere" / "npu-smi")
    with running(tool.config) as daemon:
        page = daemon.shows(_info_fails, "npu_info is down")
        assert page.about_devices() == set()
        assert page.value("npu_devices_present") is None
        assert page.value("npu_watchd_probe_failures_total", probe="npu_info", kind="missing") is not None
        assert daemon.snapshot()["blind"]["npu_info"]["kind"] == "missing"
        html = daemon.get("/").text
        assert "nowhere/npu-smi" in html
        assert "[tools]" in html
        status = command("status", "--config", tool.config)
        assert status.code == 3
        assert "npu_info: missing" in status.out
        assert len(daemon.events("probe_went_blind")) <= 3, "one line a probe, not one a try"


def test_an_npu_smi_that_may_not_be_executed_is_denied_not_missing(tool: FakeTool) -> None:
    tool.path.chmod(0o644)
    with running(tool.config) as daemon:
        page = daemon.shows(_info_fails, "npu_info is down")
        assert page.about_devices() == set()
        assert daemon.snapshot()["blind"]["npu_info"]["kind"] == "denied"


def test_a_hang_makes_devices_unknown_and_they_come_back_by_themselves(tool: FakeTool) -> None:
    tool.shows(QUIET)
    with running(tool.config) as daemon:
        daemon.shows(_eight_ok, "eight devices are ok")
        tool.behaves("trap '' TERM INT HUP; while :; do sleep 100; done")
        answers = []

        def blind() -> bool:
            answers.append(daemon.get("/metrics", timeout_s=5).took_s)
            return daemon.page().states() == dict.fromkeys("01234567", "unknown")

        until(blind, "all devices are unknown")
        page = daemon.shows(
            # Who the devices are, and that they are unknown: nothing else is known of them.
            lambda page: _info_fails(page) and page.about_devices() == {"npu_device_info", "npu_device_health"},
            "npu_info is down and every old value is gone",
        )
        assert (page.value("npu_watchd_probe_failures_total", probe="npu_info", kind="timeout") or 0) >= 1
        assert daemon.page().value("npu_devices_present") is None
        assert daemon.page().value("npu_devices_expected") == 8
        assert max(answers) < 1.0, "a scrape never waits for the tool"
        assert daemon.snapshot()["blind"]["npu_info"]["kind"] == "timeout"
        assert daemon.get("/-/ready").status == 200
        assert command("status", "--config", tool.config).code == 3
        tool.behaves_well()
        daemon.shows(_eight_ok, "eight devices are ok again")
        said = command("status", "--config", tool.config)
        assert said.code in (0, 3), "3 while the finding that nothing could be seen has its calm"
        code, took_s = daemon.stop()
    assert (code, took_s < 5) == (0, True)
    assert processes_below(tool.directory) == []


@pytest.mark.parametrize(
    ("shell", "kind", "words"),
    [
        ("echo hello; exit 0", "unparseable", "hello"),
        ("head -c 300000 /dev/urandom; exit 0", "unparseable", ""),
        ("printf '\\0\\033[2J\\377\\376|||+--+\\n'; exit 0", "unparseable", ""),
        ("head -c 100000000 /dev/zero | tr '\\0' 'x'; exit 0", "unparseable", "4 MiB"),
        ("exit 0", "unparseable", ""),
        ("echo 'dcmi module initialize failed. ret is -8005'; exit 187", "exit", "ret is -8005"),
        ("echo 'dcmi model initialized failed, because the device is used. ret is -8020'; exit 172", "exit", "-8020"),
        ("echo 'npu-smi: error while loading shared libraries: x.so: not there' >&2; exit 127", "missing", "x.so"),
        ("kill -9 $$", "exit", "signal 9"),
    ],
    ids=["words", "random", "binary", "100-MB", "nothing", "8005", "8020", "loader", "killed"],
)
def test_what_the_tool_says_instead_of_a_table_is_a_failure_with_its_words(
    tool: FakeTool, shell: str, kind: str, words: str
) -> None:
    tool.shows(QUIET)
    tool.behaves(shell)
    with running(tool.config) as daemon:
        daemon.shows(_info_fails, "npu_info is down")
        failure = daemon.snapshot()["blind"]["npu_info"]
        assert failure["kind"] == kind
        assert words in failure["detail"]
        assert words in daemon.get("/").text
        assert daemon.page().about_devices() == set()
        assert daemon.get("/metrics").took_s < 1.0


def test_when_the_driver_goes_and_comes_its_words_are_on_the_page_and_devices_are_unknown(tool: FakeTool) -> None:
    tool.shows(QUIET)
    with running(tool.config) as daemon:
        daemon.shows(_eight_ok, "eight devices are ok")
        tool.behaves("echo 'dcmi module initialize failed. ret is -8005'; exit 187")
        daemon.shows(lambda page: page.states() == dict.fromkeys("01234567", "unknown"), "all devices are unknown")
        assert daemon.page().by_device("npu_device_present") == {}, "nobody knows whether they are there"
        assert "dcmi module initialize failed. ret is -8005" in daemon.get("/").text
        assert "lsmod | grep drv_" in daemon.get("/").text
        tool.behaves_well()
        daemon.shows(_eight_ok, "eight devices are ok again")


def test_output_of_a_hundred_megabytes_leaves_no_process_and_no_memory_behind(tool: FakeTool) -> None:
    tool.behaves("yes 'a line that never ends' | tr -d '\\n'")
    with running(tool.config) as daemon:
        failures = "npu_watchd_probe_failures_total"
        daemon.shows(lambda page: (page.value(failures, probe="npu_info", kind="unparseable") or 0) >= 3, "three tries")
        resident_kb = _resident_kb(daemon.process.pid)
        assert resident_kb < 120_000
        daemon.stop()
    assert processes_below(tool.directory) == []


def _resident_kb(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))


def test_no_descriptor_is_lost_while_the_tool_fails(tool: FakeTool) -> None:
    tool.behaves("exit 3")
    with running(tool.config) as daemon:
        failures = "npu_watchd_probe_failures_total"

        def tries(page: Page) -> float:
            return (
                page.value(failures, probe="npu_info", kind="exit")
                or page.value(failures, probe="npu_info", kind="unparseable")
                or 0
            )

        daemon.shows(lambda page: tries(page) >= 1, "one try")
        before = len(os.listdir(f"/proc/{daemon.process.pid}/fd"))
        daemon.shows(lambda page: tries(page) >= 6, "six tries")
        until(lambda: len(os.listdir(f"/proc/{daemon.process.pid}/fd")) <= before + 2, "descriptors are given back")
