"""What a line of npu-smi's error log says. The prefixes are made up, since the real ones are not known."""

from __future__ import annotations

import pytest

from npu_watchd.parsers.tool_log import ToolLogEvent, failures_in


@pytest.mark.parametrize(
    ("line", "function", "code"),
    [
        ("dcmi_get_device_health failed. err is -8006", "dcmi_get_device_health", -8006),
        ("dcmi_get_device_health failed. err is -8006.", "dcmi_get_device_health", -8006),
        ("dcmi_init failed, ret=-8005", "dcmi_init", -8005),
        ("dcmi_init() failed, ret = -8005, card 3", "dcmi_init", -8005),
        ("[dcmi_get_card_list] failed: err:-9005", "dcmi_get_card_list", -9005),
        ("[ERR] 2026-11-30 15:41:33 [41][npu_smi.c:77] dsmi_get_ecc failed. err is -8020\r", "dsmi_get_ecc", -8020),
        ("main_loop: call dcmi_get_hbm_info failed. card 3 chip 0 err is -8006", "dcmi_get_hbm_info", -8006),
        ("Query failed in dcmi_get_x: DcmiGetHealth failed. ret is -1", "DcmiGetHealth", -1),
    ],
)
def test_a_failed_call_is_found_wherever_it_stands(line: str, function: str, code: int) -> None:
    assert failures_in(line) == ToolLogEvent(function, code)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "dcmi_get_device_health failed.",
        "dcmi_get_device_health failed. err is",
        "dcmi_get_device_health failed. err is 8006",
        "dcmi_get_device_health failed. err is -80x6",
        "dcmi_get_device_health failed. ferret is -8006",
        "dcmi_get_device_health ok. err is -8006",
        "err is -8006 dcmi_get_device_health failed",
        "Query failed. err is -8006",
        "Failed to get device type. ret is -8006",
        "dcmi_get_device_health unfailed. err is -8006",
    ],
)
def test_a_line_without_the_whole_shape_is_no_event(line: str) -> None:
    assert failures_in(line) is None


def test_of_two_failures_on_a_line_the_first_counts() -> None:
    line = "dcmi_get_a failed. err is -8001; dcmi_get_b failed. err is -8002"
    assert failures_in(line) == ToolLogEvent("dcmi_get_a", -8001)


@pytest.mark.timeout(5)
def test_a_line_of_a_megabyte_is_read_at_once() -> None:
    for piece in ("a_b failed ", "a_" * 8, "failed ", "err is ", "((["):
        assert failures_in(piece * (1_000_000 // len(piece))) is None
