"""What a case is: something that happens to a node, and the findings that it must bring, and when."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from npu_watchd.model.fabric import PortKey
from npu_watchd.model.ids import NODE, DeviceKey, Subject
from tests.scenarios.site import Site

CYCLE_S = 5.0
LAG_S = 3.0
"""Of a round of serial calls: a device's turn comes that much after its period at most."""

WARNING, CRITICAL = ("warning", False), ("critical", False)
QUARANTINES = ("critical", True)
"""What a finding weighs: severity, and whether it quarantines."""
Weight = tuple[str, bool]


@dataclass(frozen=True, slots=True)
class Expected:
    """One finding. It must open not before the fault is visible and has lasted as the rule wants, and soon after."""

    rule: str
    subject: Subject
    weights: tuple[Weight, ...]
    """As it opens, and what it becomes in turn."""
    at_s: float
    """When the tools, or the kernel's files, begin to show it."""
    every_s: float
    """The period of the probe that sees it: so long it may take, and a cycle."""
    lasts_s: float = 0.0
    """The rule's own time: it must have been so for so long, or so many polls after the first."""
    over: tuple[float, float] | None = None
    """Between which seconds it ends; None: it stands to the end of the case."""
    held: tuple[float, ...] = ()
    """Seconds at which it must be held; at all others that no case names it may be either."""
    live: tuple[float, ...] = ()
    """Seconds at which it must be active and not held."""

    def opens(self, speed: float) -> tuple[float, float]:
        """The earliest and the latest second; speed: scenario seconds a second of the daemon."""
        latest_s = self.at_s + self.lasts_s + (self.every_s + CYCLE_S + LAG_S) * speed
        # A probe comes up to a tenth of its period early.
        return self.at_s + 0.9 * self.lasts_s, latest_s


@dataclass(frozen=True, slots=True)
class Text:
    """A node that is played through real tool text: simnode's answers, the real lanes, parsers and board."""

    generation: str
    until_s: float
    events: str
    """TOML: keys of the node, then `[[at]]`s, as in a scenario file."""
    cards: int = 2
    speed: int = 1
    restarts: tuple[float, ...] = ()
    """Seconds at which the daemon is killed and starts again, with what it had kept."""
    reboots: tuple[float, ...] = ()
    """Likewise the whole node: another boot id."""
    jumps: tuple[tuple[float, float], ...] = ()
    """From which second on the wall clock is by how many seconds wrong."""
    versions: tuple[tuple[float, str], ...] = ()
    """From which second on tool and driver have which version; the tool's layout changes with it."""
    swaps: tuple[tuple[float, int], ...] = ()
    """From which second on which card, counted from 0, is another one: it has another serial number."""


@dataclass(frozen=True, slots=True)
class Story:
    """A node whose snapshots a function makes; for what tool text adds nothing to."""

    generation: str
    tell: Callable[[Site], None]


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    what: str
    """What happens, in one line."""
    how: Text | Story
    expected: tuple[Expected, ...] = ()
    """None: the node is healthy, however ugly it looks."""

    @property
    def speed(self) -> int:
        return self.how.speed if isinstance(self.how, Text) else 1


def npu(number: int, chip: int = 0) -> DeviceKey:
    return DeviceKey(number, chip)


def port(name: str) -> PortKey:
    return PortKey(name, 1)


def info(rule: str, subject: Subject, *weights: Weight, at: float, **more: object) -> Expected:
    """A finding that rests on `npu-smi info`, every 15 s."""
    return _expected(15.0, rule, subject, weights, at, more)


def minute(rule: str, subject: Subject, *weights: Weight, at: float, **more: object) -> Expected:
    """One that rests on a probe of 60 s: `-t …` of npu-smi, hccn_tool, the PCIe link."""
    return _expected(60.0, rule, subject, weights, at, more)


def half(rule: str, subject: Subject, *weights: Weight, at: float, **more: object) -> Expected:
    """One that rests on files or ibstat, every 30 s."""
    return _expected(30.0, rule, subject, weights, at, more)


def _expected(
    every_s: float, rule: str, subject: Subject, weights: tuple[Weight, ...], at: float, more: dict[str, object]
) -> Expected:
    return Expected(rule, subject, weights, at, every_s, **more)  # type: ignore[arg-type]


__all__ = ["CRITICAL", "NODE", "QUARANTINES", "WARNING", "Case", "Expected", "Story", "Text", "npu", "port"]
