"""Real processes on simulated chips: whoever makes the file DIR/holders/3-0/PID holds chip 0 of NPU 3 while it lives.

For a scenario with `real_processes = true`. A shell line is enough: `echo 2048 > DIR/holders/3-0/$$`. As with the real
driver, a process that has ended is off the chip, whoever forgot to remove its file.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace

from npu_watchd.simnode.state import CardState, ChipState, Memory, NodeState, Process

FOLDER = "holders"
MEMORY_MB = 1024
"""Of a process whose file is empty."""
NAMELESS = "nameless"
"""Second word of a file: the number is of another PID namespace, and the tool cannot tell who that is."""
_ENDED = frozenset("ZXx")
"""States of proc_pid_stat(5) in which a process has closed all that it had open."""


def folder_of(directory: str | os.PathLike[str], npu: int, chip: int = 0) -> str:
    """Where the files of that chip's processes lie, on a node in that directory."""
    return f"{os.fspath(directory)}/{FOLDER}/{npu}-{chip}"


def held(node: NodeState, directory: str | os.PathLike[str], procfs: str = "/proc") -> NodeState:
    """The node with those processes on its chips."""
    return replace(node, cards=tuple(_card(card, directory, procfs) for card in node.cards))


def _card(card: CardState, directory: str | os.PathLike[str], procfs: str) -> CardState:
    chips = (_chip(chip, folder_of(directory, card.npu, chip.chip), procfs) for chip in card.chips)
    return replace(card, chips=tuple(chips))


def _chip(chip: ChipState, folder: str, procfs: str) -> ChipState:
    found = tuple(_processes(folder, procfs))
    if not found:
        return chip
    more_mb = sum(process.memory_mb for process in found)
    hbm, ddr = (_filled(chip.hbm, more_mb), chip.ddr) if chip.hbm.total_mb else (chip.hbm, _filled(chip.ddr, more_mb))
    return replace(chip, processes=found, hbm=hbm, ddr=ddr)


def _filled(memory: Memory, more_mb: int) -> Memory:
    return replace(memory, used_mb=min(memory.used_mb + more_mb, memory.total_mb))


def _processes(folder: str, procfs: str) -> Iterator[Process]:
    """By pid."""
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return
    for pid in sorted(int(name) for name in names if name.isascii() and name.isdigit()):
        words = _text(f"{folder}/{pid}").split()
        memory_mb = int(words[0]) if words and words[0].isdigit() else MEMORY_MB
        if words[1:] == [NAMELESS]:
            yield Process(pid, None, memory_mb)
        elif (name := _name(pid, procfs)) is not None:
            yield Process(pid, name, memory_mb)


def _name(pid: int, procfs: str) -> str | None:
    """None: it has ended."""
    head, bracket, rest = _text(f"{procfs}/{pid}/stat").rpartition(") ")
    if not bracket or rest[:1] in _ENDED:
        return None
    return head.partition(" (")[2]


def _text(file: str) -> str:
    """Empty where it is gone meanwhile."""
    try:
        with open(file, encoding="utf-8", errors="replace") as opened:
            return opened.read()
    except (FileNotFoundError, ProcessLookupError):
        return ""
