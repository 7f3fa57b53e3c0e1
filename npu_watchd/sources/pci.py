"""PCIe links and AER counters of the NPUs, from sysfs: each device and every port between it and the CPU."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

from npu_watchd.model.pcie import SEVERITIES, AerCounts, PcieErrors, PcieLink
from npu_watchd.model.reading import Failure, FailureKind
from npu_watchd.parsers import pcie
from npu_watchd.parsers.lines import ParseError
from npu_watchd.sources.attributes import Attributes, resolve
from npu_watchd.sources.files import failure_of

V = TypeVar("V")

_DEVICES = "bus/pci/devices"
_LINK_FILES: Mapping[str, Callable[[str], float | None]] = {
    "current_link_speed": pcie.transfers_per_second,
    "max_link_speed": pcie.transfers_per_second,
    "current_link_width": pcie.lanes,
    "max_link_width": pcie.lanes,
}
# Nearly all files say what they said the last time, and what all the others say: nothing happened.
_aer = lru_cache(maxsize=256)(pcie.aer)

_NO_LINK = Failure(
    FailureKind.UNSUPPORTED,
    "the kernel tells no link speed of this device: it is not PCIe, or the kernel is before 4.13",
)
_NO_AER = Failure(
    FailureKind.UNSUPPORTED, "the kernel keeps no AER counters of this device: the firmware owns AER, or it has none"
)


@dataclass(frozen=True, slots=True)
class _Hop:
    """The link files of one device of a path: the value of each, or why there is none."""

    values: Mapping[str, float | None] = field(default_factory=dict)
    failures: Mapping[str, Failure] = field(default_factory=dict)

    @property
    def linked(self) -> bool:
        """False: it has none of the files, as a bridge that is not PCIe, so it has no part in the path's speed."""
        return bool(self.values) or any(failure.kind is not FailureKind.MISSING for failure in self.failures.values())

    @property
    def why(self) -> Failure:
        """One reason for all files that failed."""
        return _why(self.failures, _NO_LINK)


class PciTree:
    """Reads below `sysfs`, usually /sys. Every file on its own: one that fails costs one value.

    Any read may block where a driver hangs: call it through a Sweep, and tell that `reading`. `open_directory` is how
    the directory of a device is opened.
    """

    def __init__(self, sysfs: Path, open_directory: Callable[[str], Attributes] = Attributes) -> None:
        self._sysfs = sysfs
        self._open_directory = open_directory
        self.reading = ""
        """The device whose files are read at the moment."""

    def links(self, addresses: Iterable[str]) -> Mapping[str, PcieLink | Failure]:
        """By address as given. MISSING where the bus has no such device (any more)."""
        hops: dict[str, _Hop | Failure] = {}
        return {address: self._link(address, hops) for address in addresses}

    def errors(self, addresses: Iterable[str]) -> Mapping[str, PcieErrors | Failure]:
        """By address as given. UNSUPPORTED where the kernel counts no AER errors for that very device: no alarm."""
        seen: dict[str, PcieErrors | Failure] = {}
        return {address: self._errors(address, seen) for address in addresses}

    def path(self, address: str) -> tuple[str, ...] | Failure:
        """The addresses from the root port down to the device; `address` with its domain, in lower case."""
        steps = self._steps(address)
        return steps if isinstance(steps, Failure) else tuple(_name(step) for step in steps)

    def _steps(self, address: str) -> tuple[str, ...] | Failure:
        """The real directories, from the root port's down to the device's own."""
        if pcie.ADDRESS.fullmatch(address) is None:
            return Failure(FailureKind.UNPARSEABLE, f"{address!r} is no PCI address")
        self.reading = address
        real = resolve(self._sysfs, f"{_DEVICES}/{address}")
        if isinstance(real, Failure):
            if real.kind is FailureKind.MISSING:
                cure = "it fell off the bus, or its driver was removed; compare `lspci -d 19e5:`"
                return Failure(FailureKind.MISSING, f"{real.detail} ({cure})")
            return real
        parts = real.split("/")
        steps = tuple("/".join(parts[: n + 1]) for n, part in enumerate(parts) if pcie.ADDRESS.fullmatch(part))
        if not steps or _name(steps[-1]) != address:
            return Failure(FailureKind.UNPARSEABLE, f"{real} is no PCI device {address}")
        return steps

    def _link(self, address: str, seen: dict[str, _Hop | Failure]) -> PcieLink | Failure:
        steps = self._steps(address)
        if isinstance(steps, Failure):
            return steps
        for step in steps:
            if step not in seen:
                seen[step] = self._read(step, _hop)
        own = seen[steps[-1]]
        if isinstance(own, Failure):
            return own
        if not own.values:
            return own.why
        hops = {_name(step): hop for step in steps if isinstance(hop := seen[step], _Hop) and hop.linked}
        unread = {_name(step): hop for step in steps if isinstance(hop := seen[step], Failure)}
        failures = {f"{name}/{file}": why for name, hop in hops.items() for file, why in hop.failures.items()}

        def least(file: str) -> float | None:
            return None if unread else _least([hop.values.get(file) for hop in hops.values()])

        numa_node = self._read(steps[-1], _numa_node)
        return PcieLink(
            address=address,
            path=tuple(_name(step) for step in steps),
            transfers_per_second=own.values.get("current_link_speed"),
            max_transfers_per_second=own.values.get("max_link_speed"),
            lanes=_whole(own.values.get("current_link_width")),
            max_lanes=_whole(own.values.get("max_link_width")),
            path_transfers_per_second=least("current_link_speed"),
            path_max_transfers_per_second=least("max_link_speed"),
            path_lanes=_whole(least("current_link_width")),
            path_max_lanes=_whole(least("max_link_width")),
            numa_node=numa_node if isinstance(numa_node, int) else None,
            failures=failures | unread,
        )

    def _errors(self, address: str, seen: dict[str, PcieErrors | Failure]) -> PcieErrors | Failure:
        steps = self._steps(address)
        if isinstance(steps, Failure):
            return steps
        for step in steps:
            if step not in seen:
                seen[step] = self._read(step, _counters)
        own = seen[steps[-1]]
        if isinstance(own, Failure):
            return own
        ports = tuple(port for step in steps[:-1] if isinstance(port := seen[step], PcieErrors))
        if len(steps) == 1:
            return own
        far_end, far = _name(steps[-2]), seen[steps[-2]]
        failures = dict(own.failures)
        if isinstance(far, Failure) and far.kind is not FailureKind.UNSUPPORTED:
            failures[far_end] = far
        return replace(own, ports=ports, far_end=far_end, failures=failures)

    def _read(self, folder: str, read: Callable[[Attributes], V]) -> V | Failure:
        """What `read` makes of a directory; nothing of one that vanished meanwhile, since half of it is not a state."""
        self.reading = folder
        try:
            with self._open_directory(folder) as attributes:
                found = read(attributes)
                if attributes.still_there():
                    return found
        except OSError as error:
            return failure_of(folder, error)
        return Failure(
            FailureKind.MISSING, f"{folder}: vanished while it was read (unplugged, or removed by its driver)"
        )


def _hop(attributes: Attributes) -> _Hop:
    values: dict[str, float | None] = {}
    failures: dict[str, Failure] = {}
    for name, parse in _LINK_FILES.items():
        found = _parsed(attributes, name, parse)
        if isinstance(found, Failure):
            failures[name] = found
        else:
            values[name] = found
    return _Hop(values, failures)


def _counters(attributes: Attributes) -> PcieErrors | Failure:
    found: dict[str, AerCounts] = {}
    failures: dict[str, Failure] = {}
    for severity in SEVERITIES:
        report = _parsed(attributes, f"aer_dev_{severity}", _aer)
        if isinstance(report, Failure):
            failures[f"aer_dev_{severity}"] = report
            continue
        counts = getattr(report, severity)
        if counts is None:
            words = f"{attributes.path}/aer_dev_{severity}: holds the counters of another severity"
            failures[f"aer_dev_{severity}"] = Failure(FailureKind.UNPARSEABLE, words)
        else:
            found[severity] = counts
    if not found:
        return _why(failures, _NO_AER)
    return PcieErrors(
        address=_name(attributes.path),
        correctable=found["correctable"].total if "correctable" in found else None,
        nonfatal=found["nonfatal"].total if "nonfatal" in found else None,
        fatal=found["fatal"].total if "fatal" in found else None,
        counts={
            severity: {name: count for name, count in counts.counts.items() if count}
            for severity, counts in found.items()
        },
        failures=failures,
    )


def _numa_node(attributes: Attributes) -> int | None:
    text = attributes.read("numa_node")
    if isinstance(text, Failure) or not text.strip().isdecimal():
        return None
    return int(text)


def _parsed(attributes: Attributes, name: str, parse: Callable[[str], V]) -> V | Failure:
    text = attributes.read(name)
    if isinstance(text, Failure):
        return text
    try:
        return parse(text)
    except ParseError as error:
        return Failure(error.kind, f"{attributes.path}/{name}: {error}")


def _why(failures: Mapping[str, Failure], absent: Failure) -> Failure:
    """One reason for all files: `absent` where none exists, else the first that says more."""
    return next((failure for failure in failures.values() if failure.kind is not FailureKind.MISSING), absent)


def _least(values: list[float | None]) -> float | None:
    """The smallest; None where one is not known, since that one may be the smallest."""
    known = [value for value in values if value is not None]
    return min(known) if known and len(known) == len(values) else None


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)


def _name(folder: str) -> str:
    return folder.rpartition("/")[2]
