"""What has happened to an NPU's own RoCE port up to an instant: its link, its counters, its module."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from npu_watchd.simnode.chip_story import ChipStory
from npu_watchd.simnode.roce_port import RECORDS, STAT_KEYS, STAT_KEYS_950, Lane, LinkChange, Optics, RocePort
from npu_watchd.simnode.scenario import Event
from npu_watchd.simnode.spans import Span, busy_spans, last_reset_s, level_spans, seconds
from npu_watchd.simnode.state import ChipState, Family
from npu_watchd.simnode.wander import trait, wander

UP_BEFORE_S = 36_000.0
"""The device started that long before the scenario, and its link came up then."""
QUIET_PACKETS, BUSY_PACKETS = 1.5, 160_000.0
"""A second and direction: of neighbours' announcements, and of a job."""
QUIET_BYTES, BUSY_BYTES = 110, 4174
"""Of such a packet."""


def roce_port(
    chip: ChipState,
    idle: RocePort,
    family: Family,
    events: Sequence[Event],
    story: ChipStory,
    t_s: float,
    start_s: float,
) -> RocePort:
    """The port at `t_s`; a chip whose health query fails answers none of the tool's questions."""
    levels = story.levels
    began_s = last_reset_s(events, t_s)
    links = _links(events, began_s, t_s)
    up = links[-1].value
    changes = _changes(links, began_s, start_s)
    sick = chip.failing("health") or chip.failing("heartbeat")
    return replace(
        idle,
        up=up,
        speed_mbps=levels.get("port.speed", idle.speed_mbps),
        up_count=sum(change.up for change in changes),
        down_count=sum(not change.up for change in changes),
        changes=tuple(reversed(changes))[:RECORDS],
        counters=_counters(family, story, _traffic(events, links, began_s, t_s)),
        net_health=levels.get("port.net_health", "Success" if up else "Fault"),
        optics=_optics(chip, idle.optics, levels, t_s),
        answers="sick" if sick else levels.get("port.answers", "ok"),
    )


def _links(events: Sequence[Event], began_s: float | None, t_s: float) -> tuple[Span[bool], ...]:
    """Up or down, since the scenario began or since the device was reset."""
    spans = [Span(span.from_s, span.value == "up") for span in level_spans(events, "port.link", "up", t_s)]
    if began_s is None:
        return tuple(spans)
    before = [span for span in spans if span.from_s <= began_s]
    return (Span(began_s, before[-1].value), *spans[len(before) :])


def _changes(links: Sequence[Span[bool]], began_s: float | None, start_s: float) -> list[LinkChange]:
    """Oldest first. That the link came up with the device is a change too."""
    came_up_s = -UP_BEFORE_S if began_s is None else began_s
    changes = [LinkChange(start_s + came_up_s, True)] if links[0].value else []
    return changes + [LinkChange(start_s + span.from_s, span.value) for span in links[1:]]


def _traffic(
    events: Sequence[Event], links: tuple[Span[bool], ...], began_s: float | None, t_s: float
) -> tuple[int, int]:
    """Packets and bytes in each direction."""
    since_s = began_s or 0.0
    up_s = seconds(t_s, since_s, links)
    busy_s = seconds(t_s, since_s, links, busy_spans(events, t_s))
    quiet, busy = int(up_s * QUIET_PACKETS), int(busy_s * BUSY_PACKETS)
    return quiet + busy, quiet * QUIET_BYTES + busy * BUSY_BYTES


def _counters(family: Family, story: ChipStory, traffic: tuple[int, int]) -> Mapping[str, int]:
    packets, octets = traffic
    if family == "950":
        flits = {"unic_ipv4_pkt_cnt_rx": packets, "rx_busi_flit_num": octets // 20, "tx_busi_flit_num": octets // 20}
        return {key: flits.get(key, 0) + story.count(f"port.{key}") for key in STAT_KEYS_950}
    moved = {f"mac_{way}_total_pkt_num": packets for way in ("tx", "rx")}
    moved |= {f"mac_{way}_total_oct_num": octets for way in ("tx", "rx")}
    moved |= {f"nic_{way}_all_pkg_num": packets // 1000 for way in ("tx", "rx")}
    moved |= {f"nic_{way}_all_oct_num": packets // 1000 * QUIET_BYTES for way in ("tx", "rx")}
    moved |= {f"roce_{way}_{which}_pkt_num": packets * 9 // 10 for way in ("tx", "rx") for which in ("rc", "all")}
    moved["roce_cqe_num"] = packets // 40
    return {key: moved.get(key, 0) + story.count(f"port.{key}") for key in STAT_KEYS}


def _optics(chip: ChipState, idle: Optics, levels: Mapping[str, Any], t_s: float) -> Optics:
    who = f"chip{chip.logic_id} optics"
    receive, transmit, bias = (levels.get(f"optics.{what}", ()) for what in ("receive", "transmit", "bias"))
    lanes = tuple(
        Lane(
            _nth(transmit, at, round(lane.transmit_mw + 0.02 * trait(f"{who} tx{at}"), 4)),
            _nth(receive, at, round(lane.receive_mw + 0.05 * trait(f"{who} rx{at}"), 4)),
            _nth(bias, at, round(lane.bias_ma + 0.3 * trait(f"{who} bias{at}"), 4)),
            lane.host_snr_db and lane.host_snr_db + at / 4,
            lane.media_snr_db and lane.media_snr_db + at / 4,
        )
        for at, lane in enumerate(idle.lanes)
    )
    return replace(
        idle,
        present=levels.get("optics.present", True),
        temperature_c=levels.get("optics.temperature", round(idle.temperature_c + 2 * trait(who) + wander(who, t_s))),
        lanes=lanes,
        transmit_los=sum(1 << at for at, lane in enumerate(lanes) if lane.transmit_mw == 0.0),
        receive_los=sum(1 << at for at, lane in enumerate(lanes) if lane.receive_mw == 0.0),
        receive_lol=sum(1 << at for at, lane in enumerate(lanes) if lane.receive_mw == 0.0),
        serial=f"LW23A{chip.logic_id + 1:07d}",
    )


def _nth(told: Sequence[float], at: int, else_: float) -> float:
    return told[at] if at < len(told) else else_
