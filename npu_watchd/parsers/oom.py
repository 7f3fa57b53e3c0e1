"""The kernel's log lines about a process that it killed for want of memory.

Source: mm/oom_kill.c and mm/memcontrol.c of Linux 4.18 to 6.12. Since 5.0 (and in distributions' 4.18) one line,
`oom-kill:constraint=…`, has it all; before, a line names the cgroup and a later one the process.
"""

from __future__ import annotations

import re

from npu_watchd.model.host import OomLine, OomScope

_LONGEST_LINE_CHARS = 8192
"""A cgroup's path alone may have 4096 (PATH_MAX)."""
_SUMMARY = re.compile(
    r"oom-kill:constraint=(?P<constraint>CONSTRAINT_[A-Z_]+),(?P<rest>.*),pid=(?P<pid>\d{1,10}),uid=(?P<uid>\d{1,10})$",
    re.ASCII,
)
_KILLED = re.compile(
    r"(?P<before>.*?)\bKilled process (?P<pid>\d{1,10}) \((?P<name>.*?)\)(?=,? (?:UID|total-vm)|$)", re.ASCII
)
_TASK_IN = re.compile(r"Task in (?P<path>/.*?) killed as a result of limit of /", re.ASCII)
_TASKS_IN = re.compile(r"Tasks in (?P<path>/.*) are going to be killed due to memory\.oom\.group set$", re.ASCII)
_HEADS = {
    "Memory cgroup out of memory: ": OomScope.CGROUP,
    "Out of memory: ": OomScope.NODE,
    "Out of memory (oom_kill_allocating_task): ": OomScope.NODE,
    "": OomScope.UNKNOWN,
}
_SCOPES = {
    "CONSTRAINT_NONE": OomScope.NODE,
    "CONSTRAINT_CPUSET": OomScope.NODE,
    "CONSTRAINT_MEMORY_POLICY": OomScope.NODE,
    "CONSTRAINT_MEMCG": OomScope.CGROUP,
}


def oom_line(line: str) -> OomLine | None:
    """What the line says; None: it is about something else. The line as the kernel wrote it, without a stamp."""
    line = line[:_LONGEST_LINE_CHARS].rstrip()
    if line.startswith("oom-kill:"):
        return _summary(line)
    if line.startswith("Task"):
        return _cgroup(line)
    if "Killed process " in line:
        return _killed(line)
    return None


def _summary(line: str) -> OomLine | None:
    match = _SUMMARY.match(line)
    if match is None:
        return None
    _, _, told = match["rest"].partition(",task_memcg=")
    path, _, name = told.partition(",task=")
    # Whoever may make cgroups, or name a process, can write these words into the line himself.
    twice = match["rest"].count(",task_memcg=") != 1 or told.count(",task=") != 1 or not path.startswith("/")
    return OomLine(
        pid=int(match["pid"]),
        name=match["rest"].rpartition(",task=")[2] if twice else name,
        scope=_SCOPES.get(match["constraint"], OomScope.UNKNOWN),
        task_memcg=None if twice else path,
        uid=int(match["uid"]),
    )


def _cgroup(line: str) -> OomLine | None:
    one, group = _TASK_IN.match(line), _TASKS_IN.match(line)
    match = one or group
    return OomLine(None, None, OomScope.CGROUP, match["path"], group=one is None) if match else None


def _killed(line: str) -> OomLine | None:
    """`Out of memory: Killed process …`, `Memory cgroup out of memory: …`, or without a head before 5.0."""
    match = _KILLED.match(line)
    scope = _HEADS.get(match["before"]) if match else None
    if match is None or scope is None:
        return None
    return OomLine(int(match["pid"]), match["name"], scope, kills=True)
