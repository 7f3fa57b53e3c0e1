"""What Linux says of PCIe: the link files and AER files of sysfs, and the AER lines of the kernel's log.

Source: drivers/pci/pci-sysfs.c, probe.c and pcie/aer.c of Linux 4.18 to 6.12, whose wording changed over the years.
"""

from __future__ import annotations

import re

from npu_watchd.model.pcie import AerCounts, AerLine, AerReport
from npu_watchd.parsers.lines import Line, ParseError, integer, lines_of

ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[01][0-9a-f]\.[0-7]")
"""Of a PCI function with its domain, in lower case."""

_SPEED = re.compile(r"(?P<giga>\d{1,3}(?:\.\d)?) ?GT/s(?: PCIe)?$")
_SPEEDS = {2.5e9, 5e9, 8e9, 16e9, 32e9, 64e9, 128e9}
_UNKNOWN_SPEEDS = {"Unknown", "Unknown speed"}
_LANES = {1, 2, 4, 8, 12, 16, 32}
# 0: the link is not up. 255: the kernel does not know. 63: all six bits set, as a device reads that is gone.
_UNKNOWN_LANES = {0, 63, 255}


def transfers_per_second(text: str) -> float | None:
    """`current_link_speed` or `max_link_speed`: 16e9 for `16.0 GT/s PCIe`; None for `Unknown`. Raises ParseError."""
    line = _only_line(text)
    if line.text in _UNKNOWN_SPEEDS:
        return None
    speed = speed_of(line.text)
    if speed is None:
        raise line.refuse("no PCIe link speed")
    return speed


def speed_of(text: str) -> float | None:
    """`16GT/s`, `2.5 GT/s` or `16.0 GT/s PCIe` in transfers per second; None for a speed of no PCIe generation."""
    match = _SPEED.match(text)
    speed = float(match["giga"]) * 1e9 if match else None
    return speed if speed in _SPEEDS else None


def lanes(text: str) -> int | None:
    """`current_link_width` or `max_link_width`; None for 0, 63 and 255, which stand for unknown. Raises ParseError."""
    line = _only_line(text)
    count = integer(line, line.text)
    if count is None or not lanes_known(count):
        if count in _UNKNOWN_LANES:
            return None
        raise line.refuse("no PCIe link width")
    return count


def lanes_known(count: int) -> bool:
    """Whether PCIe has links of that many lanes."""
    return count in _LANES


def _only_line(text: str) -> Line:
    """A sysfs attribute: one line, ended, or it was cut."""
    found = list(lines_of(text))
    if not found:
        raise ParseError(1, "empty")
    if len(found) > 1:
        raise found[1].refuse("more than one line")
    if not found[0].ended:
        raise found[0].refuse("cut off before the end of the line")
    return found[0]


_COUNTER = re.compile(r"(?P<name>[A-Za-z]\w*(?:\[\d{1,2}\])?) (?P<count>\S+)$")
_CORRECTABLE = {"RxErr", "BadTLP", "BadDLLP", "Rollover", "Timeout"}
_TOTALS = {"TOTAL_ERR_COR": "correctable", "TOTAL_ERR_NONFATAL": "nonfatal", "TOTAL_ERR_FATAL": "fatal"}


def aer(text: str) -> AerReport:
    """One file `aer_dev_*` of a device, or several of the same device one after another. Raises ParseError.

    The total comes last in each file, so counts without it were cut off.
    """
    found: dict[str, AerCounts] = {}
    counts: dict[str, int] = {}
    last = None
    for line in lines_of(text):
        last = line
        name, count = _counter(line)
        severity = _TOTALS.get(name)
        if severity is None:
            if name.startswith("TOTAL"):
                raise line.refuse("a total that we do not know")
            if name in counts:
                raise line.refuse("counted twice, so this is of more than one device")
            counts[name] = count
            continue
        if counts and bool(counts.keys() & _CORRECTABLE) != (severity == "correctable"):
            raise line.refuse("the total of another severity than the counts before it")
        if severity in found:
            raise line.refuse("a second total, so this is of more than one device")
        found[severity] = AerCounts(severity, count, counts)
        counts = {}
    if last is None:
        raise ParseError(1, "empty")
    if counts:
        raise last.refuse("cut off before the total")
    return AerReport(**found)


def _counter(line: Line) -> tuple[str, int]:
    match = _COUNTER.match(line.text)
    if match is None:
        raise line.refuse("no AER counter")
    count = integer(line, match["count"])
    if count is None:
        raise line.refuse("no AER counter")
    if not line.ended:
        raise line.refuse("cut off before the end of the line")
    return match["name"], count


_LONGEST_LINE_CHARS = 2048
_AT = rf"(?<![\w:])(?P<at>{ADDRESS.pattern}): (?:AER: )*"
_ERROR = re.compile(
    _AT + r"PCIe Bus Error: severity=(?P<severity>[^,]+), type=(?P<layer>[^,]+), (?:id=[0-9a-f]{4})?"
    r"\((?P<agent>[^)]+)\)"
)
_NOTICE = re.compile(
    _AT + r"(?P<multiple>Multiple )?(?P<severity>\S+(?: \([^)]+\))?) error (?:received: |message received from )"
    rf"(?:id=(?P<id>[0-9a-f]{{4}})(?!\w)|(?P<source>{ADDRESS.pattern}))"
)
_FIRMWARE = re.compile(_AT + r"aer_status: (?P<status>0x[0-9a-f]{8}), aer_mask: (?P<mask>0x[0-9a-f]{8})")
_SEVERITIES = {
    "Corrected": "correctable",
    "Correctable": "correctable",
    "Uncorrected (Non-Fatal)": "nonfatal",
    "Uncorrectable (Non-Fatal)": "nonfatal",
    "Uncorrected (Fatal)": "fatal",
    "Uncorrectable (Fatal)": "fatal",
}


def aer_line(line: str) -> AerLine | None:
    """The PCIe error that a line of the kernel's log reports, whatever stands before it (dmesg, kmsg, journal).

    None: the line is about something else, or a detail of the error before it (device ids, single bits, TLP header).
    """
    line = line[:_LONGEST_LINE_CHARS]
    error = _ERROR.search(line)
    if error is not None:
        severity = _SEVERITIES.get(error["severity"])
        return AerLine(error["at"], severity, f"{error['layer']}, {error['agent']}", announces=False)
    firmware = _FIRMWARE.search(line)
    if firmware is not None:
        words = f"reported by the firmware, status {firmware['status']}, mask {firmware['mask']}"
        return AerLine(firmware["at"], None, words, announces=False)
    notice = _NOTICE.search(line)
    if notice is None or notice["severity"] not in _SEVERITIES:
        return None
    source = notice["source"] or _requester(notice["at"], int(notice["id"], 16))
    words = "several error messages" if notice["multiple"] else "an error message"
    return AerLine(source, _SEVERITIES[notice["severity"]], words, announces=True, port=notice["at"])


def _requester(port: str, number: int) -> str:
    """The address of `id=00e8`, as kernels before 4.19 print it: bus, device and function, in the port's domain."""
    domain = port.partition(":")[0]
    return f"{domain}:{number >> 8:02x}:{number >> 3 & 0x1F:02x}.{number & 7}"
