"""What each generation of chip is when it is new and idle: the ground that a scenario builds on.

Numbers are those of real outputs (idle power, the memory that the device itself uses, bus addresses of real boards).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from npu_watchd.simnode.pcie_slot import PcieSlot
from npu_watchd.simnode.roce_port import RocePort
from npu_watchd.simnode.state import (
    NO_MEMORY,
    CardState,
    ChipState,
    Family,
    Hccs,
    HccsLink,
    Mcu,
    Memory,
    PcieErrors,
)
from npu_watchd.simnode.sysfs_pci import GEN4_X16, Link

FIRMWARE = "7.8.0.6.201"
DIE = "5C1A0000 5D1C0304 5E1E0608 5F20090C 60220C10"


@dataclass(frozen=True, slots=True)
class Silicon:
    """One generation as a scenario names it."""

    family: Family
    name: str
    """As in the table."""
    chips_per_card: int = 1
    first_npu: int = 0
    npu_step: int = 1
    cards: int = 8
    ddr: tuple[Memory, ...] = (NO_MEMORY,)
    """By chip of a card; the last counts for the rest."""
    hbm: Memory = NO_MEMORY
    idle_watts: float | None = None
    """None: the table prints NA."""
    busy_watts: float = 0.0
    idle_c: int = 40
    busy_c: int = 62
    clock_mhz: int = 800
    clock_max_mhz: int = 1800
    cores: int = 0
    hugepages: int = 0
    buses: tuple[str, ...] = ()
    """PCI bus of each card (of each chip, where chips have their own); empty: no PCI address."""
    links: int = 0
    """HCCS links of a chip."""
    pcie_counts: bool = False
    """Whether `-t pcie-err` has an answer."""
    roce_mbps: int = 0
    """Speed of the chip's own port; 0: it has none, and hccn_tool is not on such a node."""
    pcie: Link = GEN4_X16
    hcas: int = 0
    """RDMA adapters that such a host usually has."""
    measures_pcie_load: bool = False
    """By its own driver (DCMI), which is not simulated."""
    mcu: Mcu | None = None
    product_name: str | None = None
    firmware: str = FIRMWARE
    board_id: str = "0x32"
    pci_device: str = "0xD802"


_MCU = Mcu(sensors=(("LM75A_TE (C)", "36"), ("LM75B_TE (C)", "36")), temperature_c=28)
_DUO_MCU = Mcu((("LM75A_TE (C)", "43"), ("LM75B_TE (C)", "44"), ("QSFP     (C)", "NA")), 48, power_watts=42.8)
_EIGHT = ("C1", "C2", "81", "82", "01", "02", "41", "42")
_DIES = ("9D", "9F", "99", "9B", "95", "97", "91", "93", "8D", "8F", "89", "8B", "85", "87", "81", "83")
_HBM_64G, _HBM_32G = Memory(3393, 65536), Memory(2846, 32768)
_910A = Silicon(
    "910A",
    "910A",
    ddr=(Memory(2573, 15137),),
    hbm=Memory(8, 32768),
    idle_watts=67.8,
    busy_watts=262.0,
    cores=32,
    hugepages=15,
    buses=_EIGHT,
    firmware="1.84.15.1.310",
    board_id="0x02",
    pci_device="0xD801",
    roce_mbps=100_000,
    hcas=2,
)
_910B3 = Silicon(
    "910B",
    "910B3",
    hbm=_HBM_64G,
    idle_watts=91.2,
    busy_watts=352.0,
    cores=20,
    buses=_EIGHT,
    links=7,
    mcu=_MCU,
    product_name="IT21HMDC_Bin5",
    roce_mbps=200_000,
    hcas=2,
    measures_pcie_load=True,
)
_310P3 = Silicon(
    "310P",
    "310P3",
    cards=2,
    ddr=(Memory(1848, 21525),),
    buses=("81", "85"),
    idle_c=38,
    busy_c=66,
    cores=8,
    mcu=_DUO_MCU,
    product_name="IT21PDDA01",
    board_id="0xb1",
    pci_device="0xD500",
)
_950PR = Silicon(
    "950",
    "Ascend950PR",
    hbm=Memory(4415, 131072),
    idle_watts=120.3,
    busy_watts=384.0,
    clock_mhz=100,
    clock_max_mhz=1650,
    cores=32,
    buses=("0A", "0D", "1A", "1D", "8A", "8D", "9A", "9D"),
    pcie_counts=True,
    firmware="9.0.0.105.229",
    board_id="0x31",
    pci_device="0xD806",
    roce_mbps=400_000,
    pcie=Link(32.0, 16, 32.0, 16),
    hcas=2,
)


SILICON: dict[str, Silicon] = {
    "310": Silicon(
        "310",
        "310",
        chips_per_card=4,
        first_npu=2048,
        cards=2,
        ddr=(Memory(2621, 8192),),
        idle_watts=12.8,
        busy_watts=12.8,
        idle_c=47,
        buses=("81", "82", "83", "84", "85", "86", "87", "88"),
        firmware="1.79.22.3.220",
        board_id="0x0F",
        pcie=Link(8.0, 4, 8.0, 4),
    ),
    "310B4": Silicon(
        "310B",
        "310B4",
        cards=1,
        ddr=(Memory(1797, 3513),),
        idle_watts=7.2,
        busy_watts=19.0,
        idle_c=37,
        hugepages=15,
        product_name="IT22DMDB02",
        firmware="6.2.1.0",
        board_id="0x45",
    ),
    "310P3": _310P3,
    "310P Duo": replace(
        _310P3,
        chips_per_card=2,
        first_npu=8,
        npu_step=32768,
        ddr=(Memory(1685, 44280), Memory(1330, 43693)),
        buses=("01", "81"),
        links=1,
    ),
    "910A": _910A,
    "910ProB": replace(_910A, name="910ProB", ddr=(Memory(2387, 13553),), idle_watts=77.6),
    "910B1": replace(_910B3, name="910B1", cores=25),
    "910B2": replace(_910B3, name="910B2", cores=24, idle_watts=96.4),
    "910B2C": replace(_910B3, name="910B2C", cores=24, idle_watts=94.1),
    "910B3": _910B3,
    "910B4": replace(_910B3, name="910B4", hbm=_HBM_32G, idle_watts=84.7, busy_watts=298.0),
    "910B4-1": replace(_910B3, name="910B4-1", hbm=_HBM_64G, idle_watts=86.2, busy_watts=301.0),
    "A3": Silicon(
        "A3",
        "Ascend910",
        chips_per_card=2,
        hbm=Memory(3140, 65536),
        idle_watts=165.3,
        busy_watts=612.0,
        cores=24,
        buses=_DIES,
        links=7,
        mcu=_MCU,
        product_name="IT22AAAC",
        board_id="0xb0",
        pci_device="0xD803",
        roce_mbps=200_000,
        hcas=2,
    ),
    "950PR": _950PR,
    "950DT": replace(_950PR, name="Ascend950DT", hbm=Memory(4415, 98304), buses=(), pcie_counts=False),
}


def new_cards(silicon: Silicon, count: int, name: str | None = None) -> tuple[CardState, ...]:
    """That many cards, idle, logic ids and Phy-IDs counted through. `name` overrules the silicon's own."""
    return tuple(_card(silicon, position, name or silicon.name) for position in range(count))


def _card(silicon: Silicon, position: int, name: str) -> CardState:
    chips = tuple(_chip(silicon, position, chip, name) for chip in range(silicon.chips_per_card))
    serial = f"SN{silicon.board_id[2:].upper()}{position + 1:010d}" if silicon.product_name else None
    board = (
        ("Compatibility", "OK"),
        ("Board ID", silicon.board_id),
        ("PCB ID", "A"),
        ("BOM ID", "1"),
        ("PCIe Bus Info", chips[0].bus_id or "NA"),
        ("Slot ID", str(position)),
        ("Class ID", "NA"),
        ("PCI Vendor ID", "0x19E5"),
        ("PCI Device ID", silicon.pci_device),
        ("Subsystem Vendor ID", "0x19E5"),
        ("Subsystem Device ID", "0x3003"),
        ("Die ID", DIE),
        ("NDie ID", "00000000 00000000 00000000 00000000 00000000"),
    )
    edge = ("Compatibility", "Board ID", "PCB ID", "BOM ID")
    return CardState(
        silicon.first_npu + position * silicon.npu_step,
        chips,
        silicon.mcu,
        position,
        silicon.product_name,
        serial,
        silicon.firmware,
        tuple(pair for pair in board if pair[0] in edge) if silicon.family in ("310", "310B") else board,
    )


def _chip(silicon: Silicon, position: int, chip: int, name: str) -> ChipState:
    number = position * silicon.chips_per_card + chip
    shared_bus = silicon.family == "310P"
    bus = silicon.buses[(position if shared_bus else number) % len(silicon.buses)] if silicon.buses else None
    return ChipState(
        chip,
        logic_id=number,
        phy_id=number,
        name=name,
        bus_id=f"0000:{bus}:00.0" if bus else None,
        power_watts=silicon.idle_watts,
        temperature_c=silicon.idle_c,
        hbm_temperature_c=silicon.idle_c,
        ddr=silicon.ddr[min(chip, len(silicon.ddr) - 1)],
        hbm=silicon.hbm,
        hugepages_used=silicon.hugepages,
        hugepages_total=silicon.hugepages,
        clock_mhz=silicon.clock_mhz,
        clock_max_mhz=silicon.clock_max_mhz,
        cores=silicon.cores,
        voltage=0.89,
        hccs=Hccs(tuple(HccsLink() for _ in range(silicon.links))) if silicon.links else None,
        pcie=PcieErrors() if silicon.pcie_counts else None,
        roce=RocePort(speed_mbps=silicon.roce_mbps) if silicon.roce_mbps else None,
        slot=PcieSlot(f"0000:{bus.lower()}:00.0", silicon.pcie) if bus else None,
    )
