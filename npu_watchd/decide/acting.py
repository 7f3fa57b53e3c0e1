"""What to do to a scheduler, from the newest verdict alone: nothing is queued, so nothing of yesterday is done today.

Its invariants, held over random histories by tests/decide/test_acting.py:

* only a node in quarantine that nobody holds is taken out of use, and only with the budget's word;
* what somebody else holds, or has changed, is never touched;
* a node is given back only where it bears a mark that we know, and after a person's release;
* a person who gives it back while our mark held it has released it, and that quarantine takes it out no second time.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import Enum
from hashlib import sha256

from npu_watchd.model.acting import Allowance, Hold, Holder, Why
from npu_watchd.model.finding import Event
from npu_watchd.model.reading import Failure, FailureKind
from npu_watchd.model.verdict import Order, State, Verdict

STALE_S = 600.0
"""Nobody acts on a verdict that is older (assumption; NVSentinel #1280 acted on what had waited in a queue)."""
_RELEASES = f"decided_{Order.RELEASE}"


class Do(Enum):
    """The next step."""

    NOTHING = "nothing"
    ASK = "ask"
    """The budget; then decide again with its answer."""
    HOLD = "hold"
    FREE = "free"
    RELEASE = "release"
    """Write down that a person has released the node, there instead of here."""


@dataclass(frozen=True, slots=True)
class Step:
    """What to do, and what a person should know of it."""

    do: Do
    why: Why | None = None
    """Of NOTHING, where the verdict asks for something: what stands in the way."""
    text: str = ""
    kind: FailureKind | None = None
    """Of the failure that stands in the way, where one does."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What the newest verdict asks of every scheduler."""

    mark: str | None
    """Of the quarantine; None: the node is in none."""
    age_s: float
    """Since the node was last judged."""
    newest: int
    """Number of the journal's newest line."""
    released: int
    """Of the newest that says that a person has released something; 0: there is none."""


@dataclass(frozen=True, slots=True)
class Grip:
    """Our mark, as we have seen it stand at a scheduler."""

    mark: str
    wanted: str
    """The quarantine that it has stood for since; a mark may outlive the first."""
    since: int
    """The journal's newest line then: a release further on is about this grip."""
    released: bool = False
    """Such a release was seen with the node out of quarantine; the journal's line may be gone before we get to act."""


@dataclass(frozen=True, slots=True)
class Memory:
    """Of what we did to one scheduler; it survives a restart."""

    grip: Grip | None = None
    given_back: str | None = None
    """The quarantine from which a person took the node there."""


NONE = Memory()


def mark_of(node: Verdict) -> str | None:
    """The quarantine's id, the same also after a restart: when it began, and a digest of just that instant."""
    if node.state is not State.QUARANTINE:
        return None
    began = datetime.fromtimestamp(node.since_s, UTC).strftime("%Y%m%dT%H%M%SZ")
    return f"q{began}-{sha256(repr(float(node.since_s)).encode()).hexdigest()[:8]}"


def wish_of(node: Verdict, journal: Iterable[Event], age_s: float) -> Wish:
    """journal: the newest lines, oldest first. age_s: since it was judged."""
    newest = released = 0
    for event in journal:
        newest = max(newest, event.number)
        if event.kind == _RELEASES:
            released = max(released, event.number)
    return Wish(mark_of(node), age_s, newest, released)


def remembered(wish: Wish, hold: Hold | Failure, memory: Memory) -> Memory:
    """With what the scheduler shows now. A mark of ours is known from when it is seen under a quarantine."""
    grip = memory.grip
    if wish.mark is None:
        released = grip is not None and not grip.released and wish.released > grip.since
        return replace(memory, grip=replace(grip, released=True)) if grip is not None and released else memory
    if isinstance(hold, Failure) or hold.holder is not Holder.OURS or hold.mark is None:
        return memory
    if grip is not None and not grip.released and (grip.mark, grip.wanted) == (hold.mark, wish.mark):
        return memory
    return replace(memory, grip=Grip(hold.mark, wish.mark, wish.newest))


def next_step(
    wish: Wish, hold: Hold | Failure, memory: Memory, allowance: Allowance | Failure | None, *, dry_run: bool
) -> Step:
    """memory: as `remembered` made it. allowance: None where the budget was not asked."""
    if isinstance(hold, Failure):
        # Also where nothing is asked yet: it is better known before it is needed.
        return Step(Do.NOTHING, Why.UNREACHABLE, hold.detail, hold.kind)
    if wish.age_s > STALE_S:
        return Step(Do.NOTHING, Why.STALE, f"the node was last judged {wish.age_s:.0f} s ago: on that nobody acts")
    if wish.mark is None:
        return _out_of_quarantine(hold, memory, dry_run=dry_run)
    if hold.holder is Holder.OURS:
        return Step(Do.NOTHING)
    if hold.holder is Holder.OTHER:
        return Step(Do.NOTHING, Why.HELD_BY_OTHER, f"somebody else holds the node already, it is theirs: {hold.text}")
    if memory.grip is not None:
        # Of a grip whose end is told already only what is left of it remains to be cleared away.
        told = memory.grip.released or wish.released > memory.grip.since or memory.given_back == memory.grip.wanted
        return _free(memory.grip, hold, dry_run=dry_run) if told else Step(Do.RELEASE, text=hold.text)
    if memory.given_back == wish.mark:
        return Step(Do.NOTHING, Why.GIVEN_BACK, "a person gave the node back there during this quarantine")
    return _hold(allowance, dry_run=dry_run)


def _hold(allowance: Allowance | Failure | None, *, dry_run: bool) -> Step:
    if allowance is None:
        return Step(Do.ASK)
    if isinstance(allowance, Failure):
        text = f"nobody says how much of the fleet is out, so the node stays in use: {allowance.detail}"
        return Step(Do.NOTHING, Why.BUDGET_UNKNOWN, text, allowance.kind)
    if not allowance.granted:
        return Step(Do.NOTHING, Why.BUDGET_SPENT, f"the node stays in use: {allowance.text}")
    if dry_run:
        return Step(Do.NOTHING, Why.DRY_RUN, f"would take the node out of use ({allowance.text})")
    return Step(Do.HOLD, text=allowance.text)


def _out_of_quarantine(hold: Hold, memory: Memory, *, dry_run: bool) -> Step:
    grip = memory.grip
    if grip is None:
        if hold.holder is not Holder.OURS:
            return Step(Do.NOTHING)
        text = f"our mark {hold.mark} stands, but nothing is known here of its quarantine: give the node back by hand"
        return Step(Do.NOTHING, Why.UNKNOWN_MARK, text)
    if grip.released or memory.given_back == grip.wanted:
        return _free(grip, hold, dry_run=dry_run)
    text = f"the node is out of quarantine, but nobody released it: our mark {grip.mark} stays until somebody does"
    return Step(Do.NOTHING, Why.NOT_RELEASED, text)


def _free(grip: Grip, hold: Hold, *, dry_run: bool) -> Step:
    if dry_run:
        return Step(Do.NOTHING, Why.DRY_RUN, f"would give the node back, as far as mark {grip.mark} holds it")
    return Step(Do.FREE, text=hold.text)
