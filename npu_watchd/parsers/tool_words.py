"""What npu-smi says when it fails, and what to do about it.

All of it is on stdout but the loader's message, and the exit code is 0 as often as not: the text decides.
Source: outputs of the tool's public source on a stub driver, and reports of users (docs/parse.md).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from npu_watchd.model.reading import Failure, FailureKind, Output
from npu_watchd.parsers.lines import Line, ParseError, lines_of

_DRIVER = (
    "the driver is not loaded, this container lacks the davinci devices or the rights to them, "
    "or the driver was upgraded without a reboot; check `lsmod | grep drv_` and `ls /dev/davinci*`"
)
_LOST = "the card fell off the bus, or there is none with this id; compare `npu-smi info -l` with `lspci -d 19e5:`"

# dcmi codes are -8000 minus N, the tool's own -9000 minus the same N.
_CODES: dict[int, tuple[FailureKind, str]] = {
    1: (FailureKind.EXIT, "bad parameter"),
    2: (FailureKind.DENIED, "not permitted; run as root, on the host"),
    3: (FailureKind.EXIT, "memory"),
    4: (FailureKind.EXIT, "secure function"),
    5: (FailureKind.EXIT, _DRIVER),
    6: (FailureKind.EXIT, "the driver did not answer in its own time; the chip may be wedged"),
    7: (FailureKind.EXIT, "invalid device; " + _LOST),
    8: (FailureKind.EXIT, "no such device; " + _LOST),
    9: (FailureKind.EXIT, "the driver refused the call (ioctl)"),
    10: (FailureKind.EXIT, "sending to the device failed"),
    11: (FailureKind.EXIT, "receiving from the device failed"),
    12: (FailureKind.EXIT, "the device is not ready"),
    13: (FailureKind.UNSUPPORTED, "not available in a container"),
    14: (FailureKind.EXIT, "file"),
    15: (FailureKind.EXIT, "reset failed"),
    16: (FailureKind.EXIT, "aborted"),
    17: (FailureKind.EXIT, "an upgrade is under way"),
    19: (FailureKind.EXIT, "the call into the driver library failed"),
    20: (FailureKind.EXIT, "another container holds the card; find it before you start a job here"),
    21: (FailureKind.EXIT, "an upgrade is under way"),
    255: (FailureKind.UNSUPPORTED, "this npu-smi is for another chip generation or driver"),
    256: (FailureKind.UNSUPPORTED, "not for this operating system"),
}
_CODE = re.compile(r"\b(?:ret|err)\s+(?:is\s+|code\s*:\s*)?-(?P<code>[89]\d{3})\b")

_WORDS: tuple[tuple[re.Pattern[str], FailureKind, str], ...] = (
    (re.compile(r"does not support query"), FailureKind.UNSUPPORTED, ""),
    (re.compile(r"not in docker mode"), FailureKind.UNSUPPORTED, ""),
    (re.compile(r"cannot be executed on a VM"), FailureKind.UNSUPPORTED, ""),
    (re.compile(r"only by the root user"), FailureKind.DENIED, "run npu-watchd as root"),
    (re.compile(r"^Invalid card id"), FailureKind.EXIT, _LOST),
    (re.compile(r"^Invalid chip id"), FailureKind.EXIT, "this card has no such chip, or it is lost"),
    (re.compile(r"error while loading shared libraries"), FailureKind.MISSING, "mount the driver, set LD_LIBRARY_PATH"),
    (re.compile(r"^[^|]*\bnpu-smi: (?:command )?not found$"), FailureKind.MISSING, "install the driver's tools"),
    (re.compile(r"^(?:Command or option is not found|Input parameter format error)"), FailureKind.UNSUPPORTED, ""),
    (re.compile(r"^Error parameter (?:of -t|in querying)"), FailureKind.UNSUPPORTED, "this version knows no such type"),
    (re.compile(r"^(?:Error parameter|Must input parameter|This command must)"), FailureKind.EXIT, ""),
    (re.compile(r"^There is no NPU card"), FailureKind.EXIT, "the driver sees no card; compare `lspci -d 19e5:`"),
    (re.compile(r"^Failed to |\bfailed\. (?:ret|err) is"), FailureKind.EXIT, ""),
    (re.compile(r"^Usage: npu-smi"), FailureKind.EXIT, "npu-smi answered with its usage page only"),
)
# Each pattern above needs one of these, and a good answer has none: one look at the text spares one at each line.
_HINTS = (
    *("-8", "-9", "does not support query", "not in docker mode", "executed on a VM", "by the root user"),
    *("Invalid c", "shared libraries", "not found", "format error", "Error parameter", "Must input parameter"),
    *("This command must", "There is no NPU card", "Failed to ", "failed. ", "Usage: npu-smi"),
)
# Printed by the HAL below npu-smi ahead of the real message, and harmless by itself.
_PRELUDE = re.compile(r"^DrvMng\w+ failed")


def may_refuse(text: str) -> bool:
    """False where `refusal` finds nothing in any line of this text, told without looking at each."""
    return any(hint in text for hint in _HINTS)


def refusal(lines: Iterable[Line]) -> ParseError | None:
    """The failure that an answer consists of, with the tool's own words and the cure; None where it names none.

    The first line that says something counts, but a line with a code explains more than one without.
    """
    first: ParseError | None = None
    for line in lines:
        found = _meaning(line.text.strip())
        if found is None:
            continue
        kind, cure, exact = found
        words = line.text.strip()
        error = ParseError(line.number, f"{words} ({cure})" if cure else words, kind)
        if exact:
            return error
        first = first or error
    return first


def refusal_of(output: Output) -> Failure | None:
    """As `refusal`, over stdout and then stderr: the loader's message is the only one that npu-smi has there."""
    for text in (output.text, output.stderr):
        error = refusal(lines_of(text))
        if error is not None:
            return error.failure()
    return None


def _meaning(text: str) -> tuple[FailureKind, str, bool] | None:
    if _PRELUDE.match(text):
        return None
    code = _CODE.search(text)
    if code is not None:
        known = _CODES.get(int(code["code"]) % 1000)
        return (*known, True) if known else (FailureKind.EXIT, "unknown code", True)
    for pattern, kind, cure in _WORDS:
        if pattern.search(text):
            return kind, cure, not text.startswith(("Failed to ", "Usage"))
    return None
