"""The whole sysfs of a simulated node at one instant: the PCI bus, its counting units, RDMA and network devices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from npu_watchd.simnode import sysfs_ib, sysfs_net, sysfs_pci
from npu_watchd.simnode.pcie_slot import PcieSlot
from npu_watchd.simnode.state import NodeState

UNITS = "bus/event_source/devices"


@dataclass(frozen=True, slots=True)
class Tree:
    """Paths below the root."""

    files: Mapping[str, bytes]
    links: Mapping[str, str] = field(default_factory=dict)
    """Path → where it leads."""
    folders: frozenset[str] = frozenset()
    """Those that are there even when empty."""


def tree(node: NodeState) -> Tree:
    """What the kernel would show. A device that fell off the bus leaves its root port with a dead link behind."""
    roots = tuple(_root(node, slot) for slot in node.slots())
    files = dict(sysfs_pci.files(roots))
    folders = {"bus/pci/devices", "class/net"}
    for unit, bus in node.pcie_units().items():
        files[f"{UNITS}/{unit}/bus"] = f"{bus:#04x}\n".encode()
    for name, text in sysfs_net.files(node.netdevs).items():
        files[f"class/net/{name}"] = text.encode()
    if node.hcas is not None:
        folders.add("class/infiniband")
        for name, text in sysfs_ib.files(node.hcas).items():
            files[f"class/{name}"] = text.encode()
    return Tree(files, sysfs_pci.links(roots), frozenset(folders))


def _root(node: NodeState, slot: PcieSlot) -> sysfs_pci.PciDevice:
    there = node.on_the_bus(slot)
    device = sysfs_pci.PciDevice(slot.address, device_id(node), link=slot.link, errors=slot.errors)
    return sysfs_pci.PciDevice(
        slot.root_port,
        device_id=0xA120,
        class_code=sysfs_pci.BRIDGE,
        revision=0x30,
        link=slot.link if there else replace(slot.link, speed=0.0, lanes=0),
        errors=slot.port_errors,
        below=(device,) if there else (),
    )


def device_id(node: NodeState) -> int:
    """As `npu-smi info -t board` says it."""
    board = dict(node.cards[0].board)
    return int(board.get("PCI Device ID", "0xD100"), 16)
