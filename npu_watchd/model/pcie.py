"""A device's way to the CPU over PCIe: the link, its errors and its load."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from npu_watchd.model.ids import DeviceKey
from npu_watchd.model.reading import Failure

SEVERITIES = ("correctable", "nonfatal", "fatal")

# Bits that arrive for a bit that is sent. 8b/10b up to 5 GT/s, 128b/130b up to 32 GT/s: PCI Express Base 3.0, 4.2, as
# in the kernel's PCIE_SPEED2MBS_ENC (drivers/pci/pci.h). 64 GT/s (PAM4) has no line code, but sends flits of 256 bytes,
# of which 236 are packets and the rest link control, CRC and FEC (Base 6.0, 4.2.3); the kernel leaves that share out.
_ENCODING = {
    2.5e9: 8 / 10,
    5e9: 8 / 10,
    8e9: 128 / 130,
    16e9: 128 / 130,
    32e9: 128 / 130,
    64e9: 236 / 256,
}


def capacity_bytes_per_second(transfers_per_second: float | None, lanes: int | None) -> float | None:
    """What a link carries each way: speed × width × encoding. Packet headers count as carried.

    None where speed or width is not known, or the speed is of no PCIe generation whose encoding we know.
    """
    if transfers_per_second is None or lanes is None:
        return None
    encoding = _ENCODING.get(transfers_per_second)
    return None if encoding is None else transfers_per_second * lanes * encoding / 8


@dataclass(frozen=True, slots=True)
class PcieLink:
    """The link of one device, and the narrowest of all links from it up to its root port.

    Source: `{current,max}_link_{speed,width}` in sysfs, of every device on the path. None: the kernel does not know it
    (`Unknown`, width 0 or 255), or the file could not be read; then `failures` says why.
    """

    address: str
    """The device's PCI address, lower case."""
    path: tuple[str, ...]
    """All addresses from the root port down to the device itself."""
    transfers_per_second: float | None = None
    """Of the device's own link, now; 16 GT/s is 16e9."""
    max_transfers_per_second: float | None = None
    """What the device itself is capable of, whatever it is plugged into."""
    lanes: int | None = None
    max_lanes: int | None = None
    path_transfers_per_second: float | None = None
    """The smallest present speed on the path; None where one of them is not known."""
    path_max_transfers_per_second: float | None = None
    """The smallest maximum on the path, so what the path can be expected to do; None where one is not known."""
    path_lanes: int | None = None
    path_max_lanes: int | None = None
    numa_node: int | None = None
    """The NUMA node that the device is close to, which on Intel is the socket; None where the kernel says -1."""
    failures: Mapping[str, Failure] = field(default_factory=dict)
    """`ADDRESS/FILE` → why it could not be read or trusted; `ADDRESS` where that is so of all its files."""

    @property
    def narrow(self) -> bool | None:
        """Fewer lanes than the path can have: lanes do not come and go with the load, so this is a fault when idle too.

        None: too little is known to say.
        """
        return _below(self.lanes, self.path_lanes, self.path_max_lanes)

    @property
    def slow(self) -> bool | None:
        """Slower than the path can be: also what power management does to an idle link, so alone no fault."""
        return _below(self.transfers_per_second, self.path_transfers_per_second, self.path_max_transfers_per_second)

    def degraded(self, busy: bool | None) -> bool | None:
        """Whether the link is worse than the path allows: the width always counts, the speed only under load.

        `busy` None: nobody knows whether the device works, so the speed proves nothing. Returns None where the width
        (or, under load, the speed) is not known and nothing else is wrong.
        """
        faults = (self.narrow, self.slow) if busy else (self.narrow,)
        if True in faults:
            return True
        return None if None in faults else False

    @property
    def capacity_bytes_per_second(self) -> float | None:
        """Of the device's own link as it was read, each way; None where speed or width is not known."""
        return capacity_bytes_per_second(self.transfers_per_second, self.lanes)

    @property
    def awake_capacity_bytes_per_second(self) -> float | None:
        """The same once power management has given the link its full speed back; the lanes stay what they are."""
        speeds = [speed for speed in (self.transfers_per_second, self.path_max_transfers_per_second) if speed]
        return capacity_bytes_per_second(max(speeds, default=None), self.lanes)


def _below(device: float | None, path: float | None, limit: float | None) -> bool | None:
    if limit is None:
        return None
    if device is not None and device < limit:
        return True
    if path is not None and path < limit:
        return True
    return False if device is not None and path is not None else None


@dataclass(frozen=True, slots=True)
class AerCounts:
    """One file `aer_dev_*`: how often which error was seen by one device since it was enumerated."""

    severity: str
    """One of SEVERITIES."""
    total: int
    """`TOTAL_ERR_*`: messages sent, not the sum of `counts`; one message may carry several errors."""
    counts: Mapping[str, int]
    """By the kernel's name of the error: RxErr, BadTLP, Timeout, …"""


@dataclass(frozen=True, slots=True)
class AerReport:
    """What was in one or more files `aer_dev_*` of one device; None: that file was not there."""

    correctable: AerCounts | None = None
    nonfatal: AerCounts | None = None
    fatal: AerCounts | None = None


@dataclass(frozen=True, slots=True)
class PcieErrors:
    """The AER totals of one device, and of the ports between it and the CPU.

    An error of a link is counted by the end that sees it, which is as often the port above as the device itself
    (linux, drivers/pci/pcie/aer.c). None: that file could not be read; `failures` says why.
    """

    address: str
    correctable: int | None = None
    nonfatal: int | None = None
    fatal: int | None = None
    counts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Severity → name of the error → count, without the zeros."""
    ports: tuple[PcieErrors, ...] = ()
    """From the root port downwards; ports without AER are left out. All but `far_end` may carry other devices too."""
    far_end: str | None = None
    """The address of the port at the other end of the device's own link; None for a device without one."""
    failures: Mapping[str, Failure] = field(default_factory=dict)
    """File, or the address of the far end → why it could not be read or trusted."""

    def both_ends(self, severity: str) -> int | None:
        """What the two ends of the device's own link have counted; an end without AER counts nothing.

        None where an end that counts could not be read: a sum without it would look like a counter that was reset.
        """
        if self.far_end in self.failures:
            return None
        counts = [getattr(end, severity) for end in (self, *self.ports) if end is self or end.address == self.far_end]
        return None if None in counts else sum(counts)


@dataclass(frozen=True, slots=True)
class AerLine:
    """One line of the kernel's log about a PCIe error."""

    address: str
    """The device whose error it is: an NPU, or a port above one. Lower case, with its domain."""
    severity: str | None
    """One of SEVERITIES; None where the line does not say (firmware-first reports)."""
    what: str
    """The kernel's words: layer and agent, or the status bits."""
    announces: bool
    """True for the port's short notice of a message that it got: the error itself comes in a line of its own, so
    whoever counts errors leaves notices out."""
    port: str | None = None
    """The port that printed the notice; None for the error itself."""


def devices_below(address: str, paths: Mapping[DeviceKey, tuple[str, ...]]) -> tuple[DeviceKey, ...]:
    """The devices that an error at `address` concerns: the one with that address, or all below that port."""
    return tuple(sorted(key for key, path in paths.items() if address in path))


@dataclass(frozen=True, slots=True)
class PcieLoad:
    """How much went over one device's link, measured over `window_s`. Directions as the device sees them.

    None: this backend does not measure that direction. The ratios are None until `against` a link was given.
    """

    receive_bytes_per_second: float | None
    """Host to device: what the host writes into it, and the answers to the device's own reads."""
    transmit_bytes_per_second: float | None
    """Device to host."""
    window_s: float
    source: str
    """dcmi or perf."""
    receive_ratio: float | None = None
    """0..1 of what the device's link can carry that way; above 1 only by the error of the measurement."""
    transmit_ratio: float | None = None

    def against(self, link: PcieLink | None, busy: bool | None) -> PcieLoad:
        """The same with the ratios to what the link can carry; None where that is not known.

        A link is read at another moment than its load, and power management slows it when idle. So its present speed
        only counts when the device is `busy` and the load fits into it; else the speed that the path allows.
        """
        if link is None:
            return self
        now, awake = link.capacity_bytes_per_second, link.awake_capacity_bytes_per_second
        most = max(self.receive_bytes_per_second or 0.0, self.transmit_bytes_per_second or 0.0)
        capacity = now if busy and now is not None and most <= now else awake
        return replace(
            self,
            receive_ratio=_ratio(self.receive_bytes_per_second, capacity),
            transmit_ratio=_ratio(self.transmit_bytes_per_second, capacity),
        )


@dataclass(frozen=True, slots=True)
class SocketPcieLoad:
    """What all PCIe devices of one CPU socket together move to and from memory, as these devices see the directions.

    No split by device exists: NICs and disks are in it. Source: `pcm-pcie -csv -B` of Intel PCM. None: no such column.
    """

    socket: int
    """As PCM counts them, from 0."""
    receive_bytes_per_second: float | None
    """Memory to device: what the devices read (`PCIe Rd (B)`)."""
    transmit_bytes_per_second: float | None
    """Device to memory: what the devices write (`PCIe Wr (B)`)."""
    window_s: float


def _ratio(value: float | None, capacity: float | None) -> float | None:
    return None if value is None or capacity is None else value / capacity
