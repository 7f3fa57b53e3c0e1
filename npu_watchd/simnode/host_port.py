"""The host's RDMA devices as a scenario makes them: mlx5 adapters with one port each, and their network devices."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Literal

from npu_watchd.simnode.chip_story import ChipStory
from npu_watchd.simnode.scenario import Event
from npu_watchd.simnode.spans import Span, level_spans, seconds
from npu_watchd.simnode.sysfs_ib import (
    ACTIVE,
    COUNTERS,
    DISABLED,
    DOWN,
    INITIALIZING,
    LINK_UP,
    POLLING,
    SimHca,
    SimPort,
)
from npu_watchd.simnode.sysfs_net import NetDevice

HostLink = Literal["up", "down", "polling", "initializing"]
STATES: dict[HostLink, tuple[int, int]] = {
    "up": (ACTIVE, LINK_UP),
    "down": (DOWN, DISABLED),
    "polling": (DOWN, POLLING),
    "initializing": (INITIALIZING, LINK_UP),
}
"""Logical and physical state. A RoCE port without a cable is Disabled, an InfiniBand port Polling."""
HW_COUNTERS = (
    *("duplicate_request", "implied_nak_seq_err", "local_ack_timeout_err", "np_cnp_sent"),
    *("np_ecn_marked_roce_packets", "out_of_buffer", "out_of_sequence", "packet_seq_err", "req_cqe_error"),
    *("req_cqe_flush_error", "req_remote_access_errors", "req_remote_invalid_request", "resp_cqe_error"),
    *("resp_cqe_flush_error", "resp_local_length_error", "resp_remote_access_errors", "rnr_nak_retry_err"),
    *("roce_adp_retrans", "roce_adp_retrans_to", "roce_slow_restart", "roce_slow_restart_cnps"),
    *("roce_slow_restart_trans", "rp_cnp_handled", "rp_cnp_ignored", "rx_atomic_requests", "rx_icrc_encapsulated"),
    *("rx_read_requests", "rx_write_requests"),
)
COUNTER_NAMES = frozenset((*COUNTERS, *HW_COUNTERS))
DEFAULT_RATE = "200 Gb/sec (4X HDR)"

_PACKETS_PER_SECOND = 2
"""Of a port on which nothing runs: neighbours announce themselves."""
_WORDS_PER_PACKET = 32


def hca_names(count: int) -> tuple[str, ...]:
    """mlx5_0, mlx5_1, …"""
    return tuple(f"mlx5_{at}" for at in range(count))


def hca(at: int, events: Iterable[Event], t_s: float) -> tuple[SimHca, NetDevice] | None:
    """The adapter of that number; None while it is lost."""
    told = tuple(events)
    story = ChipStory().tell(told, t_s)
    if story.levels.get("rdma.lost", False):
        return None
    links: tuple[Span[HostLink], ...] = level_spans(told, "rdma.link", "up", t_s)
    state, physical_state = STATES[links[-1].value]
    carrier = tuple(Span(span.from_s, span.value in ("up", "initializing")) for span in links)
    downs = sum(before.value and not after.value for before, after in pairwise(carrier))
    ups = sum(after.value and not before.value for before, after in pairwise(carrier))
    rate = None if story.levels.get("rdma.unreadable", False) else story.levels.get("rdma.rate", DEFAULT_RATE)
    packets = int(_PACKETS_PER_SECOND * seconds(t_s, 0.0, carrier))
    traffic = {
        **dict.fromkeys(("port_rcv_packets", "port_xmit_packets"), packets),
        **dict.fromkeys(("port_rcv_data", "port_xmit_data"), packets * _WORDS_PER_PACKET),
        "link_downed": downs,
    }
    netdev = f"ens{21 + at}np0"
    port = SimPort(
        state=state,
        physical_state=physical_state,
        rate=rate,
        guid=0x9E63C0FFFEAA0010 + 0x10 * at,
        netdev=netdev,
        counters={name: traffic.get(name, 0) + story.count(f"rdma.{name}") for name in COUNTERS},
        hw_counters={**{name: story.count(f"rdma.{name}") for name in HW_COUNTERS}, "lifespan": 10},
    )
    guid = 0x9C63C00300AA0010 + 0x10 * at
    adapter = SimHca(f"mlx5_{at}", "MT4123", "20.43.1014", node_guid=guid, system_image_guid=guid, ports=(port,))
    mac = f"9c:63:c0:aa:00:{0x10 + 0x10 * at & 0xFF:02x}"
    speed = int((rate or DEFAULT_RATE).split()[0]) * 1000
    return adapter, NetDevice(netdev, mac, carrier[-1].value, 1 + ups, 1 + downs, speed)
