"""`npu-smi info`: the table, and in it what the tool makes of sub-queries that failed.

The tool zero-fills: a failed health query prints OK, a failed memory query `0 / 0`. So does this.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from npu_watchd.simnode.layouts import Layout, layout_for
from npu_watchd.simnode.state import NO_MEMORY, CardState, ChipState, Family, NodeState, Process

PROCESSES_SHOWN = 8
"""A chip's ninth process is never listed."""
NAME_SHOWN = 15
WARNING = (
    "[WARNING]The driver package may not be completely installed, which may cause function abnormal. "
    "Please reinstall it."
)


def info_table(node: NodeState) -> str:
    """The whole answer of `npu-smi info` while the driver answers."""
    layout = layout_for(node.family, node.tool_version)
    lines = [*_head(node, layout)]
    for card in node.seen():
        lines += _card(card, node.family, layout)
    if layout.processes is not None:
        lines += _processes(node.seen(), layout)
    if node.install_incomplete:
        lines.append(WARNING)
    return "\n".join(lines) + "\n"


def _head(node: NodeState, layout: Layout) -> Iterator[str]:
    yield f"+{'-' * layout.width}+"
    yield _row((f"npu-smi {node.tool_version:<{layout.version_pad}}Version: {node.driver_version}",), (layout.width,))
    yield _rule("-", layout.cells)
    yield _row(layout.first, layout.cells)
    yield _row(layout.second, layout.cells)
    yield _rule("=", layout.cells)


def _card(card: CardState, family: Family, layout: Layout) -> Iterator[str]:
    """A Phy-ID that cannot be had ends the card there, its separators included."""
    for position, chip in enumerate(card.chips):
        if chip.failing("phyid"):
            return
        if position:
            yield f"+{'-' * layout.width}+" if layout.solid_gap else _rule("-", layout.cells)
        if chip.health is not None or chip.failing("health"):
            yield _row(_first_row(card, chip, family, layout), layout.cells)
        no_address = family in ("310P", "310B", "310") and any(one.failing("pci") for one in card.chips)
        yield _row(_second_row(chip, "NA" if no_address else _address(chip), layout), layout.cells)
    yield _rule("=", layout.cells)


def _first_row(card: CardState, chip: ChipState, family: Family, layout: Layout) -> tuple[str, ...]:
    name = "" if chip.failing("name") else chip.name
    health = "OK" if chip.failing("health") else chip.health or ""
    temperature = 0 if chip.failing("temp") or chip.failing("heartbeat") else chip.temperature_c
    first, second = layout.values
    values = f"{_power(chip, family):<{first}}{temperature:<{second}}"
    if layout.hugepages:
        values += _pair(chip.hugepages_used, chip.hugepages_total, layout.pair)
    if layout.chip_ids:
        return f"{card.npu:<{layout.id_pad}}{name}", health, values
    return str(card.npu), name, health, values


def _second_row(chip: ChipState, address: str, layout: Layout) -> tuple[str, ...]:
    silent = chip.failing("heartbeat")
    load = 0 if chip.failing("util") or silent else chip.load.aicore if layout.chip_ids else chip.load.npu
    unknown = chip.failing("hbm") or silent
    ddr = NO_MEMORY if unknown else chip.ddr
    hbm = NO_MEMORY if unknown else chip.hbm
    first, second = layout.values
    memory = _pair(ddr.used_mb, ddr.total_mb, layout.ddr_pair)
    if layout.hbm:
        memory = f"{memory:<{second}}{_pair(hbm.used_mb, hbm.total_mb, layout.pair)}"
    values = f"{load:<{first}}{memory}"
    if not layout.chip_ids:
        return "", "", address, values
    own = {"Device": str(chip.logic_id), "Phy-ID": str(chip.phy_id), "": ""}[layout.own_id]
    return f"{chip.chip:<{layout.id_pad}}{own}", address, values


def _power(chip: ChipState, family: Family) -> str:
    """An A3 card has one value for both dies, printed with the first."""
    if family == "A3" and chip.chip > 0:
        return "-"
    if chip.power_watts is None:
        return "NA"
    return "0.0" if chip.failing("power") or chip.failing("heartbeat") else f"{chip.power_watts:.1f}"


def _address(chip: ChipState) -> str:
    if chip.bus_id is None:
        return "NA"
    return "0000:00:00.0" if chip.failing("pci") or chip.failing("heartbeat") else chip.bus_id


def _processes(cards: Iterable[CardState], layout: Layout) -> Iterator[str]:
    widths = layout.processes or ()
    parts = layout.cells if layout.chip_ids else (27, 15, layout.width - 44)
    first = "NPU     Chip" if layout.chip_ids else "NPU ID"
    head = [first, "Process id", "Process name", "Process memory(MB)"]
    yield _rule("-", parts)
    yield _row((*head, "Process id in container") if layout.container_pid else head, widths)
    yield _rule("=", parts)
    for card in cards:
        rows = [(chip.chip, process) for chip in card.chips for process in listed(chip)]
        for chip_id, process in rows:
            owner = f"{card.npu:<8}{chip_id}" if layout.chip_ids else str(card.npu)
            yield _row(_process_cells(owner, process, layout), layout.process_rows or widths)
        if not rows:
            yield _row((f"No running processes found in NPU {card.npu}",), (layout.width,))
        yield _rule("=", parts)


def _process_cells(owner: str, process: Process, layout: Layout) -> list[str]:
    cells = [owner, str(process.pid), shown_name(process), str(process.memory_mb)]
    if layout.container_pid:
        cells.append("NA" if process.container_pid is None else str(process.container_pid))
    return cells


def listed(chip: ChipState) -> tuple[Process, ...]:
    """The processes that the table lists of this chip: none where the query fails, never more than eight."""
    return () if chip.failing("proc") or chip.failing("heartbeat") else chip.processes[:PROCESSES_SHOWN]


def shown_name(process: Process) -> str:
    """The kernel cuts at 15 characters, then the tool deletes colons and tabs; empty for an invisible pid."""
    return (process.name or "")[:NAME_SHOWN].replace(":", "").replace("\t", "")


def _pair(used: int, total: int, pad: int) -> str:
    return f"{used:<{pad}}/ {total}"


def _row(cells: Iterable[str], widths: Iterable[int]) -> str:
    return "|" + "|".join(f" {cell}".ljust(width) for cell, width in zip(cells, widths, strict=True)) + "|"


def _rule(stroke: str, widths: Iterable[int]) -> str:
    return "+" + "+".join(stroke * width for width in widths) + "+"
