"""The table of `npu-smi info`, in every layout: columns by header names and `|`, never by position.

Two rows a chip, paired by the frames between them, because a failed sub-query can drop either. npu-smi zero-fills what
it could not read, so a row is only trusted when it bears none of the marks of that (docs/parse.md lists them).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from npu_watchd.model.records import DeviceRow, InfoTable, ProcessRow
from npu_watchd.parsers.device_rows import Columns, is_upper_row, read_device
from npu_watchd.parsers.lines import Line, ParseError, lines_of, quoted
from npu_watchd.parsers.process_rows import ProcessColumns, read_process
from npu_watchd.parsers.tool_words import refusal

_TITLE = re.compile(r"^\|\s*npu-smi\s+(?P<tool>\S+)\s+Version:\s*(?P<driver>\S+)")
_IDLE = re.compile(r"^\|\s*No running processes found in NPU\s+(?P<npu>\d{1,9})\s*(?P<bar>\|?)$", re.ASCII)


def parse(text: str) -> InfoTable:
    """All devices and processes of the table.

    Raises ParseError with the tool's own words where it printed a failure instead, and with the line where the table
    cannot be trusted. A row that the end of the text cut through is left out or untrusted, and `warnings` says so.
    """
    lines = list(lines_of(text))
    table = _Table()
    for line in lines:
        table.take(line)
    table.flush()
    if table.columns is None:
        raise refusal(lines) or _no_table(lines)
    if not table.devices:
        raise refusal(lines) or ParseError(lines[-1].number, "a table without a single device")
    return table.record()


def _no_table(lines: list[Line]) -> ParseError:
    if not lines:
        return ParseError(1, "npu-smi printed nothing")
    return lines[0].refuse("no table of npu-smi info")


@dataclass(slots=True)
class _Table:
    """What has been read so far."""

    tool_version: str | None = None
    driver_version: str | None = None
    columns: Columns | None = None
    header: tuple[Line, list[str]] | None = None
    process_columns: ProcessColumns | None = None
    upper: tuple[Line, list[str]] | None = None
    devices: list[DeviceRow] = field(default_factory=list)
    known: set[tuple[int, int | None]] = field(default_factory=set)
    processes: list[ProcessRow] = field(default_factory=list)
    idle: list[int] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    complete: bool = True
    torn: Line | None = None
    """A row without its closing bar: only the end of the text may do that to a row."""
    framed: bool = False
    """True after a frame: what stands above it is whole."""

    def take(self, line: Line) -> None:
        text = line.text.strip()
        if self.torn is not None and text.startswith(("+", "|")):
            raise self.torn.refuse("a row without its closing bar")
        self.framed = text.startswith("+") or (self.framed and not text.startswith("|"))
        if text.startswith("+"):
            self.flush()
        elif text.startswith("|"):
            self._row(line, text)
        elif text.startswith("["):
            self.warnings.append(text)
        elif self.columns is not None:
            self.warnings.append(f"line {line.number}: {text[:200]}")

    def _row(self, line: Line, text: str) -> None:
        title, idle = _TITLE.match(text), _IDLE.match(text)
        if title is not None and self.columns is None:
            self.tool_version, self.driver_version = title["tool"], title["driver"]
        elif idle is not None:
            self._idle(line, idle)
        elif not text.endswith("|") or (len(text) == 1):
            self._cut(line, text)
        else:
            self._cells(line, text[1:-1].split("|"))

    def _idle(self, line: Line, match: re.Match[str]) -> None:
        self.flush()
        if not match["bar"] and not line.ended:
            self.warnings.append(f"line {line.number}: cut off; left out")
            return
        self.idle.append(int(match["npu"]))

    def _cells(self, line: Line, raw: list[str]) -> None:
        cells = [cell.strip() for cell in raw]
        if len(cells) > 1 and cells[1].lower() == "process id":
            self.flush()
            self.process_columns = ProcessColumns.of(line, cells)
        elif self.columns is None and "Health" in cells:
            self.header = (line, cells)
        elif self.header is not None and self.columns is None:
            self.columns = Columns.of(self.header[0], self.header[1], line, cells)
        elif self.columns is None:
            raise line.refuse("a row before the header of the table")
        elif self.process_columns is not None:
            self._process_cells(self.process_columns, line, raw)
        else:
            self._device_cells(line, cells)

    def _device_cells(self, line: Line, cells: list[str]) -> None:
        assert self.columns is not None
        if len(cells) != self.columns.cells:
            if not line.ended:
                self._cut(line, line.text)
                return
            raise line.refuse(f"{len(cells)} cells where the header has {self.columns.cells}")
        if is_upper_row(self.columns, cells, awaiting_lower=self.upper is not None):
            self.flush()
            self.upper = (line, cells)
            return
        upper, self.upper = self.upper, None
        self._add(line, read_device(self.columns, upper, (line, cells)))

    def _add(self, line: Line, device: DeviceRow) -> None:
        if device.npu is not None:
            if (device.npu, device.chip) in self.known:
                raise line.refuse(f"NPU {device.npu} has this chip already: two tables, or a table put together")
            self.known.add((device.npu, device.chip))
        self.devices.append(device)

    def _process_cells(self, columns: ProcessColumns, line: Line, cells: list[str]) -> None:
        """A name may hold bars, so without its end of line a row may have been cut at one."""
        if line.ended:
            self.processes.append(read_process(columns, line, cells))
        else:
            self.warnings.append(f"line {line.number}: may be cut off; left out: {quoted(line.text)}")

    def _cut(self, line: Line, text: str) -> None:
        if self.columns is None and self.header is None:
            raise line.refuse("a row that is cut off before the table's header")
        self.torn = line
        closed = [cell.strip() for cell in text[1:].split("|")[:-1]]
        upper, self.upper = self.upper, None
        if self.columns is not None and self.process_columns is None and upper and len(closed) > self.columns.health:
            self._add(line, read_device(self.columns, upper, (line, closed), cut=True))
            self.warnings.append(f"line {line.number}: the row is cut off; its values are left out")
        else:
            self.warnings.append(f"line {line.number}: cut off; left out: {quoted(text)}")

    def flush(self) -> None:
        """A frame closes the chip: an upper row that is still alone lost its lower one."""
        if self.upper is None:
            return
        line, cells = self.upper
        self.upper = None
        self.complete = False
        self.warnings.append(f"line {line.number}: a chip without its second row, left out: {quoted(' '.join(cells))}")

    def record(self) -> InfoTable:
        listed = bool(self.processes or self.idle)
        return InfoTable(
            tool_version=self.tool_version,
            driver_version=self.driver_version,
            devices=tuple(self.devices),
            processes=tuple(self.processes) if listed else None,
            idle_npus=tuple(self.idle),
            warnings=tuple(self.warnings),
            complete=self.complete and self.framed,
        )
