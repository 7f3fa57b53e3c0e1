"""An error code taken apart: which form it has, and what the bits of a chip's code say.

Layout from the vendor's open driver: bit 31 the device's side, bit 30 the host's, bits 29 and 28 a black-box code;
node type in bits 17 to 27, sensor in bits 9 to 16, the sensor's state in bits 0 to 8.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from npu_watchd.codes.words import NAMELESS_NODE_TYPE, SENSORS, STATES, UNITS

_HEX = re.compile(r"(?:0x)?([0-9a-f]{8})")
_CLUSTER = re.compile(r"[0-9]{9}")
_SWITCH = re.compile(r"\[0x[0-9a-f]{8},(?:[0-9]{1,10}|na),(?:cpu|npu|l2|na),na\]")
_DEVICE, _HOST, _BLACK_BOX = 1 << 31, 1 << 30, 0b11 << 28

# The vendor's heartbeat monitors raise A… and clear the same code with a 9 in front; no other black-box code does so.
_HEARTBEATS = frozenset(
    {"a4025021", "a4025041", "a4025061", "a4025081", "a40250e1", "a4025101", "a60250a1", "a607ffff"}
)  # fmt: skip


class Form(Enum):
    """How a code is written, and so who writes it."""

    CHIP = "chip"
    """Eight hex digits with the device's or the host's bit set: what npu-smi prints."""
    ALARM = "alarm"
    """Eight hex digits with neither: an alarm of the server's BMC or of a NIC. Its bits are not ours to read."""
    CLUSTER = "cluster"
    """Nine decimal digits: made by the vendor's cluster software, not by a chip."""
    SWITCH = "switch"
    """`[0x…,sub code,peer,na]`: of the switch inside an A3 node."""
    OTHER = "other"
    """None of these: a tool printed it, and we can only show it. `decode` never answers with it."""


class Side(Enum):
    """Who saw it."""

    DEVICE = "device"
    HOST = "host"
    BOTH = "device and host"


class Change(Enum):
    """Whether a code says that something began or ended.

    Only heartbeats in the black box do. All others are the same at their beginning and at their end.
    """

    RAISED = "raised"
    RECOVERED = "recovered"


@dataclass(frozen=True, slots=True)
class Bits:
    """The fields of a chip's code."""

    side: Side
    black_box: bool
    """A record of the device's black box: its lower bits are a number of their own, and the three below are None."""
    node_type: int | None
    sensor_type: int | None
    state: int | None
    change: Change | None
    """None: the code itself does not tell."""

    @property
    def unit(self) -> str | None:
        """The node type's short name; None where it has none."""
        known = UNITS.get(self.node_type) if self.node_type is not None else None
        return known.name if known else None

    @property
    def unit_words(self) -> str | None:
        """The node type in words; None where it has no name."""
        known = UNITS.get(self.node_type) if self.node_type is not None else None
        return known.words if known else None

    @property
    def sensor(self) -> str | None:
        """The sensor in words; None where it has no name."""
        return SENSORS.get(self.sensor_type) if self._has_known_numbers() and self.sensor_type is not None else None

    @property
    def state_words(self) -> str | None:
        """The state in words; None where that sensor's state has no name."""
        if self.sensor_type is None or self.state is None or not self._has_known_numbers():
            return None
        return STATES.get(self.sensor_type, {}).get(self.state)

    def _has_known_numbers(self) -> bool:
        return self.node_type != NAMELESS_NODE_TYPE


@dataclass(frozen=True, slots=True)
class Code:
    """One error code, taken apart."""

    text: str
    """As we compare and export it: lower case, no 0x in front, no blanks."""
    form: Form
    bits: Bits | None
    """None for all forms but CHIP."""

    @property
    def shown(self) -> str:
        """As the vendor's tools and documents print it."""
        return self.text.upper() if self.form in (Form.CHIP, Form.ALARM) else self.text.replace(",l2,", ",L2,")


def decode(text: str) -> Code:
    """Take a code apart: eight hex digits (any case, 0x or not), nine decimal digits, or a switch's brackets.

    Raises ValueError naming the text and the forms that there are.
    """
    bare = "".join(text.split()).lower() if text.lstrip().startswith("[") else text.strip().lower()
    if match := _HEX.fullmatch(bare):
        word = int(match[1], 16)
        if word & (_DEVICE | _HOST):
            return Code(match[1], Form.CHIP, _bits(word))
        return Code(match[1], Form.ALARM, None)
    if _CLUSTER.fullmatch(bare):
        return Code(bare, Form.CLUSTER, None)
    if _SWITCH.fullmatch(bare):
        return Code(bare, Form.SWITCH, None)
    raise ValueError(
        f"{_quoted(text)} is no error code; write eight hex digits as npu-smi prints them (80E01801), "
        "nine decimal digits (200001002), or a switch's code ([0x08520003,na,L2,na])"
    )


def _bits(word: int) -> Bits:
    sides = word & (_DEVICE | _HOST)
    side = Side.BOTH if sides == _DEVICE | _HOST else Side.DEVICE if sides == _DEVICE else Side.HOST
    if word & _BLACK_BOX:
        return Bits(side, True, None, None, None, _change(word))
    return Bits(side, False, word >> 17 & 0x7FF, word >> 9 & 0xFF, word & 0x1FF, None)


def _change(word: int) -> Change | None:
    if word >> 28 == 0xA:
        return Change.RAISED
    return Change.RECOVERED if word >> 28 == 0x9 and raised_form(f"{word:08x}") in _HEARTBEATS else None


def raised_form(text: str) -> str:
    """The code that a recovered heartbeat (9…) had when it was lost (A…)."""
    return f"a{text[1:]}"


def _quoted(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:60] + "…")
