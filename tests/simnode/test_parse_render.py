"""What the simulator prints, the parsers read back: `parse(render(state)) == state` for random states, any layout."""

from __future__ import annotations

from dataclasses import fields, replace

from hypothesis import given, settings
from hypothesis import strategies as st

from npu_watchd.model.records import (
    Card,
    CardList,
    DeviceMap,
    DeviceRow,
    EccChip,
    EccReport,
    HealthChip,
    HealthReport,
    InfoTable,
    MapRow,
    MemoryErrors,
    ProcessMemory,
    ProcessMemoryChip,
    ProcessRow,
)
from npu_watchd.parsers import card_list, device_map, ecc, health, info_table, process_memory
from npu_watchd.simnode.layouts import LAYOUTS, layout_for
from npu_watchd.simnode.listing import COUNTS_LOST_CARDS, map_name
from npu_watchd.simnode.npu_smi import answer
from npu_watchd.simnode.silicon import SILICON, new_cards
from npu_watchd.simnode.state import (
    CardState,
    ChipState,
    ErrorCode,
    ErrorCounts,
    Load,
    Memory,
    NodeState,
    Process,
)

MIB = 1024 * 1024
COUNT = st.integers(0, 2**31 - 1)
WORDS = st.sampled_from(["OK", "Warning", "Alarm", "Critical", "UNKNOWN"])
VERSIONS = sorted({".".join(map(str, since)) for _, since, _ in LAYOUTS} | {"25.5.1", "24.1.rc1.b030", "26.0.rc2"})
# The kernel escapes line ends in a name; a name of blanks alone looks like none.
LETTERS = st.characters(min_codepoint=33, max_codepoint=0x24F, exclude_categories=["Cc", "Cs", "Zs", "Zl", "Zp"])
NAMES = st.none() | st.builds("".join, st.lists(LETTERS | st.just(" "), min_size=1, max_size=15)).map(str.strip).filter(
    lambda name: name.replace(":", "").strip() == name.replace(":", "") != ""
)
PROCESSES = st.lists(
    st.builds(Process, st.integers(1, 4194304), NAMES, st.integers(0, 999999), st.none() | st.integers(1, 99999)),
    max_size=11,
).map(tuple)
COUNTS = st.builds(ErrorCounts, *([COUNT] * len(fields(ErrorCounts)))).map(
    lambda counts: replace(counts, single_bit_next_isolated_pages=0)
)
CODES = st.lists(
    st.builds(
        ErrorCode, st.from_regex("[0-9A-F]{8}", fullmatch=True), st.sampled_from(["node type=HBM", "a : b, c=d"])
    ),
    max_size=4,
).map(tuple)


def memories(total: int) -> st.SearchStrategy[Memory]:
    return st.builds(Memory, st.integers(0, total), st.just(total)) if total else st.just(Memory())


@st.composite
def chips(draw: st.DrawFn, chip: ChipState) -> ChipState:
    watts = st.integers(1, 9999).map(lambda tenths: tenths / 10)
    percent = st.integers(0, 100)
    return replace(
        chip,
        health=draw(WORDS),
        codes=draw(CODES),
        power_watts=None if chip.power_watts is None else draw(watts),
        temperature_c=draw(st.integers(1, 120)),
        load=Load(aicore=draw(percent), npu=draw(percent)),
        ddr=draw(memories(chip.ddr.total_mb)),
        hbm=draw(memories(chip.hbm.total_mb)),
        hugepages_used=draw(st.integers(0, 15)),
        hugepages_total=15,
        hbm_errors=draw(COUNTS),
        ddr_errors=draw(COUNTS),
        processes=draw(PROCESSES),
        lost=draw(st.sampled_from([False, False, False, True])),
    )


@st.composite
def nodes(draw: st.DrawFn) -> NodeState:
    """At least one card is there: without any, the tool says what `test_npu_smi.py` holds it to."""
    silicon = SILICON[draw(st.sampled_from(sorted(SILICON)))]
    fresh = new_cards(silicon, draw(st.integers(1, 3)))
    cards = [replace(card, chips=tuple(draw(chips(chip)) for chip in card.chips)) for card in fresh]
    first = tuple(replace(chip, lost=False) for chip in cards[0].chips)
    version = draw(st.sampled_from(VERSIONS))
    return NodeState(
        silicon.family, version, draw(st.sampled_from(VERSIONS)), (replace(cards[0], chips=first), *cards[1:])
    )


def said(node: NodeState, command: str) -> str:
    return answer(node, tuple(command.split())).text


def expected_device(node: NodeState, card: CardState, chip: ChipState) -> DeviceRow:
    layout = layout_for(node.family, node.tool_version)
    shows_power = node.family != "A3" or chip.chip == 0
    load = chip.load.aicore if layout.chip_ids else chip.load.npu
    return DeviceRow(
        npu=card.npu,
        chip=chip.chip if layout.chip_ids else None,
        logic_id=chip.logic_id if layout.own_id == "Device" else None,
        phy_id=chip.phy_id if layout.own_id == "Phy-ID" else None,
        name=chip.name,
        health=chip.health,
        pci_address=chip.bus_id.lower() if chip.bus_id else None,
        power_watts=chip.power_watts if shows_power else None,
        temperature_celsius=chip.temperature_c,
        aicore_utilization_ratio=load / 100,
        memory_used_bytes=chip.ddr.used_mb * MIB if chip.ddr.total_mb else None,
        memory_total_bytes=chip.ddr.total_mb * MIB or None,
        hbm_used_bytes=chip.hbm.used_mb * MIB if chip.hbm.total_mb else None,
        hbm_total_bytes=chip.hbm.total_mb * MIB or None,
        hugepages_used=chip.hugepages_used if layout.hugepages else None,
        hugepages_total=chip.hugepages_total if layout.hugepages else None,
        trusted=True,
    )


def expected_process(
    card: CardState, chip: ChipState, process: Process, *, chip_ids: bool, container: bool
) -> ProcessRow:
    name = process.name and process.name[:15].replace(":", "")
    container_pid = process.container_pid if container else None
    return ProcessRow(
        card.npu, chip.chip if chip_ids else None, process.pid, name, process.memory_mb * MIB, container_pid
    )


@settings(max_examples=40, deadline=None)
@given(nodes())
def test_the_table_is_read_back(node: NodeState) -> None:
    layout = layout_for(node.family, node.tool_version)
    seen = node.seen()
    rows = [(card, chip, one) for card in seen for chip in card.chips for one in chip.processes[:8]]
    processes = tuple(expected_process(*row, chip_ids=layout.chip_ids, container=layout.container_pid) for row in rows)
    busy = {card.npu for card, _, _ in rows}
    assert info_table.parse(said(node, "info")) == InfoTable(
        node.tool_version,
        node.driver_version,
        tuple(expected_device(node, card, chip) for card in seen for chip in card.chips),
        processes if layout.processes else None,
        tuple(card.npu for card in seen if card.npu not in busy) if layout.processes else (),
    )


@settings(max_examples=40, deadline=None)
@given(nodes())
def test_the_map_is_read_back_with_its_lost_cards(node: NodeState) -> None:
    rows = []
    for card in node.seen():
        for chip in card.chips:
            on_950 = node.family == "950"
            phy = chip.phy_id if node.family in ("A3", "950") else None
            logic = None if on_950 else chip.logic_id
            rows.append(MapRow(card.npu, chip.chip, logic, phy, card.slot_id if on_950 else None, map_name(chip.name)))
    lost = node.lost_cards() if node.family in COUNTS_LOST_CARDS else 0
    assert device_map.parse(said(node, "info -m")) == DeviceMap(tuple(rows), lost)


@settings(max_examples=40, deadline=None)
@given(nodes())
def test_the_list_is_read_back_with_its_lost_cards(node: NodeState) -> None:
    named = node.family in ("310", "310B", "310P", "950")
    counted = node.family != "950"
    cards = []
    for card in node.seen():
        name = card.product_name and card.product_name[: len(card.serial_number or "")]
        cards.append(
            Card(
                card.npu,
                len(card.chips) if counted else None,
                name if named else None,
                card.serial_number if named else None,
            )
        )
    lost = [Card(None, 0, None, None)] * (node.lost_cards() if node.family in COUNTS_LOST_CARDS else 0)
    assert card_list.parse(said(node, "info -l")) == CardList(len(lost) + len(cards), (*lost, *cards))


def expected_errors(counts: ErrorCounts, family: str) -> MemoryErrors:
    if family in ("310", "310B"):
        return MemoryErrors(counts.single_bit, counts.double_bit)
    errors = MemoryErrors(**{one.name: getattr(counts, one.name) for one in fields(ErrorCounts)})
    if family == "910A":
        return replace(errors, single_bit_next_isolated_pages=None, double_bit_next_isolated_pages=None)
    return errors


@settings(max_examples=40, deadline=None)
@given(nodes())
def test_ecc_counts_are_read_back(node: NodeState) -> None:
    has_hbm = node.family in ("910A", "910B", "A3", "950")
    has_ddr = node.family in ("310", "310B", "310P", "910A")
    card = node.seen()[0]
    expected = [
        EccChip(
            None if node.family == "950" else chip.chip,
            expected_errors(chip.hbm_errors, node.family) if has_hbm else None,
            expected_errors(chip.ddr_errors, node.family) if has_ddr else None,
        )
        for chip in card.chips
    ]
    assert ecc.parse(said(node, f"info -t ecc -i {card.npu}")) == EccReport(card.npu, tuple(expected))


@settings(max_examples=40, deadline=None)
@given(nodes())
def test_health_and_codes_are_read_back(node: NodeState) -> None:
    """A bad word without a code is printed as OK: only the table, and the card form, keep it."""
    card = node.seen()[0]
    chip = card.chips[-1]
    on_950 = node.family == "950"
    command = f"info -t health -i {card.npu}" + ("" if on_950 else f" -c {chip.chip}")
    word = chip.health if chip.codes or chip.health == "UNKNOWN" else "OK"
    codes = tuple(code.code.lower() for code in chip.codes)
    texts = tuple(code.information or "" for code in chip.codes)
    expected = HealthChip(None, word, codes, texts)
    assert health.parse(said(node, command)) == HealthReport(card.npu if on_950 else None, (expected,))


@settings(max_examples=40, deadline=None)
@given(nodes())
def test_all_processes_of_proc_mem_are_read_back(node: NodeState) -> None:
    card = node.seen()[0]
    on_950 = node.family == "950"
    expected = []
    for chip in card.chips:
        rows = [
            replace(
                expected_process(card, chip, one, chip_ids=not on_950, container=False),
                chip=None if on_950 else chip.chip,
            )
            for one in chip.processes
        ]
        expected.append(ProcessMemoryChip(None if on_950 else chip.chip, tuple(rows)))
    read = process_memory.parse(said(node, f"info -t proc-mem -i {card.npu}"))
    assert read == ProcessMemory(card.npu, tuple(expected))
