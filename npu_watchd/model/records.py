"""What parsers return. `None` means the tool said NA, or said nothing; it never stands for 0, healthy or down.

The field names are the keys of `npu-watchd parse` (docs/parse.md): a contract.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class DeviceRow:
    """One chip as the table of `npu-smi info` shows it: two rows of cells."""

    npu: int | None
    """None: the chip's first row is missing, which npu-smi does when it cannot name the health."""
    chip: int | None
    """None: this layout has no chip ids (Ascend 950)."""
    logic_id: int | None
    """Column `Device` (310 and 310P); None in the other layouts."""
    phy_id: int | None
    """Column `Phy-ID` (A3)."""
    name: str | None
    health: str | None
    """OK, Warning, Alarm, Critical or UNKNOWN. OK is also what a failed health query prints."""
    pci_address: str | None
    """Lower case; None where the tool prints NA."""
    power_watts: float | None
    temperature_celsius: float | None
    aicore_utilization_ratio: float | None
    """`AICore(%)`, or `NPU Util(%)` on Ascend 950; 0..1."""
    memory_used_bytes: int | None
    memory_total_bytes: int | None
    """On-board DDR. None with `0 / 0`: the chip has none, or the query failed."""
    hbm_used_bytes: int | None
    hbm_total_bytes: int | None
    hugepages_used: int | None
    hugepages_total: int | None
    trusted: bool
    """False: the rows bear the marks of a failed sub-query, so no value of theirs may be exported."""
    distrust: tuple[str, ...] = ()
    """The marks, in words."""


@dataclass(frozen=True, slots=True)
class ProcessRow:
    """A process on a chip: a row of the table's process part, or a line of `-t proc-mem`."""

    npu: int | None
    chip: int | None
    pid: int
    """The host's pid on the host; a container's own inside a PID namespace."""
    name: str | None
    """At most 15 characters, `:` removed by the tool; None: the pid is not visible to the tool."""
    memory_bytes: int | None
    container_pid: int | None = None


@dataclass(frozen=True, slots=True)
class InfoTable:
    """All of `npu-smi info`."""

    tool_version: str | None
    driver_version: str | None
    devices: tuple[DeviceRow, ...]
    processes: tuple[ProcessRow, ...] | None
    """None: the table has no process part, which is not idleness. (): the tool says that there are none."""
    idle_npus: tuple[int, ...] = ()
    """NPUs of which the tool says `No running processes found`."""
    warnings: tuple[str, ...] = ()
    complete: bool = True
    """False: the end of the text cut a row, so a device that is not here may still exist."""


@dataclass(frozen=True, slots=True)
class MapRow:
    npu: int
    chip: int
    logic_id: int | None
    phy_id: int | None
    slot_id: int | None
    name: str


@dataclass(frozen=True, slots=True)
class DeviceMap:
    """`npu-smi info -m` without the MCU rows."""

    devices: tuple[MapRow, ...]
    lost_cards: int = 0
    """Rows with NPU id -1: cards that the driver counts and cannot reach."""


@dataclass(frozen=True, slots=True)
class Card:
    npu: int | None
    """None: printed as -1: the card is lost."""
    chip_count: int | None
    product_name: str | None
    serial_number: str | None


@dataclass(frozen=True, slots=True)
class CardList:
    """`npu-smi info -l`."""

    total: int
    cards: tuple[Card, ...]


@dataclass(frozen=True, slots=True)
class MemoryErrors:
    """ECC counts of one kind of memory of one chip."""

    single_bit: int | None = None
    """Since the device was last reset."""
    double_bit: int | None = None
    single_bit_lifetime: int | None = None
    """`Aggregate Total Err Cnt`: survives a reset."""
    double_bit_lifetime: int | None = None
    single_bit_isolated_pages: int | None = None
    double_bit_isolated_pages: int | None = None
    single_bit_next_isolated_pages: int | None = None
    """Pages that the next reset will isolate."""
    double_bit_next_isolated_pages: int | None = None
    """None where the tool's subtraction ran below zero (it prints 4294967xxx)."""


@dataclass(frozen=True, slots=True)
class EccChip:
    chip: int | None
    hbm: MemoryErrors | None
    ddr: MemoryErrors | None
    failure: str | None = None
    """The tool's own line where it could not read this chip; the counts are then absent."""


@dataclass(frozen=True, slots=True)
class EccReport:
    npu: int | None
    chips: tuple[EccChip, ...]
    unknown_keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HealthChip:
    chip: int | None
    health: str | None
    error_codes: tuple[str, ...] | None
    """Lower-case hex without 0x. None: the answer has no such key (card form). (): the tool says NA."""
    information: tuple[str, ...]
    failure: str | None = None


@dataclass(frozen=True, slots=True)
class HealthReport:
    npu: int | None
    chips: tuple[HealthChip, ...]
    mcu_health: str | None = None
    unknown_keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BlockChip:
    chip: int | None
    values: Mapping[str, str]
    failure: str | None = None


@dataclass(frozen=True, slots=True)
class Block:
    """Any `-t` answer as its keys and texts."""

    npu: int | None
    chips: tuple[BlockChip, ...]
    mcu: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class ProcessMemoryChip:
    chip: int | None
    processes: tuple[ProcessRow, ...] | None
    """None: the tool could not read this chip. (): it says that there are none."""
    failure: str | None = None


@dataclass(frozen=True, slots=True)
class ProcessMemory:
    """`npu-smi info -t proc-mem -i N`."""

    npu: int | None
    chips: tuple[ProcessMemoryChip, ...]


@dataclass(frozen=True, slots=True)
class Usages:
    """`-t usages` of one chip: ratios 0..1 by unit."""

    unit_utilization_ratio: Mapping[str, float] = field(default_factory=dict)
    """Keys: aicore aivector aicube aicpu ctrlcpu npu vectorcore."""
    memory_bandwidth_utilization_ratio: Mapping[str, float] = field(default_factory=dict)
    """Keys: hbm ddr."""


@dataclass(frozen=True, slots=True)
class Clocks:
    """`-t common` of one chip."""

    clock_hertz: float | None
    clock_max_hertz: float | None


@dataclass(frozen=True, slots=True)
class MemoryTemperature:
    """`-t memory` of one chip."""

    hbm_celsius: float | None


@dataclass(frozen=True, slots=True)
class Board:
    """`-t board` of one card."""

    firmware_version: str | None
    software_version: str | None
    product_name: str | None
    serial_number: str | None
    compatibility: str | None


@dataclass(frozen=True, slots=True)
class PcieLinkErrors:
    """`-t pcie-err` of one chip (Ascend 950): counts by the tool's key, in snake case."""

    counts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Hccs:
    """`-t hccs` of one chip: one count a link, in the tool's order."""

    healthy: bool | None
    error_counts: tuple[int, ...]
    retry_counts: tuple[int, ...]
    first_error_lane: str | None
