"""One daemon a node: whoever has the lease of the folders may write there, and a second one does not start."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable
from pathlib import Path

NAME = "daemon.lock"


class OccupiedError(Exception):
    """Another daemon has it; the text names it."""


class Lease:
    """Held as long as the process lives, however it ends."""

    def __init__(self, folders: Iterable[Path]) -> None:
        self._folders = tuple(dict.fromkeys(folders))
        self._held: list[int] = []

    def take(self) -> tuple[str, ...]:
        """What could not be locked, for want of a folder that can be written: the daemon goes on without.

        Raises OccupiedError.
        """
        troubles = []
        for folder in self._folders:
            try:
                self._take(folder)
            except OSError as error:
                troubles.append(f"{error.filename or folder}: {error.strerror}")
        return tuple(troubles)

    def _take(self, folder: Path) -> None:
        folder.mkdir(mode=0o755, parents=True, exist_ok=True)
        path = folder / NAME
        opened = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pid = os.read(opened, 32).decode(errors="replace").strip() or "unknown"
            os.close(opened)
            cure = "stop it first (systemctl stop npu-watchd), or name other folders in [paths]"
            raise OccupiedError(f"{path}: another npu-watchd (pid {pid}) is at work; {cure}") from None
        except OSError:
            os.close(opened)
            raise
        self._held.append(opened)
        os.ftruncate(opened, 0)
        os.pwrite(opened, f"{os.getpid()}\n".encode(), 0)
