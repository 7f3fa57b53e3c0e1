"""`-stat`: all counters by key, and those that matter by meaning; a counter that is not there is not 0."""

from __future__ import annotations

import pytest

from npu_watchd.model.fabric import NpuPortStatistics
from npu_watchd.parsers import hccn_stat
from tests.parsers.fabric_texts import written
from tests.parsers.texts import refused


def test_every_counter_of_910b_and_a3() -> None:
    found = hccn_stat.parse(written("hccn-stat__every_counter"))
    assert len(found.counters) == 48
    assert found.counters["roce_ecn_db_num"] == 1260
    assert found.packets == {"receive": 1013, "transmit": 18446744073709551000}
    assert found.pause_frames == {"receive": 714, "transmit": 701}
    assert found.pfc_frames == {"receive": 1628, "transmit": 108}
    assert found.congestion_notifications == {"receive": 1169, "transmit": 1182}
    assert found.retries == 1247
    assert found.errors == {
        "receive_bad": 1039,
        "transmit_bad": 987,
        "receive_fcs": 1065,
        "receive_roce": 1104,
        "transmit_roce": 1143,
        "unexpected_ack": 1195,
        "out_of_order": 1208,
        "verification": 1221,
        "qp_status": 1234,
    }


def test_a_driver_of_2023_counts_two_things_and_the_rest_is_unknown() -> None:
    assert hccn_stat.parse(written("hccn-stat__2023_two_counters")) == NpuPortStatistics(
        errors={"receive_roce": 11, "transmit_roce": 12},
        counters={"roce_rx_err_pkt_num": 11, "roce_tx_err_pkt_num": 12},
    )


def test_ascend_950_counts_under_other_names() -> None:
    found = hccn_stat.parse(written("hccn-stat__950"))
    assert found.port == 6
    assert (found.packets, found.pfc_frames, found.retries) == ({}, {}, 53)
    assert found.errors == {
        "crc": 55,
        "receive_packet": 43,
        "transmit_packet": 49,
        "receive_drop": 42,
        "transmit_drop": 48,
        "receive_route": 44,
        "receive_verification": 45,
        "transmit_verification": 50,
        "receive_length": 46,
        "transmit_length": 51,
    }
    assert "port_id" not in found.counters


def test_a_sum_over_fewer_than_all_priorities_is_no_sum() -> None:
    text = written("hccn-stat__every_counter")
    without = text.replace("mac_rx_pfc_pri7_pkt_num:207\n", "")
    assert without != text
    assert hccn_stat.parse(without).pfc_frames == {"transmit": 108}
    assert hccn_stat.parse(text.replace("pri7_pkt_num:207", "pri7_pkt_num:NA")).pfc_frames == {"transmit": 108}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("packet statistics:\n", "no counter in the answer"),
        ("packet statistics:\nport_id: 4\n", "no counter in the answer"),
        ("a_num:1\na_num:2\n", "the same counter twice"),
        ("a_num:-1\n", "'-1' is no count"),
        ("a_num:1 2\n", "no counter"),
        ("a_num:5", "no counter in the answer"),
    ],
)
def test_what_cannot_be_trusted_is_refused(text: str, problem: str) -> None:
    assert problem in refused(hccn_stat.parse, text).problem
