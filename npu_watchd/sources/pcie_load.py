"""How much goes over the NPUs' PCIe links: three ways to ask, one of them for each kind of node. Opt-in, as each costs.

| way | who has it | one reading costs | and sees |
|---|---|---|---|
| dcmi | 910B with its driver | 40 ms of CPU; 100 ms of waiting a device, in turn | each NPU, grain 1 GB/s |
| perf | Kunpeng, hisi_pcie_pmu | 10 ms of CPU; 500 ms of waiting; 2 of a unit's 8 counters | each NPU's requests |
| pcm | Intel, MSRs | 1 s of waiting and its start, in which it sets up the uncore counters | a socket (socket_load) |

Two of the same kind on one node get in each other's way: a unit's counters are shared out (perf), or taken over (PCM).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from npu_watchd.model.ids import DeviceKey
from npu_watchd.model.pcie import PcieLoad
from npu_watchd.model.pcie_tools import DcmiBandwidth, PerfCounter
from npu_watchd.model.reading import Failure, FailureKind, Output
from npu_watchd.parsers import dcmi, perf_stat
from npu_watchd.parsers.lines import ParseError, lines_of, quoted
from npu_watchd.sources.attributes import Attributes
from npu_watchd.sources.files import failure_of

PERF_WINDOW_S = 0.5
_MOST_UNREAD_SHOWN = 3

_UNITS = "bus/event_source/devices"
_UNIT = re.compile(r"hisi_pcie\d+_core\d+")
# Event codes rather than names: 0x1005 has one since Linux 6.9 only, and was called rx_mrd_flux before 6.2, by mistake.
_FROM_DEVICE = "0x0104"  # rx_mwr_flux: memory writes that the root port receives
_TO_DEVICE = "0x1005"  # tx_cpl_flux: what it sends in answer to the device's reads
# A count of *_flux is a double word: libkperf of openEuler multiplies by 4, the kernel's documentation gives no unit.
_BYTES_PER_COUNT = 4


class Backend(Enum):
    """Which way a node has."""

    DCMI = "dcmi"
    PERF = "perf"
    PCM = "pcm"


@dataclass(frozen=True, slots=True)
class PcieUnit:
    """One `hisi_pcie<sicl>_core<core>`: counts for the root ports on its bus."""

    name: str
    bus: int | Failure
    """A Failure: its file could not be read, so that it may count for any port."""


@dataclass(frozen=True, slots=True)
class Available:
    """What a node has to measure with."""

    dcmi_chips: bool
    """At least one NPU whose driver measures its own bandwidth (910B)."""
    units: tuple[PcieUnit, ...]
    perf: bool
    """The command is there."""
    intel: bool
    pcm: bool
    """The command is there."""


def choose(has: Available) -> Backend | Failure:
    """The best way that this node has: by device rather than by socket. UNSUPPORTED, saying what is missing."""
    if has.dcmi_chips:
        return Backend.DCMI
    if has.units and has.perf:
        return Backend.PERF
    if has.intel and has.pcm:
        return Backend.PCM
    if has.units:
        return Failure(FailureKind.UNSUPPORTED, "PCIe load: this Kunpeng has the counters, but no perf; install it")
    if has.intel:
        words = "PCIe load: these NPUs do not measure it; pcm-pcie would, by socket only: install it"
        return Failure(FailureKind.UNSUPPORTED, words)
    words = (
        "PCIe load: no 910B with DCMI, no hisi_pcie unit (Kunpeng: load hisi_pcie_pmu) and no Intel CPU on this node"
    )
    return Failure(FailureKind.UNSUPPORTED, words)


def units(sysfs: Path) -> tuple[PcieUnit, ...] | Failure:
    """The PCIe units that the kernel has registered; () where there are none. Call it through a Sweep."""
    folder = sysfs / _UNITS
    try:
        names = sorted(entry.name for entry in folder.iterdir() if _UNIT.fullmatch(entry.name))
    except OSError as error:
        failure = failure_of(str(folder), error)
        return () if failure.kind is FailureKind.MISSING else failure
    return tuple(PcieUnit(name, _bus_of(folder / name)) for name in names)


def _bus_of(folder: Path) -> int | Failure:
    try:
        with Attributes(os.path.realpath(folder)) as attributes:  # Path.resolve would raise RuntimeError on a loop
            text = attributes.read("bus")
    except OSError as error:
        return failure_of(str(folder), error)
    if isinstance(text, Failure):
        return text
    if re.fullmatch(r"0x[0-9a-f]{1,2}", text.strip()) is None:
        return Failure(FailureKind.UNPARSEABLE, f"{folder}/bus: {quoted(text)} is no PCI bus")
    return int(text, 16)


def is_intel(cpuinfo: str) -> bool:
    """From /proc/cpuinfo."""
    return re.search(r"^vendor_id\s*:\s*GenuineIntel$", cpuinfo, re.MULTILINE) is not None


def dcmi_argv(python: str, window_ms: int = 100) -> tuple[str, ...]:
    """`python` is sys.executable. Isolated, so that nothing in the environment decides what the helper imports."""
    return (python, "-I", "-m", "npu_watchd.sources.dcmi_helper", "--window-ms", str(window_ms))


def perf_argv(
    perf: str, paths: Mapping[DeviceKey, tuple[str, ...]], has: Iterable[PcieUnit], window_s: float = PERF_WINDOW_S
) -> tuple[str, ...] | Failure:
    """`perf stat` for all devices at once; `paths` from the root port down, as PcieLink.path.

    Several units may share a bus: each device is asked of all of them, and those that do not own its port answer
    `<not supported>`. UNSUPPORTED where no unit watches any of the devices; where one that cannot be read might, the
    Failure of that one.
    """
    known = tuple(has)
    watching = [(unit.name, unit.bus) for unit in known if not isinstance(unit.bus, Failure)]
    events = [
        f"{name}/event={code},bdf={bdf}/"
        # Chips of one card may share an address, and a count that is asked for twice comes twice.
        for path in dict.fromkeys(paths.values())
        if (bdf := _bdf(path[-1])) is not None
        for name, bus in watching
        if bus == _bus(path[0])
        for code in (_FROM_DEVICE, _TO_DEVICE)
    ]
    if not events:
        return _unwatched("PCIe load: no hisi_pcie unit watches the root ports of the NPUs", _unread(known))
    # -x with a character that no event holds; --log-fd 1, since perf prints counters to stderr.
    return (perf, "stat", "-a", "-x", ";", "--log-fd", "1", "-e", ",".join(events), "--", "sleep", f"{window_s:g}")


def _bus(address: str) -> int:
    return int(address.split(":")[1], 16)


def _bdf(address: str) -> str | None:
    """`bdf=` of the unit's driver, which has no place for a domain; None outside of domain 0."""
    domain, bus, rest = address.split(":")
    device, function = rest.split(".")
    return None if int(domain, 16) else f"{int(bus, 16) << 8 | int(device, 16) << 3 | int(function):#06x}"


def _unread(has: Iterable[PcieUnit]) -> dict[str, Failure]:
    return {unit.name: unit.bus for unit in has if isinstance(unit.bus, Failure)}


def _unwatched(words: str, unread: Mapping[str, Failure]) -> Failure:
    """That nobody counts for a device is only sure where every unit could be read."""
    if not unread:
        return Failure(FailureKind.UNSUPPORTED, words)
    why = "; ".join(f"{name}: {failure.detail}" for name, failure in list(unread.items())[:_MOST_UNREAD_SHOWN])
    kind = next(iter(unread.values())).kind
    return Failure(kind, f"{words}, but {len(unread)} of them could not be read, which may: {why}")


Loads = Mapping[DeviceKey, PcieLoad | Failure]


def dcmi_loads(answer: Output, devices: Iterable[DeviceKey]) -> Loads | Failure:
    """What the helper said of each device. A device sends writes and answers; read requests carry no data.

    A Failure where it said nothing as a whole: library missing, driver refusing, helper ended by a signal.
    """
    if answer.exit_code < 0:
        asked = answer.stderr.split()
        where = f" while it asked card/chip {asked[-1][:20]}" if asked else ""
        words = f"the driver's library ended the DCMI helper by signal {-answer.exit_code}{where}"
        return Failure(FailureKind.EXIT, f"{words}; check `dmesg` and the driver's version")
    try:
        report = dcmi.parse(answer.text)
    except ParseError as error:
        return tool_failure(error, answer, "the DCMI helper")
    silent = Failure(FailureKind.EXIT, "the driver does not list this device")
    return {key: _dcmi_load(report.devices.get(key) or report.cards.get(key.npu, silent)) for key in devices}


def _dcmi_load(said: DcmiBandwidth | Failure) -> PcieLoad | Failure:
    if isinstance(said, Failure):
        return said
    return PcieLoad(
        receive_bytes_per_second=said.rx_posted_bytes_per_second + said.rx_completion_bytes_per_second,
        transmit_bytes_per_second=said.tx_posted_bytes_per_second + said.tx_completion_bytes_per_second,
        window_s=said.window_s,
        source="dcmi",
    )


def perf_loads(
    answer: Output, paths: Mapping[DeviceKey, tuple[str, ...]], has: Iterable[PcieUnit] = ()
) -> Loads | Failure:
    """What perf counted of each device's own requests. Stores of the CPU into the device are not among them.

    has: as it was given to `perf_argv`, for the words about a device that nobody counts.
    """
    unread = _unread(has)
    for line in lines_of(answer.stderr):
        refused = perf_stat.refusal(line)
        if refused is not None:
            return refused.failure()
    try:
        counters = perf_stat.parse(answer.text).counters
    except ParseError as error:
        return tool_failure(error, answer, "perf")
    return {key: _perf_load(counters, path[-1], unread) for key, path in paths.items()}


def _perf_load(counters: Iterable[PerfCounter], address: str, unread: Mapping[str, Failure]) -> PcieLoad | Failure:
    bdf = _bdf(address)
    if bdf is None:
        return Failure(FailureKind.UNSUPPORTED, f"{address}: hisi_pcie units count in PCI domain 0 only")
    ours = [counter for counter in counters if counter.terms.get("bdf") == bdf]
    sent, received = (
        [counter for counter in ours if counter.terms.get("event") == code and counter.value is not None]
        for code in (_FROM_DEVICE, _TO_DEVICE)
    )
    if len(sent) > 1 or len(received) > 1:
        return Failure(FailureKind.UNPARSEABLE, f"two hisi_pcie units count {address}: neither can be trusted")
    if not sent and not received:
        words = ours[0].absence if ours else "not counted"
        return _unwatched(f"perf: {words}: no hisi_pcie unit counts {address}", unread)
    windows = [counter.enabled_s for counter in (*sent, *received) if counter.enabled_s is not None]
    return PcieLoad(
        receive_bytes_per_second=_rate(received),
        transmit_bytes_per_second=_rate(sent),
        window_s=max(windows),
        source="perf",
    )


def _rate(counters: list[PerfCounter]) -> float | None:
    """Bytes a second of the one counter that counted; None where none did."""
    rates = [
        counter.value * _BYTES_PER_COUNT / counter.enabled_s
        for counter in counters
        if counter.value is not None and counter.enabled_s is not None
    ]
    return rates[0] if rates else None


def tool_failure(error: ParseError, answer: Output, tool: str) -> Failure:
    """The tool's exit code explains more than that we could not read the little that it printed."""
    if error.kind is not FailureKind.UNPARSEABLE or answer.exit_code == 0:
        return error.failure()
    words = (answer.stderr.strip() or answer.text.strip()).splitlines()
    said = f": {words[0][:200]}" if words else ", saying nothing"
    return Failure(FailureKind.EXIT, f"{tool}: exit code {answer.exit_code}{said}")
