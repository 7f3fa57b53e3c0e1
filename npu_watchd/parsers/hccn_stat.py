"""`hccn_tool … -stat`: the counters of the NPU's own port, `key:value` a line, by generation under other names."""

from __future__ import annotations

import re
from collections.abc import Mapping

from npu_watchd.model.fabric import NpuPortStatistics
from npu_watchd.parsers.hccn_words import answer_lines
from npu_watchd.parsers.lines import integer

_ENTRY = re.compile(r"(?P<key>[A-Za-z]\w{1,60})\s{0,16}:\s{0,16}(?P<value>\S{0,32})", re.ASCII)
_TITLE = "packet statistics"
_NO_COUNTERS = ("port_id", "is_uboe_port")

_PACKETS = {"receive": "mac_rx_total_pkt_num", "transmit": "mac_tx_total_pkt_num"}
_NOTIFICATIONS = {"receive": "roce_rx_cnp_pkt_num", "transmit": "roce_tx_cnp_pkt_num"}
_PAUSE = {"receive": "mac_rx_mac_pause_num", "transmit": "mac_tx_mac_pause_num"}
_PFC = {"receive": "mac_rx_pfc_pri{}_pkt_num", "transmit": "mac_tx_pfc_pri{}_pkt_num"}
_PRIORITIES = range(8)
_RETRIES = ("roce_new_pkt_rty_num", "retry_req_sum")
_ERRORS = {
    "receive_bad": "mac_rx_bad_pkt_num",
    "transmit_bad": "mac_tx_bad_pkt_num",
    "receive_fcs": "mac_rx_fcs_err_pkt_num",
    "receive_roce": "roce_rx_err_pkt_num",
    "transmit_roce": "roce_tx_err_pkt_num",
    "unexpected_ack": "roce_unexpected_ack_num",
    "out_of_order": "roce_out_of_order_num",
    "verification": "roce_verification_err_num",
    "qp_status": "roce_qp_status_err_num",
    # Ascend 950
    "crc": "crc_error_sum",
    "receive_packet": "err_ind_cnt_rx",
    "transmit_packet": "err_ind_cnt_tx",
    "receive_drop": "drop_ind_cnt_rx",
    "transmit_drop": "drop_ind_cnt_tx",
    "receive_route": "route_err_cnt_rx",
    "receive_verification": "out_err_cnt_rx",
    "transmit_verification": "out_err_cnt_tx",
    "receive_length": "length_err_cnt_rx",
    "transmit_length": "length_err_cnt_tx",
}


def parse(text: str) -> NpuPortStatistics:
    """All counters, and those that matter by their meaning. Raises ParseError; a Busy where it is worth a retry.

    A last line without its end is left out: its number may be cut.
    """
    lines = list(answer_lines(text))
    counters: dict[str, int] = {}
    marks: dict[str, int] = {}
    for line in lines:
        words = line.text.strip()
        if not line.ended or words.rstrip(" :") == _TITLE:
            continue
        entry = _ENTRY.fullmatch(words)
        if entry is None:
            raise line.refuse("no counter")
        key = entry["key"]
        if key in counters or key in marks:
            raise line.refuse("the same counter twice")
        count = integer(line, entry["value"])
        if count is not None:
            (marks if key in _NO_COUNTERS else counters)[key] = count
    if not counters:
        raise lines[-1].refuse("no counter in the answer")
    return NpuPortStatistics(
        packets=_named(counters, _PACKETS),
        errors=_named(counters, _ERRORS),
        retries=next((counters[key] for key in _RETRIES if key in counters), None),
        congestion_notifications=_named(counters, _NOTIFICATIONS),
        pause_frames=_named(counters, _PAUSE),
        pfc_frames=_sums(counters),
        counters=counters,
        port=marks.get("port_id"),
    )


def _named(counters: Mapping[str, int], names: Mapping[str, str]) -> dict[str, int]:
    return {name: counters[key] for name, key in names.items() if key in counters}


def _sums(counters: Mapping[str, int]) -> dict[str, int]:
    """A sum over fewer than all priorities would be another number, so there is none."""
    sums: dict[str, int] = {}
    for direction, pattern in _PFC.items():
        keys = [pattern.format(priority) for priority in _PRIORITIES]
        if all(key in counters for key in keys):
            sums[direction] = sum(counters[key] for key in keys)
    return sums
