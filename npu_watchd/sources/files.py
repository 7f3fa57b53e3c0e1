"""Text files below a root: /sys, /proc, or a folder that stands in for them."""

from __future__ import annotations

import os
import stat
from errno import EACCES, ENOENT, ENOTDIR, EPERM
from pathlib import Path

from npu_watchd.model.reading import Failure, FailureKind

_KINDS = {
    ENOENT: FailureKind.MISSING,
    ENOTDIR: FailureKind.MISSING,
    EACCES: FailureKind.DENIED,
    EPERM: FailureKind.DENIED,
}
"""Any other errno (EIO, EINVAL: a driver that cannot say) is EXIT: the file answered that it failed."""


class Root:
    """Reads below `path` and never outside of it, whatever a name or a symbolic link says."""

    def __init__(self, path: str | os.PathLike[str], max_bytes: int = 1024 * 1024) -> None:
        self._path = Path(path).absolute()
        self._max_bytes = max_bytes

    def read_text(self, rel: str) -> str | Failure:
        """The whole file, as UTF-8 with replacement characters.

        MISSING, DENIED, or EXIT with the kernel's words; UNPARSEABLE above the size limit: half a file is no answer.
        """
        name = self._path / rel.lstrip("/")
        try:
            real = os.path.realpath(name)  # Path.resolve would raise RuntimeError on a loop of links
            if not Path(real).is_relative_to(os.path.realpath(self._path)):
                return Failure(FailureKind.DENIED, f"{name}: leads out of {self._path}")
            data = _read(real, self._max_bytes)
        except (OSError, ValueError) as error:
            return failure_of(str(name), error)
        if len(data) > self._max_bytes:
            return Failure(FailureKind.UNPARSEABLE, f"{name}: larger than {self._max_bytes} bytes")
        return data.decode("utf-8", errors="replace")


def failure_of(name: str, error: OSError | ValueError) -> Failure:
    """What an error from the kernel means for a reading of the file `name`."""
    if not isinstance(error, OSError):  # a NUL in the name: no file can be called so
        return Failure(FailureKind.MISSING, f"{name!r}: {error}")
    return Failure(_KINDS.get(error.errno or 0, FailureKind.EXIT), f"{name}: {error.strerror}")


def open_regular(name: str) -> int:
    """A file descriptor of a regular file; a FIFO or a device, which could block or act, raises PermissionError."""
    fd = os.open(name, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    if stat.S_ISREG(os.fstat(fd).st_mode):
        return fd
    os.close(fd)
    raise PermissionError(EPERM, "not a regular file", name)


def _read(name: str, max_bytes: int) -> bytes:
    fd = open_regular(name)
    try:
        data = bytearray()
        while len(data) <= max_bytes and (chunk := os.read(fd, max_bytes + 1 - len(data))):
            data += chunk
        return bytes(data)
    finally:
        os.close(fd)
