"""What hccn_tool says when it fails, and what to do about it.

Refusals are on stderr, `busy` is on stdout, and the exit code is the low byte of an internal one, which families of
errors share and which can be 0: the text decides. Source: the tool's public source, and its outputs on a stub driver.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from npu_watchd.model.reading import Failure, FailureKind, Output
from npu_watchd.parsers.lines import Line, ParseError, lines_of

R = TypeVar("R")

_LOST = "no such device here, or it is lost; compare `npu-smi info -m` with `lspci -d 19e5:`"
_FORM = "this hccn_tool takes its options in another form: 910B and A3 `-i N -link -g`, Ascend 950 `-g -link -i N …`"
_ROOT = "run npu-watchd as root, on the host"

# The device's answer, not a host lock's: another query is under way on it, or it is not ready yet.
_BUSY: tuple[str, ...] = (
    "hccn_tool is busy, please try again.",
    "I2c is busy. Please try again.",
    "Get lock failed. Please try again.",
    "The device is occupied. Please try again later.",
    "The system is in optical module initializing, please try again later.",
)
_WORDS: tuple[tuple[re.Pattern[str], FailureKind, str], ...] = (
    (re.compile(r"permission denied: pls check this cmd run permission"), FailureKind.DENIED, _ROOT),
    (re.compile(r"permission denied: pls check this cmd run environment"), FailureKind.DENIED, "not in a container"),
    (re.compile(r"(?:Open|Read) file failed.* run permission"), FailureKind.DENIED, _ROOT),
    (re.compile(r"The (?:hccn\.)?conf(?: file)? can't access"), FailureKind.DENIED, _ROOT),
    (re.compile(r"Command unsupported on this optical module"), FailureKind.UNSUPPORTED, ""),
    (re.compile(r"The command is not supported on this"), FailureKind.UNSUPPORTED, ""),
    (re.compile(r"The VM does not support this command"), FailureKind.UNSUPPORTED, ""),
    (re.compile(r"This (?:device|optical module) does not support"), FailureKind.UNSUPPORTED, ""),
    (re.compile(r"Get invalid major cmd|Get unknown option!|The total count of"), FailureKind.UNSUPPORTED, _FORM),
    (re.compile(r"Please specify a|Parse cmd option failed"), FailureKind.UNSUPPORTED, _FORM),
    (re.compile(r"\[ hccn_tool .* needs the following parameters"), FailureKind.UNSUPPORTED, _FORM),
    (re.compile(r"Usage$"), FailureKind.UNSUPPORTED, "hccn_tool answered with its usage page only"),
    (re.compile(r"Get invalid device id|HCCN get invalid phy_id|The device is not exist"), FailureKind.EXIT, _LOST),
    (re.compile(r"target (?:chip|udie|port) is invalid"), FailureKind.EXIT, "see `hccn_tool -g -dev_info -i N`"),
    (
        re.compile(r"Get device health status failed"),
        FailureKind.EXIT,
        "the chip did not answer for 300 s; check `npu-smi info -t health -i N` and dmesg",
    ),
    (
        re.compile(r"Execute failed: Link status is down"),
        FailureKind.EXIT,
        "the device answers nothing for a port without a link; see `hccn_tool -i N -link -g` and `-link_stat -g`",
    ),
    (re.compile(r"(?:Command|Cmd) execute failed"), FailureKind.EXIT, "the driver refused; see /var/log/hccn_tool"),
    (re.compile(r"The cmd line execute timeout"), FailureKind.EXIT, "the device did not answer in the tool's own time"),
    (re.compile(r"Control link unreachable"), FailureKind.EXIT, "the host does not reach the device's own system"),
    (re.compile(r"Get device info failed|Optical module is not present"), FailureKind.EXIT, ""),
    (re.compile(r"\S{0,200}: error while loading shared libraries"), FailureKind.MISSING, "set LD_LIBRARY_PATH"),
    (re.compile(r".{0,200}hccn_tool: (?:command )?not found$"), FailureKind.MISSING, "it comes with the driver"),
)
_LONGEST = 400
# A paste often begins with the command itself.
_COMMAND = re.compile(r"(?:[^\s\[]\S{0,80}[$#]|\[[^]]{1,80}\][$#]|[$#])?\s{0,4}\S{0,80}hccn_tool\s+-[a-z]")


class Busy(ParseError):
    """The device answers another query, or is not ready: the same question may be answered a moment later."""

    def __init__(self, number: int, problem: str) -> None:
        super().__init__(number, problem, FailureKind.EXIT)


def refusal(lines: Iterable[Line]) -> ParseError | None:
    """The failure that an answer consists of, with the tool's own words and the cure; a Busy where it is worth a retry.

    None where no line is one. The first line counts: what follows is the usage page.
    """
    for line in lines:
        words = line.text.strip()[:_LONGEST]
        if words.startswith(_BUSY):
            return Busy(line.number, words)
        for pattern, kind, cure in _WORDS:
            if pattern.match(words):
                return ParseError(line.number, f"{words} ({cure})" if cure else words, kind)
    return None


def is_busy(output: Output) -> bool:
    """True where the same question may be answered a moment later; False for every other failure and for an answer."""
    return isinstance(_refusal_of(output), Busy)


def read(output: Output, parse: Callable[[str], R]) -> R | Failure:
    """What a finished run means: its record, or the failure in the tool's own words.

    stderr first, since a usage page or half an answer may be on stdout; words there that nobody knows count only where
    there is no answer.
    """
    refused = refusal(lines_of(output.stderr))
    if refused is not None:
        return refused.failure()
    try:
        return parse(output.text)
    except ParseError as error:
        if error.kind is not FailureKind.UNPARSEABLE:
            return error.failure()
        said = next(lines_of(output.stderr), None)
        if said is not None:
            return Failure(FailureKind.EXIT, said.text.strip()[:_LONGEST])
        if not output.text.strip():
            return Failure(FailureKind.EXIT, f"hccn_tool printed nothing and ended with exit code {output.exit_code}")
        return error.failure()


def answer_lines(text: str) -> Iterator[Line]:
    """The lines of one answer, without the command that a paste may begin with. Raises ParseError for a refusal.

    An answer that says nothing is refused too: the tool always says something.
    """
    lines = [line for line in lines_of(text) if not _COMMAND.match(line.text.strip()[:_LONGEST])]
    refused = refusal(lines)
    if refused is not None:
        raise refused
    if not lines:
        raise ParseError(1, "hccn_tool printed nothing; its refusals are on stderr")
    return iter(lines)


def _refusal_of(output: Output) -> ParseError | None:
    return refusal(lines_of(output.stderr)) or refusal(lines_of(output.text))
