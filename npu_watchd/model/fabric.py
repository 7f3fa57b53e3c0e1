"""The fabric's records: the host's RDMA ports and the NPU's own ports. `None`: the tool said NA, or nothing.

The field names are the keys of `npu-watchd parse` (docs/parse_fabric.md): a contract.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

PORT_STATE_LABELS: Mapping[str, str] = {
    "Down": "down",
    "Initializing": "initializing",
    "Armed": "armed",
    "Active": "active",
    "ActiveDefer": "active_defer",
}
"""The words of `RdmaPort.state` and the labels that they have on /metrics."""

PHYSICAL_STATE_LABELS: Mapping[str, str] = {
    "Sleep": "sleep",
    "Polling": "polling",
    "Disabled": "disabled",
    "PortConfigurationTraining": "training",
    "LinkUp": "link_up",
    "LinkErrorRecovery": "error_recovery",
    "PhyTest": "phy_test",
}
"""Likewise of `RdmaPort.physical_state`."""

NET_HEALTH_LABELS: Mapping[str, str] = {
    "Success": "success",
    "Socket fail": "socket_fail",
    "Receive timeout": "receive_timeout",
    "Unreachable": "unreachable",
    "Time exceeded": "time_exceeded",
    "Fault": "fault",
    "Init": "init",
    "Thread error": "thread_error",
    "Detect ip set": "detect_ip_set",
    "Unknown": "unknown",
}
"""Likewise of `NetHealth.state`: the ten words of hccn_tool."""


@dataclass(frozen=True, slots=True, order=True)
class PortKey:
    """One port of one RDMA device of the host."""

    rdma_device: str
    port: int

    def __str__(self) -> str:
        return f"{self.rdma_device}/{self.port}"


@dataclass(frozen=True, slots=True)
class RdmaPort:
    """One port as ibstat, `rdma link` or sysfs show it, in ibstat's words whichever it was."""

    ca: str
    port: int
    ca_type: str | None = None
    firmware: str | None = None
    hardware_version: str | None = None
    node_guid: str | None = None
    """GUIDs: 0x and 16 digits of lower-case hex."""
    system_image_guid: str | None = None
    state: str | None = None
    """A key of PORT_STATE_LABELS; read apart from `physical_state`, since a VF can be Down with LinkUp."""
    physical_state: str | None = None
    """A key of PHYSICAL_STATE_LABELS."""
    rate_gbps: float | None = None
    """Of a port that is not Active this is a leftover or a default. None for 0, which stands for a failed read."""
    base_lid: int | None = None
    """65535: the subnet manager gave it none. 0 on Ethernet."""
    lmc: int | None = None
    sm_lid: int | None = None
    capability_mask: int | None = None
    port_guid: str | None = None
    """0x0000000000000000 on an Ethernet port whose network device is not up."""
    link_layer: str | None = None
    """InfiniBand or Ethernet (RoCE)."""
    netdev: str | None = None
    """ibstat does not say it."""

    @property
    def key(self) -> PortKey:
        return PortKey(self.ca, self.port)

    @property
    def up(self) -> bool | None:
        """Active and LinkUp; None where either is not known."""
        if self.state is None or self.physical_state is None:
            return None
        return self.state == "Active" and self.physical_state == "LinkUp"


@dataclass(frozen=True, slots=True)
class RdmaPorts:
    """All ports of one answer. No port and no error: this node has no HCA, which is no failure by itself."""

    ports: tuple[RdmaPort, ...] = ()
    errors: tuple[str, ...] = ()
    """Why a port that exists may not be in `ports`: the tool's words, or the line that could not be trusted."""
    warnings: tuple[str, ...] = ()
    """What the tool's libraries muttered (`ibwarn`)."""
    unknown_keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NpuLink:
    """`hccn_tool … -link`: the tool's answer to the very question; a failed query is never a link down."""

    up: bool


@dataclass(frozen=True, slots=True)
class LinkChange:
    time: str
    """ISO 8601 in the node's local time, as the tool prints it: no zone."""
    up: bool
    seconds_ago: int | None
    """Before `NpuLinkHistory.current_time`; None where the tool prints no such time, or its clock was set back."""


@dataclass(frozen=True, slots=True)
class NpuLinkHistory:
    """`hccn_tool … -link_stat`: how often the link came up and went down since the device started."""

    device_id: int | None
    """As the answer names it: the logic id that was asked for."""
    current_time: str | None
    up_count: int | None
    down_count: int | None
    """Drivers of 2023 do not print it."""
    up: bool | None
    """After the newest change; None where no change is listed: ask `-link`."""
    changes: tuple[LinkChange, ...] | None
    """The newest ten, newest first. (): the tool says NA. None: it does not speak of them."""
    udie: int | None = None
    """Die and port: Ascend 950 only."""
    port: int | None = None


@dataclass(frozen=True, slots=True)
class NpuLinkSpeed:
    """`hccn_tool … -speed`."""

    bits_per_second: int | None
    """None for `Unknown!`, and for 0 and -1, with which a failed query is printed."""
    lanes: int | None = None
    """Width, capability, status, die and port: Ascend 950 only."""
    max_lanes: int | None = None
    status: str | None = None
    udie: int | None = None
    port: int | None = None


@dataclass(frozen=True, slots=True)
class NpuPortStatistics:
    """`hccn_tool … -stat`: counts since the device started. A key that the answer lacks is absent, never 0."""

    packets: Mapping[str, int] = field(default_factory=dict)
    """By direction (receive, transmit): all frames of the MAC."""
    errors: Mapping[str, int] = field(default_factory=dict)
    """By kind; the kinds that this driver counts."""
    retries: int | None = None
    """Retransmissions that RoCE began (`roce_new_pkt_rty_num`), or asked of the peer on Ascend 950."""
    congestion_notifications: Mapping[str, int] = field(default_factory=dict)
    """CNP packets by direction."""
    pause_frames: Mapping[str, int] = field(default_factory=dict)
    """Pause of the whole link, by direction."""
    pfc_frames: Mapping[str, int] = field(default_factory=dict)
    """Priority pause, summed over the eight priorities, by direction; absent where one of the eight is."""
    counters: Mapping[str, int] = field(default_factory=dict)
    """All counts by the tool's own key."""
    port: int | None = None
    """Ascend 950 only."""


@dataclass(frozen=True, slots=True)
class NetHealth:
    """`hccn_tool … -net_health`: whether the NPU reaches the address that it was told to probe."""

    state: str
    """A key of NET_HEALTH_LABELS."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What the module itself says is too much and too little, in the unit of the value that they limit.

    A high limit and its low one are both None where either is missing or the high one is not above the low one: modules
    that state no limit print both as 0.
    """

    high_alarm: float | None = None
    """Alarm limits: in the table forms only."""
    high_warning: float | None = None
    low_warning: float | None = None
    low_alarm: float | None = None


NO_LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class OpticalLane:
    """One lane of an optical module. Flags: True where the module raised them."""

    lane: int
    transmit_watts: float | None = None
    receive_watts: float | None = None
    """0.0: measured, no light."""
    bias_amperes: float | None = None
    transmit_fault: bool | None = None
    transmit_los: bool | None = None
    receive_los: bool | None = None
    transmit_lol: bool | None = None
    receive_lol: bool | None = None
    host_snr_decibels: float | None = None
    media_snr_decibels: float | None = None


@dataclass(frozen=True, slots=True)
class OpticalModule:
    """`hccn_tool … -optical`: the transceiver of the NPU's port."""

    present: bool | None
    """None: the table forms do not say, and show no value either."""
    temperature_celsius: float | None = None
    voltage_volts: float | None = None
    lanes: tuple[OpticalLane, ...] = ()
    temperature_limits: Limits = NO_LIMITS
    voltage_limits: Limits = NO_LIMITS
    transmit_limits: Limits = NO_LIMITS
    receive_limits: Limits = NO_LIMITS
    bias_limits: Limits = NO_LIMITS
    vendor_name: str | None = None
    """Vendor, part and serial number are None for an absent module: the tool goes on printing those of the last one."""
    part_number: str | None = None
    serial_number: str | None = None
    identifier: str | None = None
    unknown_keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PortCounters:
    """What the kernel counts of one RDMA port since its driver was loaded. A file that cannot be read is absent."""

    key: PortKey
    errors: Mapping[str, int] = field(default_factory=dict)
    """By the kernel's file name, of counters/ and hw_counters/; a bounded choice (sources/rdma.py)."""
    bytes: Mapping[str, int] = field(default_factory=dict)
    """By direction: receive, transmit."""
    link_downs: int | None = None
    """counters/link_downed; on a port without it, the network device's carrier_down_count."""
    netdev: str | None = None
    failures: Mapping[str, str] = field(default_factory=dict)
    """File → why it could not be read; it is not read again while the port stays."""
