"""What the host must have left for the ranks and their compile children, and whether its software fits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from npu_watchd.compatibility.matching import Standing, pairings
from npu_watchd.diagnose.preflight import Check, Document, Result, passed, unknown
from npu_watchd.limits import PREFLIGHT_LIMITS
from npu_watchd.model.reading import Failure
from npu_watchd.model.versions import Installed

_LIMITS: Mapping[str, float] = {limit.name: limit.default for limit in PREFLIGHT_LIMITS}
_GIB = 1024**3
_STANDINGS = {
    Standing.FITS: Result.PASSED,
    Standing.MISFIT: Result.FAILED,
    # That it is not in the table is no verdict on the software: no stop for every new release.
    Standing.UNLISTED: Result.WARNING,
}


@dataclass(frozen=True, slots=True)
class Limited:
    """What the process that asks may have."""

    open_files: int | None
    """RLIMIT_NOFILE; None: no limit."""
    tasks: int | Failure | None
    """The smaller of RLIMIT_NPROC and what its cgroup leaves (pids.max); None: neither limits it."""


def version_checks(installed: Installed | Failure) -> Iterator[Check]:
    """Each pair of parts that the table could know."""
    name = "versions"
    if isinstance(installed, Failure):
        yield unknown(name, installed.detail)
        return
    found = pairings(installed)
    for one in found:
        cure = None if one.standing is Standing.FITS else f"would fit: {one.would}" if one.would else None
        yield Check(name, _STANDINGS[one.standing], f"{one.part} and {one.beside}: {one.why}", cure)
    for failure in installed.failures.values():
        yield unknown(name, failure.detail)
    if not found and not installed.failures:
        parts = ["driver"] if installed.driver else []
        parts += ["firmware"] if installed.firmware else []
        parts += [*(f"CANN {one}" for one in installed.cann_versions), *installed.frameworks]
        have = f"only {', '.join(parts)}" if parts else "no version file"
        why = f"{have} found: nothing to compare"
        yield unknown(name, why, "run it where the job will run, in its container and environment")


def host_checks(document: Document, limited: Limited, environ: Mapping[str, str], devices: int) -> Iterator[Check]:
    """Memory, /dev/shm, tasks and files for one rank a device."""
    per_rank = _children(environ)
    children = per_rank * devices
    host = document["host"]
    if host is None:
        failure = document["blind"].get("host")
        yield unknown("memory", failure["detail"] if failure else "the host was not read")
    else:
        yield _memory(host, children)
        yield _shared_memory(host, devices)
        yield _tasks(host, limited, children, devices)
    yield _files(limited)


def _children(environ: Mapping[str, str]) -> int:
    text = environ.get("MS_BUILD_PROCESS_NUM", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 4 else int(_LIMITS["compile_children"])


def _memory(host: Document, children: int) -> Check:
    available, needed = host["memory_available_bytes"], children * _LIMITS["compile_child_bytes"]
    if available is None:
        return unknown("memory", "MemAvailable was not read", "grep MemAvailable /proc/meminfo")
    found = f"{available / _GIB:.0f} GiB available, {children} compile children may take {needed / _GIB:.0f} GiB"
    if available < needed:
        return Check("memory", Result.WARNING, found, "export MS_BUILD_PROCESS_NUM=8 (1 to 24), or end other jobs")
    return passed("memory", found)


def _shared_memory(host: Document, devices: int) -> Check:
    total, used = host["shm_total_bytes"], host["shm_used_bytes"]
    if total is None or used is None:
        return unknown("shared memory", "the file system of /dev/shm was not read", "df -h /dev/shm")
    needed, free = devices * _LIMITS["shm_bytes_per_device"], total - used
    found = f"{free / _GIB:.1f} GiB free in /dev/shm, {needed / _GIB:.0f} GiB wanted"
    if free < needed:
        return Check(
            "shared memory", Result.WARNING, found, "remove what is left in /dev/shm; docker run --shm-size=64g"
        )
    return passed("shared memory", found)


def _tasks(host: Document, limited: Limited, children: int, devices: int) -> Check:
    needed = children + devices * int(_LIMITS["tasks_per_device"])
    most, now = host["tasks_max"], host["tasks"]
    if most is None or now is None:
        return unknown("tasks", "pid_max or the number of tasks was not read", "cat /proc/sys/kernel/pid_max")
    if isinstance(limited.tasks, Failure):
        return unknown("tasks", limited.tasks.detail, "cat /sys/fs/cgroup/$(cut -d: -f3 /proc/self/cgroup)/pids.max")
    free = most - now if limited.tasks is None else min(most - now, limited.tasks)
    found = f"{free} more tasks may start, {needed} wanted"
    if free < needed:
        return Check("tasks", Result.WARNING, found, "raise ulimit -u, the cgroup's pids.max or kernel.pid_max")
    return passed("tasks", found)


def _files(limited: Limited) -> Check:
    needed = int(_LIMITS["open_files"])
    if limited.open_files is None:
        return passed("open files", "no limit")
    found = f"{limited.open_files} may be open, {needed} wanted"
    if limited.open_files < needed:
        return Check("open files", Result.WARNING, found, "ulimit -n 65535; in limits.conf, or docker run --ulimit")
    return passed("open files", found)


def clock_check(synchronised: bool | None, why: str) -> Check:
    """synchronised: by the kernel's own word (adjtimex(2)); None: it did not say, for the reason `why`."""
    if synchronised is None:
        return unknown("clock", why, "timedatectl")
    if not synchronised:
        cure = "systemctl enable --now chronyd: ranks whose clocks differ make logs that cannot be put together"
        return Check("clock", Result.WARNING, "the kernel says that nothing keeps it in time", cure)
    return passed("clock", "kept in time")


def tls_checks(switches: Mapping[str, bool | Failure | None]) -> Iterator[Check]:
    """hccn_tool -tls: ranks with the switch on and off do not find each other. None: this tool has no such switch."""
    failures = {name: one for name, one in switches.items() if isinstance(one, Failure)}
    known = {name: one for name, one in switches.items() if isinstance(one, bool)}
    if len(set(known.values())) > 1:
        on = ", ".join(name for name, one in known.items() if one)
        cure = "hccn_tool -i N -tls -s enable 0 for all, or 1 for all"
        yield Check("TLS", Result.FAILED, f"on for {on}, off for the others", cure)
    elif failures:
        name, failure = next(iter(failures.items()))
        yield unknown("TLS", f"device {name}: {failure.detail}", f"hccn_tool -i {name} -tls -g")
    elif known:
        yield passed("TLS", "on for all" if all(known.values()) else "off for all")
    elif switches:
        yield Check("TLS", Result.SKIPPED, "this hccn_tool has no TLS switch")
