"""The job's logs, and the kernel's, as clues."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from npu_watchd.diagnose.clocks import offset_of
from npu_watchd.diagnose.clue import Clue, Origin, of_log
from npu_watchd.diagnose.weights import AFTER_S, BEFORE_S
from npu_watchd.model.reading import Failure
from npu_watchd.parsers import ascend_log
from npu_watchd.parsers.ascend_log import LogReader
from npu_watchd.sources import log_files
from npu_watchd.sources.kernel_log import KernelMessage

_MOST_CLUES = 5_000
"""Of one log; one that repeats its error for hours has said it in its first lines and in its last ones."""


@dataclass(frozen=True, slots=True)
class Logs:
    """What all of them say."""

    clues: tuple[Clue, ...]
    ended_s: float | None
    """Unix seconds of the last event, or where none has a time of the last change of a log; None: no log was read."""
    notes: tuple[str, ...]


def node_offset_s(now: datetime) -> float:
    """What the node's clock is ahead of UTC. now: with its zone."""
    offset = now.utcoffset()
    return offset.total_seconds() if offset is not None else 0.0


def read_logs(paths: Iterable[Path], offset_s: float) -> Logs:
    """offset_s: of the node, for logs whose clock nothing else tells."""
    clues: list[Clue] = []
    notes: list[str] = []
    changed_s: list[float] = []
    zoneless = 0
    paths = list(paths)
    names = _names(paths)
    for path in paths[: log_files.MOST_FILES]:
        text = log_files.read(path)
        if isinstance(text, Failure):
            notes.append(text.detail)
            continue
        if text.skipped_bytes:
            notes.append(f"{path}: its first {text.skipped_bytes} bytes were not read; line numbers count from there")
        log = ascend_log.parse(text.text)
        ahead_s, sure = offset_of(log.events, text.modified_s, offset_s)
        if not sure:
            zoneless += 1
        elif ahead_s != offset_s:
            notes.append(f"{path}: its clock is {ahead_s / 3600:+g} h from UTC, by the file's last change")
        found = list(of_log(names[path], log.events, ahead_s))
        if len(found) > _MOST_CLUES:
            notes.append(f"{path}: of {len(found)} events the first and the last {_MOST_CLUES // 2} were looked at")
            found = [*found[: _MOST_CLUES // 2], *found[-_MOST_CLUES // 2 :]]
        clues += found
        changed_s.append(text.modified_s)
    if len(paths) > log_files.MOST_FILES:
        notes.append(f"of {len(paths)} logs the first {log_files.MOST_FILES} were read")
    if zoneless:
        of = f"of {zoneless} of the logs" if len(paths) > 1 else "of the log"
        notes.append(f"the clock's zone {of} is not known; it was read as {offset_s / 3600:+g} h, as the node has it")
    dated = [clue.at_s for clue in clues if clue.at_s is not None]
    return Logs(tuple(clues), max(dated or changed_s, default=None), tuple(notes))


def _names(paths: list[Path]) -> dict[Path, str]:
    """The file's name where that tells it from the others, else with its folder."""
    plain = [path.name for path in paths]
    return {path: path.name if plain.count(path.name) == 1 else f"{path.parent.name}/{path.name}" for path in paths}


def kernel_clues(messages: Iterable[KernelMessage], booted_s: float, ended_s: float) -> Iterator[Clue]:
    """Of the kernel's own lines those around the job's end. booted_s: Unix seconds at which its clock was 0."""
    reader = LogReader()
    for message in messages:
        at_s = booted_s + message.since_boot_s
        if message.by_kernel and ended_s - BEFORE_S <= at_s <= ended_s + AFTER_S:
            for clue in of_log("dmesg", reader.read(message.text), 0.0, Origin.KERNEL):
                yield replace(clue, at_s=at_s)
