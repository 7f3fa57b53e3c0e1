"""What the tools around PCIe print: pcm-pcie, perf stat, lspci, and our own DCMI helper.

The field names are the keys of `npu-watchd parse` (docs/parse_pcie.md): a contract.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PcieSocketLoad:
    """One row of `pcm-pcie -csv`: all PCIe devices of one CPU socket together; no split by device exists."""

    socket: int
    sample: int
    """0 for the first interval of the output."""
    read_bytes: int | None
    """Read by devices from memory within the interval (`PCIe Rd (B)`): what they receive. None without option -B."""
    write_bytes: int | None
    """Written by devices to memory (`PCIe Wr (B)`): what they transmit."""
    events: Mapping[str, int]
    """By PCM's name of the event, which differs by CPU generation; each is one transfer of up to 64 bytes."""


@dataclass(frozen=True, slots=True)
class PcmTable:
    """All rows of `pcm-pcie -csv`."""

    sockets: tuple[PcieSocketLoad, ...]


@dataclass(frozen=True, slots=True)
class PerfCounter:
    """One counter of `perf stat -x` or `perf stat -j`."""

    event: str
    """As given to `perf stat -e`."""
    pmu: str | None
    """`hisi_pcie0_core0` of `hisi_pcie0_core0/rx_mwr_flux,bdf=0x3900/`; None for an event without one."""
    terms: Mapping[str, str | None]
    """What stands between the slashes: name → value, None where a name stands alone."""
    value: float | None
    """As perf prints it: scaled up where the counter had to share the hardware. None: see `absence`."""
    absence: str | None
    """`not supported` or `not counted`: perf's word where there is no value."""
    enabled_s: float | None
    """The time that `value` is about; None where it did not count."""
    running_ratio: float | None
    """Share of that time in which the hardware counted; below 1 the value is an estimate."""


@dataclass(frozen=True, slots=True)
class PerfStat:
    """All of one `perf stat`."""

    counters: tuple[PerfCounter, ...]


@dataclass(frozen=True, slots=True)
class LspciDevice:
    """One device of `lspci` in any verbosity; what that verbosity does not print is None."""

    address: str | None
    """Lower case with domain (0000 where lspci leaves it out). None: the text begins in the middle of a device."""
    class_name: str | None
    name: str | None
    vendor_id: str | None
    """Four hex digits; with -nn only."""
    device_id: str | None
    answers: bool
    """False: its configuration space reads as ones (`(rev ff)`), as of a device that fell off the bus."""
    transfers_per_second: float | None = None
    """LnkSta."""
    max_transfers_per_second: float | None = None
    """LnkCap."""
    lanes: int | None = None
    max_lanes: int | None = None
    speed_judgement: str | None = None
    """lspci's word on the speed against the device's own maximum: ok, downgraded, overdriven, strange."""
    width_judgement: str | None = None


@dataclass(frozen=True, slots=True)
class LspciList:
    """All of one `lspci`."""

    devices: tuple[LspciDevice, ...]


@dataclass(frozen=True, slots=True)
class DcmiBandwidth:
    """One answer of `dcmi_get_pcie_link_bandwidth_info`: averages over the window, as the device sees the directions.

    Meaning by the DCMI manual: tx is what the device sends. npu-exporter's help texts say it the other way round.
    Posted are writes, non-posted read requests (which carry no data), completions the data that a read asked for.
    """

    tx_posted_bytes_per_second: float
    """The device writes to the host."""
    tx_non_posted_bytes_per_second: float
    """The device asks the host for data."""
    tx_completion_bytes_per_second: float
    """The device answers reads of the host."""
    rx_posted_bytes_per_second: float
    """The host writes to the device."""
    rx_non_posted_bytes_per_second: float
    rx_completion_bytes_per_second: float
    """The host answers reads of the device."""
    window_s: float
