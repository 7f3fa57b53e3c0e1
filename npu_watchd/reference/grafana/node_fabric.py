"""Panels of the node's ports and of its devices' way to the CPU."""

from __future__ import annotations

from collections.abc import Iterable

from npu_watchd.config.values import Seconds
from npu_watchd.limits import BY_NAME
from npu_watchd.reference.grafana.expressions import LINKS, YES, by_device, of_device, of_node
from npu_watchd.reference.grafana.panel import Kind, Line, Panel, Query
from npu_watchd.rules.transport import HOST_COUNTERS, NPU_COUNTERS, Counter

_PORT = "{{rdma_device}}/{{port}}"


def _window(limit: str) -> str:
    return str(Seconds(BY_NAME[limit].default))


def _times_the_limit(metric: str, label: str, counters: Iterable[Counter]) -> str:
    """Each counter's rate as a multiple of its own limit, as the rule reckons it."""
    terms = []
    for one in counters:
        series = metric.replace("}", f', {label}="{one.name}"}}')
        per = f"{one.per_s:g} * rate" if one.per_s else "increase"
        terms.append(f"{per}({series}[{_window('port_errors_window_s')}]) / {BY_NAME[one.limit].default:g}")
    return " or ".join(terms)


_RATES = f"The rate over {_window('port_errors_window_s')}; 1 is the limit of the alert RocePortErrorsClimbing."
PORTS = (
    Panel(
        "The NPUs' own ports",
        Kind.STATES,
        "Whether the port has its link (`hccn_tool -link`); a gap: nobody could tell.",
        by_device(of_device("npu_device_roce_link_up")),
        states=LINKS,
        width=12,
        height=8,
    ),
    Panel(
        "The host's ports",
        Kind.STATES,
        "Active and LinkUp (`ibstat`); down also where a port that should be there is gone; a gap: nobody can tell.",
        (Query(of_node("npu_node_rdma_port_up"), _PORT),),
        states=LINKS,
        width=12,
        height=8,
    ),
    Panel(
        "Link downs in a day",
        Kind.SERIES,
        "How often links were lost in the 24 hours before.",
        (
            Query(
                f"increase({of_device('npu_device_roce_link_downs_total')}[{_window('link_downs_window_s')}])",
                "NPU {{device_id}}",
            ),
            Query(
                f"increase({of_node('npu_node_rdma_port_link_downs_total')}[{_window('link_downs_window_s')}])", _PORT
            ),
        ),
        lines=(Line.of("link_downs", "orange"),),
    ),
    Panel(
        "Errors of the NPUs' ports, times the limit",
        Kind.SERIES,
        _RATES,
        (
            Query(
                _times_the_limit(of_device("npu_device_roce_errors_total"), "kind", NPU_COUNTERS),
                "{{device_id}} {{kind}}",
            ),
        ),
        lines=(Line.at_once("npu_crc_errors_per_second"), Line.at_once("npu_retries_per_second")),
    ),
    Panel(
        "Errors of the host's ports, times the limit",
        Kind.SERIES,
        _RATES,
        (
            Query(
                _times_the_limit(of_node("npu_node_rdma_port_errors_total"), "counter", HOST_COUNTERS),
                f"{_PORT} {{{{counter}}}}",
            ),
        ),
        lines=tuple(Line.at_once(name) for name in dict.fromkeys(one.limit for one in HOST_COUNTERS)),
    ),
    Panel(
        "Speed",
        Kind.SERIES,
        "Of both kinds of ports; of a host port that is not Active a leftover or a default.",
        (
            Query(of_device("npu_device_roce_link_bits_per_second"), "NPU {{device_id}}"),
            Query(of_node("npu_node_rdma_port_bits_per_second"), _PORT),
        ),
        "bps",
    ),
    Panel(
        "Traffic of the host's ports",
        Kind.SERIES,
        "Data by direction.",
        (Query(f"rate({of_node('npu_node_rdma_port_bytes_total')}[$__rate_interval])", f"{_PORT} {{{{direction}}}}"),),
        "Bps",
    ),
    Panel(
        "Frames of the NPUs' ports",
        Kind.SERIES,
        "Frames a second, and pause frames, by which the other end or the port itself asks for a break.",
        (
            Query(
                f"rate({of_device('npu_device_roce_packets_total')}[$__rate_interval])", "{{device_id}} {{direction}}"
            ),
            Query(
                f"sum by (device_id, direction) "
                f"(rate({of_device('npu_device_roce_pause_frames_total')}[$__rate_interval]))",
                "{{device_id}} pause {{direction}}",
            ),
        ),
        "pps",
    ),
    Panel(
        "Light received, by lane",
        Kind.SERIES,
        "0 is darkness that was measured. The lines are for modules that state no limits of their own.",
        (Query(of_device("npu_device_optical_power_watts", 'direction="receive"'), "{{device_id}} lane {{lane}}"),),
        "watt",
        lines=(Line.of("optical_receive_low_watts", "orange"), Line.of("optical_receive_high_watts")),
    ),
    Panel(
        "Light sent, by lane",
        Kind.SERIES,
        "The lines are for modules that state no limits of their own.",
        (Query(of_device("npu_device_optical_power_watts", 'direction="transmit"'), "{{device_id}} lane {{lane}}"),),
        "watt",
        lines=(Line.of("optical_transmit_low_watts", "orange"), Line.of("optical_transmit_high_watts")),
    ),
    Panel(
        "Temperature of the optical modules",
        Kind.SERIES,
        "From `hccn_tool -optical`.",
        by_device(of_device("npu_device_optical_temperature_celsius")),
        "celsius",
    ),
    Panel(
        "Optical modules",
        Kind.STATES,
        "Whether the NPU's port has one; a gap: nobody could tell.",
        by_device(of_device("npu_device_optical_present")),
        states=YES,
    ),
    Panel(
        "Whom the NPUs reach",
        Kind.TABLE,
        "Whether each NPU reaches the address that it was told to probe (`hccn_tool -net_health`).",
        (Query(f"max by (device_id, state) ({of_device('npu_device_roce_reachability')} == 1)"),),
        columns={"device_id": "device", "state": "answer"},
    ),
    Panel(
        "The host's RDMA ports",
        Kind.TABLE,
        "From `ibstat`, else sysfs.",
        (
            Query(
                f"max by (rdma_device, port, link_layer, firmware, netdev) ({of_node('npu_node_rdma_port_info')})",
            ),
        ),
        columns={
            "rdma_device": "RDMA device",
            "port": "port",
            "netdev": "network device",
            "link_layer": "link layer",
            "firmware": "firmware",
        },
    ),
)
_CORRECTABLE = 'severity="correctable"'
_PER_LANE = "pcie_correctable_per_minute_per_lane"
PCIE = (
    Panel(
        "Lanes missing",
        Kind.SERIES,
        "How many lanes fewer the link has than every part of its path can; 0 is what it should be.",
        by_device(f"{of_device('npu_device_pcie_link_max_lanes')} - {of_device('npu_device_pcie_link_lanes')}"),
        custom={"axisSoftMax": 16},
    ),
    Panel(
        "Speed, of what the path can",
        Kind.SERIES,
        "An idle link may sleep at a lower speed.",
        by_device(
            f"{of_device('npu_device_pcie_link_transfers_per_second')}"
            f" / {of_device('npu_device_pcie_link_max_transfers_per_second')}"
        ),
        "percentunit",
        bounds=(0, 1),
    ),
    Panel(
        "Corrected errors a minute and lane",
        Kind.SERIES,
        f"AER of both ends of the link, over {_window('pcie_correctable_window_s')}.",
        by_device(
            f"60 * rate({of_device('npu_device_pcie_errors_total', _CORRECTABLE)}"
            f"[{_window('pcie_correctable_window_s')}])"
            f" / ignoring (severity) {of_device('npu_device_pcie_link_max_lanes')}"
        ),
        lines=(Line.of(_PER_LANE, "orange"),),
    ),
    Panel(
        "Errors that were not corrected",
        Kind.SERIES,
        "AER, since the host came up; each is a finding for a day.",
        (
            Query(
                of_device("npu_device_pcie_errors_total", 'severity!="correctable"'),
                "{{device_id}} {{severity}}",
            ),
        ),
    ),
    Panel(
        "Load",
        Kind.SERIES,
        "Share of what the link can carry each way; where `[probes.pcie_load]` is on.",
        (Query(of_device("npu_device_pcie_load_ratio"), "{{device_id}} {{direction}}"),),
        "percentunit",
        bounds=(0, 1),
        lines=(Line.of("pcie_load_ratio", "orange"),),
    ),
    Panel(
        "Throughput",
        Kind.SERIES,
        "By device, or where devices cannot be told apart by CPU socket, all its PCIe devices together.",
        (
            Query(of_device("npu_device_pcie_throughput_bytes_per_second"), "{{device_id}} {{direction}}"),
            Query(of_node("npu_node_pcie_throughput_bytes_per_second"), "socket {{socket}} {{direction}}"),
        ),
        "Bps",
    ),
    Panel(
        "Errors, as the device counts them",
        Kind.SERIES,
        "A second, by kind (`npu-smi info -t pcie-err`).",
        (Query(f"rate({of_device('npu_device_pcie_link_errors_total')}[$__rate_interval])", "{{device_id}} {{kind}}"),),
        "cps",
    ),
)
