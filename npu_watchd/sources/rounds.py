"""Which calls a node needs: the probes that apply, for the cards and chips that its newest table shows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from npu_watchd.model.ids import DeviceKey, Subject
from npu_watchd.sources.agenda import LAST_RANK, Plan, Task
from npu_watchd.sources.probe import Probe, Scope, Target

OF_THE_CROWDED = frozenset({"npu_proc_mem"})
"""Asked only about chips of which the table may have left processes out."""
VITAL_RANK = 2
"""Of what tells whether a device is well."""
# What tells whether a device is there and well comes first, whatever the cap on the tool leaves room for. The map comes
# before the first table, so that devices have their logic ids from the first cycle on.
_RANKS = {
    "npu_map": 0,
    "npu_info": 1,
    "npu_health": VITAL_RANK,
    "npu_ecc": VITAL_RANK,
    "npu_list": 3,
    "npu_proc_mem": 3,
}


@dataclass(frozen=True, slots=True)
class Card:
    """One NPU of the newest table."""

    npu: int
    chips: tuple[int, ...]
    name: str | None
    has_chip_ids: bool
    """False: commands about it take no `-c`."""
    logic_ids: Mapping[int, int] = field(default_factory=dict)
    """Chip → logic id, where it is known."""
    crowded: tuple[int, ...] = ()
    """Chips of which the table lists as many processes as it ever does: there may be more."""


@dataclass(frozen=True, slots=True)
class Pace:
    """A probe's period and deadline after the config."""

    every_s: float
    timeout_s: float


def rounds(
    probes: Iterable[Probe],
    paces: Mapping[str, Pace],
    cards: Iterable[Card],
    asked_of: Callable[[str | None], frozenset[str]],
    unsupported: Callable[[str, Subject], bool],
) -> dict[Task, Plan]:
    """Every call and how often it comes.

    paces: the probes that are switched on. asked_of: a chip's name → the per-device probes that it can answer.
    unsupported: whether the tool has already said that a chip cannot answer this probe.
    """
    wanted: dict[Task, Plan] = {}
    cards = tuple(cards)
    for probe in probes:
        pace = paces.get(probe.name)
        if pace is None:
            continue
        plan = Plan(pace.every_s, _RANKS.get(probe.name, LAST_RANK))
        if probe.scope is Scope.NODE:
            wanted[Task(probe.name, Target())] = plan
            continue
        for card in cards:
            if probe.name in OF_THE_CROWDED and not card.crowded:
                continue
            if probe.name in asked_of(card.name):
                for target in _targets(probe, card):
                    if not all(unsupported(probe.name, subject) for subject in target.subjects()):
                        wanted[Task(probe.name, target)] = plan
    return wanted


def _targets(probe: Probe, card: Card) -> list[Target]:
    if probe.scope is Scope.PORT:
        return [Target(card.npu, chip, (chip,), card.logic_ids[chip]) for chip in card.chips if chip in card.logic_ids]
    if probe.scope is Scope.CHIP and card.has_chip_ids:
        return [Target(card.npu, chip, (chip,)) for chip in card.chips]
    return [Target(card.npu, None, card.chips)]


def health_of(tasks: Iterable[Task], keys: Iterable[DeviceKey]) -> list[Task]:
    """The calls that ask these chips for their health."""
    subjects = set(keys)
    return [task for task in tasks if task.probe == "npu_health" and subjects & set(task.target.subjects())]
