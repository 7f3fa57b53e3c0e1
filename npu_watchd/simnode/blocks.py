"""The `-t` answers: the form that each family gives them around what its chips say.

910x and 310P close a chip's block with `Chip ID` and add one for the MCU; 310, 310B and every `common` open it;
Ascend 950 has neither chip ids nor an MCU; the chip form (`-c`) has no headings at all.
"""

from __future__ import annotations

from npu_watchd.simnode.answer import Answer, Refused, Unsupported
from npu_watchd.simnode.chip_queries import (
    ChipQuery,
    common,
    ecc,
    hccs,
    health_with_codes,
    health_word,
    memory,
    pcie_err,
    power,
    status,
    temp,
    usages,
    volt,
)
from npu_watchd.simnode.lines import Pairs, line, lines
from npu_watchd.simnode.process_memory import process_memory
from npu_watchd.simnode.state import CardState, ChipState, Family, NodeState
from npu_watchd.simnode.usage import INFO_USAGE, hccs_usage

QUERIES: dict[str, ChipQuery] = {
    "ecc": ecc,
    "health": health_word,
    "usages": usages,
    "common": common,
    "temp": temp,
    "power": power,
    "volt": volt,
    "memory": memory,
    "pcie-err": pcie_err,
    "proc-mem": process_memory,
    "hccs": hccs,
}
CHIP_FORM: dict[str, ChipQuery] = {**QUERIES, "health": health_with_codes}
MCU_KINDS = ("health", "temp")
MCU_KINDS_OF_310P = ("health", "temp", "power", "volt")
OPENS_WITH_CHIP_ID: tuple[Family, ...] = ("310", "310B")


def unsupported(kind: str) -> Answer:
    """What a chip says to a query that it does not have. The exit code is 0 all the same."""
    return Answer(f"This device does not support querying {kind}.\n")


def card_form(node: NodeState, card: CardState, kind: str) -> Answer:
    """`-t KIND -i N`."""
    if kind == "hccs":
        return Answer("Must input parameter of chip id.\n" + hccs_usage(), 215)
    if node.family == "950":
        return _card_of_950(card, kind)
    if kind == "pcie-err":
        return Answer(_headings(card, 30)) if node.family in ("910B", "310P") else unsupported(kind)
    if kind == "common":
        return Answer(_common(node.family, card))
    return _card_blocks(node.family, card, kind)


def _headings(card: CardState, width: int) -> str:
    return line("NPU ID", card.npu, width) + line("Chip Count", len(card.chips), width) + "\n"


def _card_blocks(family: Family, card: CardState, kind: str) -> Answer:
    """The exit code is that of the last unit asked: with an MCU that answers, a dead chip costs nothing."""
    width = 40 if kind == "ecc" else 30
    text = _headings(card, width)
    code = 0
    for chip in card.chips:
        try:
            pairs = QUERIES[kind](family, chip)
        except Unsupported:
            continue
        except Refused as refused:
            text += line("Chip ID", chip.chip, width) + f"Failed to query npu chip: {chip.chip} info.\n\n"
            code = refused.code
            continue
        silent = kind == "ecc" and chip.failing("ecc_record")
        text += "" if silent else _chip_block(family, chip, pairs, width)
    mcu = _mcu_block(family, card, kind)
    if mcu is not None:
        block, code = mcu
        text += block
    elif card.mcu is not None and kind != "proc-mem":
        code = 0
    if code == 215:
        return Answer(text + INFO_USAGE, code)
    return Answer(text + (f'Failed to query "{kind}" info.\n' if code else ""), code)


def _chip_block(family: Family, chip: ChipState, pairs: Pairs, width: int) -> str:
    own = line("Chip ID", chip.chip, width)
    values = lines(pairs, width)
    return f"{own}{values}\n" if family in OPENS_WITH_CHIP_ID else f"{values}{own}\n"


def _mcu_block(family: Family, card: CardState, kind: str) -> tuple[str, int] | None:
    """The MCU's block and its exit code; None where the MCU has no part in this kind."""
    mcu = card.mcu
    if mcu is None or kind not in (MCU_KINDS_OF_310P if family == "310P" else MCU_KINDS):
        return None
    if mcu.dead:
        code = 206 if kind == "health" else 211
        return line("Chip Name", "MCU") + f"Failed to query mcu chip: {len(card.chips)} info.\n\n", code
    pairs: Pairs
    if kind == "health":
        pairs = [("Health", mcu.health)]
    elif kind == "temp":
        pairs = list(mcu.sensors)
    elif kind == "power":
        pairs = [("Power Dissipation(W)", f"{mcu.power_watts or 0.0:.1f}")]
    else:
        pairs = [("Voltage(V)", "0.00")]
    return f"{lines(pairs)}{line('Chip Name', 'MCU')}\n", 0


def _common(family: Family, card: CardState) -> str:
    blocks = [line("Chip ID", chip.chip) + lines(common(family, chip)) for chip in card.chips]
    if card.mcu is not None:
        pairs: Pairs = [("Temperature(C)", 0 if card.mcu.dead else card.mcu.temperature_c)]
        if family == "310P":
            watts = 0.0 if card.mcu.dead else card.mcu.power_watts or 0.0
            pairs.append(("NPU Real-time Power(W)", f"{watts:.1f}"))
        blocks.append(line("Chip Name", "mcu") + lines(pairs))
    return _headings(card, 30) + "\n".join(blocks)


def _card_of_950(card: CardState, kind: str) -> Answer:
    width = 40 if kind == "ecc" else 30
    chip = card.chips[0]
    try:
        pairs = CHIP_FORM[kind]("950", chip)
    except Unsupported:
        return unsupported(kind)
    except Refused as refused:
        text = line("NPU ID", card.npu, width) + f"Failed to query npu chip: {chip.chip} info.\n\n"
        last = INFO_USAGE if refused.code == 215 else f'Failed to query "{kind}" info.\n'
        return Answer(text + last, refused.code)
    return Answer(line("NPU ID", card.npu, width) + lines(pairs, width) + ("" if kind == "common" else "\n"))


def chip_form(node: NodeState, card: CardState, chip_id: int, kind: str) -> Answer:
    """`-t KIND -i N -c M`: values only. The number after the last chip is the MCU."""
    if kind == "common":
        return Answer('Error parameter in querying chip info, type: "common".\n' + INFO_USAGE, 215)
    if card.mcu is not None and chip_id == len(card.chips):
        return _mcu_health(card) if kind == "health" else unsupported(kind)
    chip = next((one for one in card.chips if one.chip == chip_id), None)
    if chip is None:
        return Answer("Invalid chip id.\nError parameter of -c\n" + INFO_USAGE, 215)
    try:
        pairs = CHIP_FORM[kind](node.family, chip)
    except Unsupported:
        return unsupported(kind)
    except Refused as refused:
        if refused.code == 215:
            return Answer(INFO_USAGE, 215)
        return Answer(f'Failed to query "{kind}" result.\n', refused.code)
    return Answer(lines(pairs, 40 if kind == "ecc" else 30))


def _mcu_health(card: CardState) -> Answer:
    mcu = card.mcu
    if mcu is None or mcu.dead:
        return Answer('Failed to query "health" result.\n', 214)
    return Answer(lines(status(mcu.health, mcu.codes)))
