"""The tables of `npu-smi info` as the tool versions draw them: widths, words and pads, one layout a row of LAYOUTS.

Facts: the tool's outputs from 20.x to 26.1; every width here is checked against captures (tests/simnode).
"""

from __future__ import annotations

from dataclasses import dataclass

from npu_watchd.simnode.state import Family


@dataclass(frozen=True, slots=True)
class Layout:
    cells: tuple[int, ...]
    """Widths between the bars in the device part."""
    version_pad: int
    """The tool's version is padded to this before `Version:`."""
    first: tuple[str, ...]
    """Header cells of a device's first row."""
    second: tuple[str, ...]
    id_pad: int
    """NPU id and chip id are padded to this."""
    values: tuple[int, int]
    """Pads of the first two values in the last cell."""
    pair: int = 5
    """`used/ total`: the pad of used (HBM and hugepages)."""
    ddr_pair: int = 5
    hugepages: bool = True
    hbm: bool = True
    own_id: str = ""
    """What stands beside the chip id: Device (logic id), Phy-ID, or nothing."""
    solid_gap: bool = False
    """A line without inner corners between the dies of a card."""
    processes: tuple[int, ...] | None = None
    """Widths of the process part's header; None: the tool prints no such part."""
    process_rows: tuple[int, ...] | None = None
    """Where they differ from the header's, as on Ascend 950."""

    @property
    def width(self) -> int:
        """Of a line without its two outer corners."""
        return sum(self.cells) + len(self.cells) - 1

    @property
    def container_pid(self) -> bool:
        return self.processes is not None and len(self.processes) == 5

    @property
    def chip_ids(self) -> bool:
        """Ascend 950 has none: its rows start with the NPU id in a cell of its own."""
        return len(self.cells) == 3


_POWER = "Power(W)    Temp(C)           Hugepages-Usage(page)"
_AICORE = "AICore(%)   Memory-Usage(MB)  HBM-Usage(MB)"
_NPU = ("NPU   Name", "Health")
_NPU_WIDE = ("NPU     Name", "Health")
_DEVICE = ("Chip    Device", "Bus-Id")

_310 = Layout(
    (19, 17, 40),
    29,
    (*_NPU_WIDE, "Power(W)          Temp(C)"),
    (*_DEVICE, "AICore(%)         Memory-Usage(MB)"),
    id_pad=8,
    values=(18, 18),
    hugepages=False,
    hbm=False,
    own_id="Device",
)
_910_OLD = Layout(
    (22, 15, 45),
    25,
    (*_NPU, "Power(W)   Temp(C)"),
    ("Chip", "Bus-Id", "AICore(%)  Memory-Usage(MB)  HBM-Usage(MB)"),
    id_pad=6,
    values=(11, 18),
    hugepages=False,
)
_310P_HEAD = "Power(W)     Temp(C)           Hugepages-Usage(page)"
_310P_220 = Layout(
    (19, 17, 54),
    29,
    (*_NPU_WIDE, _310P_HEAD),
    (*_DEVICE, "AICore(%)    Memory-Usage(MB)"),
    id_pad=8,
    values=(13, 18),
    hbm=False,
    own_id="Device",
)
_310P_22 = Layout(
    (31, 17, 54),
    41,
    _310P_220.first,
    _310P_220.second,
    id_pad=8,
    values=(13, 18),
    hbm=False,
    own_id="Device",
)
_310B = Layout(
    (31, 17, 54),
    41,
    _310P_220.first,
    _310P_220.second,
    id_pad=8,
    values=(13, 18),
    pair=6,
    hbm=False,
    own_id="Device",
)
_310P = Layout(
    (31, 17, 54),
    41,
    _310P_220.first,
    _310P_220.second,
    id_pad=8,
    values=(13, 18),
    pair=6,
    hbm=False,
    own_id="Device",
    processes=(31, 17, 26, 27),
)
_910 = Layout(
    (27, 15, 52),
    25,
    (*_NPU, _POWER),
    ("Chip", "Bus-Id", _AICORE),
    id_pad=6,
    values=(12, 18),
    processes=(27, 15, 26, 25),
)
_A3 = Layout(
    (27, 15, 52),
    25,
    (*_NPU, _POWER),
    ("Chip  Phy-ID", "Bus-Id", _AICORE),
    id_pad=6,
    values=(12, 18),
    own_id="Phy-ID",
    solid_gap=True,
    processes=(27, 15, 26, 25),
)
_POWER_260 = "Power(W)             Temp(C)                 Hugepages-Usage(page)"
_AICORE_260 = "AICore(%)            Memory-Usage(MB)        HBM-Usage(MB)"
_910_260 = Layout(
    (27, 15, 70),
    36,
    (*_NPU, _POWER_260),
    ("Chip", "Bus-Id", _AICORE_260),
    id_pad=6,
    values=(21, 24),
    processes=(27, 15, 20, 23, 25),
)
_A3_260 = Layout(
    (27, 15, 70),
    36,
    (*_NPU, _POWER_260),
    ("Chip  Phy-ID", "Bus-Id", _AICORE_260),
    id_pad=6,
    values=(21, 24),
    own_id="Phy-ID",
    solid_gap=True,
    processes=(27, 15, 20, 23, 25),
)
_910_261 = Layout(
    (27, 15, 53),
    25,
    _910.first,
    _910.second,
    id_pad=6,
    values=(12, 18),
    pair=6,
    processes=(27, 15, 26, 26),
)
_A3_261 = Layout(
    (27, 15, 53),
    25,
    _A3.first,
    _A3.second,
    id_pad=6,
    values=(12, 18),
    pair=6,
    own_id="Phy-ID",
    solid_gap=True,
    processes=(27, 15, 26, 26),
)
_950_SECOND = ("", "", "Bus-Id", "NPU Util(%) Memory-Usage(MB)  HBM-Usage(MB)")
_950_261 = Layout(
    (8, 18, 15, 53),
    41,
    ("NPU ID", "Name", "Health", _POWER),
    _950_SECOND,
    id_pad=6,
    values=(12, 18),
    pair=6,
    processes=(27, 15, 26, 26),
    process_rows=(28, 15, 26, 25),
)
_950_257 = Layout(
    (8, 18, 15, 53),
    41,
    _950_261.first,
    _950_SECOND,
    id_pad=6,
    values=(12, 18),
    pair=6,
    processes=(27, 15, 26, 26),
    process_rows=(27, 15, 26, 25),
)
_950_WIDE = Layout(
    (8, 18, 15, 70),
    41,
    ("NPU ID", "Name", "Health", "Power(W)              Temp(C)                  Hugepages-Usage(page)"),
    ("", "", "Bus-Id", "NPU Util(%)           Memory-Usage(MB)         HBM-Usage(MB)"),
    id_pad=6,
    values=(22, 25),
    pair=6,
    ddr_pair=6,
    processes=(27, 15, 20, 23, 25),
)

LAYOUTS: tuple[tuple[Family, tuple[int, int, int], Layout], ...] = (
    ("310", (0, 0, 0), _310),
    ("310P", (0, 0, 0), _310P_220),
    ("310P", (22, 0, 1), _310P_22),
    ("310P", (23, 0, 0), _310P),
    ("310B", (0, 0, 0), _310P_22),
    ("310B", (23, 0, 0), _310B),
    ("910A", (0, 0, 0), _910_OLD),
    ("910A", (22, 0, 0), _910),
    ("910A", (26, 0, 0), _910_260),
    ("910A", (26, 1, 0), _910_261),
    ("910B", (0, 0, 0), _910),
    ("910B", (26, 0, 0), _910_260),
    ("910B", (26, 1, 0), _910_261),
    ("A3", (0, 0, 0), _A3),
    ("A3", (26, 0, 0), _A3_260),
    ("A3", (26, 1, 0), _A3_261),
    ("950", (0, 0, 0), _950_WIDE),
    ("950", (25, 7, 0), _950_257),
    ("950", (26, 0, 0), _950_WIDE),
    ("950", (26, 1, 0), _950_261),
)
"""Family, first tool version that draws so (the last row that fits counts), layout."""


def layout_for(family: Family, tool_version: str) -> Layout:
    """The layout in which this tool version draws this family. A version without numbers counts as the oldest."""
    version = _numbers(tool_version)
    return [layout for kind, since, layout in LAYOUTS if kind == family and since <= version][-1]


def _numbers(version: str) -> tuple[int, int, int]:
    parts = [int(part) if part.isdigit() else 0 for part in version.split(".")[:3]]
    return (*parts, 0, 0, 0)[:3]  # type: ignore[return-value]
