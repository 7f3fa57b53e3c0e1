"""/proc/PID/stat and /proc/PID/status: who a process is, and when it started."""

from __future__ import annotations

import re
from dataclasses import dataclass

from npu_watchd.parsers.lines import Line, ParseError

_STAT = re.compile(r"(?P<pid>[0-9]{1,10}) \((?P<name>.*)\) (?P<rest>[A-Za-z](?: -?[0-9]+){20,})\n?", re.DOTALL)
_STARTED = 19
"""Of the fields after the name, which begin with field 3: starttime is field 22 (proc_pid_stat(5)). One more must
follow, or it may have been cut."""
_PARENT = 1
"""Field 4."""
_FLAGS, _KERNEL_THREAD = 6, 0x00200000
"""Field 9, and the kernel's PF_KTHREAD."""
_UID = re.compile(r"^Uid:\t(?P<real>[0-9]{1,10})\t[0-9]+\t[0-9]+\t[0-9]+$", re.MULTILINE)
_NSPID = re.compile(r"^NSpid:(?P<pids>(?:\t[0-9]{1,10})+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ProcessStat:
    pid: int
    name: str
    """At most 15 bytes, any of them; a process may change it as it likes."""
    started_ticks: int
    """Since boot, in clock ticks."""
    parent_pid: int
    """0: none, or one outside of this PID namespace."""
    kernel_thread: bool = False


@dataclass(frozen=True, slots=True)
class ProcessStatus:
    uid: int | None
    """The real one; None: the file has no such line."""
    namespace_pids: tuple[int, ...]
    """From the namespace of the procfs inwards, the process's own last; () before Linux 4.1."""


def stat(text: str) -> ProcessStat:
    """Raises ParseError where the text is cut or no stat file."""
    # The name may hold blanks, brackets and digits: it ends at the last bracket.
    match = _STAT.fullmatch(text)
    if match is None:
        raise ParseError(1, "no /proc/PID/stat")
    fields = match["rest"].split()
    kernel_thread = bool(int(fields[_FLAGS]) & _KERNEL_THREAD)
    parent_pid = max(0, int(fields[_PARENT]))
    return ProcessStat(int(match["pid"]), match["name"], int(fields[_STARTED]), parent_pid, kernel_thread)


def status(text: str) -> ProcessStatus:
    """A line that is not there costs its own value. Raises ParseError for an empty text."""
    if not text.strip():
        raise ParseError(1, "an empty /proc/PID/status")
    uid, pids = _UID.search(text), _NSPID.search(text)
    return ProcessStatus(
        int(uid["real"]) if uid else None, tuple(int(pid) for pid in pids["pids"].split()) if pids else ()
    )


def uptime_s(text: str) -> float:
    """Seconds since boot, from /proc/uptime. Raises ParseError."""
    line = Line(1, text.strip(), ended=True)
    first = line.text.partition(" ")[0]
    if not re.fullmatch(r"[0-9]{1,12}\.[0-9]{1,3}", first):
        raise line.refuse("no uptime")
    return float(first)


def boot_wall_s(text: str) -> int | None:
    """Unix seconds of the boot, from /proc/stat; None where it has none."""
    match = re.search(r"^btime ([0-9]{1,12})$", text, re.MULTILINE)
    return int(match[1]) if match else None
