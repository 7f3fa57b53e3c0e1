"""The process part of the table of `npu-smi info`."""

from __future__ import annotations

from dataclasses import dataclass

from npu_watchd.model.records import ProcessRow
from npu_watchd.parsers.device_rows import MIB
from npu_watchd.parsers.lines import Line, integer


@dataclass(frozen=True, slots=True)
class ProcessColumns:
    names: tuple[str, ...]
    has_chip: bool
    has_container_pid: bool

    @classmethod
    def of(cls, line: Line, cells: list[str]) -> ProcessColumns:
        """From the header row. Raises ParseError where the columns are none that we know."""
        lowered = [" ".join(cell.lower().split()) for cell in cells]
        if lowered[1:4] != ["process id", "process name", "process memory(mb)"]:
            raise line.refuse("unknown columns in the process part")
        if len(lowered) > 4 and lowered[4:] != ["process id in container"]:
            raise line.refuse("an unknown last column in the process part")
        return cls(tuple(cells), "chip" in lowered[0], len(lowered) == 5)


def read_process(columns: ProcessColumns, line: Line, cells: list[str]) -> ProcessRow:
    """One process, from its cells as they stand between the bars. A name may hold any byte, a bar included.

    Raises ParseError where an id, a pid or a memory is no number.
    """
    extra = len(cells) - len(columns.names)
    if extra < 0:
        raise line.refuse(f"{len(cells)} cells where the process part has {len(columns.names)}")
    after = 1 + columns.has_container_pid
    where, pid_cell = cells[0].split(), cells[1].strip()
    name = "|".join(cells[2 : 3 + extra]).strip()
    memory = integer(line, cells[-after].strip())
    pid = integer(line, pid_cell)
    if pid is None or len(where) != 1 + columns.has_chip:
        raise line.refuse("a process row without its ids")
    return ProcessRow(
        npu=integer(line, where[0]),
        chip=integer(line, where[1]) if columns.has_chip else None,
        pid=pid,
        name=name or None,
        memory_bytes=None if memory is None else memory * MIB,
        container_pid=integer(line, cells[-1].strip()) if columns.has_container_pid else None,
    )
