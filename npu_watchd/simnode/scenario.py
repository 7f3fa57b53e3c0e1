"""A scenario as the simulator runs it: what the node is, and what happens to it when. Plain data, JSON both ways.

`scenario_file.py` reads it from TOML and checks it; the executables read it from JSON, because they must start fast.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any
from zlib import crc32

from npu_watchd.simnode.state import DriverMood, HccnMood, HostCpu, OomLimit, ToolMood


@dataclass(frozen=True, slots=True)
class Started:
    """A process that begins on each device of its event."""

    pid: int
    name: str | None
    memory_mb: int
    container_pid: int | None = None
    job: str | None = None
    """`slurm 4711`, `session 12`, or `kubernetes` and a pod's uid; None: of the one session that is there."""
    user: str | int | None = None
    """A name, or a uid; None: of the one user who is logged in."""
    environ: tuple[str, ...] = ()
    """`NAME=value`, beside what its job brings."""
    listens: tuple[str, ...] = ()
    """`10.0.0.1:60000`: TCP sockets."""
    host_pid: int | None = None
    """Its number on the host, where the tool prints `pid`, its container's own, and no name; None: the same number."""

    @property
    def number(self) -> int:
        """On the host."""
        return self.pid if self.host_pid is None else self.host_pid

    @property
    def shown_name(self) -> str | None:
        """None: the tool cannot see it."""
        return self.name if self.host_pid is None else None


FIRST_UID = 21_000
"""Of the user of whom a scenario says nothing; named ones come after it. No user database knows these numbers."""


def uid_of(user: str | int | None) -> int:
    """Of the user whom a scenario names, or gives by number."""
    if isinstance(user, str):
        return FIRST_UID + 1 + crc32(user.encode()) % 1000
    return FIRST_UID if user is None else user


@dataclass(frozen=True, slots=True)
class Killed:
    """A process that the host's kernel kills for want of memory. No chip shows it: it compiles, or loads data."""

    pid: int
    name: str
    job: str | None = None
    """As of `Started`; None: of no job, but of a service of the system's own."""
    user: str | int | None = None
    limit: OomLimit = "job"
    """What was full: what the job may have, or the node."""

    @property
    def uid(self) -> int:
        return uid_of(self.user)


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happens. What it leaves out, it leaves as it was."""

    t_s: float
    lasts_s: float | None = None
    """None: until something else changes it. Else it is taken back after this long, as if it had never been."""
    devices: tuple[int, ...] = ()
    """Logic ids."""
    hcas: tuple[str, ...] = ()
    """RDMA devices of the host. Neither these nor devices: the event is the node's."""
    note: str = ""
    levels: Mapping[str, Any] = field(default_factory=dict)
    """Fields by dotted name: `health`, `temperature`, `hbm.used`, `codes`, `fails`, `port.link`, `rdma.rate`, …"""
    counts: Mapping[str, int] = field(default_factory=dict)
    """Counters set to a value: `hbm.single_bit`, `hccs.2.errors`, `aer.port.correctable.BadTLP`."""
    climbs: Mapping[str, float] = field(default_factory=dict)
    """Counters that grow from now on, per second; 0 stops one."""
    start: tuple[Started, ...] = ()
    stop: tuple[int, ...] | None = None
    """Pids that end; (): all of the device's."""
    reset: bool = False
    """The device is reset: counts since reset go to zero, lifetime counts stay, waiting pages are isolated, processes
    are gone, and every level, failure and climb of before is forgotten."""
    tool: ToolMood | None = None
    tool_delay_s: float = 0.0
    ignores_sigterm: bool = False
    driver: DriverMood | None = None
    hccn: HccnMood | None = None
    oom: tuple[Killed, ...] = ()
    lost_jobs: tuple[str, ...] = ()
    """Jobs that are over from now on although their processes stay: their slurmstepd, or their shim, is gone."""

    def in_force(self, t_s: float) -> bool:
        """Whether its levels stand at `t_s`."""
        return self.t_s <= t_s and (self.lasts_s is None or t_s < self.t_s + self.lasts_s)


@dataclass(frozen=True, slots=True)
class Scenario:
    name: str
    title: str
    description: str
    generation: str
    """A key of SILICON."""
    tool_version: str
    driver_version: str
    cards: int
    chip_name: str | None
    """Overrules the silicon's name, for a chip that nobody knows."""
    install_incomplete: bool
    events: tuple[Event, ...]
    """By time."""
    hcas: int = 0
    """RDMA adapters of the host."""
    firmware_owns_aer: bool = False
    expected_ports: tuple[str, ...] = ()
    """What the node's configuration expects: `mlx5_0/1`."""
    host_cpu: HostCpu = "kunpeng"
    real_processes: bool = False
    """Its procfs is the machine's own, and real processes hold its chips (holders.py)."""

    def instants(self) -> tuple[float, ...]:
        """The seconds at which anything changes of itself: each event, and the end of each that ends."""
        ends = [event.t_s + event.lasts_s for event in self.events if event.lasts_s is not None]
        return tuple(sorted({0.0, *(event.t_s for event in self.events), *ends}))


def to_json(scenario: Scenario) -> dict[str, Any]:
    """Lists, dicts, strings and numbers only."""
    return asdict(scenario)


def from_json(data: Mapping[str, Any]) -> Scenario:
    """The inverse of `to_json`: what it wrote is trusted."""
    events = tuple(_event(event) for event in data["events"])
    return Scenario(**{**data, "events": events, "expected_ports": tuple(data["expected_ports"])})


def _event(data: Mapping[str, Any]) -> Event:
    stop = data["stop"]
    return Event(
        **{
            **data,
            "devices": tuple(data["devices"]),
            "hcas": tuple(data["hcas"]),
            "start": tuple(
                Started(**{**one, "environ": tuple(one["environ"]), "listens": tuple(one["listens"])})
                for one in data["start"]
            ),
            "oom": tuple(Killed(**one) for one in data["oom"]),
            "lost_jobs": tuple(data["lost_jobs"]),
            "stop": None if stop is None else tuple(stop),
        }
    )
