"""A chip's two rows in the table of `npu-smi info`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from npu_watchd.model.records import DeviceRow
from npu_watchd.parsers.lines import Line, absent, decimal, integer, quoted

HEALTH_WORDS = frozenset({"OK", "Warning", "Alarm", "Critical", "UNKNOWN"})
MIB = 1024 * 1024

_COLUMN = re.compile(r"[A-Za-z][A-Za-z\- ]*?\([^)]*\)")
_PAIR = re.compile(r"\s*(\d+|NA|-)\s*/\s*(\d+|NA|-)(?=\s|$)", re.ASCII)
# The widest header known has 116 characters.
_HEADER_LIMIT = 400
_SCALAR = re.compile(r"\s*(\S+)(?=\s|$)")
_BUS = re.compile(r"^[0-9A-Fa-fXx]{4}:[0-9A-Fa-fXx]{2}:[0-9A-Fa-fXx]{2}\.[0-9A-Fa-fXx]$")
# Names whose chip sits on PCIe in every known table: there NA is what a failed query prints.
_ALWAYS_PCI = ("310P", "910", "Ascend910")
# The first 910s have DDR beside HBM; on all later chips with HBM the DDR pair is always 0 / 0.
_DDR_AND_HBM = ("910A", "910Pro", "910Premium")


@dataclass(frozen=True, slots=True)
class Columns:
    """Where the header says that things are."""

    cells: int
    health: int
    """Index of the cell that holds the health above and the bus id below."""
    identity: tuple[str, ...]
    """What the lower row's first cell holds: Chip, and Device or Phy-ID in some layouts; nothing on Ascend 950."""
    above: tuple[str, ...]
    """Names of the values in the upper row's last cell, in their order."""
    below: tuple[str, ...]

    @classmethod
    def of(cls, upper_line: Line, upper: list[str], lower_line: Line, lower: list[str]) -> Columns:
        """From the two header rows. Raises ParseError where they are none that we know how to read."""
        health = upper.index("Health")
        if len(lower) != len(upper) or lower[health] != "Bus-Id":
            raise lower_line.refuse("no second header row with Bus-Id below Health")
        if health not in (1, 2) or health + 2 != len(upper):
            raise upper_line.refuse("an unknown layout of the table")
        if max(len(upper_line.text), len(lower_line.text)) > _HEADER_LIMIT:
            raise upper_line.refuse("a header too wide for any known layout")
        identity = tuple(lower[0].split())
        if identity not in ((), ("Chip",), ("Chip", "Device"), ("Chip", "Phy-ID")):
            raise lower_line.refuse("unknown ids of a chip")
        above, below = (tuple(_COLUMN.findall(cells[-1])) for cells in (upper, lower))
        return cls(len(upper), health, identity, above, below)

    @property
    def has_hbm(self) -> bool:
        return "HBM-Usage(MB)" in self.below


def is_upper_row(columns: Columns, cells: list[str], *, awaiting_lower: bool) -> bool:
    """True for the row with name and health, judged by the cell that holds health or bus id."""
    word = cells[columns.health]
    if word in HEALTH_WORDS:
        return True
    if _BUS.match(word) or word == "NA":
        return False
    return not awaiting_lower


def read_device(
    columns: Columns, upper: tuple[Line, list[str]] | None, lower: tuple[Line, list[str]], *, cut: bool = False
) -> DeviceRow:
    """One chip from its rows; `upper` is None where npu-smi left it out, `cut` where the text ends inside `lower`.

    Raises ParseError where a cell does not hold what its header says.
    """
    marks: list[str] = []
    npu, name, health, above = _upper(columns, upper, marks)
    line, cells = lower
    chip, second = _chip(columns, line, cells[0])
    below: Mapping[str, str] = {}
    if cut:
        marks.append("the row is cut off")
    else:
        below = dict(_values(columns.below, line, cells[-1]))
    pci = _pci(line, cells[columns.health], name, marks)
    power = _power(columns, upper, above, marks)
    temperature = _temperature(upper, above, marks)
    memory = _pair_bytes(line, below.get("Memory-Usage(MB)"), marks)
    hbm = _pair_bytes(line, below.get("HBM-Usage(MB)"), marks)
    if not cut:
        _memory_marks(columns, name, memory, hbm, marks)
    utilization = _ratio(line, below.get("AICore(%)", below.get("NPU Util(%)")), marks)
    hugepages = _pair(upper[0] if upper else line, above.get("Hugepages-Usage(page)"))
    second_is_phy = "Phy-ID" in columns.identity
    return DeviceRow(
        npu=npu,
        chip=chip,
        logic_id=None if second_is_phy else second,
        phy_id=second if second_is_phy else None,
        name=name,
        health=health,
        pci_address=pci,
        power_watts=power,
        temperature_celsius=temperature,
        aicore_utilization_ratio=utilization,
        memory_used_bytes=memory[0],
        memory_total_bytes=memory[1],
        hbm_used_bytes=hbm[0],
        hbm_total_bytes=hbm[1],
        hugepages_used=hugepages[0],
        hugepages_total=hugepages[1],
        trusted=not marks,
        distrust=tuple(marks),
    )


def _upper(
    columns: Columns, upper: tuple[Line, list[str]] | None, marks: list[str]
) -> tuple[int | None, str | None, str | None, Mapping[str, str]]:
    """NPU id, name, health and the values of the first row."""
    if upper is None:
        marks.append("the row with name and health is missing")
        return None, None, None, {}
    line, cells = upper
    identity = cells[: columns.health]
    parts = identity if len(identity) > 1 else identity[0].split(None, 1)
    npu = integer(line, parts[0]) if parts else None
    if npu is None:
        raise line.refuse("no NPU id")
    name = parts[1].strip() if len(parts) > 1 and parts[1].strip() else None
    if name is None:
        marks.append("the name is blank")
    health = cells[columns.health]
    if health not in HEALTH_WORDS:
        marks.append(f"unknown health word {quoted(health)}")
    above = dict(_values(columns.above, line, cells[-1]))
    return npu, name, health if health in HEALTH_WORDS else None, above


def _chip(columns: Columns, line: Line, cell: str) -> tuple[int | None, int | None]:
    """Chip id, and the logic or phy id beside it."""
    if not columns.identity:
        if cell:
            raise line.refuse("text where this layout has an empty cell")
        return None, None
    parts = cell.split()
    if not 1 <= len(parts) <= len(columns.identity):
        raise line.refuse(f"{len(parts)} values below {' '.join(columns.identity)}")
    chip = integer(line, parts[0])
    if chip is None:
        raise line.refuse("no chip id")
    return chip, integer(line, parts[1]) if len(parts) > 1 else None


def _values(names: tuple[str, ...], line: Line, cell: str) -> Iterator[tuple[str, str]]:
    """The cell's values by the names that the header has for them, in its order."""
    position = 0
    for column in names:
        pattern = _PAIR if "-Usage(" in column else _SCALAR
        match = pattern.match(cell, position)
        if match is None:
            raise line.refuse(f"no value for {column}")
        position = match.end()
        yield column, match.group(0).strip()
    if cell[position:].strip():
        raise line.refuse(f"more values than the header has names ({', '.join(names)})")


def _pair(line: Line, text: str | None) -> tuple[int | None, int | None]:
    if text is None:
        return None, None
    used, total = (part.strip() for part in text.split("/"))
    return integer(line, used), integer(line, total)


def _pair_bytes(line: Line, text: str | None, marks: list[str]) -> tuple[int | None, int | None]:
    """Used and total in bytes; both None with `0 / 0`: there is no such memory, or nobody knows."""
    used, total = _pair(line, text)
    if not total:
        return None, None
    if used is not None and used > total:
        marks.append(f"more memory used than there is ({text})")
        return None, total * MIB
    return None if used is None else used * MIB, total * MIB


def _ratio(line: Line, text: str | None, marks: list[str]) -> float | None:
    percent = None if text is None else decimal(line, text)
    if percent is None:
        return None
    if not 0 <= percent <= 100:
        marks.append(f"a utilisation of {text} %")
        return None
    return percent / 100


def _pci(line: Line, cell: str, name: str | None, marks: list[str]) -> str | None:
    if absent(cell):
        if name and name.startswith(_ALWAYS_PCI):
            marks.append("no bus id, on a chip that has one")
        return None
    if not _BUS.match(cell):
        raise line.refuse(f"{quoted(cell)} is no bus id")
    if set(cell) <= set("0:."):
        marks.append("bus id 0000:00:00.0")
        return None
    return cell.lower()


def _power(
    columns: Columns, upper: tuple[Line, list[str]] | None, above: Mapping[str, str], marks: list[str]
) -> float | None:
    """None for NA, `-` (the second die of an A3, whose card's power stands with the first) and 0.0."""
    power = decimal(upper[0], above["Power(W)"]) if upper and "Power(W)" in above else None
    if power == 0:
        # Some 310B versions have no power sensor and print 0.0 for good; a chip with HBM draws power while it lives.
        if columns.has_hbm:
            marks.append("power 0.0")
        return None
    return power


def _temperature(upper: tuple[Line, list[str]] | None, above: Mapping[str, str], marks: list[str]) -> float | None:
    temperature = decimal(upper[0], above["Temp(C)"]) if upper and "Temp(C)" in above else None
    if temperature == 0:
        marks.append("temperature 0")
        return None
    return temperature


def _memory_marks(
    columns: Columns,
    name: str | None,
    memory: tuple[int | None, int | None],
    hbm: tuple[int | None, int | None],
    marks: list[str],
) -> None:
    if columns.has_hbm and hbm[1] is None:
        marks.append("HBM 0 / 0")
    needs_ddr = not columns.has_hbm or bool(name and name.startswith(_DDR_AND_HBM))
    if needs_ddr and memory[1] is None:
        marks.append("memory 0 / 0")
