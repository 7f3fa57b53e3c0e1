"""States of an RDMA port: one vocabulary for ibstat, `rdma link` and sysfs.

Numbers: the InfiniBand specification's PortState and PortPhysicalState, which RoCE drivers imitate.
"""

from __future__ import annotations

from npu_watchd.parsers.lines import Line, quoted

# Number, ibstat's word (ours), and what the kernel and iproute2 call it.
_STATES = (
    (0, None, ("NOP",)),
    (1, "Down", ("DOWN",)),
    (2, "Initializing", ("INIT",)),
    (3, "Armed", ("ARMED",)),
    (4, "Active", ("ACTIVE",)),
    (5, "ActiveDefer", ("ACTIVE_DEFER",)),
)
_PHYSICAL_STATES = (
    (0, None, ("No state change", "NOP")),
    (1, "Sleep", ("SLEEP",)),
    (2, "Polling", ("POLLING",)),
    (3, "Disabled", ("DISABLED",)),
    (4, "PortConfigurationTraining", ("ARMED",)),
    (5, "LinkUp", ("LINK_UP",)),
    (6, "LinkErrorRecovery", ("LINK_ERROR_RECOVER",)),
    (7, "PhyTest", ("PHY_TEST", "Phy Test")),
)
# With these a tool says that it cannot name the state; the states of Omni-Path are none of ours.
_NAMELESS = ("???", "UNKNOWN", "<unknown>", "OPA_OFFLINE", "OPA_TEST")

_Table = tuple[tuple[int, str | None, tuple[str, ...]], ...]


def state(line: Line, word: str) -> str | None:
    """The logical state in ibstat's word; None where the tool cannot name it. Raises ParseError for any other word."""
    return _by_word(line, word, _STATES, "state")


def physical_state(line: Line, word: str) -> str | None:
    """As `state`, of the physical state."""
    return _by_word(line, word, _PHYSICAL_STATES, "physical state")


def state_of_number(number: int) -> str | None:
    """The logical state as sysfs numbers it; None for a number that has no name."""
    return _by_number(number, _STATES)


def physical_state_of_number(number: int) -> str | None:
    """As `state_of_number`, of the physical state."""
    return _by_number(number, _PHYSICAL_STATES)


def _by_word(line: Line, word: str, table: _Table, what: str) -> str | None:
    for _, ours, others in table:
        if word == ours or word in others:
            return ours
    if word in _NAMELESS:
        return None
    raise line.refuse(f"unknown {what} {quoted(word)}")


def _by_number(number: int, table: _Table) -> str | None:
    return next((ours for own, ours, _ in table if own == number), None)
