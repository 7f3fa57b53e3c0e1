"""`lspci`, in any verbosity: who is on the bus, and with -vv the link of each (as root; others see no capabilities).

Source: pciutils 3.5 to 3.9 (lspci.c, ls-caps.c), run on a made sysfs tree by tests/e2e/test_real_lspci.py.
"""

from __future__ import annotations

import re
from dataclasses import replace

from npu_watchd.model.pcie_tools import LspciDevice, LspciList
from npu_watchd.parsers.lines import Line, ParseError, lines_of
from npu_watchd.parsers.pcie import lanes_known, speed_of

_HEAD = re.compile(
    r"(?:(?P<domain>[0-9a-f]{4,8}):)?(?P<slot>[0-9a-f]{2}:[01][0-9a-f]\.[0-7]) (?P<class>[^:]+): (?P<name>.+)$"
)
_CLASS_ID = re.compile(r" \[[0-9a-f]{4}\]$")
_IDS = re.compile(r" \[(?P<vendor>[0-9a-f]{4}):(?P<device>[0-9a-f]{4})\]")
_CAPABILITY = re.compile(r"LnkCap:\s+Port #\d+, Speed (?P<speed>[^,]+), Width x(?P<lanes>\d+)(?=,|$)")
_STATUS = re.compile(
    r"LnkSta:\s+Speed (?P<speed>[^,(]+?)(?: \((?P<fast>[a-z]+)\))?, "
    r"Width x(?P<lanes>\d+)(?: \((?P<wide>[a-z]+)\))?(?=,|$)"
)
# Six bits: 0 and all ones are what a port without a partner and a device that is gone show.
_NO_LANES = {0, 63}


def parse(text: str) -> LspciList:
    """All devices, in lspci's order. Raises ParseError.

    A text that begins in the middle of a device gives a first one without address. Blocks of other tools are refused.
    """
    devices: list[LspciDevice] = []
    for line in lines_of(text):
        if not line.ended:
            continue  # it may have been cut in the middle of a number
        if not line.text[0].isspace():
            devices.append(_head(line))
            continue
        if not devices:
            devices.append(LspciDevice(None, None, None, None, None, answers=True))
        devices[-1] = _with(devices[-1], line)
    if not devices:
        raise ParseError(1, "no device in a whole line")
    if all(device.address is None and device.lanes is None and device.max_lanes is None for device in devices):
        raise ParseError(1, "no device and no link in the text")
    return LspciList(tuple(devices))


def _head(line: Line) -> LspciDevice:
    match = _HEAD.match(line.text)
    if match is None:
        raise line.refuse("no device line of lspci")
    ids = _IDS.search(match["name"])
    name = _IDS.sub("", match["name"], count=1) if ids else match["name"]
    return LspciDevice(
        address=f"{match['domain'] or '0000'}:{match['slot']}",
        class_name=_CLASS_ID.sub("", match["class"]),
        name=name.partition(" (rev ")[0].partition(" (prog-if ")[0],
        vendor_id=ids["vendor"] if ids else None,
        device_id=ids["device"] if ids else None,
        answers="(rev ff)" not in match["name"],
    )


def _with(device: LspciDevice, line: Line) -> LspciDevice:
    text = line.text.strip()
    if text.startswith("!!! Unknown header type"):
        return replace(device, answers=False)
    if text.startswith("LnkCap:"):
        match = _matched(_CAPABILITY, line)
        return replace(
            device, max_transfers_per_second=_speed(line, match["speed"]), max_lanes=_lanes(line, match["lanes"])
        )
    if text.startswith("LnkSta:"):
        match = _matched(_STATUS, line)
        return replace(
            device,
            transfers_per_second=_speed(line, match["speed"]),
            lanes=_lanes(line, match["lanes"]),
            speed_judgement=match["fast"],
            width_judgement=match["wide"],
        )
    return device


def _matched(pattern: re.Pattern[str], line: Line) -> re.Match[str]:
    match = pattern.match(line.text.strip())
    if match is None:
        raise line.refuse("a link that we cannot read")
    return match


def _speed(line: Line, text: str) -> float | None:
    if text == "unknown":
        return None
    speed = speed_of(text)
    if speed is None:
        raise line.refuse("no PCIe link speed")
    return speed


def _lanes(line: Line, text: str) -> int | None:
    count = int(text[:4])
    if count in _NO_LANES:
        return None
    if len(text) > 4 or not lanes_known(count):
        raise line.refuse("no PCIe link width")
    return count
