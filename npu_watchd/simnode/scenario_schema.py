"""The keys of a scenario file, strictly typed. What a key does is said beside it."""

from __future__ import annotations

from typing import Literal

from npu_watchd.simnode.host_port import HostLink
from npu_watchd.simnode.roce_port import PortMood
from npu_watchd.simnode.scenario_processes import KilledProcess, NewProcess
from npu_watchd.simnode.scenario_strict import Strict
from npu_watchd.simnode.state import DriverMood, HccnMood, HostCpu, ToolMood

Duration = str | float | int
"""Seconds, or `"90s"`, `"15m"`, `"2h"`, `"1d"`."""
Rate = str
"""`"40/h"`: so many an hour; also /s, /m, /d. `"0/h"` stops a climb."""


class MemoryLevels(Strict):
    """`hbm.…` and `ddr.…` of an event: the use in MB, and ECC counts."""

    used: int | None = None
    total: int | None = None
    single_bit: int | None = None
    double_bit: int | None = None
    single_bit_lifetime: int | None = None
    double_bit_lifetime: int | None = None
    single_bit_isolated_pages: int | None = None
    double_bit_isolated_pages: int | None = None
    double_bit_next_isolated_pages: int | None = None


class MemoryClimb(Strict):
    """`climb.hbm.…`: which counts grow, and how fast."""

    single_bit: Rate | None = None
    double_bit: Rate | None = None
    single_bit_isolated_pages: Rate | None = None
    double_bit_isolated_pages: Rate | None = None


class PcieCounts(Strict):
    """`pcie.…`: the counts of `-t pcie-err`."""

    tx: int | None = None
    rx: int | None = None
    lcrc: int | None = None
    ecrc: int | None = None
    retry: int | None = None


class PcieClimb(Strict):
    """`climb.pcie.…`."""

    tx: Rate | None = None
    rx: Rate | None = None
    lcrc: Rate | None = None
    ecrc: Rate | None = None
    retry: Rate | None = None


class HccsLevels(Strict):
    """One link of the device, counted from 0, and the port's own word."""

    link: int = 0
    errors: int | None = None
    retries: int | None = None
    healthy: bool | None = None
    first_error_lane: int | None = None


class HccsClimb(Strict):
    """`climb.hccs.…`, of one link."""

    link: int = 0
    errors: Rate | None = None
    retries: Rate | None = None


class PortLevels(Strict):
    """`port.…` of an event: the device's own RoCE port."""

    link: Literal["up", "down"] | None = None
    speed: int | None = None
    """Mb/s."""
    net_health: str | None = None
    """Left out: Success, or Fault while the link is down."""
    answers: PortMood | None = None
    counters: dict[str, int] | None = None
    """By the key of `-stat`."""


class OpticsLevels(Strict):
    """`optics.…`: the module in that port; power in mW by lane."""

    present: bool | None = None
    temperature: int | None = None
    receive: tuple[float, ...] | None = None
    transmit: tuple[float, ...] | None = None
    bias: tuple[float, ...] | None = None


class RdmaLevels(Strict):
    """`rdma.…`: ports of the host; an event with this needs `hca` or `hcas`."""

    link: HostLink | None = None
    rate: str | None = None
    """As the kernel writes it: `100 Gb/sec (4X EDR)`."""
    lost: bool | None = None
    """The adapter is gone from the node."""
    unreadable: bool | None = None
    """Its rate cannot be read, at which ibstat gives up."""
    counters: dict[str, int] | None = None
    """By the file's name in counters/ or hw_counters/."""


class LinkLevels(Strict):
    """`link.…`: the PCIe link of the device, both ends of it."""

    speed: float | None = None
    """GT/s."""
    lanes: int | None = None


class PcieLoadLevels(Strict):
    """`pcie_load.…`: what goes over that link, in GB/s."""

    receive: float | None = None
    """Host to device."""
    transmit: float | None = None


class AerCounts(Strict):
    """By the kernel's name of the error: BadTLP, Timeout, …"""

    correctable: dict[str, int] | None = None
    nonfatal: dict[str, int] | None = None
    fatal: dict[str, int] | None = None


class AerEnds(Strict):
    """`aer.device.…`, `aer.port.…`: which end of the link counts them."""

    device: AerCounts | None = None
    port: AerCounts | None = None


class AerRates(Strict):
    """As AerCounts."""

    correctable: dict[str, Rate] | None = None
    nonfatal: dict[str, Rate] | None = None
    fatal: dict[str, Rate] | None = None


class AerClimb(Strict):
    """`climb.aer.…`."""

    device: AerRates | None = None
    port: AerRates | None = None


class Climbs(Strict):
    """`climb.…`: counts that grow from this event on."""

    hbm: MemoryClimb | None = None
    ddr: MemoryClimb | None = None
    pcie: PcieClimb | None = None
    hccs: HccsClimb | None = None
    aer: AerClimb | None = None
    port: dict[str, Rate] | None = None
    rdma: dict[str, Rate] | None = None


class Code(Strict):
    """An error code that is active."""

    code: str
    text: str | None = None
    """Left out: the tool cannot get the text."""


class HostLevels(Strict):
    """`host.…`: of the node. Pressure is percent of the time in which some work waits; memory is MB."""

    cpu_pressure: float | None = None
    memory_pressure: float | None = None
    io_pressure: float | None = None
    memory_available: int | None = None


class LoadLevels(Strict):
    """Utilisation in percent."""

    aicore: int | None = None
    aivector: int | None = None
    aicube: int | None = None
    aicpu: int | None = None
    ctrlcpu: int | None = None
    npu: int | None = None
    hbm_bandwidth: int | None = None
    ddr_bandwidth: int | None = None


class FileEvent(Strict):
    """One `[[at]]`."""

    t: Duration
    lasts: Duration | None = None
    every: Duration | None = None
    times: int = 1
    """It happens that often, `every` so long."""
    note: str = ""
    device: int | None = None
    devices: tuple[int, ...] | Literal["all"] | None = None
    hca: str | None = None
    hcas: tuple[str, ...] | Literal["all"] | None = None
    health: Literal["OK", "Warning", "Alarm", "Critical", "UNKNOWN", "out of range"] | None = None
    codes: tuple[Code, ...] | None = None
    temperature: int | None = None
    hbm_temperature: int | None = None
    power: float | None = None
    clock: int | None = None
    load: LoadLevels | None = None
    hbm: MemoryLevels | None = None
    ddr: MemoryLevels | None = None
    pcie: PcieCounts | None = None
    hccs: HccsLevels | None = None
    port: PortLevels | None = None
    optics: OpticsLevels | None = None
    rdma: RdmaLevels | None = None
    link: LinkLevels | None = None
    pcie_load: PcieLoadLevels | None = None
    aer: AerEnds | None = None
    climb: Climbs | None = None
    start: tuple[NewProcess, ...] = ()
    stop: tuple[int, ...] | Literal["all"] | None = None
    lost_jobs: tuple[str, ...] = ()
    """Jobs, as `start` names them, that are over from now on although their processes stay: of the node, for good."""
    fails: tuple[str, ...] | None = None
    lost: bool | None = None
    reset: bool = False
    mcu_dead: bool | None = None
    tool: ToolMood | None = None
    tool_delay: Duration = 0
    ignores_sigterm: bool = False
    driver: DriverMood | None = None
    hccn_tool: HccnMood | None = None
    host: HostLevels | None = None
    oom: tuple[KilledProcess, ...] = ()


class File(Strict):
    """A whole scenario file."""

    title: str
    description: str
    generation: str
    tool_version: str
    driver_version: str = ""
    cards: int = 0
    """0: as many as such a node usually has."""
    chip_name: str | None = None
    install_incomplete: bool = False
    hcas: int | None = None
    """RDMA adapters of the host; left out: as many as such a node usually has."""
    firmware_owns_aer: bool = False
    host_cpu: HostCpu = "kunpeng"
    """Kunpeng: perf counts what each device moves. Intel: pcm-pcie counts what each of two sockets does."""
    expected_ports: tuple[str, ...] = ()
    """Written to the node's configuration; left out: it expects those that it has seen up."""
    real_processes: bool = False
    """Its procfs is the machine's own, and whoever makes a file in its holders/ is on a chip; no event starts any."""
    at: tuple[FileEvent, ...] = ()
