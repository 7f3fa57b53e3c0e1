"""The host's RDMA ports below /sys/class/infiniband: state, counters and the network device behind each."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

from npu_watchd.model.fabric import PortCounters, PortKey, RdmaPort, RdmaPorts
from npu_watchd.model.reading import Failure, FailureKind
from npu_watchd.parsers import sysfs_ib
from npu_watchd.parsers.lines import ParseError
from npu_watchd.sources.attributes import Attributes, resolve
from npu_watchd.sources.files import failure_of

_CLASS = "class/infiniband"
ERROR_COUNTERS = (
    *("counters/symbol_error", "counters/link_error_recovery", "counters/port_rcv_errors"),
    *("counters/port_xmit_discards", "counters/local_link_integrity_errors"),
    "counters/excessive_buffer_overrun_errors",
    *("hw_counters/out_of_sequence", "hw_counters/packet_seq_err", "hw_counters/local_ack_timeout_err"),
    "hw_counters/rx_icrc_encapsulated",
)
"""Those that field practice judges (gpud, sichek); the other sixty or so are node_exporter's."""
_DATA_COUNTERS = {"receive": "counters/port_rcv_data", "transmit": "counters/port_xmit_data"}
# InfiniBand counts data in words of four octets (IBTA 1.3, 16.1.3.5, PortXmitData); RoCE drivers do as well.
_OCTETS = 4
_DOWNED = "counters/link_downed"


@dataclass(slots=True)
class _Known:
    """What is remembered of one port while it stays."""

    folder: tuple[int, int]
    """Device and inode: another port in its place has another."""
    bad: dict[str, str] = field(default_factory=dict)
    """File → why it is not read again."""
    downed: bool = False
    """Its own link_downed was read: another counter in its place would look like links that went down."""


@dataclass(frozen=True, slots=True)
class _Found:
    """The folder of each port, and what is wrong with the devices whose ports could not be listed."""

    folders: Mapping[PortKey, str]
    unlisted: tuple[str, ...]


class RdmaTree:
    """Reads below `sysfs`, usually /sys. Every file on its own: one that fails costs one value, and is left alone then.

    exclude: patterns of RDMA devices that are not read at all: reading the counters of some physical functions floods
    the kernel's log. Any read may block where a driver hangs: call it through a Sweep, and tell that `reading`.
    """

    def __init__(self, sysfs: Path, exclude: Sequence[str] = ()) -> None:
        self._sysfs = sysfs
        self._exclude = tuple(exclude)
        self._known: dict[PortKey, _Known] = {}
        self.reading = ""
        """The file that is read at the moment."""

    def ports(self) -> RdmaPorts | Failure:
        """The facts of ibstat without ibstat. No port and no error: the kernel knows no RDMA device."""
        there = self._find()
        if isinstance(there, Failure):
            return RdmaPorts() if there.kind is FailureKind.MISSING else there
        found: list[RdmaPort] = []
        errors = list(there.unlisted)
        for key, folder in there.folders.items():
            own = self._texts(str(Path(folder).parent.parent), sysfs_ib.CA_FILES)
            files = (*sysfs_ib.PORT_FILES, sysfs_ib.GID_FILE, sysfs_ib.NETDEV_FILE)
            port, problems = sysfs_ib.port(key.rdma_device, key.port, own, self._texts(folder, files))
            if port.state is None and port.physical_state is None:
                errors.append(f"{key}: neither state nor phys_state can be read")
            else:
                found.append(port)
            errors.extend(problems)
        return RdmaPorts(tuple(found), tuple(errors))

    def counters(self) -> tuple[PortCounters, ...] | Failure:
        """What every port counts; () where there is none."""
        there = self._find()
        if isinstance(there, Failure):
            return () if there.kind is FailureKind.MISSING else there
        self._known = {
            key: known for key, folder in there.folders.items() if (known := self._knowledge(key, folder)) is not None
        }
        return tuple(self._counters(key, there.folders[key], known) for key, known in self._known.items())

    def _find(self) -> _Found | Failure:
        """Every port; a device that vanishes while we look is left out."""
        root = resolve(self._sysfs, _CLASS)
        devices = root if isinstance(root, Failure) else self._names(root)
        if isinstance(devices, Failure):
            return devices
        found: dict[PortKey, str] = {}
        unlisted: list[str] = []
        for device in devices:
            if excluded(device, self._exclude):
                continue
            real = resolve(self._sysfs, f"{_CLASS}/{device}")
            ports = real if isinstance(real, Failure) else self._names(f"{real}/ports")
            if not isinstance(ports, Failure):
                found |= {PortKey(device, int(name)): f"{real}/ports/{name}" for name in ports if name.isdecimal()}
            elif ports.kind is not FailureKind.MISSING:
                unlisted.append(f"{device}: {ports.detail}")
        return _Found(dict(sorted(found.items())), tuple(unlisted))

    def _names(self, folder: str) -> list[str] | Failure:
        self.reading = folder
        try:
            return sorted(os.listdir(folder))
        except OSError as error:
            return failure_of(folder, error)

    def _texts(self, folder: str, names: Iterable[str]) -> dict[str, str]:
        """The files that can be read."""
        return {name: text for name, text in self._read(folder, names).items() if isinstance(text, str)}

    def _read(self, folder: str, names: Iterable[str]) -> dict[str, str | Failure]:
        """By name; one may lead into a folder below, which is opened once for all that follow one another in it."""
        found: dict[str, str | Failure] = {}
        for below, group in groupby(names, key=lambda name: name.rpartition("/")[0]):
            files = list(group)
            self.reading = place = f"{folder}/{below}" if below else folder
            try:
                with Attributes(place) as attributes:
                    for name in files:
                        self.reading = f"{folder}/{name}"
                        found[name] = attributes.read(name.rpartition("/")[2])
            except OSError as error:
                found |= dict.fromkeys(files, failure_of(place, error))
        return found

    def _knowledge(self, key: PortKey, folder: str) -> _Known | None:
        """None where the port has just vanished."""
        try:
            status = Path(folder).stat()
        except OSError:
            return None
        identity = (status.st_dev, status.st_ino)
        known = self._known.get(key)
        return known if known is not None and known.folder == identity else _Known(identity)

    def _counters(self, key: PortKey, folder: str, known: _Known) -> PortCounters:
        names = [name for name in (*ERROR_COUNTERS, *_DATA_COUNTERS.values(), _DOWNED) if name not in known.bad]
        texts = self._read(folder, (sysfs_ib.NETDEV_FILE, *names))
        name_of_netdev = texts.pop(sysfs_ib.NETDEV_FILE)
        netdev = None if isinstance(name_of_netdev, Failure) else name_of_netdev.strip() or None
        values = {name: _value(name, text, known.bad) for name, text in texts.items()}
        downs = values.get(_DOWNED)
        if downs is not None:
            known.downed = True
        elif netdev is not None and not known.downed:
            downs = self._carrier_downs(netdev, known.bad)
        return PortCounters(
            key=key,
            errors={Path(name).name: value for name, value in _seen(values, ERROR_COUNTERS)},
            bytes={
                direction: value * _OCTETS
                for direction, name in _DATA_COUNTERS.items()
                for _, value in _seen(values, (name,))
            },
            link_downs=downs,
            netdev=netdev,
            failures=dict(known.bad),
        )

    def _carrier_downs(self, netdev: str, bad: dict[str, str]) -> int | None:
        name = f"net/{netdev}/carrier_down_count"
        if name in bad:
            return None
        folder = resolve(self._sysfs, f"class/net/{netdev}")
        text = folder if isinstance(folder, Failure) else self._read(folder, ("carrier_down_count",)).popitem()[1]
        return _value(name, text, bad)


def excluded(device: str, patterns: Iterable[str]) -> bool:
    """Whether the RDMA device is one that is not read."""
    return any(fnmatch.fnmatchcase(device, pattern) for pattern in patterns)


def _value(name: str, text: str | Failure, bad: dict[str, str]) -> int | None:
    """One counter. A file that is not there is none of this driver's; one that fails otherwise is remembered."""
    if isinstance(text, Failure):
        if text.kind is not FailureKind.MISSING:
            bad[name] = text.detail
        return None
    try:
        found = sysfs_ib.counter(text)
    except ParseError as error:
        bad[name] = error.problem
        return None
    if found is None:
        bad[name] = "the driver says N/A"
    return found


def _seen(values: Mapping[str, int | None], names: Iterable[str]) -> Iterator[tuple[str, int]]:
    return ((name, value) for name in names if (value := values.get(name)) is not None)
