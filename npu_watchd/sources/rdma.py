"""The host's RDMA ports below /sys/class/infiniband: state, counters and the network device behind each."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
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


class RdmaTree:
    """Reads below `sysfs`, usually /sys. Every file on its own: one that fails costs one value, and is left alone then.

    excluded: patterns of RDMA devices that are not read at all: reading the counters of some physical functions floods
    the kernel's log. Any read may block where a driver hangs: call it through a Sweep, and tell that `reading`.
    """

    def __init__(self, sysfs: Path, excluded: Sequence[str] = ()) -> None:
        self._sysfs = sysfs
        self._excluded = tuple(excluded)
        self._bad: dict[PortKey, dict[str, str]] = {}
        self.reading = ""
        """The port whose files are read at the moment."""

    def ports(self) -> RdmaPorts | Failure:
        """The facts of ibstat without ibstat. No port and no error: the kernel knows no RDMA device."""
        found: list[RdmaPort] = []
        errors: list[str] = []
        keys = self._keys()
        if isinstance(keys, Failure):
            return RdmaPorts() if keys.kind is FailureKind.MISSING else keys
        for key, folder in keys:
            own = self._texts(folder.parent.parent, sysfs_ib.CA_FILES)
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
        keys = self._keys()
        if isinstance(keys, Failure):
            return () if keys.kind is FailureKind.MISSING else keys
        found = tuple(self._counters(key, folder) for key, folder in keys)
        present = {port.key for port in found}
        self._bad = {key: bad for key, bad in self._bad.items() if key in present}
        return found

    def _keys(self) -> list[tuple[PortKey, Path]] | Failure:
        """Every port and its folder; a device that vanishes while we look is left out."""
        root = resolve(self._sysfs, _CLASS)
        if isinstance(root, Failure):
            return root
        found: list[tuple[PortKey, Path]] = []
        for device in _names(root):
            if any(fnmatch.fnmatchcase(device, pattern) for pattern in self._excluded):
                continue
            ports = Path(root, device, "ports")
            found += [(PortKey(device, int(name)), ports / name) for name in _names(ports) if name.isdecimal()]
        return sorted(found)

    def _texts(self, folder: Path, names: Sequence[str]) -> dict[str, str]:
        """The files that can be read, by name; a name may lead into a folder below."""
        texts: dict[str, str] = {}
        for name in names:
            text = self._read(folder / name)
            if isinstance(text, str):
                texts[name] = text
        return texts

    def _read(self, file: Path) -> str | Failure:
        self.reading = str(file)
        real = resolve(self._sysfs, os.path.relpath(file.parent, self._sysfs))
        if isinstance(real, Failure):
            return real
        try:
            with Attributes(real) as attributes:
                return attributes.read(file.name)
        except OSError as error:
            return failure_of(str(file), error)

    def _counters(self, key: PortKey, folder: Path) -> PortCounters:
        bad = self._bad.setdefault(key, {})

        def value(name: str, read: Callable[[str], int | None] = sysfs_ib.counter) -> int | None:
            return self._value(folder / name, name, bad, read)

        netdev = self._texts(folder, (sysfs_ib.NETDEV_FILE,)).get(sysfs_ib.NETDEV_FILE, "").strip() or None
        errors = {Path(name).name: value(name) for name in ERROR_COUNTERS}
        data = {direction: value(name) for direction, name in _DATA_COUNTERS.items()}
        downs = value(_DOWNED)
        if downs is None and netdev is not None:
            carrier = self._sysfs / "class/net" / netdev / "carrier_down_count"
            downs = self._value(carrier, f"net/{netdev}/carrier_down_count", bad, sysfs_ib.counter)
        return PortCounters(
            key=key,
            errors=dict(_known(errors)),
            bytes={direction: words * _OCTETS for direction, words in _known(data)},
            link_downs=downs,
            netdev=netdev,
            failures=dict(bad),
        )

    def _value(self, file: Path, name: str, bad: dict[str, str], read: Callable[[str], int | None]) -> int | None:
        """One counter. A file that is not there is none of this driver's; one that fails otherwise is remembered."""
        if name in bad:
            return None
        text = self._read(file)
        if isinstance(text, Failure):
            if text.kind is not FailureKind.MISSING:
                bad[name] = text.detail
            return None
        try:
            found = read(text)
        except ParseError as error:
            bad[name] = error.problem
            return None
        if found is None:
            bad[name] = "the driver says N/A"
        return found


def _known(values: Mapping[str, int | None]) -> Iterator[tuple[str, int]]:
    return ((name, value) for name, value in values.items() if value is not None)


def _names(folder: str | Path) -> list[str]:
    """The entries of a folder, sorted; none where it cannot be listed any more."""
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []
