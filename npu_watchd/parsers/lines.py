"""The lines of a tool's answer, and what to say when one cannot be trusted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from npu_watchd.model.reading import Failure, FailureKind

_SHOWN = 160
# More digits than any count or measure of a chip has; Python itself refuses to read thousands of them.
_DIGITS = 20


class ParseError(ValueError):
    """The text cannot be trusted, or says that the tool failed; `line N: …` is what a person needs to see."""

    def __init__(self, number: int, problem: str, kind: FailureKind = FailureKind.UNPARSEABLE) -> None:
        super().__init__(f"line {number}: {problem}")
        self.number = number
        self.problem = problem
        self.kind = kind

    def failure(self) -> Failure:
        """The same as a value: the tool's own words when it refused, the line when it was we who could not read it."""
        if self.kind is FailureKind.UNPARSEABLE:
            return Failure(self.kind, str(self))
        return Failure(self.kind, self.problem)


@dataclass(frozen=True, slots=True)
class Line:
    number: int
    """From 1."""
    text: str
    """Without the end of line and without trailing blanks."""
    ended: bool
    """False for a last line without its end of line: it may have been cut anywhere."""

    def refuse(self, problem: str, kind: FailureKind = FailureKind.UNPARSEABLE) -> ParseError:
        """The error that names this line and quotes it."""
        return ParseError(self.number, f"{problem}: {quoted(self.text)}", kind)


def lines_of(text: str) -> Iterator[Line]:
    """Every line that is not blank, numbered as an editor would."""
    raws = text.split("\n")
    for number, raw in enumerate(raws, start=1):
        stripped = raw.rstrip()
        if stripped:
            yield Line(number, stripped, ended=number < len(raws))


def quoted(text: str) -> str:
    """The text as it may be shown: on one line, printable, at most 160 characters."""
    text = text.strip()
    shown = "".join(char if char.isprintable() else "�" for char in text[:_SHOWN])
    return repr(shown if len(text) <= _SHOWN else shown + "…")


def absent(text: str) -> bool:
    """True for the words with which the tools say that they have no value."""
    return text.strip() in {"", "NA", "N/A", "-", "Failed"}


def integer(line: Line, text: str) -> int | None:
    """A count; None for NA. Raises ParseError for anything that is not a whole, unsigned number."""
    if absent(text):
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= _DIGITS):
        raise line.refuse(f"{quoted(text)} is no count")
    return int(text)


def decimal(line: Line, text: str) -> float | None:
    """A measured value; None for NA. Raises ParseError for anything that is not a plain decimal number."""
    if absent(text):
        return None
    body = text.removeprefix("-")
    if not (len(body) <= _DIGITS and body.isascii() and body.replace(".", "", 1).isdigit() and body[0] != "."):
        raise line.refuse(f"{quoted(text)} is no number")
    return float(text)
