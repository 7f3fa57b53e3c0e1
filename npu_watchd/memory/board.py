"""The newest reading of each probe and subject: the one place where threads meet."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from npu_watchd.memory.assembly import BAD_WORDS, Facts, common, device_of
from npu_watchd.memory.harbour import Harbour
from npu_watchd.memory.occupants import crowded, processes_of
from npu_watchd.memory.oom_kills import OomKills, jobs_by_pid, uptime_s
from npu_watchd.memory.pcie_messages import PcieMessages, by_device_id
from npu_watchd.memory.process_list import ProcessList, process_list
from npu_watchd.memory.readings import Periods, Readings
from npu_watchd.memory.roster import Roster
from npu_watchd.memory.tool_trouble import ToolTrouble
from npu_watchd.model.fabric import PortCounters, PortKey, RdmaPorts
from npu_watchd.model.host import Host, OomKill
from npu_watchd.model.ids import NODE, DeviceKey, Subject
from npu_watchd.model.pcie import AerLine, PcieLink, SocketPcieLoad
from npu_watchd.model.reading import NOT_READ_YET, Failure, FailureKind, Reading, Tick
from npu_watchd.model.records import Board as BoardRecord
from npu_watchd.model.records import CardList, DeviceMap, InfoTable
from npu_watchd.model.snapshot import Port, Snapshot
from npu_watchd.model.versions import Installed


@dataclass(frozen=True, slots=True)
class Watch:
    """What is asked about one kind of chip, and how the answers age."""

    profile: str
    probes: frozenset[str]
    """Per-device probes that are asked of it."""
    vital: frozenset[str]
    disabled: frozenset[str]
    """Vital probes that the config switched off: what they would tell stays unknown."""


_FABRIC = ("ibstat", "rdma_counters", "pcie_load")  # pcie_load: only where it is measured by socket
_NODE_PROBES = ("npu_info", "npu_map", "npu_list", "host", "versions", *_FABRIC)


class Board:
    """Readings go in from the probes' threads; a snapshot comes out, whole and frozen."""

    def __init__(
        self,
        node: str,
        boot_id: str | None,
        expected: int | None,
        watch: Callable[[str | None], Watch],
        ports: frozenset[PortKey] = frozenset(),
        code_tier: Callable[[str], str] = lambda _: "unknown",
    ) -> None:
        """expected: chips, ports: RDMA ports that the config says there should be.

        watch: a chip's name, None where nobody knows it → what is asked of it.
        code_tier: an error code → how bad it is said to be.
        """
        self._lock = threading.Lock()
        self._node = node
        self._boot_id = boot_id
        self._expected = expected
        self._watch = watch
        self._code_tier = code_tier
        self._ports = ports
        self._readings = Readings()
        self._roster = Roster()
        self._harbour = Harbour()
        self._trouble = ToolTrouble()
        self._pcie_messages = PcieMessages()
        self._oom_kills = OomKills()
        self._edition = 0
        self._called_bad_s: dict[DeviceKey, float] = {}
        """When the table last called a chip's health bad (monotonic)."""
        self._crowded: frozenset[DeviceKey] = frozenset()
        """Chips of which the newest table lists as many processes as it ever does."""

    def configure(self, node: str, expected: int | None, ports: frozenset[PortKey] = frozenset()) -> None:
        """Take what a reloaded config says of the node."""
        with self._lock:
            self._node, self._expected, self._ports = node, expected, ports

    def put(self, readings: Iterable[Reading[Any]]) -> bool:
        """Take the readings of one call; True where the table shows other chips than before."""
        changed = False
        with self._lock:
            for reading in readings:
                self._readings.put(reading)
                if not isinstance(reading.result, Failure):
                    self._edition += isinstance(reading.result, InfoTable | DeviceMap)
                    changed |= self._learn(reading)
        return changed

    def take_log(self, events: Iterable[tuple[str, int]], now: Tick) -> None:
        """Take what npu-smi's own error log says: driver calls that failed, and their codes."""
        with self._lock:
            self._trouble.take(events, now)

    def take_kernel_log(
        self, lines: Iterable[AerLine], now: Tick, period_s: Periods, *, old: bool = False, lost: int = 0
    ) -> None:
        """Take what the kernel's log says of PCIe errors.

        old: these lines stood there before we began to read. lost: records that were overwritten before we read them.
        """
        with self._lock:
            links = self._readings.fresh_of("pcie_link", now, period_s)
            found = {key: link.path for key, link in links.items() if isinstance(link, PcieLink)}
            paths = {key: path for key, path in found.items() if isinstance(key, DeviceKey)}
            self._pcie_messages.take(lines, paths, old=old, lost=lost)

    def take_oom_kills(self, kills: Iterable[OomKill], now: Tick, *, old: bool = False) -> None:
        """Take whom the kernel's log says that it killed. old: these stood there before we began to read."""
        with self._lock:
            self._oom_kills.take(kills, now.mono_s, jobs_by_pid(self._readings, self._roster.members()), old=old)

    def edition(self) -> int:
        """Grows whenever `cards` or `unsupported` may answer otherwise."""
        with self._lock:
            return self._edition + self._readings.refusals

    def news(self) -> int:
        """Grows whenever a reading came that a rule may have to page somebody for."""
        with self._lock:
            return self._readings.news

    def cards(self) -> list[tuple[int, tuple[int, ...], str | None, bool, Mapping[int, int], tuple[int, ...]]]:
        """For whom to ask, of the newest table: NPU id, chips, name, whether they have ids, logic ids, crowded ones."""
        with self._lock:
            roster = self._roster
            npus = sorted({key.npu for key in roster.rows})
            return [
                (
                    npu,
                    roster.chips_of_card.get(npu, (0,)),
                    next((i.name for key, i in sorted(roster.identities.items()) if key.npu == npu and i.name), None),
                    roster.has_chip_ids,
                    roster.logic_ids(npu),
                    tuple(sorted(key.chip for key in self._crowded if key.npu == npu)),
                )
                for npu in npus
            ]

    def pci_addresses(self) -> dict[DeviceKey, str]:
        """The PCI address of every chip of the newest table that has one."""
        with self._lock:
            identities = {key: self._roster.identities[key] for key in self._roster.rows}
            return {key: found.pci_address for key, found in identities.items() if found.pci_address}

    def processes(self) -> ProcessList | None:
        """The processes of the newest table; None where there is none."""
        with self._lock:
            newest = self._readings.newest("npu_info", NODE)
            return process_list(newest, self._roster, lambda key: self._readings.good("npu_proc_mem", key))

    def unsupported(self, probe: str, subject: Subject) -> bool:
        """True once the tool has said that it cannot tell this of that chip: it is asked once."""
        with self._lock:
            return self._readings.settled(probe, subject)

    def unwell(self) -> list[DeviceKey]:
        """Chips whose newest row is not OK, or is untrusted: `-t health` can say why."""
        with self._lock:
            return [key for key, row in self._roster.rows.items() if row.health != "OK" or not row.trusted]

    def snapshot(self, now: Tick, period_s: Periods) -> Snapshot:
        """The node at `now`.

        period_s: a probe's period as it really is, None for one that is switched off; readings age by it.
        """
        with self._lock:
            info = self._readings.fresh("npu_info", NODE, now, period_s)
            table = info if isinstance(info, InfoTable) else None
            ids = self._roster.device_ids()
            host = self._readings.fresh("host", NODE, now, period_s)
            installed = self._readings.fresh("versions", NODE, now, period_s)
            devices = {
                key: device_of(self._facts(key, ids[key], table, now, period_s)) for key in self._roster.members()
            }
            return Snapshot(
                at=now,
                node=self._node,
                boot_id=self._boot_id,
                devices=devices,
                devices_expected=self._roster.expected(self._expected),
                devices_present=None if table is None else sum(1 for device in devices.values() if device.present),
                tool_version=table.tool_version if table else None,
                driver_version=table.driver_version if table else None,
                firmware_version=common(device.identity.firmware for device in devices.values()),
                ports=self._seen_ports(now, period_s),
                pcie_sockets=self._sockets(now, period_s),
                host=host if isinstance(host, Host) else None,
                installed=installed if isinstance(installed, Installed) else None,
                oom_kills=self._oom_kills.shown(now.mono_s, uptime_s(self._readings, now)),
                warnings=(*self._warnings(table), *self._trouble.warnings(now)),
                blind=self._node_blind(now, period_s),
                probes=tuple(self._readings.states(devices, period_s)),
                tallies=tuple(tally.frozen(name) for name, tally in sorted(self._readings.tallies.items())),
                tool_log_events=dict(self._trouble.counts),
                pcie_log_events=by_device_id(self._pcie_messages.counts, ids),
                pcie_log_events_before=by_device_id(self._pcie_messages.before, ids),
                kernel_log_lost=self._pcie_messages.lost,
            )

    def _facts(
        self, key: DeviceKey, device_id: tuple[str, str], table: InfoTable | None, now: Tick, period_s: Periods
    ) -> Facts:
        identity = self._roster.identities[key]
        watch = self._watch(identity.name)
        records: dict[str, object] = {}
        blind: dict[str, Failure] = {}
        unsupported: dict[str, str] = {}
        for probe in sorted(watch.probes):
            if probe.startswith("pcie_") and identity.pci_address is None:
                continue
            refused = self._readings.unsupported(probe, key)
            if refused is not None:
                unsupported[probe] = refused
                continue
            found = self._readings.fresh(probe, key, now, period_s)
            if not isinstance(found, Failure):
                records[probe] = found
            elif found is not NOT_READ_YET or probe in watch.vital:
                # That a lesser probe's first turn has not come is nothing that anybody need look at.
                blind[probe] = found
        for probe in watch.disabled:
            blind[probe] = Failure(FailureKind.MISSING, f"switched off by [probes.{probe}] enabled = false")
        if table is None:
            failure = self._readings.fresh("npu_info", NODE, now, period_s)
            blind["npu_info"] = failure if isinstance(failure, Failure) else NOT_READ_YET
        return Facts(
            key=key,
            device_id=device_id[0],
            device_id_source=device_id[1],
            identity=identity,
            profile=watch.profile,
            table=table,
            row=self._roster.rows.get(key) if table is not None else None,
            records=records,
            blind=blind,
            unsupported=unsupported,
            vital=watch.vital,
            code_tier=self._code_tier,
            health_outdated=self._readings.read_before("npu_health", key, self._called_bad_s.get(key)),
        )

    def _learn(self, reading: Reading[Any]) -> bool:
        record = reading.result
        if isinstance(record, InfoTable):
            before = set(self._roster.rows)
            changed = self._roster.see_table(record)
            bad = (key for key, row in self._roster.rows.items() if row.health in BAD_WORDS)
            self._called_bad_s.update(dict.fromkeys(bad, reading.taken_at.mono_s))
            self._readings.forget(before - set(self._roster.rows))
            self._crowded = frozenset(key for key in self._roster.rows if crowded(processes_of(key, record)))
            # Who was there then has left: when it is full again, these are others.
            self._readings.forget(before - self._crowded, "npu_proc_mem")
            return changed
        if isinstance(record, DeviceMap):
            self._roster.see_map(record)
        elif isinstance(record, CardList):
            self._roster.see_list(record)
        elif isinstance(record, BoardRecord) and isinstance(reading.subject, DeviceKey):
            self._roster.see_board(reading.subject, record)
        elif isinstance(record, RdmaPorts):
            self._harbour.see(record)
        return False

    def _seen_ports(self, now: Tick, period_s: Periods) -> dict[PortKey, Port]:
        counters = self._readings.fresh_of("rdma_counters", now, period_s).values()
        return self._harbour.ports(
            self._ports,
            fresh=isinstance(self._readings.fresh("ibstat", NODE, now, period_s), RdmaPorts),
            counters={record.key: record for record in counters if isinstance(record, PortCounters)},
        )

    def _sockets(self, now: Tick, period_s: Periods) -> tuple[SocketPcieLoad, ...]:
        found = self._readings.fresh("pcie_load", NODE, now, period_s)
        return tuple(load for load in found if isinstance(load, SocketPcieLoad)) if isinstance(found, tuple) else ()

    def _warnings(self, table: InfoTable | None) -> tuple[str, ...]:
        found = list(table.warnings) if table else []
        found += self._roster.unclaimed
        if self._roster.lost_cards:
            lost = self._roster.lost_cards
            found.append(f"npu-smi counts {lost} card(s) that it cannot reach (NPU ID -1 in `npu-smi info -l`)")
        return tuple(found)

    def _node_blind(self, now: Tick, period_s: Periods) -> Mapping[str, Failure]:
        found: dict[str, Failure] = {}
        for probe in _NODE_PROBES:
            if period_s(probe) is None:
                continue
            state = self._readings.fresh(probe, NODE, now, period_s)
            if isinstance(state, Failure) and (state is not NOT_READ_YET or probe not in _FABRIC):
                found[probe] = state
            elif isinstance(state, RdmaPorts) and state.errors:
                found[probe] = Failure(FailureKind.EXIT, "; ".join(state.errors)[:300])
        return found
