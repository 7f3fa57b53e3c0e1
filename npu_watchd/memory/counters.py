"""Which counters are followed, what makes each begin anew, and how a new reading is told from the one before."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from npu_watchd.catalogue import DEVICE_FAMILIES, NODE_FAMILIES, DeviceFamily, NodeFamily, Sample
from npu_watchd.memory.rows import Labels
from npu_watchd.model.fabric import PortKey
from npu_watchd.model.ids import NODE, DeviceKey, Subject
from npu_watchd.model.snapshot import Device, Engine, Outcome, Port, Snapshot

_SUBJECT_LABELS = ("device_id", "rdma_device", "port")

BOOT = ("boot_id",)
BOOT_AND_DRIVER = ("boot_id", "driver")
NEVER: tuple[str, ...] = ()
"""Of a count of the device's whole life."""


@dataclass(frozen=True, slots=True)
class DeviceCounter:
    metric: str
    begins_anew: tuple[str, ...]
    """The fields of Life that, when they change, have set the counter to zero."""
    source: Callable[[Device], tuple[object, ...]]
    """The records of the reading; () where there is none. Other objects: another reading, even with the same values."""
    dated: bool = True
    """False: the source cannot tell one reading from the next, so that every sight of it counts as one."""

    @property
    def lifetime(self) -> bool:
        return not self.begins_anew


@dataclass(frozen=True, slots=True)
class PortCounter:
    """A counter of the host's RDMA ports: the kernel counts since the port's driver was loaded, so since the boot."""

    metric: str
    begins_anew: tuple[str, ...] = BOOT
    dated: bool = True
    lifetime: bool = False


@dataclass(frozen=True, slots=True)
class HostCounter:
    """A counter of the host's kernel, since its boot."""

    metric: str
    begins_anew: tuple[str, ...] = BOOT
    dated: bool = True
    lifetime: bool = False


@dataclass(frozen=True, slots=True)
class LogCounter:
    """What the daemon itself counts since it started: zero then, so the first sight is growth and not inventory."""

    metric: str
    begins_anew: tuple[str, ...] = ("run",)
    dated: bool = False
    lifetime: bool = False


Counter = DeviceCounter | PortCounter | HostCounter | LogCounter


def _record(record: object) -> tuple[object, ...]:
    return () if record is None else (record,)


DEVICE_COUNTERS: tuple[DeviceCounter, ...] = (
    DeviceCounter("npu_device_memory_errors_total", BOOT_AND_DRIVER, lambda d: tuple(d.memory_errors.values())),
    DeviceCounter("npu_device_memory_lifetime_errors_total", NEVER, lambda d: tuple(d.memory_errors.values())),
    # AER counts since the device was enumerated (Documentation/ABI/testing/sysfs-bus-pci-devices-aer_stats).
    DeviceCounter("npu_device_pcie_errors_total", BOOT, lambda d: _record(d.pcie_errors)),
    DeviceCounter("npu_device_pcie_link_errors_total", BOOT_AND_DRIVER, lambda d: _record(d.pcie_link_errors)),
    DeviceCounter(
        "npu_device_roce_link_downs_total",
        BOOT_AND_DRIVER,
        lambda d: _record(d.roce.link_downs if d.roce else None),
        dated=False,
    ),
    DeviceCounter(
        "npu_device_roce_errors_total", BOOT_AND_DRIVER, lambda d: _record(d.roce.statistics if d.roce else None)
    ),
    DeviceCounter("npu_device_hccs_errors_total", BOOT_AND_DRIVER, lambda d: _record(d.hccs)),
    DeviceCounter("npu_device_hccs_retries_total", BOOT_AND_DRIVER, lambda d: _record(d.hccs)),
)
PORT_COUNTERS: tuple[PortCounter, ...] = (
    PortCounter("npu_node_rdma_port_errors_total"),
    PortCounter("npu_node_rdma_port_link_downs_total"),
)
HOST_COUNTER = HostCounter("npu_node_oom_kills_total")
LOG_COUNTER = LogCounter("npu_node_log_events_total")
FOLLOWED = (
    *(counter.metric for counter in DEVICE_COUNTERS),
    *(counter.metric for counter in PORT_COUNTERS),
    HOST_COUNTER.metric,
    LOG_COUNTER.metric,
)
"""The metrics that have a history. Traffic moves all the time and is Prometheus' to keep."""

_DEVICE_FAMILY: Mapping[str, DeviceFamily] = {family.name: family for family in DEVICE_FAMILIES}
_NODE_FAMILY: Mapping[str, NodeFamily] = {family.name: family for family in NODE_FAMILIES}
# The families that are read here look at the snapshot only.
_NO_ENGINE = Engine("", None, config_reload_ok=True, started_wall_s=0.0, tool_share_ratio=None)

Values = dict[Labels, float]


def device_values(metric: str, device: Device) -> Values:
    return {labels_of(labels): value for labels, value in _DEVICE_FAMILY[metric].read(device)}


def port_values(metric: str, snapshot: Snapshot) -> dict[PortKey, Values]:
    found: dict[PortKey, Values] = {}
    for labels, value in _read(metric, snapshot):
        key = PortKey(labels["rdma_device"], int(labels["port"]))
        found.setdefault(key, {})[labels_of(labels)] = value
    return found


def log_values(snapshot: Snapshot) -> dict[Subject, Values]:
    """By device where the line named one that we know, else the node's."""
    keys: dict[str, DeviceKey] = {device.device_id: key for key, device in snapshot.devices.items()}
    found: dict[Subject, Values] = {}
    for labels, value in _read(LOG_COUNTER.metric, snapshot):
        subject: Subject = keys.get(labels.get("device_id", ""), NODE)
        values = found.setdefault(subject, {})
        values[labels_of(labels)] = values.get(labels_of(labels), 0.0) + value
    return found


def host_values(snapshot: Snapshot) -> Values:
    return {labels_of(labels): value for labels, value in _read(HOST_COUNTER.metric, snapshot)}


def host_source(snapshot: Snapshot) -> tuple[object, ...]:
    return _record(snapshot.host)


def port_source(port: Port) -> tuple[object, ...]:
    return _record(port.counters)


def labels_of(labels: Mapping[str, str]) -> Labels:
    return tuple(sorted((name, value) for name, value in labels.items() if name not in _SUBJECT_LABELS))


NPU_PORT_SPEED, PORT_SPEED = "npu_device_roce_link_bits_per_second", "npu_node_rdma_port_bits_per_second"


def peaks_of(snapshot: Snapshot) -> Iterator[tuple[str, Subject, Labels, float]]:
    """The gauges whose largest value is remembered: the speed of ports, and only of those that are up.

    Of a port that is not, the speed is a leftover or a default.
    """
    for key, device in snapshot.devices.items():
        if device.roce is not None and device.roce.link_up:
            for labels, value in device_values(NPU_PORT_SPEED, device).items():
                yield NPU_PORT_SPEED, key, labels, value
    for port_key, values in port_values(PORT_SPEED, snapshot).items():
        if snapshot.ports[port_key].up:
            for labels, value in values.items():
                yield PORT_SPEED, port_key, labels, value


def _read(metric: str, snapshot: Snapshot) -> Iterable[Sample]:
    return _NODE_FAMILY[metric].read(Outcome(snapshot, _NO_ENGINE))
