"""The simulated perf: `perf stat -x` of the hisi_pcie units, which see what goes over each device's link.

Form: perf-stat(1), CSV FORMAT; the units' events: Documentation/admin-guide/perf/hisi-pcie-pmu.rst of Linux 6.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from npu_watchd.simnode.answer import Answer
from npu_watchd.simnode.pcie_slot import PcieSlot, unit_of
from npu_watchd.simnode.state import NodeState

BYTES_PER_COUNT = 4
FROM_DEVICE = frozenset({"event=0x0104", "rx_mwr_flux"})
TO_DEVICE = frozenset({"event=0x1005", "tx_cpl_flux"})
RESTART_NS = 12_340
"""Counters run a little longer than the command that they wait for."""
_EVENT = re.compile(r"(?P<unit>[\w.-]+)/(?P<terms>[^/]*)/")
USAGE = "\n Usage: perf stat [<options>] [<command>]\n"


@dataclass(frozen=True, slots=True)
class Asked:
    separator: str
    events: tuple[str, ...]
    window_s: float
    to_stdout: bool


def answer(node: NodeState, argv: tuple[str, ...]) -> Answer:
    """What perf does with these arguments; it takes as long as the `sleep` that it is given."""
    asked = _asked(argv)
    if isinstance(asked, Answer):
        return asked
    slots = node.slots()
    known = node.pcie_units()
    for event in asked.events:
        unit = event.partition("/")[0]
        if unit not in known:
            words = f"event syntax error: '{event}'\n                     \\___ Cannot find PMU `{unit}'."
            return Answer("", 129, f"{words} Missing kernel support?\n{USAGE}")
    text = "".join(_line(asked, event, node, slots) for event in asked.events)
    if asked.to_stdout:
        return Answer(text, delay_s=asked.window_s)
    return Answer("", 0, text, delay_s=asked.window_s)


def _asked(argv: tuple[str, ...]) -> Asked | Answer:
    at = argv.index("--") if "--" in argv else len(argv)
    values, command = dict(_pairs(argv[1:at])), argv[at + 1 :]
    if argv[:1] != ("stat",) or not {"-x", "-e"} <= values.keys() or len(command) != 2 or command[0] != "sleep":
        return Answer("", 129, USAGE)
    events = tuple(match[0] for match in _EVENT.finditer(values["-e"]))
    return Asked(values["-x"], events, float(command[1]), values.get("--log-fd") == "1")


def _pairs(options: Iterable[str]) -> Iterator[tuple[str, str]]:
    """`-x;` and `-x ;` are the same; of the options only `-a` has no value."""
    waiting = iter(options)
    for option in waiting:
        if option.startswith("-x") and option != "-x":
            yield "-x", option[2:]
        elif option != "-a":
            yield option, next(waiting, "")


def _line(asked: Asked, event: str, node: NodeState, slots: tuple[PcieSlot, ...]) -> str:
    count = _count(event, asked.window_s, node, slots)
    run_ns = 0 if count is None else round(asked.window_s * 1e9) + RESTART_NS
    cells = ("<not supported>" if count is None else str(count), "", event, str(run_ns), "100.00", "", "")
    return asked.separator.join(cells) + "\n"


def _count(event: str, window_s: float, node: NodeState, slots: tuple[PcieSlot, ...]) -> int | None:
    """None: this unit does not watch that device, or has no such event."""
    match = _EVENT.match(event)
    terms = set(match["terms"].split(",")) if match else set()
    slot = next((one for one in slots if f"bdf={one.bdf:#06x}" in terms), None)
    if match is None or slot is None or match["unit"] != unit_of(slot, slots) or not node.on_the_bus(slot):
        return None
    if terms & FROM_DEVICE:
        rate = slot.transmit_bytes_per_second
    elif terms & TO_DEVICE:
        rate = slot.receive_bytes_per_second
    else:
        return None
    return int(rate * (window_s + RESTART_NS / 1e9) / BYTES_PER_COUNT)
