"""The JSON document of `sources/dcmi_helper.py`: PCIe bandwidth by card and chip, and what the driver refused."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from npu_watchd.model.ids import DeviceKey
from npu_watchd.model.pcie_tools import DcmiBandwidth
from npu_watchd.model.reading import Failure, FailureKind
from npu_watchd.parsers.lines import Line, ParseError, lines_of
from npu_watchd.parsers.tool_words import refusal

# The manual says MB/ms and whole numbers, so the grain is 1 GB/s. Decimal megabytes, as link speeds are counted: should
# the driver mean MiB, the load is 5 % more than we say.
_BYTES_PER_SECOND = 1_000_000 * 1000.0
_NO_VALUE = 0xFFFFFFFF

# Where the words of npu-smi's table of codes would mislead for this call.
_CODES: Mapping[int, tuple[FailureKind, str]] = {
    -8020: (
        FailureKind.EXIT,
        "occupied: another container holds the card, or another process samples it (npu-exporter, a profiler)",
    ),
    -8255: (FailureKind.UNSUPPORTED, "this chip or driver does not measure its PCIe bandwidth; 910B does"),
}


@dataclass(frozen=True, slots=True)
class DcmiReport:
    devices: Mapping[DeviceKey, DcmiBandwidth | Failure]
    """DCMI's card id is npu-smi's NPU id, its device id the chip."""
    cards: Mapping[int, Failure]
    """Cards of which the driver does not even say how many chips they have."""


def parse(text: str) -> DcmiReport:
    """Raises ParseError; not of kind UNPARSEABLE where the library is missing or refuses as a whole."""
    line, document = _document(text)
    error, window_ms, entries = document.get("error"), document.get("window_ms"), document.get("devices")
    root = document.get("root") is True
    if error is not None:
        raise _whole(line, error, root)
    if not isinstance(window_ms, int) or window_ms <= 0 or not isinstance(entries, list):
        raise line.refuse("no document of dcmi_helper")
    devices: dict[DeviceKey, DcmiBandwidth | Failure] = {}
    cards: dict[int, Failure] = {}
    for entry in entries:
        match entry:
            case {"card": int(card), "device": None, "call": str(call), "code": int(code)}:
                cards[card] = refused(call, code, root)
            case {"card": int(card), "device": int(chip), "call": str(call), "code": int(code)}:
                devices[DeviceKey(card, chip)] = refused(call, code, root)
            case {"card": int(card), "device": int(chip)}:
                devices[DeviceKey(card, chip)] = _bandwidth(entry, window_ms / 1000)
            case _:
                raise line.refuse("a device that we cannot read")
    if len(devices) + len(cards) != len(entries):
        raise line.refuse("a device that is there twice")
    return DcmiReport(devices, cards)


def refused(call: str, code: int, root: bool) -> Failure:
    """What a DCMI return code means, with the cure where one is known; codes as in the DCMI manual, Return Codes."""
    own = _CODES.get(code)
    if own is not None:
        return Failure(own[0], f"{call} failed: {code} ({own[1]})")
    error = refusal([Line(1, f"{call} failed. ret is {code}", ended=True)])
    assert error is not None, "the words above hold a code"
    hint = "" if root else "; the helper did not run as root"
    return Failure(error.kind, error.problem + hint)


def _document(text: str) -> tuple[Line, dict[str, Any]]:
    lines = list(lines_of(text))
    if not lines:
        raise ParseError(1, "dcmi_helper printed nothing")
    if len(lines) > 1:
        raise lines[1].refuse("more than one line")
    try:
        document = json.loads(lines[0].text)
    except (ValueError, RecursionError) as error:
        raise lines[0].refuse("no JSON") from error
    if not isinstance(document, dict) or not lines[0].ended:
        raise lines[0].refuse("no document of dcmi_helper")
    return lines[0], document


def _whole(line: Line, error: Any, root: bool) -> ParseError:
    match error:
        case {"call": str(call), "code": int(code)}:
            failure = refused(call, code, root)
            return ParseError(line.number, failure.detail, failure.kind)
        case {"call": "dlopen", "words": str(words)} if "cannot open shared object file: No such file" in words:
            cure = "install the driver, mount it into the container, or set LD_LIBRARY_PATH"
            return ParseError(line.number, f"{words[:300]} ({cure})", FailureKind.MISSING)
        case {"call": "dlopen", "words": str(words)}:
            problem = f"the driver's library cannot be loaded: {words[:300]}"
            return ParseError(line.number, problem, FailureKind.EXIT)
        case {"call": "dlsym", "words": str(words)}:
            problem = f"{words[:300]} (this driver does not have the call; 910B's does)"
            return ParseError(line.number, problem, FailureKind.UNSUPPORTED)
    return line.refuse("no document of dcmi_helper")


def _bandwidth(entry: Mapping[str, Any], window_s: float) -> DcmiBandwidth | Failure:
    rates: dict[str, float] = {}
    for name in ("tx_p", "tx_np", "tx_cpl", "rx_p", "rx_np", "rx_cpl"):
        match entry.get(name):
            case [least, most, average] if all(map(_count, (least, most, average))) and least <= average <= most:
                rates[name] = average * _BYTES_PER_SECOND
            case _:
                words = f"the driver's {name} is no minimum, maximum and average: {str(entry.get(name))[:80]}"
                return Failure(FailureKind.UNPARSEABLE, words)
    return DcmiBandwidth(
        tx_posted_bytes_per_second=rates["tx_p"],
        tx_non_posted_bytes_per_second=rates["tx_np"],
        tx_completion_bytes_per_second=rates["tx_cpl"],
        rx_posted_bytes_per_second=rates["rx_p"],
        rx_non_posted_bytes_per_second=rates["rx_np"],
        rx_completion_bytes_per_second=rates["rx_cpl"],
        window_s=window_s,
    )


def _count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _NO_VALUE
