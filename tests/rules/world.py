"""A node whose cycles a test makes one by one, judged by the real rules over a real history."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from npu_watchd.decide.cycle import Judged, Judging
from npu_watchd.limits import Limits
from npu_watchd.memory.history import History
from npu_watchd.model.fabric import PortKey
from npu_watchd.model.finding import Event, Finding
from npu_watchd.model.ids import DeviceKey
from npu_watchd.model.reading import Failure, Tick
from npu_watchd.model.snapshot import Device, Port, ProbeState, Snapshot
from npu_watchd.rules import RULES
from npu_watchd.rules.quarantine import QUARANTINE
from tests.sinks.build import device, outcome

NOON_S = 1_790_000_000.0
MINUTE_S, HOUR_S = 60.0, 3600.0
NO_LIMITS = Limits()


class World:
    """Eight healthy devices. `cycle` makes one at a second; each is a successful poll of every probe."""

    def __init__(self, limits: Limits = NO_LIMITS, off: Iterable[str] = (), expected: int = 8) -> None:
        self.history = History()
        self.judging = Judging(self.history, RULES, limits, tuple(off))
        self.devices: dict[DeviceKey, Device] = {DeviceKey(npu): device(npu) for npu in range(8)}
        self.ports: dict[PortKey, Port] = {}
        self.node: dict[str, Any] = {}
        self.hung: Failure | None = None
        self.abandoned: Mapping[str, int] = {}
        self.events: list[Event] = []
        self._expected = expected
        self._polls = 0

    def change(self, npu: int, **changes: Any) -> None:
        """From the next cycle on this device is so."""
        self.devices[DeviceKey(npu)] = replace(self.devices[DeviceKey(npu)], **changes)

    def snapshot(self, second: float) -> Snapshot:
        self._polls += 1
        table = ProbeState(
            "npu_info",
            None,
            up=self.hung is None,
            failure=self.hung,
            successes=self._polls,
            failures=self._polls if self.hung else 0,
        )
        known = [
            ProbeState(probe, None, up=True, failure=None, successes=self._polls)
            for probe in ("ibstat", "pcie_link", "hccn_speed", "hccn_optical", "processes")
        ]
        made = outcome(self.devices.values(), **self.node).snapshot
        return replace(
            made,
            at=Tick(second, NOON_S + second),
            devices_expected=self._expected,
            ports=self.ports,
            probes=(table, *known),
        )

    def cycle(self, second: float) -> dict[str, Finding]:
        """What stands then: `rule subject` → finding; verdicts have tests of their own."""
        judged = self.judge(second)
        found = (finding for finding in judged.findings if finding.rule != QUARANTINE.id)
        return {f"{finding.rule} {finding.subject}": finding for finding in found}

    def judge(self, second: float) -> Judged:
        judged = self.judging.step(self.snapshot(second), NOON_S + second, self.abandoned)
        assert not judged.faults, judged.faults
        self.events += judged.events
        return judged

    def cycles(self, first: float, last: float, every: float = 15.0) -> dict[str, Finding]:
        """Cycles from the one second to the other; what stands after the last."""
        found: dict[str, Finding] = {}
        second = first
        while second <= last:
            found = self.cycle(second)
            second += every
        return found
