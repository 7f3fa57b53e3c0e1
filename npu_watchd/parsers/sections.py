"""`-t` answers cut into one section a chip: `key : value` lines, closed, opened or not marked at all by `Chip ID`.

On 910x and 310P the id closes a chip's values, on 310B and in `common` it opens them, in the chip form (`-c`) and on
Ascend 950 there is none. A failing chip prints its id and then `Failed to query npu chip: N info.` without values.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from npu_watchd.parsers.lines import Line, ParseError, integer, lines_of
from npu_watchd.parsers.tool_words import may_refuse, refusal

_CHIP_FAILED = re.compile(r"^Failed to query (?P<unit>npu|mcu) chip: (?P<chip>\d{1,9}) info\.$", re.ASCII)
_REMARKS = re.compile(r"^(?:DrvMng\w+ failed|\[|Get pid name failed)")
_IDLE = "No process in device."
# What follows these is anybody's text, and may read like a refusal of the tool.
_FREE_TEXT = (":", "Process id", "Error Information")
_NO_INFORMATION = "Failed to get error information"


class HeadingOnly(ParseError):
    """The answer announces chips and says nothing of them, which is how npu-smi hides some refusals behind exit 0."""


@dataclass(frozen=True, slots=True)
class Entry:
    line: Line
    key: str
    parts: list[str]
    """The value, and what lines with an empty key add to it."""

    @property
    def value(self) -> str:
        return "\n".join(self.parts)


@dataclass(slots=True)
class Section:
    """What the tool says of one chip, or of the card's MCU."""

    chip: int | None
    entries: list[Entry]
    failure: str | None = None
    mcu: bool = False

    def by_key(self) -> dict[str, Entry]:
        """The entries by their keys. Raises ParseError for a key that comes twice: these are two chips' values."""
        found: dict[str, Entry] = {}
        for entry in self.entries:
            if entry.key in found:
                raise entry.line.refuse("the same key twice for one chip")
            found[entry.key] = entry
        return found


@dataclass(slots=True)
class Answer:
    """All sections of one `-t` answer."""

    npu: int | None = None
    announced: int | None = None
    """`Chip Count`, where it is a heading. Fewer chips may follow: one whose ECC records are refused is left out."""
    chips: list[Section] = field(default_factory=list)
    mcu: Section | None = None


@dataclass(frozen=True, slots=True)
class _Marker:
    line: Line
    chip: int | None
    mcu: bool


@dataclass(frozen=True, slots=True)
class _Failed:
    text: str
    chip: int
    mcu: bool


_Token = Entry | _Marker | _Failed


def sections(text: str) -> Answer:
    """The answer's sections. Raises ParseError with the tool's words where it failed as a whole.

    A chip of which only the id is printed is left out, as if the answer did not speak of it; so is a last line without
    its end: a number in it may have been cut.
    """
    lines = list(lines_of(text))
    answer = Answer()
    tokens = _tokens(lines, answer, may_refuse(text))
    found = _split(tokens, single=answer.announced is None)
    found = [section for section in found if section.entries or section.failure]
    answer.chips = [section for section in found if not section.mcu]
    answer.mcu = next((section for section in found if section.mcu), None)
    _check(answer, lines)
    return answer


def _tokens(lines: Sequence[Line], answer: Answer, refusing: bool) -> list[_Token]:
    tokens: list[_Token] = []
    for line in lines:
        words = line.text.strip()
        failed = _CHIP_FAILED.match(words)
        if failed is not None:
            tokens.append(_Failed(words, int(failed["chip"]), failed["unit"] == "mcu"))
        elif words.startswith("Usage:"):
            break
        elif words == _IDLE:
            tokens.append(Entry(line, _IDLE, [""]))
        elif words.startswith(_NO_INFORMATION) and tokens and isinstance(tokens[-1], Entry):
            tokens[-1].parts.extend([words] if line.ended else [])
        elif words.startswith(_FREE_TEXT) or not ((refusing and refusal([line])) or _REMARKS.match(words)):
            _take(line, words, answer, tokens)
    return tokens


def _take(line: Line, words: str, answer: Answer, tokens: list[_Token]) -> None:
    key, colon, value = words.partition(":")
    key, value = key.rstrip(), value.lstrip()
    if not line.ended and not _closes(key, value, answer):
        return
    if not colon:
        raise line.refuse("neither a key nor a value")
    if key == "Chip ID":
        tokens.append(_Marker(line, integer(line, value), mcu=False))
    elif key == "NPU ID" and answer.npu is None and not tokens:
        answer.npu = integer(line, value)
    elif key == "Chip Count" and not tokens:
        answer.announced = integer(line, value)
    elif key == "Chip Name" and value.lower() == "mcu":
        tokens.append(_Marker(line, None, mcu=True))
    elif key == "" and tokens and isinstance(tokens[-1], Entry):
        tokens[-1].parts.append(value)
    else:
        tokens.append(Entry(line, key, [value]))


def _closes(key: str, value: str, answer: Answer) -> bool:
    """True for a last line that is whole although it has no end of line, as in a paste: no cut leaves just this."""
    if key == "Chip ID":
        return value.isdigit() and answer.announced is not None and answer.announced <= 10
    return key == "Chip Name" and value.lower() == "mcu"


def _split(tokens: Sequence[_Token], *, single: bool) -> list[Section]:
    failed, rest = _failing(tokens)
    markers = [token for token in rest if isinstance(token, _Marker)]
    entries = [token for token in rest if isinstance(token, Entry)]
    if not markers:
        if entries and not single:
            raise entries[0].line.refuse("values of a chip that no Chip ID names: the text is cut off")
        plain = [Section(None, entries)] if entries else []
    elif single and len(markers) == 1:
        _check_alone(rest, markers[0])
        plain = [Section(markers[0].chip, entries, mcu=markers[0].mcu)]
    elif _ids_come_first(rest):
        plain = _opened(rest)
    else:
        plain = _closed(rest)
    return sorted(plain + failed, key=lambda section: (section.mcu, -1 if section.chip is None else section.chip))


def _check_alone(tokens: Sequence[_Token], marker: _Marker) -> None:
    """Raises ParseError where a blank line below the only id says that another chip's values begin."""
    place = tokens.index(marker)
    if 0 < place < len(tokens) - 1 and not _adjoin(marker, tokens[place + 1]):
        raise marker.line.refuse("values of a chip that no Chip ID names: the text is cut off")


def _failing(tokens: Sequence[_Token]) -> tuple[list[Section], list[_Token]]:
    """Failing chips, and the tokens without them and the ids that they printed."""
    failed: list[Section] = []
    rest: list[_Token] = []
    for token in tokens:
        if not isinstance(token, _Failed):
            rest.append(token)
            continue
        chip: int | None = None
        last = rest[-1] if rest else None
        if isinstance(last, _Marker):
            # An id that is not the failing chip's closes the values of the one before.
            if last.mcu == token.mcu and last.chip in (token.chip, None):
                rest.pop()
            chip = None if token.mcu else token.chip
        failed.append(Section(chip, [], token.text, mcu=token.mcu))
    return failed, rest


def _ids_come_first(tokens: Sequence[_Token]) -> bool:
    """True where an id opens its chip's values; where ids stand at both ends, the blank lines tell.

    Raises ParseError where they do not: a chip without values would get its neighbour's.
    """
    first, last = tokens[0], tokens[-1]
    if not (isinstance(first, _Marker) and isinstance(last, _Marker)):
        return isinstance(first, _Marker)
    if not any(isinstance(token, Entry) for token in tokens):
        return True
    opens = _adjoin(first, tokens[1])
    if opens == _adjoin(tokens[-2], last):
        raise last.line.refuse("nothing tells whether the Chip ID opens or closes a chip's values")
    return opens


def _adjoin(above: _Token, below: _Token) -> bool:
    """True without a blank line between the two. Only the first line of an entry is known."""
    if isinstance(above, _Failed) or isinstance(below, _Failed):
        return False
    length = len(above.parts) if isinstance(above, Entry) else 1
    return below.line.number <= above.line.number + length


def _opened(tokens: Iterable[_Token]) -> list[Section]:
    found: list[Section] = []
    for token in tokens:
        if isinstance(token, _Marker):
            found.append(Section(token.chip, [], mcu=token.mcu))
        elif isinstance(token, Entry):
            found[-1].entries.append(token)
    return found


def _closed(tokens: Iterable[_Token]) -> list[Section]:
    found: list[Section] = []
    entries: list[Entry] = []
    for token in tokens:
        if isinstance(token, _Marker):
            found.append(Section(token.chip, entries, mcu=token.mcu))
            entries = []
        elif isinstance(token, Entry):
            entries.append(token)
    if entries:
        raise entries[0].line.refuse("values that no Chip ID closes: the text is cut off")
    return found


def _check(answer: Answer, lines: Sequence[Line]) -> None:
    if not lines:
        raise ParseError(1, "npu-smi printed nothing")
    number = lines[-1].number
    if not any(section.entries for section in answer.chips):
        refused = refusal(lines)
        if refused is not None:
            raise refused
        if answer.mcu is None:
            raise HeadingOnly(number, "npu-smi said nothing of any chip")
    if answer.announced is not None and answer.announced < len(answer.chips):
        raise ParseError(number, f"Chip Count says {answer.announced}, but {len(answer.chips)} chips follow")
    ids = [section.chip for section in answer.chips]
    if len(set(ids)) != len(ids):
        raise ParseError(number, "the same Chip ID twice")
