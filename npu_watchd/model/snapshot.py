"""The node at one instant: every device ever expected, seen or not, and what could not be seen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from npu_watchd.model.acting import Acting
from npu_watchd.model.fabric import NpuPortStatistics, OpticalModule, PortCounters, PortKey, RdmaPort
from npu_watchd.model.finding import Event, Finding
from npu_watchd.model.host import Host, OomKill
from npu_watchd.model.ids import DeviceKey
from npu_watchd.model.jobs import DeviceJobs
from npu_watchd.model.pcie import PcieErrors, PcieLink, PcieLoad, SocketPcieLoad
from npu_watchd.model.reading import Failure, Tick
from npu_watchd.model.records import Hccs, MemoryErrors, PcieLinkErrors, ProcessRow
from npu_watchd.model.verdict import Verdict
from npu_watchd.model.versions import Installed

HEALTH_STATES = ("ok", "warning", "alarm", "critical", "unknown")


@dataclass(frozen=True, slots=True)
class Identity:
    """Who a device is; kept when the device vanishes."""

    name: str | None = None
    phy_id: int | None = None
    logic_id: int | None = None
    pci_address: str | None = None
    firmware: str | None = None
    serial_number: str | None = None


@dataclass(frozen=True, slots=True)
class Memory:
    used_bytes: int | None
    total_bytes: int | None


@dataclass(frozen=True, slots=True)
class NpuPort:
    """The NPU's own RoCE port, as hccn_tool shows it. None: not read; never a link down and never a zero."""

    link_up: bool | None = None
    link_downs: int | None = None
    """Since the device started."""
    bits_per_second: int | None = None
    reachability: str | None = None
    """A label of NET_HEALTH_LABELS."""
    statistics: NpuPortStatistics | None = None
    optical: OpticalModule | None = None


@dataclass(frozen=True, slots=True)
class Port:
    """One RDMA port of the host."""

    key: PortKey
    present: bool | None
    """False: expected or once up, and now gone. None: nobody can tell."""
    expected: bool
    """By the config, or because it was up since we started: what never was up is not missed."""
    facts: RdmaPort | None
    """None: not seen."""
    counters: PortCounters | None

    @property
    def up(self) -> bool | None:
        """False also where it should be there and is not; None where nobody can tell."""
        if self.present is False:
            return False
        return self.facts.up if self.facts else None

    @property
    def netdev(self) -> str | None:
        """Its network device; ibstat does not name it, the kernel's files do."""
        return (self.facts.netdev if self.facts else None) or (self.counters.netdev if self.counters else None)


@dataclass(frozen=True, slots=True)
class Device:
    """One chip. `None` in a value: not seen; `blind` says why."""

    key: DeviceKey
    device_id: str
    device_id_source: str
    """logic_id, phy_id, position; or lost: the number now belongs to another chip."""
    identity: Identity
    profile: str
    """The silicon's name in chips.py; GENERIC where unknown."""
    present: bool | None
    """None: no table could be read, so nobody knows."""
    health: str
    """One of HEALTH_STATES; `ok` only when table and `-t health` both say so, freshly."""
    error_codes: tuple[str, ...] | None = None
    code_tiers: Mapping[str, str] = field(default_factory=dict)
    """Each active code → how bad the vendor, or the site, says it is (docs/codes.md)."""
    power_watts: float | None = None
    temperature_celsius: Mapping[str, float] = field(default_factory=dict)
    """By sensor: chip, hbm."""
    utilization_ratio: Mapping[str, float] = field(default_factory=dict)
    clock_hertz: float | None = None
    clock_max_hertz: float | None = None
    memory: Mapping[str, Memory] = field(default_factory=dict)
    """By memory: hbm, ddr."""
    memory_bandwidth_utilization_ratio: Mapping[str, float] = field(default_factory=dict)
    memory_errors: Mapping[str, MemoryErrors] = field(default_factory=dict)
    processes: tuple[ProcessRow, ...] | None = None
    """(): idle; None: the tool does not list processes here, or could not be asked."""
    processes_cut: bool = False
    """True: there may be more than these: the table lists eight, its most, and `-t proc-mem` did not tell the rest."""
    jobs: DeviceJobs | None = None
    """Whose those processes are; None: not told yet, or `processes` is None."""
    roce: NpuPort | None = None
    """None: this chip has no port of its own, or hccn_tool is not on this node."""
    pcie_link: PcieLink | None = None
    pcie_errors: PcieErrors | None = None
    pcie_load: PcieLoad | None = None
    hccs: Hccs | None = None
    pcie_link_errors: PcieLinkErrors | None = None
    blind: Mapping[str, Failure] = field(default_factory=dict)
    """Probe → why we do not see what it would tell."""
    unsupported: Mapping[str, str] = field(default_factory=dict)
    """Probe → the tool's words: this chip cannot say, so nobody asks again."""
    vital: frozenset[str] = frozenset()
    """Probes without which nobody may call this device healthy."""
    vital_blind: bool = False
    """True: a probe in `blind` is one without which nobody may call this device healthy."""


@dataclass(frozen=True, slots=True)
class ProbeState:
    """How one probe fares with one subject."""

    probe: str
    device_id: str | None
    """None: the probe is the node's, not a device's."""
    up: bool
    failure: Failure | None
    successes: int = 0
    """Calls that brought a record, since the daemon started."""
    failures: int = 0
    """Calls that failed."""


@dataclass(frozen=True, slots=True)
class ProbeTally:
    """What a probe has done since the daemon started."""

    probe: str
    duration_s: float | None
    """Of the newest call."""
    last_success_wall_s: float | None
    failures: Mapping[str, int] = field(default_factory=dict)
    """FailureKind value → times."""
    unknown_keys: int = 0
    """Keys met in the tool's text that no parser knows: the first sign of a new tool version."""


@dataclass(frozen=True, slots=True)
class Notifications:
    """What became of the alerts for one Alertmanager since the daemon started."""

    sent: int = 0
    """Requests, those that failed included; each holds all alerts that were due."""
    failures: int = 0
    """Of these, the ones that it did not take, or to which no good answer came."""
    dropped: int = 0
    """Alerts, firing or just resolved, that had no room in the outbox."""
    last_success_wall_s: float | None = None
    """None: not yet."""


@dataclass(frozen=True, slots=True)
class Engine:
    """The daemon about itself."""

    version: str
    cycle_duration_s: float | None
    """Of the cycle before; None in the first."""
    config_reload_ok: bool
    started_wall_s: float
    tool_share_ratio: float | None
    """Share of the last minutes in which a tool of ours ran; periods stretch above the cap."""
    period_stretch_ratio: float = 1.0
    """1: every probe keeps its period. 3: they come three times as rarely, to keep the cap."""
    clock_jumps: int = 0
    abandoned_processes: Mapping[str, int] = field(default_factory=dict)
    """Tool → processes of it that nothing could end (D state); while there is one, no other is started."""
    notifications: Mapping[str, Notifications] = field(default_factory=dict)
    """Alertmanager, as host:port, → what became of its alerts; empty where none is configured."""
    history_written: bool = True
    """False: state.db cannot be written at the moment, so that a restart would forget what is new."""
    acting: Mapping[str, Acting] = field(default_factory=dict)
    """Actuator of `[quarantine] act` → how we stand with it; empty: recommend only."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    at: Tick
    node: str
    boot_id: str | None
    devices: Mapping[DeviceKey, Device]
    devices_expected: int | None
    devices_present: int | None
    tool_version: str | None
    driver_version: str | None
    firmware_version: str | None
    ports: Mapping[PortKey, Port] = field(default_factory=dict)
    """The host's RDMA ports."""
    pcie_sockets: tuple[SocketPcieLoad, ...] = ()
    """By socket, on a node that can measure PCIe load in no other way; (): another way, none, or not read."""
    host: Host | None = None
    """None: not read, or it could not be; `blind` says why."""
    installed: Installed | None = None
    """Versions of driver, firmware, CANN and frameworks; None: not read, or it could not be; `blind` says why."""
    oom_kills: tuple[OomKill, ...] = ()
    """Whom the kernel killed for want of memory, as far as its log goes back; oldest first, the newest some hundred."""
    warnings: tuple[str, ...] = ()
    """Lines the tools added to a good answer, and what we make of it."""
    blind: Mapping[str, Failure] = field(default_factory=dict)
    """The node's own probes that failed."""
    probes: tuple[ProbeState, ...] = ()
    tallies: tuple[ProbeTally, ...] = ()
    tool_log_events: Mapping[str, int] = field(default_factory=dict)
    """Error code → lines that npu-smi wrote into its own error log since we started."""
    pcie_log_events: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """Severity and device_id ("": a port that several share) → PCIe errors in the kernel's log since boot.

    As far as its ring reached back when we started: a restart of ours shows the same, or less if the ring lost some.
    """
    pcie_log_events_before: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """Of these, those that stood there before we started: evidence of what was, and nothing that is happening now."""
    kernel_log_lost: int | None = None
    """Records of the kernel's log that were overwritten before we read them, since we started; None: not readable."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The only thing sinks see."""

    snapshot: Snapshot
    engine: Engine
    findings: tuple[Finding, ...] = ()
    """The worst first."""
    journal: tuple[Event, ...] = ()
    """The newest lines, oldest first."""
    verdicts: tuple[Verdict, ...] = ()
    """The node's first, then devices and ports by number; () before anything was judged."""
