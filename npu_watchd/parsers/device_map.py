"""`npu-smi info -m`: which chip has which logic id, the N of /dev/davinciN and of `device_id` in training logs."""

from __future__ import annotations

from npu_watchd.model.records import DeviceMap, MapRow
from npu_watchd.parsers.lines import Line, ParseError, integer, lines_of
from npu_watchd.parsers.tool_words import refusal

_NAMES = ("NPU ID", "Slot ID", "Chip ID", "Chip Logic ID", "Chip Phy-ID", "Chip Name")


def parse(text: str) -> DeviceMap:
    """All chips of the map, MCU rows left out; a row with NPU id -1 is a card that the driver counts and cannot reach.

    Columns by their header, since each generation has others. Raises ParseError where the tool failed or a row has not
    the header's columns.
    """
    lines = list(lines_of(text))
    columns: list[str] | None = None
    rows: list[MapRow] = []
    known: set[tuple[int | None, int]] = set()
    lost = 0
    for line in lines:
        if columns is None:
            columns = _header(line)
            continue
        if not line.ended or line.text.strip().startswith("["):
            continue
        values = _row(line, columns)
        if values["NPU ID"] == "-1":
            lost += 1
        elif values["Chip Name"].lower() != "mcu":
            row = _record(line, values)
            if (row.npu, row.chip) in known:
                raise line.refuse("the same chip twice")
            known.add((row.npu, row.chip))
            rows.append(row)
    if columns is None:
        raise refusal(lines) or ParseError(1, "no map of npu-smi info -m" if lines else "npu-smi printed nothing")
    if not rows and not lost:
        raise refusal(lines) or ParseError(lines[-1].number, "a map without a single chip")
    return DeviceMap(tuple(rows), lost)


def _header(line: Line) -> list[str] | None:
    """The columns in their order; names hold blanks, so each is looked for where the one before it ended."""
    text = line.text.strip()
    if not text.startswith("NPU ID"):
        return None
    columns: list[str] = []
    while text:
        name = next((name for name in sorted(_NAMES, key=len, reverse=True) if text.startswith(name)), None)
        if name is None or name in columns:
            raise line.refuse("an unknown column in the map")
        columns.append(name)
        text = text[len(name) :].strip()
    if not {"NPU ID", "Chip ID", "Chip Name"} <= set(columns) or columns[-1] != "Chip Name":
        raise line.refuse("a map without NPU ID, Chip ID and Chip Name")
    return columns


def _row(line: Line, columns: list[str]) -> dict[str, str]:
    """The last column, the name, may hold a blank (`Ascend 910A`)."""
    parts = line.text.split(None, len(columns) - 1)
    if len(parts) != len(columns):
        raise line.refuse(f"{len(parts)} columns where the header has {len(columns)}")
    return dict(zip(columns, (part.strip() for part in parts), strict=True))


def _record(line: Line, values: dict[str, str]) -> MapRow:
    npu, chip = integer(line, values["NPU ID"]), integer(line, values["Chip ID"])
    if npu is None or chip is None:
        raise line.refuse("a chip without its ids")
    return MapRow(
        npu=npu,
        chip=chip,
        logic_id=integer(line, values.get("Chip Logic ID", "NA")),
        phy_id=integer(line, values.get("Chip Phy-ID", "NA")),
        slot_id=integer(line, values.get("Slot ID", "NA")),
        name=values["Chip Name"],
    )
