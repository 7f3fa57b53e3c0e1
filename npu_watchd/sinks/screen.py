"""How lines lie on a terminal: wrapped ones, and a whole screen that is drawn again and again without flicker."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.text import Text

_OTHER_SCREEN, _BACK = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"
"""The terminal's second screen, without a cursor; and back to what was there before."""
_HOME, _REST_OF_LINE, _REST_OF_SCREEN = "\x1b[H", "\x1b[K", "\x1b[J"


class Screen:
    """Draws over what stands there instead of clearing it first; what does not fit is counted in the last line."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def __enter__(self) -> Self:
        self._write(_OTHER_SCREEN)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._write(_BACK)

    def draw(self, shown: RenderableType) -> None:
        """In the size that the terminal has now."""
        with self._console.capture() as drawn:
            self._console.print(shown)
        self._write(framed(drawn.get().splitlines(), self._console.height))

    def _write(self, text: str) -> None:
        self._console.file.write(text)
        self._console.file.flush()


def framed(lines: list[str], height: int) -> str:
    """These lines over those of before, at most as many as the screen has."""
    if len(lines) > height:
        hidden = len(lines) - height + 1
        lines = [*lines[: height - 1], f"… {hidden} more lines: `npu-watchd status | less` has them"]
    # No line end after the last: it would push the first one out.
    return _HOME + "\n".join(line + _REST_OF_LINE for line in lines) + _REST_OF_SCREEN


def hanging(part: RenderableType) -> RenderableType:
    """A line that is indented stays so where it is wrapped."""
    if not isinstance(part, Text) or "\n" in part.plain:
        return part
    indent = len(part.plain) - len(part.plain.lstrip(" "))
    return Padding(part[indent:], (0, 0, 0, indent), expand=False) if indent else part
