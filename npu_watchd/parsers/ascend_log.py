"""What a log says that matters to somebody whose job died: plog, slog, MindSpore, torch_npu, vLLM, ModelArts, kernel.

A log is anybody's text, so no line is refused: what says nothing to us is skipped.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from npu_watchd.model.log_event import Family, LogEvent, Role
from npu_watchd.parsers.log_fields import Head, blamed, device_of, head_of, rank_of, source_of, stream_of, task_of
from npu_watchd.parsers.log_sign import Sign
from npu_watchd.parsers.log_signs_device import DEVICE, NETWORK, OCCUPIED, RUNTIME
from npu_watchd.parsers.log_signs_host import COMPILER, HOST, JOB, VERSIONS

SIGNS: tuple[Sign, ...] = (*COMPILER, *VERSIONS, *HOST, *JOB, *DEVICE, *RUNTIME, *OCCUPIED, *NETWORK)

LONGEST_LINE_CHARS = 4096
"""What stands further right is not read: the longest line of the collected logs has 2 600."""
_SHOWN_CHARS = 400
_MESSAGE_LINES = 60
"""So many lines without a time of their own still belong to the message above them."""

_VENDOR_CODE = re.compile(r"(?<![A-Za-z0-9_])(E[A-Z0-9]\d{4}|ERR\d{5})(?=[^A-Za-z0-9_])", re.ASCII)
_RETURN_CODE = re.compile(
    r"(?:ret(?:urn)?_?(?:code|val)?|err(?:or)?_?code|error|code|result|resul t)"
    r"\W{0,3}(?:is\W{0,2})?([125]07\d{3})(?=\D)",
    re.ASCII | re.IGNORECASE,
)
_CHIP_CODE = re.compile(
    r"(?:code|excep_code|system_error|event_?id)\W{1,4}0x([0-9a-f]{8})(?=[^0-9a-f])", re.ASCII | re.IGNORECASE
)
_KILLED = re.compile(r"\s{0,80}(?:\S{1,80}: line \d{1,6}:\s{0,8}\d{1,10} )?Killed(?:\s|$)", re.ASCII)
_RAISED = re.compile(
    r"(?:E {2,8}|\[rank\d{1,6}\]: ?|\([^)]{1,80}\) (?:ERROR [^\]]{1,80}\] )?)?(?:[a-zA-Z_]{1,30}\.){0,4}"
    r"(?:Type|Value|Key|Name|Attribute|Index|ZeroDivision|FileNotFound|Assertion|Syntax|Indentation|ModuleNotFound|Import"
    r"|Permission|NotImplemented)Error: ",
    re.ASCII,
)
"""The last line of a traceback. Elsewhere in a line such a word may tell of an error that was caught."""
_VICTIM = re.compile(r"[Kk]ill(?:ed)? process (?P<pid>\d{1,10}),? \((?P<name>[^)]{0,40})\)", re.ASCII)
_VICTIM_SUMMARY = re.compile(r",task=(?P<name>[^,]{0,40}),pid=(?P<pid>\d{1,10}),", re.ASCII)

_BY_CODE = {code: sign for sign in SIGNS for code in sign.codes}
_SPOKEN = tuple((words[0], words[1:], sign) for sign in SIGNS for words in sign.words)
_BY_KIND = {sign.kind: sign for sign in SIGNS}
_OTHER_CODE = Sign(
    "other_code", Family.RUNTIME, Role.CONSEQUENCE, "a code of the vendor's that we know no meaning of", ()
)  # fmt: skip
_ADVICE = ("possible cause", "solution:", "possible reason")
"""With these the vendor's messages go on to guess, and their guesses have the words of other messages."""
_CONTEXTS = tuple({sign.within for sign in SIGNS if sign.within})


@dataclass(frozen=True, slots=True)
class AscendLog:
    """One log, read."""

    lines: int
    """How many it has."""
    long_lines: int
    """Of which only the first 4096 characters were read."""
    events: tuple[LogEvent, ...]
    """In the order of the text."""


class LogReader:
    """Reads a log line by line, and keeps what later lines go on with. For one log, and for one thread."""

    def __init__(self) -> None:
        self._number = 0
        self._head = Head()
        self._head_line = -_MESSAGE_LINES - 1
        self._before: deque[str] = deque(maxlen=_MESSAGE_LINES)
        """Lines not yet looked at for a head: few lines say anything, and only those want one."""
        self._seen: set[str] = set()
        self.long_lines = 0

    @property
    def lines(self) -> int:
        """The number of the last line."""
        return self._number

    def read(self, line: str, *, ended: bool = True) -> tuple[LogEvent, ...]:
        """What the line says. ended: it has its end of line; without, it may have been cut anywhere."""
        self._number += 1
        line = line.rstrip("\r\n")
        if len(line) > LONGEST_LINE_CHARS:
            self.long_lines += 1
            line, ended = line[:LONGEST_LINE_CHARS], False
        lowered, full = line.lower(), line + "\n" if ended else line
        found = _found_in(full, lowered, self._seen)
        self._seen.update(word for word in _CONTEXTS if word in lowered)
        events = self._events(full, found) if found else ()
        if not found:
            self._before.append(full)
        return events

    def _events(self, full: str, found: Mapping[str, tuple[Sign, str | None]]) -> tuple[LogEvent, ...]:
        own = head_of(full)
        if own.begins_a_message:
            self._keep(own, self._number)
        else:
            self._look_back()
        # What was cut may have had a head of its own further right.
        going_on = full.endswith("\n") and not own.begins_a_message and self._number - self._head_line <= _MESSAGE_LINES
        head = replace(self._head, pid=own.pid or self._head.pid) if going_on else own
        return tuple(self._event(full, sign, code, head, inherited=going_on) for sign, code in found.values())

    def _look_back(self) -> None:
        """The newest head of the lines that said nothing; lines older than those are known already."""
        for number, line in zip(range(self._number - 1, 0, -1), reversed(self._before), strict=False):
            head = head_of(line)
            if head.begins_a_message:
                self._keep(head, number)
                return
        self._before.clear()

    def _keep(self, head: Head, number: int) -> None:
        self._head, self._head_line = head, number
        self._before.clear()

    def _event(self, full: str, sign: Sign, code: str | None, head: Head, *, inherited: bool) -> LogEvent:
        pid, process, whole = head.pid, head.process, full.endswith("\n")
        points_at = blamed(full) if whole else None
        if sign.kind == "oom_kill":
            victim = _VICTIM.search(full) or _VICTIM_SUMMARY.search(full)
            pid, process = (int(victim["pid"]), victim["name"]) if victim else (None, None)
        return LogEvent(
            line=self._number,
            kind=sign.kind,
            family=sign.family,
            role=sign.role,
            says=sign.says,
            code=code,
            time=head.time,
            local_s=head.local_s,
            utc_offset_s=head.utc_offset_s,
            time_inherited=inherited,
            level=head.level,
            component=head.component,
            pid=pid,
            process=process,
            device_id=device_of(full) if whole and not (points_at or "").startswith("device ") else None,
            stream_id=stream_of(full),
            task_id=task_of(full),
            rank=rank_of(full),
            blames=points_at,
            file=source_of(full),
            text=_shown(full),
        )


def parse(text: str) -> AscendLog:
    """Every line of the text; raises nothing."""
    reader, events = LogReader(), list[LogEvent]()
    raws = text.split("\n")
    if raws and not raws[-1]:
        raws.pop()
    complete = text.endswith("\n")
    for number, raw in enumerate(raws, start=1):
        events += reader.read(raw, ended=complete or number < len(raws))
    return AscendLog(reader.lines, reader.long_lines, tuple(events))


def _found_in(full: str, lowered: str, seen: set[str]) -> dict[str, tuple[Sign, str | None]]:
    """Kind by kind: the first sign of it, and the first code."""
    found: dict[str, tuple[Sign, str | None]] = {}
    if lowered.lstrip().startswith(_ADVICE):
        return found
    for first, words, sign in _SPOKEN:
        if first not in lowered or not all(word in lowered for word in words):
            continue
        if not sign.within or sign.within in seen or sign.within in lowered:
            found.setdefault(sign.kind, (sign, None))
    for code in _codes(full):
        sign = _BY_CODE.get(code, _OTHER_CODE)
        if sign.kind not in found or found[sign.kind][1] is None:
            found[sign.kind] = (sign, code)
    if "Killed" in full and _KILLED.match(full):
        found.setdefault("killed", (_BY_KIND["killed"], None))
    if "Error: " in full and _RAISED.match(full):
        found.setdefault("python_error", (_BY_KIND["python_error"], None))
    if "device_exception" in found and (chip := _CHIP_CODE.search(full)):
        found["device_exception"] = (_BY_KIND["device_exception"], chip[1].lower())
    return found


def _codes(full: str) -> Iterator[str]:
    if "E" in full:
        yield from (match[1] for match in _VENDOR_CODE.finditer(full))
    if "07" in full:
        yield from (match[1] for match in _RETURN_CODE.finditer(full))


def _shown(text: str) -> str:
    cut = text.strip()[:_SHOWN_CHARS]
    return "".join(char if char.isprintable() else "�" for char in cut.replace("\t", " "))
