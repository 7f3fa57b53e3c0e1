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
_REFUSALS = re.compile(r"usage|help|invalid|unrecogni[sz]ed|unknown|not support", re.IGNORECASE)
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
    files, left = _soft(resource.RLIMIT_NOFILE), _pids_left(procfs, sysfs)
    if isinstance(left, Failure):
        return Limited(files, left)
    known = [count for count in (_soft(resource.RLIMIT_NPROC), left) if count is not None]
    return Limited(files, min(known, default=None))


def _soft(which: int) -> int | None:
    soft, _ = resource.getrlimit(which)
    return None if soft == resource.RLIM_INFINITY else soft


def _pids_left(procfs: Path, sysfs: Path) -> int | Failure | None:
    """Of cgroup v2; None without a limit (`max`, or a cgroup that counts no tasks and so has no such file)."""
    text = Root(procfs).read_text("self/cgroup")
    if isinstance(text, Failure):
        return text
    match = _UNIFIED.search(text)
    if match is None:
        return None
    root, folder = Root(sysfs), f"fs/cgroup{match['path'].rstrip('/')}"
    most, now = root.read_text(f"{folder}/pids.max"), root.read_text(f"{folder}/pids.current")
    if isinstance(most, Failure):
        return None if most.kind is FailureKind.MISSING else most
    if most.strip() == "max":
        return None
    if isinstance(now, Failure):
        return now
    if not (most.strip().isdigit() and now.strip().isdigit()):
        return Failure(FailureKind.UNPARSEABLE, f"{folder}: pids.max {most[:40]!r}, pids.current {now[:40]!r}")
    return max(0, int(most) - int(now))


def clock_kept() -> bool | None:
    """adjtimex(2) with nothing to set: 5 (TIME_ERROR) while nothing disciplines the clock; None where it refuses."""
    try:
        adjtimex = ctypes.CDLL(None, use_errno=True).adjtimex
        answer = int(adjtimex(ctypes.create_string_buffer(_TIMEX_BYTES)))
    except (OSError, AttributeError):
        return None
    return None if answer < 0 else answer != _TIME_ERROR


def tls_switches(run: Run, hccn_tool: str, devices: Iterable[str]) -> Mapping[str, bool | Failure | None]:
    """`hccn_tool -i N -tls -g`: device_id → whether it is on; None where the tool knows no such switch.

    Empty where there is no hccn_tool. How a tool without the switch refuses is known of none: any of _REFUSALS.
    """
    found: dict[str, bool | Failure | None] = {}
    for device_id in devices:
        answer = run((hccn_tool, "-i", device_id, "-tls", "-g"), _TLS_S)
        if isinstance(answer, Failure):
            if answer.kind is not FailureKind.MISSING:
                found[device_id] = answer
        elif (match := _TLS.search(answer.text)) is not None:
            found[device_id] = match["on"] == "1"
        elif _REFUSALS.search(answer.text):
            found[device_id] = None
        else:
            found[device_id] = Failure(FailureKind.UNPARSEABLE, answer.text.strip()[:200] or "no word about TLS")
    return found
