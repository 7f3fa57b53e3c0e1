"""`npu-smi info -l` and `-m`: which cards and chips there are. A lost card leaves its mark here: -1."""

from __future__ import annotations

from collections.abc import Iterator

from npu_watchd.simnode.lines import line
from npu_watchd.simnode.state import CardState, Family, NodeState

COUNTS_LOST_CARDS: frozenset[Family] = frozenset({"910A", "910B", "A3"})
"""Cards of one piece: the driver goes on counting them. Not known for the others, which then only list less."""


def card_list(node: NodeState) -> str:
    """`-l`: total, then each card; lost ones come first."""
    seen = node.seen()
    lost = node.lost_cards() if node.family in COUNTS_LOST_CARDS else 0
    total = "Card Count" if node.family in ("310", "310B") else "Total Count"
    blocks = [line(total, len(seen) + lost)]
    blocks += [line("NPU ID", -1) + line("Chip Count", 0)] * lost
    blocks += [_card(card, node.family) for card in seen]
    return "".join(f"{block}\n" for block in blocks)


def _card(card: CardState, family: Family) -> str:
    text = line("NPU ID", card.npu)
    if family in ("310P", "310B", "310", "950"):
        serial = card.serial_number or "NA"
        text += line("Product Name", _cut(card.product_name, card.serial_number)) + line("Serial Number", serial)
    return text if family == "950" else text + line("Chip Count", len(card.chips))


def _cut(product: str | None, serial: str | None) -> str:
    """The tool cuts the product's name to the length of the serial number: a real bug, kept."""
    return (product or "NA")[: len(serial) if serial else None]


def device_map(node: NodeState) -> str:
    """`-m`: NPU id and chip id → logic id (Phy-ID, slot id), with the MCUs as rows of their own."""
    keys = ["NPU ID", "Chip ID", "Chip Logic ID", "Chip Name"]
    if node.family == "A3":
        keys.insert(3, "Chip Phy-ID")
    elif node.family == "950":
        keys = ["NPU ID", "Slot ID", "Chip ID", "Chip Phy-ID", "Chip Name"]
    head = _columns(keys) + "\n"
    return head + "".join(_rows(node, len(keys)))


def _rows(node: NodeState, columns: int) -> Iterator[str]:
    unknown = ["-"] * (columns - 3)
    if node.family in COUNTS_LOST_CARDS:
        yield from [f"{_columns(['-1', '0', *unknown, 'Mcu'])}\n"] * node.lost_cards()
    for card in node.seen():
        for chip in card.chips:
            cells = [str(card.npu), str(chip.chip), str(chip.logic_id)]
            if node.family == "A3":
                cells.append(str(chip.phy_id))
            elif node.family == "950":
                cells = [str(card.npu), str(card.slot_id), str(chip.chip), str(chip.phy_id)]
            yield f"{_columns(cells)} {map_name(chip.name)}\n"
        if card.mcu is not None:
            yield f"{_columns([str(card.npu), str(len(card.chips)), *unknown, 'Mcu'])}\n"


def map_name(name: str) -> str:
    """The map says `Ascend 910B3` where the table says `910B3`."""
    return name if name.startswith("Ascend") or not name else f"Ascend {name}"


def _columns(cells: list[str]) -> str:
    return "\t" + " ".join(f"{cell:<30}" for cell in cells)
