"""`-t board`: who a card is. The one answer whose chip form has headings."""

from __future__ import annotations

from npu_watchd.simnode.lines import Pairs, lines
from npu_watchd.simnode.state import CardState, ChipState, NodeState


def board_card(node: NodeState, card: CardState) -> str:
    """`-t board -i N`. A 910A server card has no name, model or serial number."""
    chip = card.chips[0]
    pairs: Pairs = [("NPU ID", card.npu)]
    if node.family != "910A":
        pairs.append(("Product Name", card.product_name or "NA"))
        if node.family == "950":
            pairs += [("NPU Name", "9589"), ("Chip Name", chip.name), ("Chip Version", "V1")]
        pairs.append(("Model", "Atlas 300I Duo" if node.family == "310P" else "NA"))
        pairs.append(("Manufacturer", "Huawei" if card.serial_number else "NA"))
        pairs.append(("Serial Number", card.serial_number or "NA"))
    pairs += [("Software Version", node.driver_version), ("Firmware Version", card.firmware)]
    if node.family not in ("310", "310B"):
        pairs.append(("Compatibility", _on_board(card, "Compatibility", "OK")))
    pairs += [(key, value) for key, value in card.board if key not in ("Compatibility", "Die ID", "NDie ID")]
    pairs.append(("Chip Count", len(card.chips)))
    if node.family == "310P":
        pairs.append(("Chip Fault", 0))
    elif node.family in ("310", "310B"):
        pairs.append(("Faulty Chip Count", 0))
    elif node.family == "950":
        pairs += [("DDie ID", _on_board(card, "Die ID", "NA")), ("Chip Position ID", 0)]
    return lines(pairs)


def board_chip(node: NodeState, card: CardState, chip: ChipState) -> str:
    """`-t board -i N -c M`."""
    pairs: Pairs = [("NPU ID", card.npu)]
    if node.family == "A3":
        pairs += [("NPU Name", "9391"), ("Chip ID", chip.chip)]
    else:
        pairs += [("Chip ID", chip.chip), ("Chip Type", "Ascend")]
    pairs += [("Chip Name", "NA" if chip.failing("name") else chip.name), ("Chip Version", "V1")]
    pairs.append(("Board ID", _on_board(card, "Board ID", "NA")))
    die = _on_board(card, "Die ID", "NA")
    if node.family == "310P":
        pairs.append(("Die ID", die))
    else:
        pairs += [("PCB ID", "NA"), ("BOM ID", _on_board(card, "BOM ID", "NA")), ("VDie ID", die)]
        pairs.append(("NDie ID", _on_board(card, "NDie ID", "NA")))
    pairs += [("Chip Position ID", chip.chip), ("PCIe Bus Info", chip.bus_id or "NA")]
    return lines([*pairs, ("Firmware Version", card.firmware)])


def _on_board(card: CardState, key: str, absent: str) -> str:
    return dict(card.board).get(key, absent)
