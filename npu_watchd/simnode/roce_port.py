"""State of an NPU's own RoCE port and of its optical module: what hccn_tool would ask the device for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

PortMood = Literal["ok", "busy", "i2c_busy", "lock_failed", "sick", "denied", "refused", "no_link"]
"""How the device takes a query.

`i2c_busy`: only the module's bus is. `sick`: its health query fails, and the tool tries again in silence for five
minutes. `no_link`: it refuses everything, because the port has no link.
"""
NET_HEALTH = (
    *("Success", "Socket fail", "Receive timeout", "Unreachable", "Time exceeded", "Fault", "Init"),
    *("Thread error", "Detect ip set", "Unknown"),
)
STAT_KEYS = (
    *("mac_tx_mac_pause_num", "mac_rx_mac_pause_num"),
    *("mac_tx_pfc_pkt_num", *(f"mac_tx_pfc_pri{priority}_pkt_num" for priority in range(8))),
    *("mac_rx_pfc_pkt_num", *(f"mac_rx_pfc_pri{priority}_pkt_num" for priority in range(8))),
    *("mac_tx_total_pkt_num", "mac_tx_total_oct_num", "mac_tx_bad_pkt_num", "mac_tx_bad_oct_num"),
    *("mac_rx_total_pkt_num", "mac_rx_total_oct_num", "mac_rx_bad_pkt_num", "mac_rx_bad_oct_num"),
    "mac_rx_fcs_err_pkt_num",
    *("roce_rx_rc_pkt_num", "roce_rx_all_pkt_num", "roce_rx_err_pkt_num"),
    *("roce_tx_rc_pkt_num", "roce_tx_all_pkt_num", "roce_tx_err_pkt_num"),
    *("roce_cqe_num", "roce_rx_cnp_pkt_num", "roce_tx_cnp_pkt_num", "roce_unexpected_ack_num"),
    *("roce_out_of_order_num", "roce_verification_err_num", "roce_qp_status_err_num", "roce_new_pkt_rty_num"),
    "roce_ecn_db_num",
    *("nic_tx_all_pkg_num", "nic_tx_all_oct_num", "nic_rx_all_pkg_num", "nic_rx_all_oct_num"),
)
"""The counters of `-stat` on 910A, 910B and A3, in the tool's order."""
STAT_KEYS_950 = (
    *("ub_glb_ipv4_pkt_cnt_rx", "unic_ipv4_pkt_cnt_rx", "drop_ind_cnt_rx", "err_ind_cnt_rx", "route_err_cnt_rx"),
    *("out_err_cnt_rx", "length_err_cnt_rx", "rx_busi_flit_num"),
    *("drop_ind_cnt_tx", "err_ind_cnt_tx", "out_err_cnt_tx", "length_err_cnt_tx", "tx_busi_flit_num"),
    *("retry_req_sum", "retry_ack_sum", "crc_error_sum"),
)
RECORDS = 10
"""The device keeps that many link changes."""


@dataclass(frozen=True, slots=True)
class LinkChange:
    at_s: float
    """Unix seconds."""
    up: bool


@dataclass(frozen=True, slots=True)
class Range:
    """A module's own limits, in the unit in which the tool prints the value. 0 and 0: it states none."""

    high: float = 0.0
    low: float = 0.0
    high_alarm: float = 0.0
    low_alarm: float = 0.0


@dataclass(frozen=True, slots=True)
class Lane:
    transmit_mw: float = 1.0471
    receive_mw: float = 0.9772
    bias_ma: float = 7.25
    host_snr_db: float | None = 24.0
    """None: this module does not measure it."""
    media_snr_db: float | None = 23.0


@dataclass(frozen=True, slots=True)
class Optics:
    """The transceiver in the port's cage."""

    present: bool = True
    temperature_c: float = 41
    voltage_mv: float | None = 3301.0
    """None: the module answers, but not with its measurements."""
    lanes: tuple[Lane, ...] = (Lane(), Lane(), Lane(), Lane())
    temperature: Range = Range(72, -3)
    voltage: Range = Range(3465.0, 3135.0)
    transmit: Range = Range(3.1623, 0.1995)
    receive: Range = Range(3.1623, 0.1)
    bias: Range = Range(13.0, 3.0)
    transmit_los: int = 0
    """Masks: a bit a lane. Set from what the lanes measure, and by the scenario."""
    receive_los: int = 0
    transmit_lol: int = 0
    receive_lol: int = 0
    vendor: str = "LumaWorks"
    part: str = "LW-Q56-200SR4"
    serial: str = "LW23A0000000"
    identifier: str | None = "QSFP28 or later"
    """None: a code that the tool has no word for."""
    wavelength_nm: int = 850
    made_on: str = "2024-03-01"


@dataclass(frozen=True, slots=True)
class RocePort:
    up: bool = True
    speed_mbps: int | None = 200_000
    """None: the tool prints that it does not know."""
    up_count: int = 1
    down_count: int | None = 0
    """None: a driver of 2023, which does not print it."""
    changes: tuple[LinkChange, ...] = ()
    """Newest first, at most RECORDS."""
    counters: Mapping[str, int] = field(default_factory=dict)
    """A key that is not there is not printed: so it is on older drivers."""
    net_health: str = "Success"
    optics: Optics = Optics()
    answers: PortMood = "ok"
    udie: int = 0
    """Die, port, width: Ascend 950 only."""
    port: int = 4
    lanes: int = 4
    max_lanes: int = 4
