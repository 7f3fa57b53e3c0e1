"""What the simulated hardware is at one instant: plain frozen data that the renderers turn into text."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

from npu_watchd.simnode.pcie_slot import PcieSlot, units
from npu_watchd.simnode.roce_port import RocePort
from npu_watchd.simnode.sysfs_ib import SimHca
from npu_watchd.simnode.sysfs_net import NetDevice

Family = Literal["310", "310P", "310B", "910A", "910B", "A3", "950"]
"""Chips whose answers have the same form; the exact silicon is `ChipState.name`."""

ToolMood = Literal["ok", "hang", "rubbish", "unloadable", "missing"]
DriverMood = Literal["ok", "gone", "occupied", "no_board", "no_version"]
HccnMood = Literal["ok", "locked", "missing"]
"""`locked`: another process holds the lock of hccn_tool's log, so every call waits for ever."""
HostCpu = Literal["kunpeng", "intel"]
OomLimit = Literal["job", "node"]
START_S = 1_767_600_000.0
"""The Unix second of a scenario's beginning where nobody says another: 2026-01-05 08:00 UTC, a Monday."""

FROM_THE_START = frozenset({"name", "pci", "phyid", "heartbeat", "ecc_record"})
FROM_THE_CHIP = frozenset(
    {"health", "codes", "temp", "power", "util", "hbm", "proc", "ecc", "isolated", "hccs", "clock"}
)
SUB_QUERIES = FROM_THE_START | FROM_THE_CHIP | {"all"}
"""What can fail of one chip. `all` is every query after enumeration: name and PCI address are known by then."""


@dataclass(frozen=True, slots=True)
class ErrorCounts:
    """ECC counts of one memory. All zero until a scenario says otherwise."""

    single_bit: int = 0
    double_bit: int = 0
    single_bit_lifetime: int = 0
    double_bit_lifetime: int = 0
    single_bit_isolated_pages: int = 0
    double_bit_isolated_pages: int = 0
    single_bit_next_isolated_pages: int = 0
    double_bit_next_isolated_pages: int = 0


@dataclass(frozen=True, slots=True)
class Memory:
    used_mb: int = 0
    total_mb: int = 0
    """0: the chip has no such memory."""
    percent: int | None = None
    """What the chip itself says of its use, where that is another figure than used / total."""

    @property
    def used_percent(self) -> int:
        """As the tools print it: cut, not rounded; 0 where there is no such memory."""
        if self.percent is not None:
            return self.percent
        return self.used_mb * 100 // self.total_mb if self.total_mb else 0


NO_MEMORY = Memory()


@dataclass(frozen=True, slots=True)
class Process:
    pid: int
    name: str | None
    """As the kernel has it; None: the pid is not visible to the tool."""
    memory_mb: int
    container_pid: int | None = None


@dataclass(frozen=True, slots=True)
class ErrorCode:
    code: str
    """Hex digits without 0x, any case."""
    information: str | None = ""
    """None: the tool cannot get the text of this code."""


@dataclass(frozen=True, slots=True)
class Load:
    """Utilisation in percent by unit; a chip prints those it has."""

    aicore: int = 0
    aivector: int = 0
    aicube: int = 0
    aicpu: int = 0
    ctrlcpu: int = 0
    npu: int = 0
    hbm_bandwidth: int = 0
    ddr_bandwidth: int = 0


@dataclass(frozen=True, slots=True)
class HccsLink:
    tx_packets: int = 0
    rx_packets: int = 0
    retries: int = 0
    errors: int = 0


@dataclass(frozen=True, slots=True)
class Hccs:
    links: tuple[HccsLink, ...]
    healthy: bool = True
    first_error_lane: int | None = None


@dataclass(frozen=True, slots=True)
class PcieErrors:
    """Counts of `-t pcie-err` (Ascend 950 PCIe cards)."""

    tx: int = 0
    rx: int = 0
    lcrc: int = 0
    ecrc: int = 0
    retry: int = 0


@dataclass(frozen=True, slots=True)
class ChipState:
    """One chip (an A3 die is one): what its driver would answer."""

    chip: int
    logic_id: int
    phy_id: int
    name: str
    bus_id: str | None
    """As printed, upper case; None: the board has no PCI address (310B, 950 on UB)."""
    health: str | None = "OK"
    """OK, Warning, Alarm, Critical or UNKNOWN; None: a value that the tool has no word for."""
    codes: tuple[ErrorCode, ...] = ()
    power_watts: float | None = None
    """None: this chip's table prints NA."""
    temperature_c: int = 0
    hbm_temperature_c: int = 0
    load: Load = Load()
    ddr: Memory = NO_MEMORY
    hbm: Memory = NO_MEMORY
    hugepages_used: int = 0
    hugepages_total: int = 0
    ddr_errors: ErrorCounts = ErrorCounts()
    hbm_errors: ErrorCounts = ErrorCounts()
    processes: tuple[Process, ...] = ()
    clock_mhz: int = 0
    clock_max_mhz: int = 0
    cores: int = 0
    voltage: float = 0.0
    hccs: Hccs | None = None
    pcie: PcieErrors | None = None
    roce: RocePort | None = None
    """None: the chip has no port of its own."""
    slot: PcieSlot | None = None
    """None: it is not on PCIe. Both chips of a Duo are behind one address."""
    fails: frozenset[str] = frozenset()
    """Members of SUB_QUERIES that fail on this chip."""
    lost: bool = False
    """Fell off the bus: the driver counts it and cannot reach it."""

    def failing(self, query: str) -> bool:
        """Whether the chip refuses that sub-query. `all` leaves what is known from enumeration."""
        return query in self.fails or ("all" in self.fails and query in FROM_THE_CHIP)


@dataclass(frozen=True, slots=True)
class Mcu:
    """The board's controller: never a device, but it answers in the same blocks."""

    sensors: tuple[tuple[str, str], ...] = ()
    """Key and text of `-t temp`."""
    temperature_c: int = 0
    power_watts: float | None = None
    """None: the board does not measure it."""
    health: str = "OK"
    codes: tuple[ErrorCode, ...] = ()
    dead: bool = False
    """Does not answer: costs each command two seconds and breaks its own blocks."""


@dataclass(frozen=True, slots=True)
class CardState:
    """One NPU id: one chip, two A3 dies, two chips of a Duo, four of a 310 card."""

    npu: int
    chips: tuple[ChipState, ...]
    mcu: Mcu | None = None
    slot_id: int = 0
    product_name: str | None = None
    serial_number: str | None = None
    firmware: str = ""
    board: tuple[tuple[str, str], ...] = ()
    """`-t board` from Board ID on, without what is above and without Chip Count."""


@dataclass(frozen=True, slots=True)
class Tool:
    """How the executable itself behaves, whatever the hardware is."""

    mood: ToolMood = "ok"
    delay_s: float = 0.0
    ignores_sigterm: bool = False


@dataclass(frozen=True, slots=True)
class NodeState:
    family: Family
    tool_version: str
    driver_version: str
    cards: tuple[CardState, ...]
    driver: DriverMood = "ok"
    install_incomplete: bool = False
    tool: Tool = field(default_factory=Tool)
    hccn: HccnMood = "ok"
    now_s: float = START_S
    """Unix seconds: the node's own clock."""
    hcas: tuple[SimHca, ...] | None = None
    """The host's RDMA devices; (): the kernel can do RDMA and has none; None: it cannot."""
    netdevs: tuple[NetDevice, ...] = ()
    host_cpu: HostCpu = "kunpeng"

    @property
    def chips(self) -> tuple[ChipState, ...]:
        return tuple(chip for card in self.cards for chip in card.chips)

    def seen(self) -> tuple[CardState, ...]:
        """The cards and chips that the driver can reach.

        One dead A3 die takes its card along; of a Duo or a 310 card only the dead chip goes.
        """
        if self.family == "A3":
            return tuple(card for card in self.cards if not any(chip.lost for chip in card.chips))
        return tuple(
            card if len(left) == len(card.chips) else replace(card, chips=left)
            for card in self.cards
            if (left := tuple(chip for chip in card.chips if not chip.lost))
        )

    def pcie_units(self) -> dict[str, int]:
        """The CPU's counting units of the hisi_pcie driver, and the root bus that each watches."""
        return units(self.slots()) if self.host_cpu == "kunpeng" else {}

    def slots(self) -> tuple[PcieSlot, ...]:
        """Every PCI address with a chip on it, also one whose chips are all lost."""
        by_address = {chip.slot.address: chip.slot for chip in reversed(self.chips) if chip.slot is not None}
        return tuple(by_address[address] for address in sorted(by_address))

    def on_the_bus(self, slot: PcieSlot) -> bool:
        """False: whatever was there is lost."""
        return any(chip.slot is not None and chip.slot.address == slot.address and not chip.lost for chip in self.chips)

    def lost_cards(self) -> int:
        return len(self.cards) - len(self.seen())
