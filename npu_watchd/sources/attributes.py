"""The attribute files of one kernel object: a directory of sysfs, opened once and read file by file.

The directory is held open, so what is read belongs to one object even when it is unplugged and another takes its
name in the middle; and a file costs an open and a read, not a walk along its path.
"""

from __future__ import annotations

import os
import stat
from errno import ELOOP, EPERM
from pathlib import Path
from types import TracebackType
from typing import Self

from npu_watchd.model.reading import Failure, FailureKind
from npu_watchd.sources.files import failure_of

_PAGE_BYTES = 4096
"""The kernel hands out an attribute of text as one page at most."""


class Attributes:
    """Reads files of `path`, which the caller has resolved; use as a context, since it holds a file descriptor."""

    def __init__(self, path: str, max_bytes: int = 64 * 1024) -> None:
        """Raises OSError where the directory cannot be opened."""
        self.path = path
        self._max_bytes = max_bytes
        self._fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._fd)

    def read(self, name: str) -> str | Failure:
        """The whole file. MISSING, DENIED, or EXIT with the kernel's words; UNPARSEABLE above the size limit."""
        shown = f"{self.path}/{name}"
        try:
            data = self._read(name)
        except (OSError, ValueError) as error:
            if isinstance(error, OSError) and error.errno == ELOOP:
                return Failure(FailureKind.DENIED, f"{shown}: is a link, which no attribute is")
            return failure_of(shown, error)
        if len(data) > self._max_bytes:
            return Failure(FailureKind.UNPARSEABLE, f"{shown}: larger than {self._max_bytes} bytes")
        return data.decode("utf-8", errors="replace")

    def still_there(self) -> bool:
        """Whether the object is still the one of that path: false after a hot unplug, also when another came since."""
        try:
            return os.path.samestat(os.fstat(self._fd), Path(self.path).stat())
        except OSError:
            return False

    def _read(self, name: str) -> bytes:
        flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY | os.O_NOFOLLOW
        fd = os.open(name, flags, dir_fd=self._fd)
        try:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise PermissionError(EPERM, "not a regular file", name)
            data = os.read(fd, _PAGE_BYTES)
            while data and len(data) <= self._max_bytes:
                chunk = os.read(fd, self._max_bytes + 1 - len(data))
                if not chunk:
                    break
                data += chunk
            return data
        finally:
            os.close(fd)


def resolve(root: Path, rel: str) -> str | Failure:
    """The real path of `rel` below `root`, whatever links lead there; DENIED where it leads out of the root."""
    name = root / rel.lstrip("/")
    try:
        real = os.path.realpath(name, strict=True)
        if not Path(real).is_relative_to(os.path.realpath(root)):
            return Failure(FailureKind.DENIED, f"{name}: leads out of {root}")
    except (OSError, ValueError) as error:
        return failure_of(str(name), error)
    return real
