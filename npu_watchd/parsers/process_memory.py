"""`npu-smi info -t proc-mem -i N`: processes and their memory, without the table's limit of eight a chip."""

from __future__ import annotations

import re

from npu_watchd.model.records import ProcessMemory, ProcessMemoryChip, ProcessRow
from npu_watchd.parsers.device_rows import MIB
from npu_watchd.parsers.lines import integer
from npu_watchd.parsers.sections import Entry, Section, sections

# The name may hold anything, these very words included: it reaches up to the last of them.
_PROCESS = re.compile(r"^(?P<pid>\d+)\s+Process name:(?P<name>.*)Process memory\(MB\):\s*(?P<memory>\d+|NA)$", re.ASCII)


def parse(text: str) -> ProcessMemory:
    """Processes of every chip of the answer; an empty list is the tool's own `No process in device.`

    Raises ParseError where the tool failed or a line is no process.
    """
    answer = sections(text)
    return ProcessMemory(answer.npu, tuple(_chip(answer.npu, section) for section in answer.chips))


def _chip(npu: int | None, section: Section) -> ProcessMemoryChip:
    for entry in section.entries:
        if entry.key not in ("Process id", "No process in device."):
            raise entry.line.refuse("no process")
    rows = tuple(_process(npu, section.chip, entry) for entry in section.entries if entry.key == "Process id")
    if rows and len(rows) != len(section.entries):
        raise section.entries[-1].line.refuse("processes of a chip that is said to have none")
    return ProcessMemoryChip(section.chip, rows if section.entries else None, section.failure)


def _process(npu: int | None, chip: int | None, entry: Entry) -> ProcessRow:
    match = _PROCESS.match(entry.value)
    if match is None:
        raise entry.line.refuse("a process without pid, name and memory")
    pid, memory = integer(entry.line, match["pid"]), integer(entry.line, match["memory"])
    if pid is None:
        raise entry.line.refuse("a process without a pid")
    return ProcessRow(
        npu=npu,
        chip=chip,
        pid=pid,
        name=match["name"].strip() or None,
        memory_bytes=None if memory is None else memory * MIB,
    )
