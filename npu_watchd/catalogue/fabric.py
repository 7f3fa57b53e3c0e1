"""The metrics of the fabric: the host's RDMA ports, the NPUs' own ports, and the PCIe paths."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from npu_watchd.catalogue.family import DeviceFamily, Kind, NodeFamily, Sample, each, one, states
from npu_watchd.model.fabric import NET_HEALTH_LABELS, PHYSICAL_STATE_LABELS, PORT_STATE_LABELS, NpuPortStatistics
from npu_watchd.model.pcie import SEVERITIES, PcieErrors
from npu_watchd.model.snapshot import Device, NpuPort, Outcome, Port

_G, _C = Kind.GAUGE, Kind.COUNTER
_GBPS = 1_000_000_000


def _ports(read: Callable[[Port], Iterable[Sample]]) -> Callable[[Outcome], Iterable[Sample]]:
    """Every port's samples, with its labels."""

    def samples(outcome: Outcome) -> Iterable[Sample]:
        for key, port in outcome.snapshot.ports.items():
            for labels, value in read(port):
                yield {"rdma_device": key.rdma_device, "port": str(key.port), **labels}, value

    return samples


def _port_info(port: Port) -> Iterable[Sample]:
    if port.facts is None:
        return ()
    labels = {
        "link_layer": port.facts.link_layer or "",
        "firmware": port.facts.firmware or "",
        "netdev": port.netdev or "",
    }
    return ((labels, 1.0),)


def _port_state(word: str | None, labels: Mapping[str, str]) -> Iterable[Sample]:
    return () if word is None else states("state", labels.values(), labels[word])


def _npu(read: Callable[[NpuPort], Iterable[Sample]]) -> Callable[[Device], Iterable[Sample]]:
    return lambda device: () if device.roce is None else read(device.roce)


def _statistics(read: Callable[[NpuPortStatistics], Iterable[Sample]]) -> Callable[[Device], Iterable[Sample]]:
    return _npu(lambda port: () if port.statistics is None else read(port.statistics))


# Of a port's error counters those that tell a bad link, a lossy fabric and a retrying job apart: a device has eighty
# series to spend (DESIGN 7). The others are in the API, and `hccn_tool -stat` has all.
_ERROR_KINDS = ("receive_fcs", "out_of_order", "crc", "receive_packet", "receive_drop")


def _npu_errors(statistics: NpuPortStatistics) -> Iterable[Sample]:
    chosen = {kind: statistics.errors.get(kind) for kind in _ERROR_KINDS}
    return each("kind", {**chosen, "retry": statistics.retries})


def _pause_frames(statistics: NpuPortStatistics) -> Iterable[Sample]:
    """RoCE is held back by priority; the pause of the whole link speaks where a driver does not count priorities."""
    kind, frames = ("priority", statistics.pfc_frames) if statistics.pfc_frames else ("pause", statistics.pause_frames)
    return _labelled({"kind": kind}, each("direction", frames))


def _labelled(labels: Mapping[str, str], samples: Iterable[Sample]) -> Iterable[Sample]:
    return [({**labels, **found}, value) for found, value in samples]


def _optical_power(port: NpuPort) -> Iterable[Sample]:
    for lane in port.optical.lanes if port.optical else ():
        powers = {"transmit": lane.transmit_watts, "receive": lane.receive_watts}
        yield from _labelled({"lane": str(lane.lane)}, each("direction", powers))


def _aer(errors: PcieErrors | None) -> Iterable[Sample]:
    return () if errors is None else each("severity", {severity: errors.both_ends(severity) for severity in SEVERITIES})


def _load(device: Device, value: str) -> Iterable[Sample]:
    load = device.pcie_load
    if load is None:
        return ()
    return each("direction", {way: getattr(load, f"{way}_{value}") for way in ("receive", "transmit")})


DEVICE_FAMILIES: tuple[DeviceFamily, ...] = (
    DeviceFamily(
        "npu_device_roce_link_up",
        _G,
        "1: the NPU's own port has its link; 0: it has not; absent: nobody could tell (`hccn_tool -link`).",
        (),
        _npu(lambda port: one(port.link_up)),
    ),
    DeviceFamily(
        "npu_device_roce_link_bits_per_second",
        _G,
        "Speed of the NPU's own port (`hccn_tool -speed`).",
        (),
        _npu(lambda port: one(port.bits_per_second)),
    ),
    DeviceFamily(
        "npu_device_roce_link_downs_total",
        _C,
        "Times that the link went down since the device started (`hccn_tool -link_stat`: link down count).",
        (),
        _npu(lambda port: one(port.link_downs)),
    ),
    DeviceFamily(
        "npu_device_roce_reachability",
        _G,
        "State set: whether the NPU reaches the address it was told to probe (`hccn_tool -net_health`).",
        ("state",),
        _npu(
            lambda port: (
                states("state", NET_HEALTH_LABELS.values(), port.reachability) if port.reachability is not None else ()
            )
        ),
    ),
    DeviceFamily(
        "npu_device_roce_packets_total",
        _C,
        "Frames of the NPU's port by direction (`hccn_tool -stat`: mac_rx/tx total packets).",
        ("direction",),
        _statistics(lambda statistics: each("direction", statistics.packets)),
    ),
    DeviceFamily(
        "npu_device_roce_errors_total",
        _C,
        "Errors and retransmissions of the NPU's port by kind, a choice; the API has all (`hccn_tool -stat`).",
        ("kind",),
        _statistics(_npu_errors),
    ),
    DeviceFamily(
        "npu_device_roce_pause_frames_total",
        _C,
        "Priority pause frames, all priorities; where the driver has none, those of the link (`hccn_tool -stat`).",
        ("direction", "kind"),
        _statistics(_pause_frames),
    ),
    DeviceFamily(
        "npu_device_optical_power_watts",
        _G,
        "Light by lane and direction; 0 is darkness that was measured (`hccn_tool -optical`).",
        ("lane", "direction"),
        _npu(_optical_power),
    ),
    DeviceFamily(
        "npu_device_optical_temperature_celsius",
        _G,
        "Temperature of the optical module (`hccn_tool -optical`).",
        (),
        _npu(lambda port: one(port.optical.temperature_celsius if port.optical else None)),
    ),
    DeviceFamily(
        "npu_device_optical_present",
        _G,
        "1: the port has an optical module; 0: it has none (`hccn_tool -optical`: present).",
        (),
        _npu(lambda port: one(port.optical.present if port.optical else None)),
    ),
    DeviceFamily(
        "npu_device_pcie_link_transfers_per_second",
        _G,
        "Present PCIe speed of the device's link; an idle link may sleep (`current_link_speed` in sysfs).",
        (),
        lambda device: one(device.pcie_link.transfers_per_second if device.pcie_link else None),
    ),
    DeviceFamily(
        "npu_device_pcie_link_max_transfers_per_second",
        _G,
        "The smallest maximum on the path up to the root port: what the link can be expected to do (sysfs).",
        (),
        lambda device: one(device.pcie_link.path_max_transfers_per_second if device.pcie_link else None),
    ),
    DeviceFamily(
        "npu_device_pcie_link_lanes",
        _G,
        "Present PCIe width of the device's link (`current_link_width` in sysfs).",
        (),
        lambda device: one(device.pcie_link.lanes if device.pcie_link else None),
    ),
    DeviceFamily(
        "npu_device_pcie_link_max_lanes",
        _G,
        "The smallest maximum width on the path up to the root port (sysfs).",
        (),
        lambda device: one(device.pcie_link.path_max_lanes if device.pcie_link else None),
    ),
    DeviceFamily(
        "npu_device_pcie_throughput_bytes_per_second",
        _G,
        "Bytes over the device's PCIe link by direction, as the device sees it (DCMI, or perf on hisi_pcie; opt-in).",
        ("direction",),
        lambda device: _load(device, "bytes_per_second"),
    ),
    DeviceFamily(
        "npu_device_pcie_load_ratio",
        _G,
        "The same as a share of what the link can carry each way: speed x width x encoding; 0 to 1.",
        ("direction",),
        lambda device: _load(device, "ratio"),
    ),
    DeviceFamily(
        "npu_device_pcie_errors_total",
        _C,
        "AER errors that either end of the device's link has seen, by severity (`aer_dev_*` in sysfs).",
        ("severity",),
        lambda device: _aer(device.pcie_errors),
    ),
)


def _sockets(outcome: Outcome) -> Iterable[Sample]:
    for load in outcome.snapshot.pcie_sockets:
        for way in ("receive", "transmit"):
            rate = getattr(load, f"{way}_bytes_per_second")
            if rate is not None:
                yield {"socket": str(load.socket), "direction": way}, rate


NODE_FAMILIES: tuple[NodeFamily, ...] = (
    NodeFamily(
        "npu_node_pcie_throughput_bytes_per_second",
        _G,
        "By CPU socket, all its PCIe devices together as they see it: receive is read from memory, transmit written "
        "to it (`pcm-pcie`: PCIe Rd, PCIe Wr; opt-in, where devices cannot be told apart).",
        ("socket", "direction"),
        _sockets,
    ),
    NodeFamily(
        "npu_node_rdma_port_info",
        _G,
        "The host's RDMA ports (`ibstat`, else /sys/class/infiniband).",
        ("rdma_device", "port", "link_layer", "firmware", "netdev"),
        _ports(_port_info),
    ),
    NodeFamily(
        "npu_node_rdma_port_up",
        _G,
        "1: Active and LinkUp; 0: not, or a port that should be there is gone; absent: nobody can tell (`ibstat`).",
        ("rdma_device", "port"),
        _ports(lambda port: one(port.up)),
    ),
    NodeFamily(
        "npu_node_rdma_port_state",
        _G,
        "State set: logical state (`ibstat`: State).",
        ("rdma_device", "port", "state"),
        _ports(lambda port: _port_state(port.facts.state if port.facts else None, PORT_STATE_LABELS)),
    ),
    NodeFamily(
        "npu_node_rdma_port_physical_state",
        _G,
        "State set: physical state (`ibstat`: Physical state).",
        ("rdma_device", "port", "state"),
        _ports(lambda port: _port_state(port.facts.physical_state if port.facts else None, PHYSICAL_STATE_LABELS)),
    ),
    NodeFamily(
        "npu_node_rdma_port_bits_per_second",
        _G,
        "Speed; of a port that is not Active a leftover or a default (`ibstat`: Rate).",
        ("rdma_device", "port"),
        _ports(
            lambda port: one(port.facts.rate_gbps * _GBPS if port.facts and port.facts.rate_gbps is not None else None)
        ),
    ),
    NodeFamily(
        "npu_node_rdma_port_errors_total",
        _C,
        "A choice of the kernel's error counters, by file name (counters/, hw_counters/); node_exporter has all.",
        ("rdma_device", "port", "counter"),
        _ports(lambda port: each("counter", port.counters.errors) if port.counters else ()),
    ),
    NodeFamily(
        "npu_node_rdma_port_bytes_total",
        _C,
        "Data by direction (counters/port_rcv_data, port_xmit_data, which count words of four octets).",
        ("rdma_device", "port", "direction"),
        _ports(lambda port: each("direction", port.counters.bytes) if port.counters else ()),
    ),
    NodeFamily(
        "npu_node_rdma_port_link_downs_total",
        _C,
        "Times that the link went down (counters/link_downed, else the network device's carrier_down_count).",
        ("rdma_device", "port"),
        _ports(lambda port: one(port.counters.link_downs if port.counters else None)),
    ),
)
