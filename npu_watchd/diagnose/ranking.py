"""Which cause, how likely, what for and what against. Pure: the same incident gives the same answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from npu_watchd.diagnose.cause import Cause
from npu_watchd.diagnose.clue import Clue, Origin
from npu_watchd.diagnose.incident import Incident
from npu_watchd.diagnose.weights import (
    AGAINST,
    ALONE,
    ELSEWHERE_FACTOR,
    ENOUGH,
    LATER_FACTOR,
    NOBODY_KNOWS_FACTOR,
    OLD_FACTOR,
    OLD_S,
    OUTDONE_FACTOR,
    PROOF,
    Weight,
    weight_of,
)

_WORDS = {
    "alone": "one job alone was on its devices",
    "devices_well": "npu-watchd saw the job's devices well, without an error that climbed",
    "links_well": "npu-watchd saw the links of the job's NPUs up, without a flap",
    "no_oom": "npu-watchd follows the kernel's log: it killed nothing for want of memory",
}
_TLS = Weight({Cause.NETWORK: 0.8}, certain=True)


@dataclass(frozen=True, slots=True)
class Point:
    """One thing that speaks for a cause, or against it."""

    text: str
    where: str
    at_s: float | None
    strength: float
    """Of 1: what it weighs here, after all that qualifies it."""
    why: str | None = None
    """What qualifies it; None: nothing."""
    device_id: str | None = None
    clue: Clue | None = None


@dataclass(frozen=True, slots=True)
class Ranked:
    """One cause with its evidence."""

    cause: Cause
    score: float
    """0 to 1; from ENOUGH on it is named."""
    points: tuple[Point, ...]
    against: tuple[Point, ...]
    device_ids: tuple[str, ...] = ()
    """Of hardware: whose."""


@dataclass(frozen=True, slots=True)
class _Weighed:
    clue: Clue
    weight: Weight


def ranking(incident: Incident) -> tuple[Ranked, ...]:
    """Best first, and all that have anything for them. The first is NOT_ENOUGH_EVIDENCE where no cause has enough."""
    weighed = list(_weighed(incident))
    certain = {cause for one in weighed if one.weight.certain for cause in one.weight.strengths if _direct(one)}
    broke_s = _broke_s(weighed)
    points: dict[Cause, list[Point]] = {}
    groups: dict[Point, str] = {}
    for one in weighed:
        for cause, strength in one.weight.strengths.items():
            factor, why = _factor(one, cause, incident, certain, broke_s)
            clue = one.clue
            point = Point(clue.text, clue.where, clue.at_s, strength * factor, why, clue.device_id, clue)
            points.setdefault(cause, []).append(point)
            groups[point] = (
                one.weight.group or f"{clue.origin} {clue.kind} {clue.device_id if _is_finding(clue) else ''}"
            )
    found = [_ranked(cause, some, groups, incident) for cause, some in points.items()]
    found.sort(key=lambda one: (-one.score, list(Cause).index(one.cause)))
    if found and found[0].score >= ENOUGH:
        return tuple(found)
    return (Ranked(Cause.NOT_ENOUGH_EVIDENCE, 0.0, (), ()), *found)


def _weighed(incident: Incident) -> Iterator[_Weighed]:
    kinds = {clue.kind for clue in incident.clues}
    for clue in incident.clues:
        weight = weight_of(clue.kind, finding=_is_finding(clue), critical=clue.critical)
        if weight is not None and clue.origin is not Origin.JOURNAL:
            yield _Weighed(clue, weight)
        if clue.kind == "tls_off" and "tls_on" in kinds:
            yield _Weighed(clue, _TLS)
        if clue.kind == "device_memory_short" and "alone" in incident.well:
            yield _Weighed(clue, ALONE)


def _is_finding(clue: Clue) -> bool:
    return clue.origin is Origin.FINDING


def _direct(one: _Weighed) -> bool:
    return not _is_finding(one.clue)


def _broke_s(weighed: Sequence[_Weighed]) -> float | None:
    """When the first rank failed for a reason of its own."""
    return min(
        (
            one.clue.at_s
            for one in weighed
            if _direct(one) and one.clue.at_s is not None and not one.weight.follows
            and max(one.weight.strengths.values()) >= ENOUGH
        ),
        default=None,
    )  # fmt: skip


def _factor(
    one: _Weighed, cause: Cause, incident: Incident, certain: set[Cause], broke_s: float | None
) -> tuple[float, str | None]:
    clue = one.clue
    if not _is_finding(clue):
        if one.weight.follows and broke_s is not None and clue.at_s is not None and clue.at_s > broke_s:
            return LATER_FACTOR, "later than the first failure, which may have brought it about"
        return 1.0, None
    factor, why = _of_device(clue, incident)
    old = cause is Cause.HARDWARE and clue.at_s is not None and incident.ended_s is not None
    if old and clue.at_s is not None and incident.ended_s is not None and incident.ended_s - clue.at_s > OLD_S:
        factor, why = factor * OLD_FACTOR, why or "it had been so for hours before"
    if certain - {cause} and cause is not Cause.HOST_MEMORY:
        factor, why = factor * OUTDONE_FACTOR, why or "the log itself names another cause"
    return factor, why


def _of_device(clue: Clue, incident: Incident) -> tuple[float, str | None]:
    if clue.device_id is None:
        return 1.0, None
    if not incident.devices:
        return NOBODY_KNOWS_FACTOR, "no log says which devices the job had"
    if clue.device_id in incident.devices:
        return 1.0, None
    return ELSEWHERE_FACTOR, f"the job's log names {_devices(incident.devices)}, not {clue.device_id}"


def _devices(devices: frozenset[str]) -> str:
    ids = sorted(devices, key=lambda one: (len(one), one))
    return f"device{'s' if len(ids) > 1 else ''} {', '.join(ids)}"


def _ranked(cause: Cause, points: list[Point], groups: Mapping[Point, str], incident: Incident) -> Ranked:
    strongest: dict[str, Point] = {}
    for point in points:
        had = strongest.get(groups[point])
        if had is None or point.strength > had.strength:
            strongest[groups[point]] = point
    # Sorted: a product of the same numbers in another order may round to another hundredth.
    score = 1.0 - prod(sorted(1.0 - point.strength for point in strongest.values()))
    against = [
        Point(_WORDS[name], "npu-watchd status", None, AGAINST[name][cause])
        for name in sorted(incident.well)
        if cause in AGAINST.get(name, {})
    ]
    score *= prod(1.0 - point.strength for point in against)
    proofs = [point for point in strongest.values() if point.strength >= PROOF]
    if cause is Cause.HARDWARE and not proofs:
        score = min(score, ENOUGH - 0.01)
        against.append(Point("no evidence that only a faulty device leaves", "", None, 0.0))
    ids = dict.fromkeys(point.device_id for point in proofs if point.device_id) if cause is Cause.HARDWARE else {}
    shown = sorted(strongest.values(), key=lambda point: -point.strength)
    return Ranked(cause, round(score, 2), tuple(shown), tuple(against), tuple(ids))
