"""Which file a tool's name means, and whether it can be run."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from npu_watchd.model.reading import Failure, FailureKind

_HEAD_BYTES = 256
"""What the kernel reads of a file before it runs it."""


def setting(tool: str) -> str:
    """The key of config.toml that names this tool."""
    return f"[tools] {Path(tool).name.replace('-', '_')}"


def find(tool: str, search_path: str) -> str | Failure:
    """The absolute path of the tool, or MISSING or DENIED with the cure.

    It also reads the file's first bytes. May block for as long as a file system does that does not answer: better here
    than in exec, where the whole daemon would wait with it (vfork suspends the caller, and the caller holds the GIL).
    """
    blocked = None
    for candidate in _candidates(tool, search_path):
        try:
            obstacle = _obstacle(candidate)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            obstacle = error.strerror
        if obstacle is None:
            _read_head(candidate)
            return candidate
        blocked = blocked or f"{candidate}: {obstacle}"
    if blocked is not None:
        return Failure(FailureKind.DENIED, f"{blocked}; let npu-watchd's user run it, or set {setting(tool)}")
    if "/" in tool:
        return Failure(FailureKind.MISSING, f"{tool}: no such file; install it, or set {setting(tool)} in config.toml")
    return Failure(
        FailureKind.MISSING,
        f"{tool}: not found on PATH ({search_path}); install it, or set {setting(tool)} in config.toml to its path",
    )


def _candidates(tool: str, search_path: str) -> Iterator[str]:
    if "/" in tool:
        yield _absolute(tool)
        return
    for folder in search_path.split(":"):
        if folder:
            yield _absolute(f"{folder.rstrip('/')}/{tool}")


def _absolute(path: str) -> str:
    # Every call of every tool comes through here, and pathlib costs more than the look at the file.
    return path if path.startswith("/") else str(Path(path).absolute())


def _obstacle(path: str) -> str | None:
    mode = Path(path).stat().st_mode
    if not stat.S_ISREG(mode):
        return "is not a file"
    if not os.access(path, os.X_OK):
        return f"may not be executed (mode {stat.S_IMODE(mode):04o})"
    return None


def _read_head(path: str) -> None:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return  # a file may be executable and yet not readable
    try:
        os.read(handle, _HEAD_BYTES)
    except OSError:
        return  # exec will say it better
    finally:
        os.close(handle)
