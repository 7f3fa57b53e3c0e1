"""`-t proc-mem`: the processes of a chip, all of them, one a line."""

from __future__ import annotations

from npu_watchd.simnode.answer import Refused
from npu_watchd.simnode.lines import VERBATIM, Pairs
from npu_watchd.simnode.state import ChipState, Family, Process
from npu_watchd.simnode.table import shown_name


def process_memory(_family: Family, chip: ChipState) -> Pairs:
    """Whole lines. Nine processes and more are all listed here, unlike in the table."""
    if chip.failing("proc"):
        raise Refused(207)
    if not chip.processes:
        return [(VERBATIM, "\tNo process in device.\n")]
    return [(VERBATIM, _line(process)) for process in chip.processes]


def _line(process: Process) -> str:
    """A pid that the tool cannot see gets a line of its own first."""
    sorry = "\tGet pid name failed.\n" if process.name is None else ""
    name = f"{shown_name(process):<17}"
    return f"{sorry}\tProcess id:{process.pid:<7} Process name:{name} Process memory(MB):{process.memory_mb}\n"
