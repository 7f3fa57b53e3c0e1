"""A FUSE file system whose files never answer a read: whoever reads one waits in the kernel, out of reach of SIGKILL.

    python3 hungfs.py MOUNTPOINT

Needs root and /dev/fuse, and nothing else. It holds `hung` (a file) and `tool` (the same, executable). Ending this
process ends every wait with an error. Layouts: linux/fuse.h of protocol 7.31.
"""

from __future__ import annotations

import ctypes
import errno
import os
import signal
import struct
import sys

ROOT = 1
FILES = {b"hung": (2, 0o100644), b"tool": (3, 0o100755)}
MODES = {ROOT: 0o040755} | dict(FILES.values())

LOOKUP, FORGET, GETATTR, OPEN, READ, RELEASE, FLUSH, INIT, OPENDIR = 1, 2, 3, 14, 15, 18, 25, 26, 27
INTERRUPT, BATCH_FORGET = 36, 42
SILENT = {FORGET, READ, INTERRUPT, BATCH_FORGET}
"""Requests that get no answer. For READ that is the whole point."""

REQUEST = struct.Struct("<IIQQIIII")  # length, opcode, unique, inode, uid, gid, pid, padding
REPLY = struct.Struct("<IiQ")  # length, -errno, unique
ATTRIBUTES = struct.Struct("<6Q10I")
NODE = struct.Struct("<4Q2I")  # inode, generation, two validities in seconds, two in nanoseconds
OPENED = struct.Struct("<QII")  # handle, flags, padding
INITIALISED = struct.Struct("<4IHHIIHHI28x")

DIRECT_IO = 1
MS_NOSUID, MS_NODEV = 2, 4
PR_SET_PDEATHSIG = 1


def attributes(inode: int) -> bytes:
    size = 0 if inode == ROOT else 4096
    return ATTRIBUTES.pack(inode, size, 0, 0, 0, 0, 0, 0, 0, MODES[inode], 1, 0, 0, 0, 4096, 0)


def answer(opcode: int, inode: int, body: bytes) -> bytes | int:
    """The body of the reply, or an errno."""
    if opcode == INIT:
        return INITIALISED.pack(7, 31, 0, 0, 4, 4, 4096, 1, 1, 0, 0)
    if opcode == GETATTR:
        return struct.pack("<QII", 0, 0, 0) + attributes(inode)
    if opcode == LOOKUP:
        name = body.rstrip(b"\0")
        if name not in FILES:
            return errno.ENOENT
        found = FILES[name][0]
        return NODE.pack(found, 0, 0, 0, 0, 0) + attributes(found)
    if opcode in (OPEN, OPENDIR):
        return OPENED.pack(1, DIRECT_IO, 0)
    if opcode in (RELEASE, FLUSH):
        return b""
    return errno.ENOSYS


def main(mountpoint: str) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # a test run that is killed must not leave hung processes
    device = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0,allow_other".encode()
    if libc.mount(b"hungfs", mountpoint.encode(), b"fuse.hungfs", ctypes.c_ulong(MS_NOSUID | MS_NODEV), options):
        sys.exit(f"mount: {os.strerror(ctypes.get_errno())}")
    print("mounted", flush=True)
    while True:
        try:
            request = os.read(device, 1 << 20)
        except OSError:
            return  # unmounted
        _, opcode, unique, inode, *_ = REQUEST.unpack_from(request)
        if opcode in SILENT:
            continue
        reply = answer(opcode, inode, request[REQUEST.size :])
        body, error = (b"", -reply) if isinstance(reply, int) else (reply, 0)
        os.write(device, REPLY.pack(REPLY.size + len(body), error, unique) + body)


if __name__ == "__main__":
    main(sys.argv[1])
