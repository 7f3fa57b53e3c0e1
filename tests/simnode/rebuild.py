"""A parsed answer turned back into the node that would give it: how the simulator is held to real text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from itertools import groupby

from npu_watchd.model.records import (
    Block,
    BlockChip,
    CardList,
    DeviceMap,
    DeviceRow,
    EccReport,
    HealthReport,
    InfoTable,
    MemoryErrors,
    ProcessMemory,
    ProcessRow,
)
from npu_watchd.simnode.state import (
    CardState,
    ChipState,
    ErrorCode,
    ErrorCounts,
    Family,
    Hccs,
    HccsLink,
    Load,
    Mcu,
    Memory,
    NodeState,
    PcieErrors,
    Process,
)

MIB = 1024 * 1024
ZERO_ADDRESS = "bus id 0000:00:00.0"


@dataclass(frozen=True)
class Asked:
    """A `-t` command line."""

    kind: str
    npu: int
    chip: int | None
    chips: int
    """Of a card of that family."""


def node_of_table(table: InfoTable, family: Family) -> NodeState:
    """The node whose `npu-smi info` this is. Cards that only the process part names are there with a failing Phy-ID."""
    rows = _with_npu(table.devices)
    owners = list(dict.fromkeys(npu for npu, _ in rows))
    hidden = [npu for npu in table.idle_npus if npu not in owners]
    cards = [
        CardState(npu, tuple(chip_of_row(row, position, table) for position, (_, row) in enumerate(chips)))
        for npu, chips in ((npu, list(group)) for npu, group in groupby(rows, key=lambda pair: pair[0]))
    ]
    cards += [CardState(npu, (ChipState(0, 0, 0, "", None, fails=frozenset({"phyid"})),)) for npu in hidden]
    cards.sort(key=lambda card: card.npu)
    processes = table.processes or ()
    cards = [replace(card, chips=tuple(_busy(card.npu, chip, processes) for chip in card.chips)) for card in cards]
    return NodeState(
        family,
        table.tool_version or "",
        table.driver_version or "",
        tuple(cards),
        install_incomplete=bool(table.warnings),
    )


def _with_npu(rows: Iterable[DeviceRow]) -> list[tuple[int, DeviceRow]]:
    """A row without its first line belongs to the card before it where it continues its chips, else to the next id."""
    known: list[tuple[int, DeviceRow]] = []
    for row in rows:
        npu = row.npu
        if npu is None:
            npu = (known[-1][0] if known else -1) + (0 if row.chip else 1)
        known.append((npu, row))
    return known


def chip_of_row(row: DeviceRow, position: int, table: InfoTable) -> ChipState:
    """One chip from its two rows; what the table does not tell is 0."""
    number = row.phy_id if row.phy_id is not None else row.logic_id or 0
    percent = round((row.aicore_utilization_ratio or 0) * 100)
    fails = {name for name, mark in (("name", "the name is blank"), ("pci", ZERO_ADDRESS)) if mark in row.distrust}
    fails |= {"power"} if "power 0.0" in row.distrust else set()
    return ChipState(
        row.chip if row.chip is not None else position,
        row.logic_id if row.logic_id is not None else number,
        number,
        row.name or "",
        "refused" if "pci" in fails else row.pci_address and row.pci_address.upper(),
        health=row.health,
        power_watts=0.0 if "power" in fails else row.power_watts,
        temperature_c=round(row.temperature_celsius or 0),
        load=Load(aicore=percent, npu=percent),
        ddr=memory(row.memory_used_bytes, row.memory_total_bytes),
        hbm=memory(row.hbm_used_bytes, row.hbm_total_bytes),
        hugepages_used=row.hugepages_used or 0,
        hugepages_total=row.hugepages_total or 0,
        fails=frozenset(fails),
    )


def memory(used: int | None, total: int | None) -> Memory:
    """A pair of the table; `0 / 0` for one that was not told."""
    return Memory((used or 0) // MIB, (total or 0) // MIB)


def _busy(npu: int, chip: ChipState, processes: Iterable[ProcessRow]) -> ChipState:
    mine = [row for row in processes if row.npu == npu and row.chip in (chip.chip, None)]
    return replace(
        chip,
        processes=tuple(Process(row.pid, row.name, (row.memory_bytes or 0) // MIB, row.container_pid) for row in mine),
    )


def node_of_block(block: Block, family: Family, asked: Asked, mcu: Mcu | None) -> NodeState:
    """The node that gives this `-t` answer; in chip form only the asked chip is known."""
    npu = asked.npu if block.npu is None else block.npu
    ids = [chip.chip if chip.chip is not None else asked.chip or 0 for chip in block.chips]
    chips = [_chip_of(at, chip, asked.kind) for at, chip in zip(ids, block.chips, strict=True)]
    known = {chip.chip for chip in chips}
    chips += [_blank(at) for at in range(asked.chips) if at not in known]
    chips.sort(key=lambda chip: chip.chip)
    first = block.chips[0].values if block.chips else {}
    card = CardState(npu or 0, tuple(chips), mcu and _mcu_of(mcu, block.mcu, silent=asked.kind == "temp"))
    version = first.get("Software Version", "26.1.0.b061")
    return NodeState(family, "26.1.0.b061", version, (_board_of(card, first),))


def _blank(at: int) -> ChipState:
    return ChipState(at, at, at, "", None)


def _chip_of(at: int, chip: BlockChip, kind: str) -> ChipState:
    if chip.failure is not None:
        return replace(_blank(at), fails=frozenset({"all"}))
    return chip_of_values(_blank(at), chip.values, kind)


def chip_of_values(chip: ChipState, values: Mapping[str, str], kind: str = "") -> ChipState:
    """Each key of each kind that has a place in the state."""

    def number(*keys: str) -> int:
        return next((int(values[key]) for key in keys if key in values), 0)

    watts = values.get("NPU Real-time Power(W)", values.get("Rated Power Dissipation(W)"))
    fitted = number("DDR Capacity(MB)", "Memory Capacity(MB)", "Capacity(MB)")
    return replace(
        chip,
        name=values.get("Chip Name", ""),
        bus_id=values.get("PCIe Bus Info"),
        health=values.get("Health", values.get("Health Status", "OK")),
        power_watts=float(watts) if watts else None,
        voltage=float(values.get("Voltage(V)", "0")),
        temperature_c=number("Temperature(C)", "Temperature (C)", "NPU Temperature (C)"),
        hbm_temperature_c=number("HBM Temperature(C)"),
        load=Load(
            number("Aicore Usage Rate(%)"),
            number("Aivector Usage Rate(%)", "Vectorcore Usage Rate(%)"),
            number("Aicube Usage Rate(%)"),
            number("Aicpu Usage Rate(%)"),
            number("Ctrlcpu Usage Rate(%)"),
            number("NPU Utilization(%)"),
            number("HBM Bandwidth Usage Rate(%)"),
            number("DDR Bandwidth Usage Rate(%)", "Memory Bandwidth Usage Rate(%)"),
        ),
        ddr=Memory(0, fitted, number("DDR Usage Rate(%)", "Memory Usage Rate(%)")),
        hbm=Memory(0, number("HBM Capacity(MB)"), number("HBM Usage Rate(%)")),
        hugepages_used=number("DDR Hugepages Total(page)") * number("DDR Hugepages Usage Rate(%)") // 100,
        hugepages_total=number("DDR Hugepages Total(page)"),
        clock_mhz=number("Aicore curFreq(MHZ)"),
        clock_max_mhz=number("Aicore Freq(MHZ)"),
        cores=number("Aicore Count"),
        hccs=_hccs_of(values) if kind == "hccs" else None,
        pcie=_pcie_of(values) if "TX Error Count" in values else None,
    )


def _pcie_of(values: Mapping[str, str]) -> PcieErrors:
    keys = ("TX Error Count", "RX Error Count", "Lcrc Error Count", "Ecrc Error Count", "Retry Count")
    return PcieErrors(*(int(values[key]) for key in keys))


def _hccs_of(values: Mapping[str, str]) -> Hccs:
    keys = ("hccs tx packets", "hccs rx packets", "hccs retry count", "hccs error count")
    columns = [[int(one) for one in values[key].strip("[]").split()] for key in keys]
    lane = values.get("hccs first error lane", "NA")
    links = tuple(HccsLink(*numbers) for numbers in zip(*columns, strict=True))
    return Hccs(links, values.get("hccs health status") != "NOK", None if lane == "NA" else int(lane))


def _mcu_of(mcu: Mcu, values: Mapping[str, str] | None, silent: bool) -> Mcu:
    if values is None:
        return replace(mcu, dead=silent)
    watts = values.get("NPU Real-time Power(W)", values.get("Power Dissipation(W)"))
    sensors = tuple((key, value) for key, value in values.items() if key.endswith("(C)") and "Temperature" not in key)
    return replace(
        mcu,
        sensors=sensors or mcu.sensors,
        temperature_c=int(values.get("Temperature(C)", mcu.temperature_c)),
        power_watts=float(watts) if watts else mcu.power_watts,
        health=values.get("Health", mcu.health),
    )


def _board_of(card: CardState, values: Mapping[str, str]) -> CardState:
    told = {key: None if value == "NA" else value for key, value in values.items()}
    own = ("NPU ID", "NPU Name", "Chip Name", "Chip Version", "Product Name", "Model", "Manufacturer", "Serial Number")
    other = (*own, "Software Version", "Firmware Version", "Chip Count", "Chip Fault", "Faulty Chip Count")
    board = [(key, value) for key, value in values.items() if key not in (*other, "DDie ID", "Chip Position ID")]
    board += [("Die ID", values[key]) for key in ("DDie ID", "VDie ID") if key in values]
    return replace(
        card,
        product_name=told.get("Product Name"),
        serial_number=told.get("Serial Number"),
        firmware=values.get("Firmware Version", ""),
        board=tuple(board),
    )


def node_of_ecc(report: EccReport, family: Family, asked: Asked) -> NodeState:
    """The node that gives this `-t ecc` answer."""
    ids = [chip.chip if chip.chip is not None else asked.chip or 0 for chip in report.chips]
    chips = {
        at: replace(
            _blank(at),
            hbm_errors=_counts_of(chip.hbm),
            ddr_errors=_counts_of(chip.ddr),
            fails=frozenset({"ecc"} if chip.failure else ()),
        )
        for at, chip in zip(ids, report.chips, strict=True)
    }
    refused = replace(_blank(0), fails=frozenset({"ecc_record"}))
    all_chips = tuple(chips.get(at, replace(refused, chip=at)) for at in range(asked.chips))
    return NodeState(family, "26.1.0.b061", "26.1.0.b061", (CardState(asked.npu, all_chips, mcu=mcu_of(family)),))


def _counts_of(errors: MemoryErrors | None) -> ErrorCounts:
    if errors is None:
        return ErrorCounts()
    return ErrorCounts(**{one.name: getattr(errors, one.name) or 0 for one in fields(ErrorCounts)})


def node_of_health(report: HealthReport, family: Family, asked: Asked) -> NodeState:
    """The node that gives this `-t health` answer."""
    chips = {}
    for chip in report.chips:
        at = chip.chip if chip.chip is not None else asked.chip or 0
        texts = [None if text.startswith("Failed to get") else text for text in chip.information]
        codes = tuple(ErrorCode(code, text) for code, text in zip(chip.error_codes or (), texts, strict=False))
        value = None if chip.failure else chip.health
        chips[at] = replace(_blank(at), health=value, codes=codes)
    mcu = mcu_of(family)
    if mcu is not None and asked.chip is None:
        mcu = replace(mcu, health=report.mcu_health or "OK", dead=report.mcu_health is None)
    elif mcu is not None and asked.chip in chips and asked.chip == asked.chips:
        mcu = replace(mcu, health=chips[asked.chip].health or "", codes=chips[asked.chip].codes)
    all_chips = tuple(chips.get(at, _blank(at)) for at in range(asked.chips))
    return NodeState(family, "26.1.0.b061", "26.1.0.b061", (CardState(asked.npu, all_chips, mcu=mcu),))


def node_of_process_memory(report: ProcessMemory, family: Family, asked: Asked) -> NodeState:
    """The node that gives this `-t proc-mem` answer."""
    chips = {}
    for chip in report.chips:
        at = chip.chip if chip.chip is not None else asked.chip or 0
        processes = tuple(Process(row.pid, row.name, (row.memory_bytes or 0) // MIB) for row in chip.processes or ())
        chips[at] = replace(_blank(at), processes=processes, fails=frozenset({"proc"} if chip.failure else ()))
    all_chips = tuple(chips.get(at, _blank(at)) for at in range(asked.chips))
    return NodeState(family, "26.1.0.b061", "26.1.0.b061", (CardState(asked.npu, all_chips, mcu=mcu_of(family)),))


def mcu_of(family: Family) -> Mcu | None:
    """An MCU where the boards of that family have one."""
    sensors = (("LM75A_TE (C)", "36"), ("LM75B_TE (C)", "36"))
    return Mcu(sensors) if family in ("910B", "A3", "310P") else None


def failing_node(family: Family, npu: int, asked: Asked, fails: frozenset[str]) -> NodeState:
    """A node whose asked chip (the last of the card in card form) refuses; `mcu`: the MCU does."""
    which = asked.chips - 1 if asked.chip is None else asked.chip
    chips = tuple(
        replace(_blank(at), fails=fails if at == which else frozenset(), hccs=Hccs(()) if family != "910A" else None)
        for at in range(asked.chips)
    )
    mcu = mcu_of(family)
    card = CardState(npu, chips, mcu and replace(mcu, dead="mcu" in fails))
    return NodeState(family, "26.1.0.b061", "26.1.0.b061", (card,))


def without_health(node: NodeState) -> NodeState:
    """All its chips have a health value that the tool has no word for."""
    cards = (replace(card, chips=tuple(replace(chip, health=None) for chip in card.chips)) for card in node.cards)
    return replace(node, cards=tuple(cards))


def node_of_list(record: CardList, family: Family) -> NodeState:
    """The node that gives this `-l`; lost cards get ids that no other has."""
    cards = []
    for at, card in enumerate(record.cards):
        lost = card.npu is None
        chips = tuple(replace(_blank(one), lost=lost) for one in range(card.chip_count or 1))
        cards.append(
            CardState(
                9000 + at if card.npu is None else card.npu,
                chips,
                product_name=card.product_name,
                serial_number=card.serial_number,
            )
        )
    return NodeState(family, "26.1.0.b061", "26.1.0.b061", tuple(cards))


def node_of_map(record: DeviceMap, family: Family) -> NodeState:
    """The node that gives this `-m`."""
    cards = [CardState(9000 + at, (replace(_blank(0), lost=True),)) for at in range(record.lost_cards)]
    for npu, rows in groupby(record.devices, key=lambda row: row.npu):
        known = list(rows)
        chips = tuple(
            replace(_blank(row.chip), logic_id=row.logic_id or 0, phy_id=row.phy_id or 0, name=row.name)
            for row in known
        )
        cards.append(CardState(npu or 0, chips, mcu_of(family), slot_id=known[0].slot_id or 0))
    return NodeState(family, "26.1.0.b061", "26.1.0.b061", tuple(cards))
