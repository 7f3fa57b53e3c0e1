"""What the checks of the host rest on, read once: files, limits of this process, the kernel's word on its clock."""

from __future__ import annotations

import ctypes
import re
import resource
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from npu_watchd.diagnose.preflight_host import Limited
from npu_watchd.model.reading import Failure, FailureKind, Run
from npu_watchd.model.versions import Installed
from npu_watchd.sources.files import Root
from npu_watchd.sources.sweep import Sweep
from npu_watchd.sources.versions import VersionTree

_SWEEP_S = 10.0
_TLS_S = 5.0
_TIME_ERROR = 5
"""What adjtimex(2) returns while nothing keeps the clock."""
_TIMEX_BYTES = 512
"""More than struct timex has on any architecture. modes, its first field, is 0: nothing is set."""
_TLS = re.compile(r"tls switch\[(?P<on>[01])\]")
_UNIFIED = re.compile(r"^0::(?P<path>/.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Facts:
    """All that is read. A Failure says why a file could not be."""

    installed: Installed | Failure
    hccn_conf: str | Failure
    reserved_ports: str | Failure
    ephemeral_ports: str | Failure
    limited: Limited
    clock: bool | None
    """Whether the kernel says that its clock is kept in time; None: it does not say."""


def gather(
    procfs: Path, sysfs: Path, etc: Path, ascend: Path, python: Iterable[str], monotonic: Callable[[], float]
) -> Facts | Failure:
    """In a thread of its own, as any of these files may hang. python: patterns of folders of packages."""
    tree = VersionTree(ascend, etc, (*python, *own_packages()))

    def look() -> Facts:
        return Facts(
            tree.look(),
            Root(etc).read_text("hccn.conf"),
            Root(procfs).read_text("sys/net/ipv4/ip_local_reserved_ports"),
            Root(procfs).read_text("sys/net/ipv4/ip_local_port_range"),
            limited(procfs, sysfs),
            clock_kept(),
        )

    return Sweep("preflight", look, monotonic, _SWEEP_S, lambda: tree.reading)()


def own_packages() -> tuple[str, ...]:
    """Folders of packages of the Python that runs this: in a container they are the job's."""
    return tuple(one for one in sys.path if one.endswith(("site-packages", "dist-packages")) and one.startswith("/"))


def limited(procfs: Path, sysfs: Path) -> Limited:
    """Of this process: run it as the job's user, where the job will run."""
    counts = [_soft(resource.RLIMIT_NPROC), _pids_left(procfs, sysfs)]
    known = [count for count in counts if count is not None]
    return Limited(_soft(resource.RLIMIT_NOFILE), min(known) if known else None)


def _soft(which: int) -> int | None:
    soft, _ = resource.getrlimit(which)
    return None if soft == resource.RLIM_INFINITY else soft


def _pids_left(procfs: Path, sysfs: Path) -> int | None:
    """Of cgroup v2; None without a limit, or where it is not readable."""
    text = Root(procfs).read_text("self/cgroup")
    match = None if isinstance(text, Failure) else _UNIFIED.search(text)
    if match is None:
        return None
    root, folder = Root(sysfs), f"fs/cgroup{match['path'].rstrip('/')}"
    most, now = root.read_text(f"{folder}/pids.max"), root.read_text(f"{folder}/pids.current")
    if isinstance(most, Failure) or isinstance(now, Failure):
        return None
    digits = most.strip().isdigit() and now.strip().isdigit()
    return max(0, int(most) - int(now)) if digits else None


def clock_kept() -> bool | None:
    """adjtimex(2) with nothing to set: 5 (TIME_ERROR) while nothing disciplines the clock; None where it refuses."""
    try:
        adjtimex = ctypes.CDLL(None, use_errno=True).adjtimex
        answer = int(adjtimex(ctypes.create_string_buffer(_TIMEX_BYTES)))
    except (OSError, AttributeError):
        return None
    return None if answer < 0 else answer != _TIME_ERROR


def tls_switches(run: Run, hccn_tool: str, devices: Iterable[str]) -> Mapping[str, bool | Failure | None]:
    """`hccn_tool -i N -tls -g`: device_id → whether it is on; None where the tool knows no such switch."""
    found: dict[str, bool | Failure | None] = {}
    for device_id in devices:
        answer = run((hccn_tool, "-i", device_id, "-tls", "-g"), _TLS_S)
        if isinstance(answer, Failure):
            found[device_id] = None if answer.kind is FailureKind.MISSING else answer
        else:
            match = _TLS.search(answer.text)
            busy = "busy" in answer.text or "occupied" in answer.text
            found[device_id] = Failure(FailureKind.EXIT, answer.text.strip()[:200]) if busy else None
            if match is not None:
                found[device_id] = match["on"] == "1"
    return found
