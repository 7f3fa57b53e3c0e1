"""What of the history is kept on disk: rows as they are written, read and merged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from npu_watchd.model.ids import Subject

Labels = tuple[tuple[str, str], ...]
"""Sorted; without device_id, rdma_device and port, which the subject tells."""


@dataclass(frozen=True, slots=True)
class Life:
    """What a counter lives in: it begins at zero when the part of this that it depends on changes. None: not known."""

    boot_id: str | None = None
    driver: str | None = None
    run: int = 0
    """Which start of the daemon: for what the daemon itself counts."""


class SeriesRow(NamedTuple):
    """One counter of one subject."""

    number: int
    metric: str
    subject: Subject
    labels: Labels
    first_s: float
    seen_s: float
    """When it was last seen; of one that is `here` it only counts until the history goes on."""
    here: bool
    """In the newest reading of its subject."""
    value: float
    """The newest that is believed."""
    low: float | None
    """A lower one that the next reading has to confirm."""
    life: Life


class PointRow(NamedTuple):
    """Growth of one series: it happened after `after_s` and was seen from `first_s` to `last_s`."""

    series: int
    after_s: float
    first_s: float
    last_s: float
    grown: float


class StateRow(NamedTuple):
    """One yes-or-no condition of one subject. current: None while nobody knows."""

    number: int
    name: str
    subject: Subject
    current: bool | None


class TransitionRow(NamedTuple):
    state: int
    at_s: float
    value: bool


class PeakRow(NamedTuple):
    metric: str
    subject: Subject
    labels: Labels
    value: float


class WitnessRow(NamedTuple):
    """The jobs that were on a device when a condition of it became true."""

    name: str
    at_s: float
    jobs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Standing:
    """What the history knows of itself. Times in history time."""

    now_s: float = 0.0
    life: Life = field(default_factory=Life)
    driver_shown_s: float = 0.0
    """When the driver's version was last on the table."""
    doubt_from_s: float = 0.0
    """From here to the newest change of the driver it is not known which of the two a reading was about."""
    refused: int = 0
    """Series and conditions that were one too many."""


@dataclass(frozen=True, slots=True)
class Changes:
    """What is new in the history since somebody last asked; or, as `History.everything` has it, all of it."""

    standing: Standing = field(default_factory=Standing)
    series: Mapping[int, SeriesRow] = field(default_factory=dict)
    points: tuple[PointRow, ...] = ()
    """To be added to what is there."""
    rewritten: Mapping[int, tuple[PointRow, ...]] = field(default_factory=dict)
    """Series → all its points, instead of what is there; `points` come after them."""
    dropped: frozenset[int] = frozenset()
    """Series that are no more. Numbers are never used again."""
    states: Mapping[int, StateRow] = field(default_factory=dict)
    transitions: tuple[TransitionRow, ...] = ()
    retold: Mapping[int, tuple[TransitionRow, ...]] = field(default_factory=dict)
    """As `rewritten`, for states."""
    dropped_states: frozenset[int] = frozenset()
    peaks: Mapping[tuple[str, Subject, Labels], PeakRow] = field(default_factory=dict)
    dropped_peaks: frozenset[tuple[str, Subject, Labels]] = frozenset()
    serials: Mapping[Subject, str] = field(default_factory=dict)
    """Subject → the serial number of the chip that the series are about."""
    witnesses: Mapping[Subject, tuple[WitnessRow, ...]] = field(default_factory=dict)
    """Device → all its rows, instead of what is there."""

    @property
    def empty(self) -> bool:
        """True where nothing but the time is new."""
        return self == Changes(standing=self.standing)

    def then(self, later: Changes) -> Changes:
        """Both in one: writing it has the effect of writing this, and then `later`."""
        gone, gone_states = later.dropped, later.dropped_states
        anew, anew_states = later.rewritten.keys() | gone, later.retold.keys() | gone_states
        return Changes(
            standing=later.standing,
            series={**_without(self.series, gone), **later.series},
            points=(*(row for row in self.points if row.series not in anew), *later.points),
            rewritten={**_without(self.rewritten, gone), **later.rewritten},
            dropped=self.dropped | gone,
            states={**_without(self.states, gone_states), **later.states},
            transitions=(*(row for row in self.transitions if row.state not in anew_states), *later.transitions),
            retold={**_without(self.retold, gone_states), **later.retold},
            dropped_states=self.dropped_states | gone_states,
            peaks={**{key: row for key, row in self.peaks.items() if key not in later.dropped_peaks}, **later.peaks},
            dropped_peaks=(self.dropped_peaks | later.dropped_peaks) - later.peaks.keys(),
            serials={**self.serials, **later.serials},
            witnesses={**self.witnesses, **later.witnesses},
        )


T = TypeVar("T")


def _without(rows: Mapping[int, T], gone: frozenset[int]) -> dict[int, T]:
    return {number: row for number, row in rows.items() if number not in gone}
