"""What one line of a job's, a driver's or the kernel's log says."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Role(StrEnum):
    """What a line of its kind is worth to somebody who looks for the cause."""

    FAULT = "fault"
    """It names something that went wrong where it was written."""
    CONSEQUENCE = "consequence"
    """It says that something failed earlier, or elsewhere."""
    NOTE = "note"
    """It is no failure, but it tells who is who, or what was asked for."""


class Family(StrEnum):
    """Whose words they are."""

    HCCL = "hccl"
    RUNTIME = "runtime"
    DRIVER = "driver"
    DEVICE = "device"
    COMPILER = "compiler"
    FRAMEWORK = "framework"
    JOB = "job"
    PLATFORM = "platform"
    HOST = "host"


@dataclass(frozen=True, slots=True)
class LogEvent:
    """One thing that one line says; a line may say several. None: the line, and the lines before it, do not tell."""

    line: int
    """From 1."""
    kind: str
    """Snake case, a key of `parsers.ascend_log.SIGNS` (docs/parse_logs.md)."""
    family: Family
    role: Role
    says: str
    """What that says about the cause, in our words."""
    code: str | None
    """As printed: EI0002, 507011, ERR00002; a chip's code in lower case without 0x."""
    time: str | None
    """As the text has it."""
    local_s: float | None
    """Seconds from 1970 to `time` by the clock that wrote it, whatever its zone; None: no year, or no time."""
    utc_offset_s: float | None
    """What that clock was ahead of UTC; None: the text does not say, as most do not."""
    time_inherited: bool
    """The time, pid and level are those of a line before: this one goes on with its message."""
    level: str | None
    component: str | None
    """HCCL, RUNTIME, DEVICE, …: who wrote into the vendor's log."""
    pid: int | None
    process: str | None
    """Its name, where the line has it."""
    device_id: int | None
    """By the job's own numbers: in a container, or with ASCEND_RT_VISIBLE_DEVICES, those are not the node's."""
    stream_id: int | None
    task_id: int | None
    rank: int | None
    blames: str | None
    """The rank, device or server that the line points at, in its own words."""
    file: str | None
    """The source file and line that wrote it, `hccl_socket.cc:110`."""
    text: str
    """The line, at most 400 characters, unprintable characters replaced."""

    @property
    def at_s(self) -> float | None:
        """Unix seconds; None where the clock's zone is not known."""
        if self.local_s is None or self.utc_offset_s is None:
            return None
        return self.local_s - self.utc_offset_s
